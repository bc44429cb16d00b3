import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createCursorCodec, InvalidCursorError } from '../../../src/domain/cursor.ts';

const codec = createCursorCodec(Buffer.alloc(32, 1));
const text = fc.string({ unit: 'grapheme', maxLength: 40 });
const position = fc.array(text, { maxLength: 4 });

describe('cursors', () => {
  it('read back to what they were made of, deterministically, in text fit for a URL', () => {
    fc.assert(
      fc.property(text, position, (scope, place) => {
        const cursor = codec.encode(scope, place);
        expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
        expect(codec.encode(scope, place)).toBe(cursor);
        expect(codec.decode(scope, cursor)).toEqual(place);
      }),
    );
  });

  it('are refused with any other scope or key', () => {
    const other = createCursorCodec(Buffer.alloc(32, 2));
    fc.assert(
      fc.property(text, text, position, (scope, otherScope, place) => {
        fc.pre(scope !== otherScope);
        expect(() => codec.decode(otherScope, codec.encode(scope, place))).toThrow(InvalidCursorError);
        expect(() => other.decode(scope, codec.encode(scope, place))).toThrow(InvalidCursorError);
      }),
    );
  });

  it('are refused when one character is changed, added or missing', () => {
    const cursor = codec.encode('markets', ['123', '0.5']);
    const altered = fc.oneof(
      fc.tuple(fc.nat(cursor.length - 1), fc.constantFrom(...'ABab01-_')).map(([at, character]) => {
        return `${cursor.slice(0, at)}${character}${cursor.slice(at + 1)}`;
      }),
      fc.nat(cursor.length - 1).map((length) => cursor.slice(0, length)),
      fc.constantFrom('=', 'A', ' ', '%', '\n').map((extra) => cursor + extra),
    );
    fc.assert(
      fc.property(altered, (candidate) => {
        fc.pre(candidate !== cursor);
        expect(() => codec.decode('markets', candidate)).toThrow(InvalidCursorError);
      }),
    );
  });

  it('are refused when they are anything else', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.base64String(), fc.string({ minLength: 1025, maxLength: 3000 })),
        (candidate) => {
          expect(() => codec.decode('markets', candidate)).toThrow(InvalidCursorError);
        },
      ),
    );
  });
});
