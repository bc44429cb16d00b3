import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addDecimals,
  compareDecimals,
  type Decimal,
  decimal,
  divideDecimals,
  midpoint,
  multiplyDecimals,
  negateDecimal,
  parseDecimal,
  roundedText,
  subtractDecimals,
} from '../../../../src/domain/values/decimal.ts';

/** The model: an exact rational `units / 10^scale`. */
interface Rational {
  units: bigint;
  scale: number;
}

function toRational(text: string): Rational {
  const point = text.indexOf('.');
  const scale = point === -1 ? 0 : text.length - point - 1;
  return { units: BigInt(text.replace('.', '')), scale };
}

/** `a - b` over a common denominator: 0n exactly when they are equal. */
function difference(a: Rational, b: Rational): bigint {
  return a.units * 10n ** BigInt(b.scale) - b.units * 10n ** BigInt(a.scale);
}

function sign(value: bigint): -1 | 0 | 1 {
  return value < 0n ? -1 : value > 0n ? 1 : 0;
}

const CANONICAL = /^(0|-?[1-9]\d*|-?(0|[1-9]\d*)\.\d*[1-9])$/;

const digits = (max: number) => fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: max });
/** Plain notation with leading and trailing zeros, beside its rational value. */
const plain = fc.tuple(fc.constantFrom('', '-', '+'), digits(30), fc.option(digits(30))).map(([mark, whole, part]) => ({
  text: `${mark}${whole}${part === null ? '' : `.${part}`}`,
  value: toRational(`${mark === '-' ? '-' : ''}${whole}${part === null ? '' : `.${part}`}`),
}));
const anyDecimal = plain.map(({ text }) => decimal(text));

describe('parseDecimal', () => {
  it('keeps the value and gives the canonical form', () => {
    fc.assert(
      fc.property(plain, ({ text, value }) => {
        const parsed = parseDecimal(text);
        expect(parsed).toMatch(CANONICAL);
        expect(difference(toRational(parsed ?? 'x'), value)).toBe(0n);
      }),
    );
  });

  it('reads exponents as shifts of the point', () => {
    fc.assert(
      fc.property(
        plain,
        fc.integer({ min: -60, max: 60 }),
        fc.constantFrom('e', 'E'),
        ({ text, value }, exponent, e) => {
          const parsed = parseDecimal(`${text}${e}${exponent >= 0 ? '+' : ''}${exponent}`);
          const shifted =
            exponent >= 0
              ? { units: value.units * 10n ** BigInt(exponent), scale: value.scale }
              : { units: value.units, scale: value.scale - exponent };
          expect(parsed).toMatch(CANONICAL);
          expect(difference(toRational(parsed ?? 'x'), shifted)).toBe(0n);
        },
      ),
    );
  });

  it('parses its own output to the same text', () => {
    const hostile = fc.oneof(
      plain.map(({ text }) => text),
      fc.tuple(plain, fc.integer({ min: -450, max: 450 })).map(([{ text }, exponent]) => `${text}e${exponent}`),
      digits(450),
      fc.double(),
      fc.string(),
    );
    fc.assert(
      fc.property(hostile, (input) => {
        const parsed = parseDecimal(input);
        if (parsed !== null) expect(parseDecimal(parsed)).toBe(parsed);
      }),
      { numRuns: 500 },
    );
  });

  it.each(['1e399', '1e400', '-1e399', '1e-399', '9'.repeat(400), `0.${'0'.repeat(397)}1`])(
    'never makes a decimal that it would reject: %s',
    (text) => {
      const parsed = parseDecimal(text);
      if (parsed !== null) expect(parseDecimal(parsed)).toBe(parsed);
    },
  );

  it('accepts up to 400 characters, in input and output', () => {
    expect(parseDecimal('9'.repeat(400))).toBe('9'.repeat(400));
    expect(parseDecimal('9'.repeat(401))).toBeNull();
    expect(parseDecimal(`${'0'.repeat(400)}1`)).toBeNull();
    expect(parseDecimal('1e399')).toBe(`1${'0'.repeat(399)}`);
    expect(parseDecimal('1e400')).toBeNull();
    expect(parseDecimal('1e-398')).toBe(`0.${'0'.repeat(397)}1`);
    expect(parseDecimal('1e-399')).toBeNull();
    expect(parseDecimal('0e-9999')).toBe('0');
  });

  it('converts a JSON number by its shortest text', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        expect(Number(parseDecimal(number))).toBe(number === 0 ? 0 : number);
      }),
    );
  });

  it.each([
    [1e-7, '0.0000001'],
    [0.8073684210526316, '0.8073684210526316'],
    [5e-324, `0.${'0'.repeat(323)}5`],
    [1e21, `1${'0'.repeat(21)}`],
    [1.7976931348623157e308, `17976931348623157${'0'.repeat(292)}`],
    [0.1 + 0.2, '0.30000000000000004'],
    [-0, '0'],
    ['1e-7', '0.0000001'],
    ['1E5', '100000'],
    ['1.50e+2', '150'],
    ['-0.0', '0'],
    ['-0e9', '0'],
    ['+007.500', '7.5'],
    ['.5', '0.5'],
    ['5.', '5'],
    ['-.5e1', '-5'],
    [' 0.25\n', '0.25'],
    ['0.1200', '0.12'],
  ])('%j is %s', (input, expected) => expect(parseDecimal(input)).toBe(expected));

  it.each([
    '',
    ' ',
    '.',
    '-',
    '+.',
    'e5',
    '.e5',
    '1e',
    '1e1.5',
    '1e99999',
    '1e-401',
    '1e401',
    '1e9999',
    '1e10000',
    'x1',
    'x1e5',
    '1e5x',
    '1ee5',
    'NaN',
    'Infinity',
    '0x10',
    '1_000',
    '1,5',
    '1 2',
    '--1',
    '1.2.3',
    '١',
    '１',
    '1\u0000',
    '9'.repeat(401),
    `1.${'0'.repeat(1_000_000)}`,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    null,
    undefined,
    true,
    10n,
    ['1'],
    {},
  ])('rejects %s', (input) => expect(parseDecimal(input)).toBeNull());

  // Quadratic work over five million characters would take minutes, beyond the time limit of every test.
  it('rejects a hostile length without processing it', () => {
    for (const text of ['1'.repeat(5_000_000), `1e${'9'.repeat(5_000_000)}`, `${'0'.repeat(5_000_000)}.5`]) {
      expect(parseDecimal(text)).toBeNull();
    }
  });
});

