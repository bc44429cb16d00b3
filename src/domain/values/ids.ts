import { randomBytes } from 'node:crypto';
import { uuidv7 } from 'uuidv7';

/** Prefixes of public ids. The rest is a time-ordered UUIDv7, so keyset pages by id are pages by age. */
type IdPrefix = 'wh' | 'alert' | 'evt' | 'dlv' | 'wal' | 'req';

/** A new opaque id such as `alert_0193…`. It contains no `.`, which separates the parts of Standard Webhooks signatures. */
export function newId(prefix: IdPrefix): string {
  return `${prefix}_${uuidv7()}`;
}

/** 128 random bits as text, for lease tokens. */
export function newToken(): string {
  return randomBytes(16).toString('hex');
}
