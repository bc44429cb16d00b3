import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { OddswireError } from './errors.ts';

/** The form of the text. Forms 1 and 2 of earlier releases were signed and not encrypted. */
const FORM = 3;
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
/** 128 bits cannot be guessed, and a cursor stays short. */
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES;
const KEY_BYTES = 32;
const MAX_CURSOR_LENGTH = 1024;

/** A cursor that this route did not issue for this account and these filters: altered, foreign, truncated, or of another release. */
export class InvalidCursorError extends OddswireError {
  constructor() {
    super(
      'invalid_cursor',
      'this route did not issue the cursor for this account and these filters; start without a cursor',
    );
  }
}

/** The sort key of the last row of a page, as texts: the next page starts after it. */
type CursorPosition = readonly string[];

/**
 * Creates and reads cursors: base64url of form, nonce, tag and the encrypted position. `scope` names the route, every filter of the list,
 * and the account when the list belongs to one; the tag covers it, but the cursor does not contain it. The same position always gives the
 * same text.
 */
export interface CursorCodec {
  encode(scope: string, position: CursorPosition): string;
  /** @throws InvalidCursorError */
  decode(scope: string, cursor: string): CursorPosition;
}

/** A codec over one secret key of at least 32 bytes. */
export function createCursorCodec(key: Uint8Array): CursorCodec {
  const [nonceKey, cipherKey] = ['cursor-nonce', 'cursor-cipher'].map((purpose) =>
    Buffer.from(hkdfSync('sha256', key, 'oddswire', purpose, KEY_BYTES)),
  ) as [Buffer, Buffer];

  /** A nonce repeats only with the same scope and position, which then give the same text. */
  function nonceOf(scope: Buffer, position: Buffer): Buffer {
    const lengths = Buffer.from(`${scope.length}.`, 'utf8');
    const mac = createHmac('sha256', nonceKey).update(lengths).update(scope).update(position).digest();
    return mac.subarray(0, NONCE_BYTES);
  }

  return {
    encode(scope, position) {
      const [bound, plain] = [Buffer.from(scope, 'utf8'), Buffer.from(JSON.stringify(position), 'utf8')];
      const nonce = nonceOf(bound, plain);
      const cipher = createCipheriv(CIPHER, cipherKey, nonce, { authTagLength: TAG_BYTES }).setAAD(bound);
      const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([Buffer.from([FORM]), nonce, cipher.getAuthTag(), sealed]).toString('base64url');
    },

    decode(scope, cursor) {
      if (cursor.length > MAX_CURSOR_LENGTH) throw new InvalidCursorError();
      const bytes = Buffer.from(cursor, 'base64url');
      // Node ignores invalid base64url and spare bits: only the canonical text is a cursor.
      if (bytes.toString('base64url') !== cursor) throw new InvalidCursorError();
      if (bytes.length <= HEAD_BYTES || bytes[0] !== FORM) throw new InvalidCursorError();
      const nonce = bytes.subarray(1, 1 + NONCE_BYTES);
      const decipher = createDecipheriv(CIPHER, cipherKey, nonce, { authTagLength: TAG_BYTES })
        .setAAD(Buffer.from(scope, 'utf8'))
        .setAuthTag(bytes.subarray(1 + NONCE_BYTES, HEAD_BYTES));
      const plain = decipher.update(bytes.subarray(HEAD_BYTES));
      try {
        decipher.final();
      } catch {
        // The tag does not fit: the only failure of the last step.
        throw new InvalidCursorError();
      }
      return JSON.parse(plain.toString('utf8')) as CursorPosition;
    },
  };
}
