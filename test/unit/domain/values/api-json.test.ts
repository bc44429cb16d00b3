import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ApiJson,
  decimalField,
  JsonText,
  numberField,
  optionalDecimal,
  toJsonText,
} from '../../../../src/domain/values/api-json.ts';
import { compareDecimals, decimal } from '../../../../src/domain/values/decimal.ts';

/** Decimal text as `numeric` prints it: any number of digits, trailing zeros kept. */
const numericText = fc
  .tuple(
    fc.boolean(),
    fc.bigInt({ min: 0n, max: 10n ** 40n }),
    fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: 40 }),
  )
  .map(([isNegative, whole, fraction]) => `${isNegative ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`);

describe('exact numbers in JSON', () => {
  it('keep every digit as numbers and as strings', () => {
    fc.assert(
      fc.property(numericText, (text) => {
        const asNumber = toJsonText({ v: decimalField(text) }, 'number');
        const digits = asNumber.slice('{"v":'.length, -1);
        expect(digits).toMatch(/^-?(0|[1-9]\d*)(\.\d*[1-9])?$/);
        expect(compareDecimals(decimal(digits), decimal(text))).toBe(0);
        expect(toJsonText({ v: decimalField(text) }, 'string')).toBe(`{"v":"${digits}"}`);
        expect(toJsonText({ v: numberField(text) }, 'string')).toBe(asNumber);
      }),
    );
  });

  it('are valid JSON that parses to the nearest double', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const text = toJsonText([decimalField(String(value))], 'number');
        expect(JSON.parse(text)).toEqual([value === 0 ? 0 : value]);
      }),
    );
  });

  it('are absent when unknown', () => {
    expect(
      toJsonText({ a: optionalDecimal(null), b: optionalDecimal(undefined), c: optionalDecimal('0.0') }, 'number'),
    ).toBe('{"c":0}');
    expect(() => decimalField('NaN')).toThrow(RangeError);
  });
});

describe('toJsonText', () => {
  it('writes any other JSON as JSON.stringify does', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(toJsonText(value as ApiJson, 'number')).toBe(JSON.stringify(value));
      }),
    );
  });

  it('omits an undefined field, and inserts stored JSON with its exact digits', () => {
    const answer = {
      a: undefined,
      b: null,
      c: new JsonText('{"n":1.50}'),
      d: [new JsonText('[1.0]'), true],
      e: undefined,
    };
    expect(toJsonText(answer, 'string')).toBe('{"b":null,"c":{"n":1.50},"d":[[1.0],true]}');
    expect(toJsonText({ a: undefined }, 'number')).toBe('{}');
  });

  it('rejects numbers that JSON cannot represent', () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY])
      expect(() => toJsonText(value, 'number')).toThrow(RangeError);
  });
});
