import { createHmac, randomBytes } from 'node:crypto';

const STANDARD_PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/** A signing secret as oddswire makes them: `whsec_` and the base64 of 32 random bytes. */
export function newSecret(): string {
  return STANDARD_PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/** The reason why a secret is rejected, or undefined: the rules of the API, so that the same secret works for a webhook. */
export function secretProblem(secret: string): string | undefined {
  if (!/^[\x20-\x7e]{16,256}$/.test(secret)) return 'must have 16 to 256 printable ASCII characters';
  if (!secret.startsWith(STANDARD_PREFIX))
    return secret.includes(STANDARD_PREFIX)
      ? 'must have "whsec_" at its beginning or not at all: a prefix such as "v1," is not part of a secret'
      : undefined;
  const encoded = secret.slice(STANDARD_PREFIX.length);
  const key = Buffer.from(encoded, 'base64');
  const isCanonical = key.toString('base64') === encoded && key.length >= 24 && key.length <= 64;
  return isCanonical ? undefined : 'must be the canonical base64 of 24 to 64 bytes after "whsec_"';
}

/** The headers of one attempt, as a webhook has them (docs/webhooks.md, "The request"). */
export function signedHeaders(
  secret: string,
  event: { readonly id: string; readonly type: string; readonly body: string },
  { attempt, nowMs, version }: { attempt: number; nowMs: number; version: string },
): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1_000));
  const key = secret.startsWith(STANDARD_PREFIX)
    ? Buffer.from(secret.slice(STANDARD_PREFIX.length), 'base64')
    : Buffer.from(secret);
  const standard = createHmac('sha256', key).update(`${event.id}.${timestamp}.${event.body}`).digest('base64');
  return {
    'Content-Type': 'application/json',
    'User-Agent': `oddswire-cli/${version}`,
    'X-Webhook-Signature': `sha256=${createHmac('sha256', secret).update(event.body).digest('hex')}`,
    // No webhook and no delivery exist: names in their place, the same on every attempt.
    'X-Webhook-Id': 'wh_listen',
    'X-Webhook-Event': event.type,
    'X-Webhook-Delivery': `dlv_listen_${event.id}`,
    'X-Webhook-Attempt': String(attempt),
    'webhook-id': event.id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${standard}`,
  };
}
