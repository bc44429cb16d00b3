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
    const cursor = 'ATFrJQVhH7Iyc1obWld9ylpbIjEyMyIsIjAuNSJd';
    expect(codec.encode('markets', ['123', '0.5'])).toBe(cursor);
    expect(codec.decode('markets', cursor)).toEqual(['123', '0.5']);
  });

  it('of a later version are accepted only by lists that name it', () => {
    fc.assert(
      fc.property(text, position, fc.integer({ min: 2, max: 255 }), (scope, place, version) => {
        const cursor = codec.encode(scope, place, version);
        expect(codec.decodeVersion(scope, cursor, [1, version])).toEqual({ version, position: place });
        expect(codec.decodeVersion(scope, codec.encode(scope, place), [1, version]).version).toBe(1);
        expect(() => codec.decode(scope, cursor)).toThrow(InvalidCursorError);
        const [, ...rest] = Buffer.from(cursor, 'base64url');
        const relabelled = Buffer.from([1, ...rest]).toString('base64url');
        expect(() => codec.decodeVersion(scope, relabelled, [1, version])).toThrow(InvalidCursorError);
      }),
    );
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

  it('are rejected when a byte moves from the position into the scope', () => {
    const [version = 0, ...rest] = Buffer.from(codec.encode('markets', ['1']), 'base64url');
    const [mac, payload] = [rest.slice(0, 16), rest.slice(16)];
    const moved = Buffer.from([version, ...mac, ...payload.slice(1)]).toString('base64url');
    const scope = `markets${String.fromCharCode(payload[0] ?? 0)}`;
    expect(() => codec.decode(scope, moved)).toThrow(InvalidCursorError);
  });

  it('may have 1024 characters, and are rejected beyond without parsing', () => {
    const long = (length: number) => codec.encode('markets', ['x'.repeat(length)]);
    expect(long(747)).toHaveLength(1024);
    expect(codec.decode('markets', long(747))).toEqual(['x'.repeat(747)]);
    expect(() => codec.decode('markets', long(748))).toThrow(InvalidCursorError);
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
