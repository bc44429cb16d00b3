import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, expectTypeOf, it, vi } from 'vitest';
import { quoteNumbers } from '../../../clients/typescript/src/decimals.ts';
import {
  type ClientOptions,
  createClient,
  type Market,
  OddswireApiError,
  OddswireConnectionError,
} from '../../../clients/typescript/src/index.ts';
import { collectGarbage } from '../../support/collect-garbage.ts';
import { GUARD_MS } from '../../support/eventually.ts';

afterEach(() => {
  vi.useRealTimers();
});

type Answer = Response | Error;

/** A client of a service that sends these answers in turn and repeats the last. Also returns the requests. */
function clientOf(answers: readonly (() => Answer)[], options: Partial<ClientOptions> = {}) {
  const requests: Request[] = [];
  const client = createClient({
    baseUrl: 'https://oddswire.example.com/base/',
    apiKey: 'ow_live_key',
    fetch: async (request) => {
      requests.push(request);
      const answer = answers[Math.min(requests.length, answers.length) - 1]?.();
      if (answer === undefined || answer instanceof Error) throw answer ?? new Error('no answer');
      return answer;
    },
    ...options,
  });
  return { client, requests };
}

const live = () => Response.json({ success: true, data: { status: 'live' } });
const made = () => Response.json({ success: true, data: { id: 'wh_1' } }, { status: 201 });
const gone = () => Response.json({ success: true, data: { id: 'alert_1', deleted: true } });
const failed = (status: number, code: string, retryAfter?: string) => () =>
  Response.json(
    { success: false, error: { code, message: 'no' }, meta: { request_id: 'req_1', timestamp: 1 } },
    { status, headers: { 'X-Request-Id': 'req_1', ...(retryAfter !== undefined && { 'Retry-After': retryAfter }) } },
  );
const broken = () => new TypeError('fetch failed');
const hook = { url: 'https://hooks.example.com/', events: ['price_alert' as const] };

/** The error of a call. */
async function thrownBy(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => expect.unreachable('the call returned'),
    (error: unknown) => error,
  );
}

it('passes the warnings of an answer on, and none of an answer without them', async () => {
  const warnings = [{ path: 'statuz', message: 'is ignored; did you mean status?' }];
  const warned = () =>
    Response.json({
      success: true,
      data: [],
      meta: { request_id: 'req_1', timestamp: 1, next_cursor: null, warnings },
    });
  const plain = () =>
    Response.json({ success: true, data: [], meta: { request_id: 'req_2', timestamp: 1, next_cursor: null } });
  const given: unknown[] = [];
  const { client } = clientOf([warned, plain], { onWarning: (each) => given.push(each) });
  expect((await client.markets.list()).meta.warnings).toEqual(warnings);
  expect((await client.markets.list()).meta.warnings).toBeUndefined();
  expect(given).toEqual([warnings]);
});