describe('decimal', () => {
  it('throws for other text, without repeating it', () => {
    expect(() => decimal('hunter2')).toThrow(new RangeError('not a decimal'));
    expect(() => decimal('hunter2')).not.toThrow(/hunter2/);
  });
});

describe('decimal arithmetic', () => {
  const check = (result: Decimal, expected: Rational) => {
    expect(result).toMatch(CANONICAL);
    expect(difference(toRational(result), expected)).toBe(0n);
  };
  const over = (a: Rational, b: Rational) => {
    const scale = Math.max(a.scale, b.scale);
    const raise = (value: Rational) => value.units * 10n ** BigInt(scale - value.scale);
    return { a: raise(a), b: raise(b), scale };
  };

  it('compares like exact rationals', () => {
    fc.assert(
      fc.property(anyDecimal, anyDecimal, (a, b) => {
        expect(compareDecimals(a, b)).toBe(sign(difference(toRational(a), toRational(b))));
      }),
    );
    fc.assert(
      fc.property(anyDecimal, (a) => {
        expect(compareDecimals(a, a)).toBe(0);
      }),
    );
  });

  it('compares values that differ only in the last digit, the point or the sign', () => {
    const near = fc
      .tuple(
        fc.constantFrom('', '-'),
        fc.constantFrom('0', '7', '70', '9'),
        fc.constantFrom('', '.', '.0', '.1', '0.'),
        digits(2),
      )
      .map(([mark, whole, middle, last]) => decimal(`${mark}${whole}${middle}${last}`));
    fc.assert(
      fc.property(near, near, (a, b) => {
        expect(compareDecimals(a, b)).toBe(sign(difference(toRational(a), toRational(b))));
      }),
      { numRuns: 2_000 },
    );
  });

  it('adds and subtracts like exact rationals', () => {
    fc.assert(
      fc.property(anyDecimal, anyDecimal, (a, b) => {
        const common = over(toRational(a), toRational(b));
        check(addDecimals(a, b), { units: common.a + common.b, scale: common.scale });
        check(subtractDecimals(a, b), { units: common.a - common.b, scale: common.scale });
        expect(addDecimals(subtractDecimals(a, b), b)).toBe(a);
        expect(addDecimals(a, negateDecimal(b))).toBe(subtractDecimals(a, b));
      }),
    );
  });

  it('multiplies like exact rationals', () => {
    fc.assert(
      fc.property(anyDecimal, anyDecimal, (a, b) => {
        const [x, y] = [toRational(a), toRational(b)];
        check(multiplyDecimals(a, b), { units: x.units * y.units, scale: x.scale + y.scale });
      }),
    );
  });

  it('divides like exact rationals, rounded half to even', () => {
    const scales = fc.integer({ min: 0, max: 25 });
    fc.assert(
      fc.property(anyDecimal, anyDecimal, scales, (a, b, scale) => {
        fc.pre(b !== '0');
        const common = over(toRational(a), toRational(b));
        const quotient = divideDecimals(a, b, scale);
        expect(quotient).toMatch(CANONICAL);
        const given = over(toRational(quotient), { units: 0n, scale });
        // |a / b - quotient| <= half a unit of the last digit; exactly half only at an even digit.
        const error = 2n * (common.a * 10n ** BigInt(given.scale) - given.a * common.b);
        const unit = common.b * 10n ** BigInt(given.scale - scale);
        const [distance, bound] = [error < 0n ? -error : error, unit < 0n ? -unit : unit];
        expect(distance <= bound).toBe(true);
        const last = given.a / 10n ** BigInt(given.scale - scale);
        if (distance === bound) expect(last % 2n).toBe(0n);
      }),
      {
        examples: [
          [decimal('0.5'), decimal('1'), 0],
          [decimal('-1.5'), decimal('1'), 0],
          [decimal('1'), decimal('-3'), 20],
        ],
      },
    );
  });

  it('divides a product exactly by its factor', () => {
    fc.assert(
      fc.property(anyDecimal, anyDecimal, (a, b) => {
        fc.pre(b !== '0');
        expect(divideDecimals(multiplyDecimals(a, b), b, toRational(a).scale)).toBe(a);
      }),
    );
  });

  it('rounds a half to the even digit, on both sides of zero', () => {
    const rounded = (a: string) => divideDecimals(decimal(a), decimal('1'), 0);
    expect(['0.5', '1.5', '2.5', '2.51', '-0.5', '-1.5', '-2.5'].map(rounded)).toEqual([
      '0',
      '2',
      '2',
      '3',
      '0',
      '-2',
      '-2',
    ]);
    expect(() => divideDecimals(decimal('1'), decimal('0'), 3)).toThrow(RangeError);
  });

  it.each([
    ['0.125', 2, '0.13'],
    ['-0.125', 2, '-0.13'],
    ['0.124999', 2, '0.12'],
    ['-0.004', 2, '0.00'],
    ['7', 2, '7.00'],
    ['0.5', 0, '1'],
    ['-12345678901234567890.95', 1, '-12345678901234567891.0'],
  ])('writes %s with %i digits for people, rounded half away from zero', (value, digits, text) => {
    expect(roundedText(decimal(value), digits)).toBe(text);
  });

  it('computes midpoints like exact rationals', () => {
    fc.assert(
      fc.property(anyDecimal, anyDecimal, (a, b) => {
        const common = over(toRational(a), toRational(b));
        check(midpoint(a, b), { units: (common.a + common.b) * 5n, scale: common.scale + 1 });
      }),
    );
  });

  it('keeps digits that a float would lose', () => {
    expect(addDecimals(decimal('0.1'), decimal('0.2'))).toBe('0.3');
    expect(multiplyDecimals(decimal('1.1'), decimal('1.1'))).toBe('1.21');
    expect(compareDecimals(decimal('0.30000000000000004'), decimal('0.3'))).toBe(1);
    expect(compareDecimals(decimal('9007199254740993'), decimal('9007199254740992'))).toBe(1);
  });
});
