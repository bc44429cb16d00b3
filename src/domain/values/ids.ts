import { createHash, randomBytes } from 'node:crypto';
import { uuidv7 } from 'uuidv7';

/** Prefixes of public ids. */
type IdPrefix = 'wh' | 'alert' | 'bt' | 'evt' | 'dlv' | 'wal' | 'req';

/**
 * A new opaque id such as `alert_0193…`, with a time-ordered UUIDv7. It contains no `.`, which separates the parts of Standard
 * Webhooks signatures.
 */
export function newId(prefix: IdPrefix): string {
  return `${prefix}_${uuidv7()}`;
}

/** The id of the thing with this identity, always the same: a UUIDv8 (RFC 9562) from a hash of the identity. */
export function derivedId(prefix: IdPrefix, identity: string): string {
  const hex = createHash('sha256').update(`${prefix} ${identity}`).digest('hex');
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0b11) | 0b1000).toString(16);
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, variant + hex.slice(17, 20)];
  return `${prefix}_${[...parts, hex.slice(20, 32)].join('-')}`;
}

/** 128 random bits as text, for lease tokens. */
export function newToken(): string {
  return randomBytes(16).toString('hex');
}
