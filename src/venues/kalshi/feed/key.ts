import { constants, createPrivateKey, type KeyObject, sign } from 'node:crypto';
import type { FeedRefusal, RefusalReason } from '../../feeds/port.ts';

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

/**
 * The cause of a refused handshake: the clock when it is wrong, a handshake that was too slow for its signature, else the venue's own code.
 * With right clocks, the date of the answer is between the signature and the arrival.
 */
export function describeKalshiRefusal({ statusCode, headers, body, sentMs, nowMs }: FeedRefusal): RefusalReason {
  const code = /"(?:details|code)"\s*:\s*"([\w .-]{1,80})"(?!.*"details")/.exec(body)?.[1] ?? 'without a code';
  if (statusCode !== 401 && statusCode !== 403)
    return { detail: `status ${statusCode}: ${code}`, isOfCredentials: false };
  const dateMs = typeof headers.date === 'string' ? Date.parse(headers.date) : Number.NaN;
  const skewMs = dateMs < sentMs ? sentMs - dateMs : Math.min(0, nowMs - dateMs);
  const isOfTime = /timestamp/i.test(code);
  if (Math.abs(skewMs) > MAX_SKEW_MS) {
    const seconds = Math.round(skewMs / 1000);
    return {
      detail: `clock_skew: the clock of this machine differs from the venue's by ${seconds} s`,
      isOfCredentials: true,
    };
  }
  if (isOfTime && nowMs - sentMs > MAX_SKEW_MS) {
    const seconds = Math.round((nowMs - sentMs) / 1000);
    return {
      detail: `slow_handshake: the answer came ${seconds} s after the signature: ${code}`,
      isOfCredentials: false,
    };
  }
  const reason = /expired/i.test(code) && !isOfTime ? 'key_expired' : 'key_refused';
  return { detail: `${reason}: ${code}`, isOfCredentials: true };
}
