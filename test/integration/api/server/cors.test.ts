import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Client, type TestApi, useTestApi } from '../api-harness.ts';

const PAGE = 'https://app.example.com';
const corsHeaders = (headers: Headers) => [...headers.keys()].filter((name) => name.startsWith('access-control-'));
const preflight = (origin: string) => ({
  method: 'OPTIONS',
  headers: { Origin: origin, 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'x-api-key' },
});

const off = useTestApi();
const some = useTestApi({ corsOrigins: [PAGE] }, { beside: off });
const all = useTestApi({ corsOrigins: ['*'] }, { beside: off });
let client: Client;
beforeAll(async () => {
  client = await off.client();
});

describe('the API', () => {
  it('sends the security headers of data with every answer', async () => {
    const bearer = { Authorization: `Bearer ${client.key}` };
    for (const answer of [
      await off.call('/v1/venues', { headers: bearer }),
      await off.call('/v1/venues'),
      await off.call('/nowhere'),
      await off.call('/health/live'),
      await client.account('POST', '/v1/alerts', {}),
      await off.call('/%'),
      await off.call('/openapi.json'),
    ]) {
      const { headers } = answer;
      const shown = [
        'x-content-type-options',
        'referrer-policy',
        'content-security-policy',
        'cross-origin-resource-policy',
      ];
      expect(shown.map((name) => headers.get(name))).toEqual([
        'nosniff',
        'no-referrer',
        "default-src 'none'; frame-ancestors 'none'",
        'same-origin',
      ]);
      expect(headers.get('strict-transport-security')).toBeNull();
    }
  });
});

describe('a page of another origin', () => {
  const read = (api: TestApi, origin?: string) =>
    api.call('/v1/venues', { headers: { Authorization: `Bearer ${client.key}`, ...(origin && { Origin: origin }) } });

  it('gets no CORS headers while CORS is off', async () => {
    for (const answer of [await read(off, PAGE), await off.call('/v1/webhooks', preflight(PAGE))]) {
      expect(corsHeaders(answer.headers)).toEqual([]);
      expect(answer.headers.get('vary')).not.toContain('Origin');
    }
    expect((await off.call('/v1/webhooks', preflight(PAGE))).status).toBe(405);
  });

  it('may read successes and failures only when its origin is listed', async () => {
    const unauthorized = await some.call('/v1/venues', { headers: { Origin: PAGE } });
    expect(unauthorized.status).toBe(401);
    for (const { headers } of [await read(some, PAGE), unauthorized]) {
      expect(headers.get('access-control-allow-origin')).toBe(PAGE);
      expect(headers.get('access-control-expose-headers')).toContain('RateLimit-Remaining');
      expect(headers.get('access-control-allow-credentials')).toBeNull();
      expect(headers.get('vary')).toMatch(/Origin/);
    }
    for (const origin of ['https://app.example.com.evil.example', 'http://app.example.com', 'null', undefined]) {
      const { headers, status } = await read(some, origin);
      expect([status, corsHeaders(headers)]).toEqual([200, []]);
      expect(headers.get('vary')).toMatch(/Origin/);
    }
    expect((await read(all, 'https://anything.example')).headers.get('access-control-allow-origin')).toBe('*');
  });

  it('is distinguished by caches also without compression', async () => {
    // `fetch` always accepts some encoding.
    const [response] = (await once(get(`${some.url}/v1/venues`, { headers: { Origin: PAGE } }), 'response')) as [
      IncomingMessage,
    ];
    response.resume();
    expect([response.statusCode, response.headers.vary]).toEqual([401, 'Origin, Accept-Encoding']);
  });

  it('gets a preflight answer without a key', async () => {
    const { status, headers, text } = await some.call('/v1/webhooks', preflight(PAGE));
    expect([status, text, headers.get('access-control-allow-origin')]).toEqual([204, '', PAGE]);
    expect(headers.get('access-control-allow-methods')).toBe('GET,HEAD,POST,PUT,PATCH,DELETE');
    expect(headers.get('access-control-allow-headers')).toContain('X-API-Key');
    expect(headers.get('access-control-allow-headers')).toContain('Idempotency-Key');
    expect(headers.get('access-control-max-age')).toBe('3600');
    expect((await all.call('/v1/webhooks', preflight('https://a.example'))).status).toBe(204);
    const rejected = await some.call('/v1/webhooks', preflight('https://evil.example'));
    expect([rejected.status, corsHeaders(rejected.headers)]).toEqual([405, []]);
    const noPreflight = await some.call('/v1/webhooks', { method: 'OPTIONS', headers: { Origin: PAGE } });
    expect(noPreflight.status).toBe(405);
  });

  it('has no access to the operator pages', async () => {
    for (const path of ['/ops', '/ops/queues']) {
      expect(corsHeaders((await all.call(path, preflight(PAGE))).headers)).toEqual([]);
    }
  });
});