describe('a retry', () => {
  it('waits for Retry-After and happens at most twice', async () => {
    vi.useFakeTimers();
    const { client, requests } = clientOf([failed(429, 'rate_limited', '7'), failed(503, 'not_ready', '2'), live]);
    const call = client.health.live();
    await vi.advanceTimersByTimeAsync(6_999);
    expect(requests.length).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(requests.length).toBe(2);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await call).toEqual({ status: 'live' });

    const limited = clientOf([failed(429, 'rate_limited', '1')]);
    const failing = thrownBy(limited.client.health.live());
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await failing).toMatchObject({
      status: 429,
      code: 'rate_limited',
      retryAfterSeconds: 1,
      requestId: 'req_1',
    });
    expect(limited.requests.length).toBe(3);
  });

  it('accepts an HTTP date in Retry-After, and does not wait longer than maxDelayMs', async () => {
    vi.useFakeTimers({ now: Date.parse('2026-01-01T00:00:00Z') });
    const { client, requests } = clientOf([failed(429, 'rate_limited', 'Thu, 01 Jan 2026 00:01:01 GMT')]);
    expect(await thrownBy(client.health.live())).toMatchObject({ retryAfterSeconds: 61, retryable: true });
    expect(requests.length).toBe(1);
  });

  it.each([
    ['a read', broken, live, (client: ReturnType<typeof createClient>) => client.health.live(), 2],
    ['a creation', broken, made, (client: ReturnType<typeof createClient>) => client.webhooks.create(hook), 2],
    [
      'a creation in flight',
      failed(409, 'conflict', '0'),
      made,
      (client: ReturnType<typeof createClient>) => client.webhooks.create(hook),
      2,
    ],
    ['a change', broken, made, (client: ReturnType<typeof createClient>) => client.webhooks.update('wh_1', {}), 2],
    [
      'a rejected deletion',
      failed(429, 'rate_limited', '0'),
      gone,
      (client: ReturnType<typeof createClient>) => client.alerts.delete('alert_1'),
      2,
    ],
  ])('repeats %s', async (_name, first, second, call, times) => {
    vi.useFakeTimers();
    const { client, requests } = clientOf([first, second]);
    const done = call(client);
    await vi.advanceTimersByTimeAsync(1_000);
    await done;
    expect(requests.length).toBe(times);
    expect(new Set(requests.map(({ headers }) => headers.get('Idempotency-Key'))).size).toBe(1);
  });

  it.each([
    ['a deletion without an answer', [broken], {}, (c: ReturnType<typeof createClient>) => c.alerts.delete('a')],
    [
      'a creation without a key',
      [failed(429, 'rate_limited', '0')],
      {},
      (c: ReturnType<typeof createClient>) => c.webhooks.create(hook, { idempotencyKey: false }),
    ],
    ['a conflict', [failed(409, 'conflict')], {}, (c: ReturnType<typeof createClient>) => c.webhooks.create(hook)],
    ['a server error', [failed(500, 'internal_error')], {}, (c: ReturnType<typeof createClient>) => c.health.live()],
    [
      'a read with retry: false',
      [failed(503, 'not_ready', '0')],
      { retry: false as const },
      (c: ReturnType<typeof createClient>) => c.health.live(),
    ],
  ])('does not repeat %s', async (_name, answers, options, call) => {
    const { client, requests } = clientOf(answers, options);
    await thrownBy(call(client));
    expect(requests.length).toBe(1);
  });

  it('ends with the reason of the signal, also during the wait', async () => {
    const { client, requests } = clientOf([failed(429, 'rate_limited', '30')]);
    const controller = new AbortController();
    const failing = thrownBy(client.health.live({ signal: controller.signal }));
    await vi.waitFor(() => expect(requests.length).toBe(1), { timeout: GUARD_MS });
    const reason = new Error('enough');
    controller.abort(reason);
    expect(await failing).toBe(reason);
    expect(await thrownBy(client.health.live({ signal: controller.signal }))).toBe(reason);
    expect(requests.length).toBe(1);
  });
});

