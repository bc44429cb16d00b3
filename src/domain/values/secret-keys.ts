import { hkdfSync } from 'node:crypto';
import { OddswireError } from './errors.ts';

/** One key of the ring `SECRETS_KEYS`: `kid` names it inside sealed values, `key` is 32 bytes. */
export interface SecretKey {
  readonly kid: string;
  readonly key: Uint8Array;
}

const KEY_BYTES = 32;
/** No dot, because dots separate the parts of a sealed value; short enough for a column. */
const KID_PATTERN = /^[A-Za-z0-9_-]{1,32}$/;

/** Every problem of a key ring text, without key material: entries are named by their position. */
const invalid = (...problems: string[]) =>
  new OddswireError('invalid_secrets_keys', `SECRETS_KEYS: ${problems.join('; ')}`);

/** Reads `kid:base64(32 bytes),...`: the first key encrypts, all decrypt. @throws OddswireError that lists every problem */
export function parseSecretsKeys(text: string): SecretKey[] {
  const entries = text.split(',');
  const keys: SecretKey[] = [];
  const problems: string[] = [];
  const positionOf = new Map<string, number>();
  if (text.trim() === '') throw invalid('contains no key; expected kid:base64(32 bytes)');

  for (const [index, entry] of entries.entries()) {
    const position = index + 1;
    const colon = entry.indexOf(':');
    // An entry without a colon may be a bare key, so no message repeats any part of an entry.
    if (colon < 0) {
      problems.push(`entry ${position} is not kid:base64`);
      continue;
    }
    const kid = entry.slice(0, colon).trim();
    const encoded = entry.slice(colon + 1).trim();
    const key = Buffer.from(encoded, 'base64');
    if (!KID_PATTERN.test(kid)) {
      problems.push(`entry ${position} has a key id that is not 1 to 32 letters, digits, "_" or "-"`);
    } else if (positionOf.has(kid)) {
      problems.push(`entry ${position} repeats the key id of entry ${positionOf.get(kid)}`);
    } else {
      positionOf.set(kid, position);
    }
    if (key.toString('base64') !== encoded) problems.push(`entry ${position} is not canonical base64`);
    else if (key.length !== KEY_BYTES) problems.push(`entry ${position} has ${key.length} bytes, not ${KEY_BYTES}`);
    keys.push({ kid, key });
  }
  if (problems.length > 0) throw invalid(...problems);
  return keys;
}

/**
 * A 32-byte key for one purpose (`cursor`, `session`, ...), derived from the ring's first key by HKDF-SHA256. Keys of different
 * purposes are unrelated, and no derived key opens a sealed secret.
 */
export function deriveKey(keys: readonly SecretKey[], purpose: string): Buffer {
  const [first] = keys;
  if (first === undefined) throw invalid('contains no key to derive from');
  return Buffer.from(hkdfSync('sha256', first.key, 'oddswire', purpose, KEY_BYTES));
}
