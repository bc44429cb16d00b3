import { randomBytes } from 'node:crypto';
import { uuidv7 } from 'uuidv7';

/** Prefixes of the ids clients see. The rest is a UUIDv7: time-ordered, so keyset pages by id are pages by age. */
type IdPrefix = 'wh' | 'alert' | 'evt' | 'dlv' | 'wal' | 'req';

/** A new opaque id such as `alert_0193…`. Never holds a `.`, which Standard Webhooks signatures use as a separator. */
export function newId(prefix: IdPrefix): string {
  return `${prefix}_${uuidv7()}`;
}

/** 128 random bits as text: lease tokens and the like. */
export function newToken(): string {
  return randomBytes(16).toString('hex');
}