describe('a request', () => {
  it('has the key in the header of its route, or no key for public routes', async () => {
    const page = () => Response.json({ success: true, data: [], meta: { next_cursor: null } });
    const { client, requests } = clientOf([page]);
    await client.markets.list({ q: 'a b&c', limit: 5 }, { requestId: 'mine' });
    await client.alerts.list();
    await client.health.live();
    expect(requests.map(({ url, headers }) => [url, headers.get('Authorization'), headers.get('X-API-Key')])).toEqual([
      ['https://oddswire.example.com/base/v1/all/markets?q=a%20b%26c&limit=5', 'Bearer ow_live_key', null],
      ['https://oddswire.example.com/base/v1/alerts', null, 'ow_live_key'],
      ['https://oddswire.example.com/base/health/live', null, null],
    ]);
    expect([requests[0]?.headers.get('X-Request-Id'), requests[0]?.redirect]).toEqual(['mine', 'error']);
  });

  it('has a new idempotency key per creation, or the given key', async () => {
    const { client, requests } = clientOf([made]);
    await client.webhooks.create(hook);
    await client.webhooks.create(hook);
    await client.webhooks.create(hook, { idempotencyKey: 'mine' });
    const [first, second, third] = requests.map(({ headers }) => headers.get('Idempotency-Key'));
    expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
    expect(second).not.toBe(first);
    expect(third).toBe('mine');
  });

  it.each(['', '.', '..'])('is not sent for the id %j, which would change the route', async (id) => {
    const { client, requests } = clientOf([gone]);
    expect(await thrownBy(client.alerts.delete(id))).toBeInstanceOf(RangeError);
    expect(requests).toEqual([]);
  });

  it('encodes an id as one path segment', async () => {
    const { client, requests } = clientOf([gone]);
    await client.alerts.get('../webhooks?x=1#y');
    expect(requests[0]?.url).toBe('https://oddswire.example.com/base/v1/alerts/..%2Fwebhooks%3Fx%3D1%23y');
  });

  it('is not retried after a timeout', async () => {
    const requests: Request[] = [];
    const client = createClient({
      baseUrl: 'http://127.0.0.1:1',
      apiKey: 'k',
      timeoutMs: 5,
      fetch: (request) => {
        requests.push(request);
        return new Promise((_resolve, reject) => {
          request.signal.addEventListener('abort', () => reject(request.signal.reason));
        });
      },
    });
    const error = await thrownBy(client.health.live());
    expect(error).toBeInstanceOf(OddswireConnectionError);
    expect(error).toMatchObject({ code: 'timeout', retryable: true });
    expect(requests.length).toBe(1);
  });

  it.each([
    ['the answer does not begin', (_response: ServerResponse) => undefined],
    ['the answer stops in its body', (response: ServerResponse) => response.write('{"success":')],
  ])('ends at its limit when garbage is collected while %s', async (_name, answer) => {
    const server = createServer((_request, response) => void answer(response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const call = thrownBy(createClient({ baseUrl, apiKey: 'k', timeoutMs: 300 }).health.live());
    // On a busy machine the limit may pass before the request arrives.
    await Promise.race([once(server, 'request'), call]);
    await collectGarbage(20);
    expect(await call).toMatchObject({ code: 'timeout' });
    server.closeAllConnections();
    server.close();
  });

  it.each([
    ['an address without a scheme', { baseUrl: 'oddswire.example.com' }],
    ['another scheme', { baseUrl: 'ftp://oddswire.example.com' }],
    ['a query', { baseUrl: 'https://oddswire.example.com/?a=1' }],
    ['an empty key', { apiKey: '' }],
    ['a key with a line break', { apiKey: 'a\nb' }],
  ])('needs a client that rejects %s', (_name, options) => {
    expect(() => clientOf([live], options)).toThrow(TypeError);
  });
});

describe('an answer of another server', () => {
  const page = (status: number) => () => new Response('<h1>Sorry</h1>', { status });

  it.each([200, 404, 502])('with status %i is recognised', async (status) => {
    const { client } = clientOf([page(status)]);
    const error = await thrownBy(client.health.live());
    expect(error).toBeInstanceOf(OddswireApiError);
    expect(error).toMatchObject({ status, code: 'unexpected_answer', details: [] });
  });

  it('with a truncated body is a connection error', async () => {
    const half = () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            controller.error(new TypeError('terminated'));
          },
        }),
      );
    const { client } = clientOf([half], { retry: false });
    expect(await thrownBy(client.health.live())).toMatchObject({ code: 'connection_failed' });
  });
});

describe('exact decimals', () => {
  /** The expected result of `quoteNumbers`: the numbers in objects become texts. */
  function quoted(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(quoted);
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).map(([name, inner]) => [
      name,
      typeof inner === 'number' ? JSON.stringify(inner) : quoted(inner),
    ]);
    return Object.fromEntries(entries);
  }

  it('quote every number of an object and change nothing else in any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(undefined, 1), (value, space) => {
        const text = JSON.stringify(value, null, space);
        expect(JSON.parse(quoteNumbers(text, 'all'))).toEqual(quoted(JSON.parse(text)));
      }),
      { numRuns: 200 },
    );
  });

  it('skip other fields, and text that looks like decimals', () => {
    const text =
      '{"price":0.10,"timestamp":5,"size":"1.50","title":"\\"price\\":1","x":{"price" : -12345678901234567890.1}}';
    expect(quoteNumbers(text, 'decimals')).toBe(
      '{"price":"0.10","timestamp":5,"size":"1.50","title":"\\"price\\":1","x":{"price" : "-12345678901234567890.1"}}',
    );
  });

  it('accept a string of a megabyte', () => {
    const text = JSON.stringify({ title: 'a\\"'.repeat(400_000), price: 1 });
    expect(quoteNumbers(text, 'decimals')).toBe(text.replace(/1}$/, '"1"}'));
  });

  it('have the chosen type', () => {
    const options = { baseUrl: 'http://127.0.0.1:1', apiKey: 'k' };
    const asNumbers = createClient(options);
    const asStrings = createClient({ ...options, decimals: 'string' });
    expectTypeOf<Awaited<ReturnType<typeof asNumbers.markets.list>>['data']>().toEqualTypeOf<Market[]>();
    expectTypeOf<Awaited<ReturnType<typeof asStrings.markets.list>>['data']>().toEqualTypeOf<Market<string>[]>();
    expectTypeOf<Market['volume']>().toEqualTypeOf<number | undefined>();
    expectTypeOf<Market<string>['volume']>().toEqualTypeOf<string | undefined>();
    expectTypeOf<Market<string>['updated_at']>().toEqualTypeOf<number>();
  });
});
