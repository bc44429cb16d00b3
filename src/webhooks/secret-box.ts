import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { OddswireError } from '../domain/values/errors.ts';
import type { SecretKey } from '../domain/values/secret-keys.ts';

const CIPHER = 'aes-256-gcm';
const VERSION = 'v1';
/** 96 bits, the size GCM is defined for; random, so at most 2^32 values may be sealed with one key (NIST SP 800-38D). */
const IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
/** Opened secrets are cached in memory, next to the keys: the secret of a subscription signs many deliveries. */
const MAX_OPENED_CACHED = 1_000;
/** Version, key id, 12 bytes, 16 bytes and the ciphertext; each part but the second in base64url. */
const SEALED = /^v1\.([^.]+)\.([\w-]{16})\.([\w-]{22})\.([\w-]*)$/;

/** The ring lacks the key of a sealed value. A fault of the configuration: the delivery waits and no attempt is counted. */
export class SecretKeyMissingError extends OddswireError {
  readonly kid: string;

  constructor(kid: string) {
    super('secret_key_missing', `the key ring has no key "${kid}"`, { retryable: true });
    this.kid = kid;
  }
}

/** A sealed value that no key opens: truncated, altered, moved to another row, or sealed with other key bytes. */
export class SecretCorruptError extends OddswireError {
  constructor(cause?: unknown) {
    super('secret_corrupt', 'a sealed secret cannot be opened', { cause });
  }
}

/** Seals and opens secrets at rest. `aad` is the id of the row that owns the value; opening needs the same id. */
export interface SecretBox {
  /** The ids of its keys; the first key seals. */
  readonly kids: readonly string[];
  /** `v1.<kid>.<iv>.<tag>.<ciphertext>`, the last three base64url; sealed with the first key, or with the key `kid` of the ring. */
  readonly seal: (plain: string, aad: string, kid?: string) => string;
  /** The plain text. Throws SecretKeyMissingError (retryable) or SecretCorruptError (not). */
  readonly open: (sealed: string, aad: string) => string;
}

/**
 * A box over a key ring: the first key seals, every key opens. A box without keys, of a process that needs none, seals and opens nothing.
 * Throws TypeError for an invalid ring.
 */
export function createSecretBox(keys: readonly SecretKey[]): SecretBox {
  const [current] = keys;
  if (keys.some(({ key }) => key.length !== KEY_BYTES)) throw new TypeError(`keys must have ${KEY_BYTES} bytes`);
  const ring = new Map(keys.map(({ kid, key }) => [kid, key]));
  const opened = new LRUCache<string, string>({ max: MAX_OPENED_CACHED });

  return {
    kids: keys.map(({ kid }) => kid),
    seal(plain, aad, kid = current?.kid ?? '') {
      const key = ring.get(kid);
      if (key === undefined) throw new SecretKeyMissingError(kid);
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
      cipher.setAAD(Buffer.from(aad, 'utf8'));
      const ciphertext = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
      const parts = [iv, cipher.getAuthTag(), ciphertext].map((part) => part.toString('base64url'));
      return [VERSION, kid, ...parts].join('.');
    },

    open(sealed, aad) {
      const kept = opened.get(`${aad} ${sealed}`);
      if (kept !== undefined) return kept;
      const parts = SEALED.exec(sealed);
      if (parts === null) throw new SecretCorruptError();
      const [, kid = '', ...texts] = parts;
      const key = ring.get(kid);
      if (key === undefined) throw new SecretKeyMissingError(kid);
      try {
        const [iv, tag, ciphertext] = texts.map((text) => Buffer.from(text, 'base64url')) as [Buffer, Buffer, Buffer];
        const decipher = createDecipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
        decipher.setAAD(Buffer.from(aad, 'utf8')).setAuthTag(tag);
        const plain = Buffer.concat([decipher.update(ciphertext), decipher.final()]).toString('utf8');
        opened.set(`${aad} ${sealed}`, plain);
        return plain;
      } catch (error) {
        throw new SecretCorruptError(error);
      }
    },
  };
}
