import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isStorableText, scrubData, scrubText } from '../../../../src/domain/values/text.ts';

/** Any UTF-16, lone surrogates and U+0000 included. */
const wild = fc
  .array(fc.oneof(fc.constantFrom(0, 0xd800, 0xdfff, 0xfffd), fc.integer({ min: 0, max: 0xffff })), { maxLength: 20 })
  .map((units) => String.fromCharCode(...units));

describe('scrubText', () => {
  it('gives storable text, changes nothing else, and is idempotent', () => {
    fc.assert(
      fc.property(wild, (text) => {
        const scrubbed = scrubText(text);
        expect(isStorableText(scrubbed)).toBe(true);
        expect(scrubText(scrubbed)).toBe(scrubbed);
        if (isStorableText(text)) expect(scrubbed).toBe(text);
        expect(scrubbed).toHaveLength(text.length);
      }),
    );
  });

  it.each([
    ['a\u0000b', 'a\uFFFDb'],
    ['\ud800', '\uFFFD'],
    ['\udc00\ud800', '\uFFFD\uFFFD'],
    ['cut emoji \ud83d', 'cut emoji \uFFFD'],
    ['whole emoji 🎲', 'whole emoji 🎲'],
  ])('%j becomes %j', (text, expected) => expect(scrubText(text)).toBe(expected));

  it('agrees with the text that UTF-8 can encode', () => {
    fc.assert(
      fc.property(wild, (text) => {
        const survives = Buffer.from(text, 'utf8').toString('utf8') === text && !text.includes('\u0000');
        expect(isStorableText(text)).toBe(survives);
      }),
    );
  });
});

describe('scrubData', () => {
  it('reaches every string and every key, at any depth', () => {
    const json = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 4 },
        wild,
        fc.constantFrom(null, true, 1.5),
        fc.array(tie('node'), { maxLength: 3 }),
        fc.dictionary(wild, tie('node'), { maxKeys: 3, noNullPrototype: true }),
      ),
    })).node;
    fc.assert(
      fc.property(json, (value) => {
        const text = JSON.stringify(scrubData(value));
        expect(text).not.toMatch(/\\u0000|\\ud[89a-f]/i);
      }),
    );
  });

  it('keeps numbers, booleans and null unchanged', () => {
    const data = { a: [1, true, null, { b: 'x' }] };
    expect(scrubData(data)).toEqual(data);
  });

  it('keeps a key named __proto__ as a key', () => {
    const scrubbed = scrubData(JSON.parse('{"__proto__":{"polluted":"\\u0000"}}')) as object;
    expect(Object.keys(scrubbed)).toEqual(['__proto__']);
    expect(scrubbed).not.toHaveProperty('polluted');
  });
});
