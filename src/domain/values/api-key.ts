import { hash, randomInt, timingSafeEqual } from 'node:crypto';
import { isStorableText } from './text.ts';

/** The scopes of a key. */
export const SCOPES = ['markets:read', 'webhooks', 'alerts', 'wallets', 'keys', 'archive'] as const;
export type Scope = (typeof SCOPES)[number];

export const MAX_NAME_LENGTH = 100;

/** Whether a text may name a key or an account. */
export function isName(text: string): boolean {
  return text !== '' && text.length <= MAX_NAME_LENGTH && !/\p{Cc}/u.test(text) && isStorableText(text);
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_LENGTH = 12;
/** 36 characters of 62: 214 bits, so a plain sha256 is as good as a slow hash. */
const SECRET_LENGTH = 36;
const MADE_KEY = /^ow_live_([0-9A-Za-z]{1,32})_[0-9A-Za-z]{16,128}$/;
/** Characters that every header encoding carries unchanged. */
const PRESENTABLE = /^[\x21-\x7e]{1,256}$/;

/** A key as it is shown once, and its stored form. */
interface NewApiKey {
  id: string;
  /** `ow_live_<id>_<secret>`: show it, never store it. */
  key: string;
  hash: Buffer;
}

function randomText(length: number): string {
  return Array.from({ length }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
}

/** A new random key. */
export function generateApiKey(): NewApiKey {
  const id = randomText(ID_LENGTH);
  const key = `ow_live_${id}_${randomText(SECRET_LENGTH)}`;
  return { id, key, hash: hashApiKey(key) };
}

/** The stored form of a key: its sha256. */
export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

/** Whether a text has the form of a key: 1 to 256 printable ASCII characters without spaces. */
export function isPresentableKey(text: string): boolean {
  return PRESENTABLE.test(text);
}

/**
 * The id of a key: the id inside a generated key, or an id derived from the hash of a chosen key (BOOTSTRAP_API_KEY), which
 * reveals nothing about the key.
 */
export function apiKeyId(key: string): string {
  return MADE_KEY.exec(key)?.[1] ?? `chosen-${hashApiKey(key).toString('hex').slice(0, 16)}`;
}

/** Compares a stored hash with the hash of the offered key, in constant time. */
export function isSameHash(stored: Uint8Array, offered: Uint8Array): boolean {
  return stored.length === offered.length && timingSafeEqual(stored, offered);
}
