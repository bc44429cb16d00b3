import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, expectTypeOf, it, vi } from 'vitest';
import { OddswireWebhookError, verifyWebhook, type WebhookEvent } from '../../../clients/typescript/src/index.ts';
import { standardSignature } from '../../../src/domain/webhooks/signature.ts';

interface Vector {
  name: string;
  secrets: [string, ...string[]];
  id: string;
  timestampSeconds: number;
  body: string;
  headers: { 'webhook-signature': string };
}
const { vectors } = JSON.parse(readFileSync(new URL('../../vectors/signatures.json', import.meta.url), 'utf8')) as {
  vectors: Vector[];
};
const [first] = vectors;
if (!first) throw new Error('the file has no vectors');

const headersOf = ({ id, timestampSeconds, headers }: Vector) => ({
  'webhook-id': id,
  'webhook-timestamp': String(timestampSeconds),
  'webhook-signature': headers['webhook-signature'],
});

function codeOf(verify: () => unknown): string {
  try {
    verify();
    return 'ok';
  } catch (error) {
    if (error instanceof OddswireWebhookError) return error.code;
    throw error;
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe.each(vectors)('$name', (vector) => {
  beforeEach(() => {
    vi.setSystemTime(vector.timestampSeconds * 1_000);
  });
  const payload = Buffer.from(vector.body);
  const headers = headersOf(vector);
  // Some vectors sign a body that is not an event. The signature check comes first.
  const signed = ['ok', 'invalid_payload'];

  it('is valid with each of its secrets, as bytes and as text', () => {
    for (const secret of vector.secrets) {
      expect(signed).toContain(codeOf(() => verifyWebhook({ payload, headers, secret })));
      expect(signed).toContain(
        codeOf(() => verifyWebhook({ payload: vector.body, headers, secret: ['other', secret] })),
      );
    }
  });

  it('is rejected with another secret, body, id or time', () => {
    const [secret] = vector.secrets;
    const tried = [
      { payload, headers, secret: 'another secret, as long' },
      { payload: `${vector.body} `, headers, secret },
      { payload, headers: { ...headers, 'webhook-id': 'evt_other' }, secret },
      { payload, headers: { ...headers, 'webhook-timestamp': String(vector.timestampSeconds + 1) }, secret },
    ];
    expect(tried.map((request) => codeOf(() => verifyWebhook(request)))).toEqual(tried.map(() => 'bad_signature'));
  });
});

describe('a webhook request', () => {
  const [secret] = first.secrets;
  const request = { payload: first.body, headers: headersOf(first), secret };
  beforeEach(() => {
    vi.setSystemTime(first.timestampSeconds * 1_000);
  });

  it('returns an event with a discriminating type', () => {
    const event = verifyWebhook(request);
    expect(event).toEqual(JSON.parse(first.body));
    if (event.type !== 'price_alert' || event.data.condition !== 'above') throw new Error(event.type);
    expectTypeOf(event.data.targetPrice).toEqualTypeOf<number>();
  });

  it('keeps every digit with decimals: string', () => {
    const event = verifyWebhook({ ...request, decimals: 'string' });
    expectTypeOf(event).toEqualTypeOf<WebhookEvent<string>>();
    expect(event.data).toMatchObject({ targetPrice: '0.65', currentPrice: '0.6500000001' });
  });

  it.each([
    [-300, 'ok'],
    [300, 'ok'],
    [-301, 'stale_timestamp'],
    [301, 'stale_timestamp'],
  ])('with a clock difference of %i seconds: %s', (seconds, code) => {
    vi.setSystemTime((first.timestampSeconds + seconds) * 1_000);
    expect(codeOf(() => verifyWebhook(request))).toBe(code);
  });

  it('accepts headers in every supported form', () => {
    const upper = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name.toUpperCase(), value]),
    );
    const lists = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, [value]]));
    for (const headers of [new Headers(request.headers), upper, lists]) {
      expect(codeOf(() => verifyWebhook({ ...request, headers }))).toBe('ok');
    }
  });

  it.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])('requires %s', (name) => {
    for (const value of [undefined, '', []]) {
      const headers = { ...request.headers, [name]: value };
      expect(codeOf(() => verifyWebhook({ ...request, headers }))).toBe('missing_header');
    }
  });

  it.each(['', ' ', 'v1', 'v1,', 'v2,x', 'v1a,x', ','])('is rejected with the signature %j', (signature) => {
    const headers = { ...request.headers, 'webhook-signature': signature };
    expect(['bad_signature', 'missing_header']).toContain(codeOf(() => verifyWebhook({ ...request, headers })));
  });

  it.each(['NaN', '1e9', `${first.timestampSeconds}.5`, `${first.timestampSeconds}x`, '-1'])(
    'is rejected with the time %s',
    (at) => {
      const headers = { ...request.headers, 'webhook-timestamp': at };
      expect(codeOf(() => verifyWebhook({ ...request, headers }))).toBe('stale_timestamp');
    },
  );

  it.each(['[]', '1', 'null', '{', '{"id":"evt_1"}', '{"id":"evt_2","type":"test","data":{}}'])(
    'is rejected with the body %s',
    (body) => {
      const at = first.timestampSeconds;
      const signature = standardSignature([secret], 'evt_1', at, body);
      const headers = { ...request.headers, 'webhook-id': 'evt_1', 'webhook-signature': signature };
      expect(codeOf(() => verifyWebhook({ payload: body, headers, secret }))).toBe('invalid_payload');
    },
  );

  it('is not checked with an invalid secret', () => {
    expect(codeOf(() => verifyWebhook({ ...request, secret: 'whsec_***' }))).toBe('invalid_secret');
    expect(codeOf(() => verifyWebhook({ ...request, secret: '' }))).toBe('invalid_secret');
    expect(codeOf(() => verifyWebhook({ ...request, secret: [] }))).toBe('bad_signature');
  });
});
