import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { OddswireError } from '../values/errors.ts';

/** Receivers reject Standard Webhooks timestamps further away than this (standardwebhooks, "Verifying webhook authenticity"). */
const STANDARD_TOLERANCE_SECONDS = 300;

const STANDARD_PREFIX = 'whsec_';
const GENERATED_SECRET_BYTES = 32;
const MIN_SECRET_LENGTH = 16;
const MAX_SECRET_LENGTH = 256;
const MIN_STANDARD_KEY_BYTES = 24;
const MAX_STANDARD_KEY_BYTES = 64;

/** Other products write `v1,whsec_…`. As plain text such a secret never verifies, because receivers decode the text behind the prefix. */
const MISPLACED_PREFIX =
  'must have "whsec_" at its beginning or not at all: a prefix such as "v1," is not part of a secret';

/** A `whsec_` secret whose rest is not canonical base64: receivers could derive different keys from it. */
export class InvalidSecretError extends OddswireError {
  constructor() {
    super('invalid_secret', 'a webhook secret that starts with "whsec_" is not followed by canonical base64');
  }
}

/** A new subscription secret: `whsec_` and the base64 of 32 random bytes. */
export function generateSecret(): string {
  return STANDARD_PREFIX + randomBytes(GENERATED_SECRET_BYTES).toString('base64');
}

/**
 * The reason why a caller's own secret is rejected, or null for a valid one: 16 to 256 printable ASCII characters, and after a
 * `whsec_` prefix, which has no other place, the canonical base64 of 24 to 64 bytes. The text never repeats the secret.
 */
export function secretProblem(secret: string): string | null {
  if (secret.length < MIN_SECRET_LENGTH || secret.length > MAX_SECRET_LENGTH) {
    return `must have ${MIN_SECRET_LENGTH} to ${MAX_SECRET_LENGTH} characters`;
  }
  if (!/^[\x20-\x7e]*$/.test(secret)) return 'must contain printable ASCII characters only';
  if (!secret.startsWith(STANDARD_PREFIX)) return secret.includes(STANDARD_PREFIX) ? MISPLACED_PREFIX : null;
  const key = canonicalBase64(secret.slice(STANDARD_PREFIX.length));
  if (key === null) return 'must be canonical base64 after "whsec_"';
  if (key.length < MIN_STANDARD_KEY_BYTES || key.length > MAX_STANDARD_KEY_BYTES) {
    return `must hold ${MIN_STANDARD_KEY_BYTES} to ${MAX_STANDARD_KEY_BYTES} bytes of base64 after "whsec_"`;
  }
  return null;
}

/**
 * The value of `X-Webhook-Signature`: `sha256=` and the lower-case hex HMAC-SHA256 of the body bytes, keyed with the
 * UTF-8 bytes of the whole secret as the API returned it (specification section 6.3).
 */
export function signBody(secret: string, body: Uint8Array | string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

/** Whether `header` is the `X-Webhook-Signature` of this body, compared in constant time. */
export function verifyBody(secret: string, body: Uint8Array | string, header: string): boolean {
  return constantTimeEqual(signBody(secret, body), header);
}

/**
 * The Standard Webhooks key of a secret: the decoded base64 after `whsec_`, or the UTF-8 bytes of any other
 * secret. @throws InvalidSecretError when the base64 is not canonical (`secretProblem` rejects such secrets)
 */
export function standardKey(secret: string): Buffer {
  if (!secret.startsWith(STANDARD_PREFIX)) return Buffer.from(secret, 'utf8');
  const key = canonicalBase64(secret.slice(STANDARD_PREFIX.length));
  if (key === null || key.length === 0) throw new InvalidSecretError();
  return key;
}

/**
 * The value of `webhook-signature`: one `v1,<base64>` per secret, separated by spaces, over `id.timestamp.body`.
 * `timestampSeconds` is a whole number of epoch seconds. During a rotation there are several secrets.
 */
export function standardSignature(
  secrets: readonly string[],
  id: string,
  timestampSeconds: number,
  body: Uint8Array | string,
): string {
  return secrets.map((secret) => `v1,${standardDigest(secret, id, String(timestampSeconds), body)}`).join(' ');
}

/** A received delivery: the three `webhook-*` headers as text and the raw body. */
interface StandardDelivery {
  readonly id: string;
  readonly timestamp: string;
  readonly signature: string;
  readonly body: Uint8Array | string;
}

type StandardVerdict = 'ok' | 'bad_timestamp' | 'too_old' | 'too_new' | 'bad_signature';

/**
 * Checks a Standard Webhooks delivery against any of the secrets, in constant time per pair.
 * `nowSeconds` is the receiver's clock; a timestamp more than five minutes away in either direction is rejected.
 */
export function verifyStandard(
  secrets: readonly string[],
  delivery: StandardDelivery,
  nowSeconds: number,
): StandardVerdict {
  if (!/^\d{1,12}$/.test(delivery.timestamp)) return 'bad_timestamp';
  const ageSeconds = nowSeconds - Number(delivery.timestamp);
  if (ageSeconds > STANDARD_TOLERANCE_SECONDS) return 'too_old';
  if (ageSeconds < -STANDARD_TOLERANCE_SECONDS) return 'too_new';
  const offered = delivery.signature.split(' ');
  let matched = false;
  for (const secret of secrets) {
    const expected = `v1,${standardDigest(secret, delivery.id, delivery.timestamp, delivery.body)}`;
    for (const part of offered) matched = constantTimeEqual(expected, part) || matched;
  }
  return matched ? 'ok' : 'bad_signature';
}

function standardDigest(secret: string, id: string, timestamp: string, body: Uint8Array | string): string {
  const hmac = createHmac('sha256', standardKey(secret));
  return hmac.update(`${id}.${timestamp}.`).update(body).digest('base64');
}

/** Node's decoder skips invalid characters, so only a text that encodes back to itself is accepted as a key. */
function canonicalBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : null;
}

/** Hashes first, because `timingSafeEqual` requires equal lengths. */
function constantTimeEqual(expected: string, offered: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(expected), digest(offered));
}
