import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { type DecimalType, quoteNumbers } from './decimals.ts';
import { OddswireWebhookError } from './errors.ts';
import type { WebhookEvent } from './types.ts';

const TOLERANCE_SECONDS = 300;
const GENERATED = 'whsec_';

export interface WebhookRequest {
  /** The received body: bytes or their text. JSON that was parsed and serialised again has another signature. */
  payload: string | Uint8Array;
  /** The headers from `fetch` or `node:http`. */
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The secret of the webhook, or several during a rotation, of which one must match. */
  secret: string | readonly string[];
}

/**
 * Checks `webhook-signature` (Standard Webhooks) and returns the event. Later versions may add event types, so ignore unknown
 * types. An event may arrive more than once, so store `event.id`.
 * @throws OddswireWebhookError for a request without a valid signature, older than 300 seconds, or without an event.
 */
export function verifyWebhook(request: WebhookRequest & { decimals: 'string' }): WebhookEvent<string>;
export function verifyWebhook(request: WebhookRequest & { decimals?: 'number' }): WebhookEvent;
export function verifyWebhook({
  payload,
  headers,
  secret,
  decimals = 'number',
}: WebhookRequest & { decimals?: 'number' | 'string' }): WebhookEvent<DecimalType> {
  const id = required(headers, 'webhook-id');
  const timestamp = required(headers, 'webhook-timestamp');
  const signature = required(headers, 'webhook-signature');
  if (!/^\d{1,15}$/.test(timestamp) || Math.abs(Date.now() / 1_000 - Number(timestamp)) > TOLERANCE_SECONDS) {
    throw new OddswireWebhookError(
      'stale_timestamp',
      `webhook-timestamp is not within ${TOLERANCE_SECONDS} seconds of now`,
    );
  }
  const text = typeof payload === 'string' ? payload : new TextDecoder('utf-8', { ignoreBOM: true }).decode(payload);
  const signed = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
  const secrets = typeof secret === 'string' ? [secret] : secret;
  if (!secrets.some((one) => isSigned(one, text, signed))) {
    throw new OddswireWebhookError('bad_signature', 'webhook-signature does not match this body and secret');
  }
  const event = parse(decimals === 'string' ? quoteNumbers(text, 'all') : text);
  if (!isEvent(event) || event.id !== id) throw new OddswireWebhookError('invalid_payload', 'the body is not an event');
  return event;
}

function isSigned(secret: string, text: string, headers: Record<string, string>): boolean {
  try {
    verifierOf(secret).verify(text, headers, { jsonParse: false });
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}

/** After `whsec_` the key is the decoded base64; any other secret is the key itself. */
function verifierOf(secret: string): Webhook {
  try {
    return secret.startsWith(GENERATED)
      ? new Webhook(secret)
      : new Webhook(new TextEncoder().encode(secret), { format: 'raw' });
  } catch (error) {
    throw new OddswireWebhookError('invalid_secret', 'this is not a webhook secret', error);
  }
}

function required(headers: WebhookRequest['headers'], name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : ownHeader(headers, name);
  if (value === null || value === undefined || value === '') {
    throw new OddswireWebhookError('missing_header', `${name} is missing`);
  }
  return value;
}

function ownHeader(headers: Exclude<WebhookRequest['headers'], Headers>, name: string): string | undefined {
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) return typeof value === 'object' ? value[0] : value;
  }
  return undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new OddswireWebhookError('invalid_payload', 'the body is not JSON', error);
  }
}

/** Whether a value has the common fields of an event. The signature guarantees the rest. */
function isEvent(value: unknown): value is WebhookEvent<DecimalType> {
  return (
    typeof value === 'object' &&
    value !== null &&
    'id' in value &&
    'type' in value &&
    typeof value.type === 'string' &&
    'data' in value &&
    typeof value.data === 'object' &&
    value.data !== null
  );
}
