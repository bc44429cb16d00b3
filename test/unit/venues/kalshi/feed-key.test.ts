import { constants, generateKeyPairSync, verify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { FeedRefusal } from '../../../../src/venues/feeds/port.ts';
import { describeKalshiRefusal, readKalshiKey, signedHeaders } from '../../../../src/venues/kalshi/feed/key.ts';

const NOW_MS = 1_790_000_000_123;

function rsaKey() {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  return { publicKey, pem: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string };
}

describe('signedHeaders', () => {
  it('signs time, method and path with RSA-PSS and a salt of 32 bytes', () => {
    const { publicKey, pem } = rsaKey();
    const headers = signedHeaders(readKalshiKey('id-1', pem), NOW_MS);
    expect(headers).toMatchObject({ 'KALSHI-ACCESS-KEY': 'id-1', 'KALSHI-ACCESS-TIMESTAMP': String(NOW_MS) });
    const isValid = verify(
      'sha256',
      Buffer.from(`${NOW_MS}GET/trade-api/ws/v2`),
      { key: publicKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 },
      Buffer.from(headers['KALSHI-ACCESS-SIGNATURE'] ?? '', 'base64'),
    );
    expect(isValid).toBe(true);
  });

  it('signs the same bytes with an Ed25519 key', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
    const headers = signedHeaders(readKalshiKey('id-2', pem), NOW_MS);
    const signature = Buffer.from(headers['KALSHI-ACCESS-SIGNATURE'] ?? '', 'base64');
    expect(verify(null, Buffer.from(`${NOW_MS}GET/trade-api/ws/v2`), publicKey, signature)).toBe(true);
  });
});

describe('readKalshiKey', () => {
  it('names no part of an unreadable key', () => {
    const read = () => readKalshiKey('id', '-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----');
    expect(read).toThrow('no private key in PEM form');
    expect(read).not.toThrow(/c2VjcmV0/);
  });

  it('rejects a key of another type', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
    expect(() => readKalshiKey('id', pem)).toThrow('RSA or Ed25519');
  });
});

describe('describeKalshiRefusal', () => {
  const describeRefusal = (refusal: FeedRefusal) => describeKalshiRefusal(refusal).detail;
  const refusal = (statusCode: number, details: string, dateMs = NOW_MS, sentMs = NOW_MS) => ({
    sentMs,
    statusCode,
    headers: { date: new Date(dateMs).toUTCString() },
    body: JSON.stringify({ error: { code: 'authentication_error', message: 'authentication_error', details } }),
    nowMs: NOW_MS,
  });

  it('names the clock when it differs from the date of the answer', () => {
    expect(describeRefusal(refusal(401, 'header_timestamp_expired', NOW_MS - 60_000))).toBe(
      "clock_skew: the clock of this machine differs from the venue's by 60 s",
    );
    expect(describeRefusal(refusal(401, 'header_timestamp_expired', NOW_MS + 60_000))).toBe(
      "clock_skew: the clock of this machine differs from the venue's by -60 s",
    );
  });

  it.each([8_000, 4_000, 0])('names a slow handshake when the venue answered %i ms before the arrival', (beforeMs) => {
    const slow = refusal(401, 'header_timestamp_expired', NOW_MS - beforeMs, NOW_MS - 9_000);
    expect(describeKalshiRefusal(slow)).toEqual({
      detail: 'slow_handshake: the answer came 9 s after the signature: header_timestamp_expired',
      isOfCredentials: false,
    });
    expect(describeKalshiRefusal({ ...slow, body: '{"details":"NOT_FOUND"}' })).toEqual({
      detail: 'key_refused: NOT_FOUND',
      isOfCredentials: true,
    });
  });

  it.each([
    [401, 'INCORRECT_API_KEY_SIGNATURE', 'key_refused: INCORRECT_API_KEY_SIGNATURE'],
    [401, 'API_KEY_EXPIRED', 'key_expired: API_KEY_EXPIRED'],
    [429, 'too many requests', 'status 429: too many requests'],
  ])('describes status %i with %s as %s', (status, details, expected) => {
    expect(describeRefusal(refusal(status, details))).toBe(expected);
  });

  it('describes an answer that is not JSON', () => {
    const answer = { statusCode: 403, headers: {}, body: '<html>denied</html>', sentMs: NOW_MS, nowMs: NOW_MS };
    expect(describeRefusal(answer)).toBe('key_refused: without a code');
  });
});
