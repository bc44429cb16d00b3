import { createHmac, timingSafeEqual } from 'node:crypto';
import { OddswireError } from './errors.ts';

/** The version of most lists. A list whose sort key changes gets a higher version and may still read older ones. */
const FIRST_VERSION = 1;
/** 128 bits cannot be guessed, and a cursor stays short. */
const MAC_BYTES = 16;
const MAX_CURSOR_LENGTH = 1024;

/** A cursor that this route did not issue for these filters: altered, foreign, truncated, or of another version. */
export class InvalidCursorError extends OddswireError {
  constructor() {
    super('invalid_cursor', 'this route did not issue the cursor for these filters');
  }
}

/** The sort key of the last row of a page, as texts: the next page starts after it. */
type CursorPosition = readonly string[];

/**
 * Creates and reads cursors: base64url of version, MAC and position. `scope` names the route and every filter of the list; the
 * MAC covers it, but the cursor does not contain it. The same position always gives the same text.
 */
export interface CursorCodec {
  /** `version` is 1 to 255. Default: 1. */
  encode(scope: string, position: CursorPosition, version?: number): string;
  /** Reads a cursor of version 1. @throws InvalidCursorError */
  decode(scope: string, cursor: string): CursorPosition;
  /** Reads a cursor of one of several versions. @throws InvalidCursorError */
  decodeVersion(
    scope: string,
    cursor: string,
    versions: readonly number[],
  ): { version: number; position: CursorPosition };
}

/** A codec over one secret key of at least 32 bytes. */
export function createCursorCodec(key: Uint8Array): CursorCodec {
  function macOf(version: number, scope: string, payload: Buffer): Buffer {
    const scopeBytes = Buffer.from(scope, 'utf8');
    // The length prevents a byte from moving unnoticed between scope and payload.
    const head = Buffer.from(`${version}.${scopeBytes.length}.`, 'utf8');
    return createHmac('sha256', key).update(head).update(scopeBytes).update(payload).digest().subarray(0, MAC_BYTES);
  }

  const codec: CursorCodec = {
    encode(scope, position, version = FIRST_VERSION) {
      const payload = Buffer.from(JSON.stringify(position), 'utf8');
      return Buffer.concat([Buffer.from([version]), macOf(version, scope, payload), payload]).toString('base64url');
    },

    decode: (scope, cursor) => codec.decodeVersion(scope, cursor, [FIRST_VERSION]).position,

    decodeVersion(scope, cursor, versions) {
      if (cursor.length > MAX_CURSOR_LENGTH) throw new InvalidCursorError();
      const bytes = Buffer.from(cursor, 'base64url');
      // Node ignores invalid base64url and spare bits: only the canonical text is a cursor.
      if (bytes.toString('base64url') !== cursor) throw new InvalidCursorError();
      const [version = 0] = bytes;
      if (bytes.length <= 1 + MAC_BYTES || !versions.includes(version)) throw new InvalidCursorError();
      const payload = bytes.subarray(1 + MAC_BYTES);
      const mac = macOf(version, scope, payload);
      if (!timingSafeEqual(bytes.subarray(1, 1 + MAC_BYTES), mac)) throw new InvalidCursorError();
      return { version, position: JSON.parse(payload.toString('utf8')) as CursorPosition };
    },
  };
  return codec;
}
