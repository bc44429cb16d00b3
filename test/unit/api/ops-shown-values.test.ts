import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { change, percent } from '../../../api/pages/console/values.ts';
import { hexDump, prettyJson } from '../../../api/pages/kit/pretty-json.ts';
import { amountText, decimalText } from '../../../api/pages/kit/shown-values.ts';
import { shownUrl } from '../../../src/domain/values/parse-url.ts';

describe('pretty JSON', () => {
  it('keeps the JSON value at any depth', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(JSON.parse(prettyJson(text))).toEqual(JSON.parse(text));
      }),
    );
  });

  it('keeps every digit and has one line per field', () => {
    expect(prettyJson('{"a":0.10000000000000000005,"b":[1E400,2.50],"c":{},"d":"x, {\\"y\\": [1]}"}')).toBe(
      '{\n  "a": 0.10000000000000000005,\n  "b": [\n    1E400,\n    2.50\n  ],\n  "c": {},\n  "d": "x, {\\"y\\": [1]}"\n}',
    );
  });

  it('escapes direction controls and accepts text that is not JSON', () => {
    expect(prettyJson('"\u202eabc\u2066"')).toBe('"\\u202eabc\\u2066"');
    const bare = (text: string) => text.replace(/\s/g, '');
    fc.assert(fc.property(fc.string(), (text) => bare(prettyJson(text)) === bare(text)));
    expect(prettyJson('}}"open')).toBe('\n}\n}"open');
  });
});

it('hexDump shows offset, bytes and text', () => {
  expect(hexDump(Buffer.from('0123456789abcdef\n\u00ff'))).toBe(
    '0000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef\n' +
      `0010  0a c3 bf${' '.repeat(39)}  ...`,
  );
});

describe('decimals', () => {
  it.each([
    ['1234567.5', '1,234,567.5'],
    ['-1234', '-1,234'],
    ['0.123456789', '0.1234…'],
    ['0.000000123456', '0.000000123…'],
    ['0.0000001', '0.0000001'],
    ['999', '999'],
  ])('%s is shown as %s', (text, shown) => {
    expect(
      decimalText(text)
        .toString()
        .replace(/<[^>]*>/g, ''),
    ).toBe(shown);
    if (shown.endsWith('…')) expect(decimalText(text).toString()).toContain(`title="${text}"`);
  });
});

describe('rounded values', () => {
  const textOf = (markup: { toString(): string }) => markup.toString().replace(/<[^>]*>/g, '');

  it.each([
    ['1234567.885', '1,234,567.89 USD'],
    ['1.005', '1.01 USD'],
    ['-1234.5', '-1,234.50 USD'],
    ['9007199254740993.25', '9,007,199,254,740,993.25 USD'],
    ['0.123456', '0.1234… USD'],
    ['0', '0.00 USD'],
  ])('the amount %s is shown as %s', (text, shown) => {
    expect(textOf(amountText(text, 'USD'))).toBe(shown);
  });

  it.each([
    ['0.0145', '1.5 %'],
    [0.2925, '29.3 %'],
    ['0.5', '50.0 %'],
    [1e-7, '0.0 %'],
  ])('the price %s is shown as %s', (price, shown) => {
    expect(percent(price)).toBe(shown);
  });

  it('a change is the exact difference, and a rounded zero has no sign', () => {
    expect(textOf(change('0.1', '0.1145'))).toBe('▲ +1.5 pt');
    expect(textOf(change('0.1145', '0.1'))).toBe('▼ −1.5 pt');
    expect(textOf(change('0.1', '0.0996'))).toBe('0.0 pt');
  });
});

describe('addresses', () => {
  it.each([
    ['https://a.test/hook', 'https://a.test/hook'],
    ['https://a.test:8443/hook?token=x', 'https://a.test:8443/hook?…'],
    [
      'https://a.test/services/T00000000/B00000000/abcdefghijklmnopqrst',
      'https://a.test/services/T00000000/B00000000/abcd…',
    ],
    ['https://user:pass@a.test/', 'https://a.test/'],
    ['nonsense', 'invalid address'],
  ])('%s is shown as %s', (url, shown) => expect(shownUrl(url)).toBe(shown));
});
