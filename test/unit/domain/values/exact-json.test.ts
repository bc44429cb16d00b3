import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LongNumber, parseDecimal } from '../../../../src/domain/values/decimal.ts';
import { parseExactJson } from '../../../../src/domain/values/exact-json.ts';

describe('parseExactJson', () => {
  it('returns the value of JSON.parse when every number fits a double', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent);
        expect(parseExactJson(text)).toEqual({ value: JSON.parse(text) });
      }),
    );
  });

  it('keeps every digit of a number wherever it stands', () => {
    const digits = fc.bigInt({ min: 10n ** 20n, max: 10n ** 60n }).filter((number) => number % 10n !== 0n);
    fc.assert(
      fc.property(digits, fc.integer({ min: 1, max: 40 }), (number, places) => {
        const text = `${number}e-${places}`;
        const { value } = parseExactJson(
          `{"a":[1,{"b":"{\\"5","c":[${text}]},"${text}"],"__proto__":${text},"d":${text}}`,
        );
        const long = new LongNumber(text);
        expect(value).toEqual(
          JSON.parse(`{"a":[1,{"b":"{\\"5","c":[0]},"${text}"],"__proto__":0,"d":0}`, (_key, held) =>
            held === 0 ? long : held,
          ),
        );
        expect(JSON.stringify(long)).toBe(`"${parseDecimal(text)}"`);
      }),
    );
  });

  it.each([
    ['{"a":1,"a":1}', 'a', 8],
    ['[0,{"a":{"b":{},"c":[],"b":null}}]', '1.a.b', 24],
    ['{"a":{"x":12345678901234567890123},"a":5}', 'a', 36],
    ['{"a":[{"x":1}],"a":null}', 'a', 16],
    [String.raw`{"a":1, "\u0061":2}`, 'a', 9],
    ['{"__proto__":1,"__proto__":2}', '__proto__', 16],
  ])('reports the name that %s repeats', (text, path, at) => {
    expect(parseExactJson(text).repeated).toEqual({ path, at });
  });

  it('accepts one name in several objects', () => {
    expect(parseExactJson('[{"a":{"a":["a","a"]}},{"a":":"}]').repeated).toBeUndefined();
  });

  it('parses brackets that nest deeper than the call stack', () => {
    const depth = 30_000;
    expect(parseExactJson(`${'['.repeat(depth)}1${']'.repeat(depth)}`).repeated).toBeUndefined();
  });

  it.each(['', '{', '{"a":1,}', 'NaN', "{'a':1}", '1 2'])('throws a SyntaxError for %j', (text) => {
    expect(() => parseExactJson(text)).toThrow(SyntaxError);
  });
});
