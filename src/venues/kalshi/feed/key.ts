import { constants, createPrivateKey, type KeyObject, sign } from 'node:crypto';
import type { FeedRefusal } from '../../feeds/port.ts';

/** The signed path of the WebSocket. */
const FEED_PATH = '/trade-api/ws/v2';
/** Documented: RSA-PSS with SHA-256, MGF1 with SHA-256, and a salt of 32 bytes. */
const SALT_BYTES = 32;
/** A clock that is further away from the venue's explains a refusal. */
const MAX_SKEW_MS = 5_000;

export interface KalshiKey {
  readonly id: string;
  readonly privateKey: KeyObject;
}

/**
 * Reads a private key in PEM form. An Ed25519 key is accepted too, although the official pages do not mention it: third-party clients sign
 * the same bytes with it.
 * @throws Error without any part of the key in its message
 */
export function readKalshiKey(id: string, pem: string): KalshiKey {
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(pem);
  } catch {
    throw new Error('the file of KALSHI_PRIVATE_KEY_FILE has no private key in PEM form');
  }
  const type = privateKey.asymmetricKeyType;
  if (type !== 'rsa' && type !== 'ed25519') throw new Error(`a Kalshi key is RSA or Ed25519, not ${type}`);
  return { id, privateKey };
}

/** The headers of a GET of this path, without its query, at this moment, epoch milliseconds; by default of a handshake of the feed. */
export function signedHeaders({ id, privateKey }: KalshiKey, nowMs: number, path = FEED_PATH): Record<string, string> {
  const bytes = Buffer.from(`${nowMs}GET${path}`);
  const padding = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: SALT_BYTES };
  const signature =
    privateKey.asymmetricKeyType === 'rsa'
      ? sign('sha256', bytes, { key: privateKey, ...padding })
      : sign(null, bytes, privateKey);
  return {
    'KALSHI-ACCESS-KEY': id,
    'KALSHI-ACCESS-TIMESTAMP': String(nowMs),
    'KALSHI-ACCESS-SIGNATURE': signature.toString('base64'),
  };
}

/** The cause of a refused handshake: the clock when it is wrong, else the venue's own code. */
export function describeKalshiRefusal({ statusCode, headers, body, nowMs }: FeedRefusal): string {
  const skewMs = typeof headers.date === 'string' ? nowMs - Date.parse(headers.date) : Number.NaN;
  const isUnauthorized = statusCode === 401 || statusCode === 403;
  if (isUnauthorized && Math.abs(skewMs) > MAX_SKEW_MS) {
    return `clock_skew: the clock of this machine differs from the venue's by ${Math.round(skewMs / 1000)} s`;
  }
  const code = /"(?:details|code)"\s*:\s*"([\w .-]{1,80})"(?!.*"details")/.exec(body)?.[1] ?? 'without a code';
  if (!isUnauthorized) return `status ${statusCode}: ${code}`;
  if (/expired/i.test(code) && !/timestamp/i.test(code)) return `key_expired: ${code}`;
  return `key_refused: ${code}`;
}
