import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createCursorCodec, InvalidCursorError } from '../../../../src/domain/values/cursor.ts';

const codec = createCursorCodec(Buffer.alloc(32, 1));
const text = fc.string({ unit: 'grapheme', maxLength: 40 });
const position = fc.array(text, { maxLength: 4 });

describe('cursors', () => {
  it('encode and decode a position, deterministically, in text fit for a URL', () => {
    fc.assert(
      fc.property(text, position, (scope, place) => {
        const cursor = codec.encode(scope, place);
        expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
        expect(codec.encode(scope, place)).toBe(cursor);
        expect(codec.decode(scope, cursor)).toEqual(place);
      }),
    );
  });

  it('stay valid over releases, because clients may keep them for long', () => {
    const cursor = 'A_IQNlClYSfxxR5Dn80TrK2bFzIjQVvxBYNvcvRpqVkLcgTHAXNWLqNC';
    expect(codec.encode('markets', ['123', '0.5'])).toBe(cursor);
    expect(codec.decode('markets', cursor)).toEqual(['123', '0.5']);
  });

  it('of the signed forms 1 and 2 of earlier releases are rejected', () => {
    const signed = Buffer.from('ATFrJQVhH7Iyc1obWld9ylpbIjEyMyIsIjAuNSJd', 'base64url');
    for (const form of [1, 2]) {
      const cursor = Buffer.from([form, ...signed.subarray(1)]).toString('base64url');
      expect(() => codec.decode('markets', cursor)).toThrow(InvalidCursorError);
    }
  });

  it('do not show their position', () => {
    const near = ['1000001', '1000002'].map((row) => Buffer.from(codec.encode('markets', [row]), 'base64url'));
    for (const bytes of near) expect(bytes.toString('latin1')).not.toMatch(/100000/);
    const [one, other] = near.map((bytes) => bytes.subarray(1).toString('latin1')) as [string, string];
    expect([...one].filter((byte, at) => byte === other[at]).length).toBeLessThan(one.length / 4);
  });

  it('are rejected with any other scope or key', () => {
    const other = createCursorCodec(Buffer.alloc(32, 2));
    fc.assert(
      fc.property(text, text, position, (scope, otherScope, place) => {
        fc.pre(scope !== otherScope);
        expect(() => codec.decode(otherScope, codec.encode(scope, place))).toThrow(InvalidCursorError);
        expect(() => other.decode(scope, codec.encode(scope, place))).toThrow(InvalidCursorError);
      }),
    );
  });

  it('are rejected when any character is changed, added or missing', () => {
    const cursor = codec.encode('markets', ['123', '0.5']);
    const altered = [...cursor].flatMap((_, at) => [
      cursor.slice(0, at),
      cursor.slice(at + 1),
      ...[...'ABab01-_'].map((character) => `${cursor.slice(0, at)}${character}${cursor.slice(at + 1)}`),
    ]);
    for (const candidate of [...altered, ...[...'=A %\n'].map((extra) => cursor + extra)]) {
      if (candidate !== cursor) expect(() => codec.decode('markets', candidate)).toThrow(InvalidCursorError);
    }
  });

  it('may have 1024 characters, and are rejected beyond without parsing', () => {
    const long = (length: number) => codec.encode('markets', ['x'.repeat(length)]);
    expect(long(735)).toHaveLength(1024);
    expect(codec.decode('markets', long(735))).toEqual(['x'.repeat(735)]);
    expect(() => codec.decode('markets', long(736))).toThrow(InvalidCursorError);
  });

  it('are rejected in any other form', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.base64String(), fc.string({ minLength: 1025, maxLength: 3000 })),
        (candidate) => {
          expect(() => codec.decode('markets', candidate)).toThrow(expect.objectContaining({ code: 'invalid_cursor' }));
        },
      ),
    );
  });
});
