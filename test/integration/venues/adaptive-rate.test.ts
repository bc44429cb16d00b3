import { setImmediate as nextTurn } from 'node:timers/promises';
import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { VenueError } from '../../../src/venues/errors.ts';
import { createVenueHttp, type VenueHttp, type VenueHttpOptions } from '../../../src/venues/http.ts';
import { createRpcClient } from '../../../src/venues/solana/rpc-client.ts';
import { venueObserver } from '../../../workers/polling/venue-observer.ts';
import { json, ScriptedServer } from './scripted-server.ts';

const server = new ScriptedServer();
const signal = new AbortController().signal;
const clients: Pick<VenueHttp, 'close'>[] = [];
let baseUrl = '';

beforeEach(async () => {
  baseUrl = await server.start();
  server.requests.length = 0;
});
afterEach(async () => {
  vi.useRealTimers();
  for (const client of clients.splice(0)) await client.close();
  await server.close();
});

/** A client with its latest rate. */
function open(options: Partial<VenueHttpOptions>) {
  const seen = { rate: 0, turns: 0, answers: 0 };
  const http = createVenueHttp({
    venue: 'test',
    baseUrl,
    requestsPerSecond: 20,
    maxAttempts: 1,
    observer: {
      onRate: ({ perSecond }) => {
        seen.rate = perSecond;
      },
      onTurn: ({ isRefused }) => {
        if (!isRefused) seen.turns += 1;
      },
      onRequest: () => {
        seen.answers += 1;
      },
    },
    ...options,
  });
  clients.push(http);
  return { http, seen };
}

describe('a host with a limit below the configured rate', () => {
  const ALLOWED = 5;
  const SECONDS = 150;
  const STEP_MS = 20;

  /** Runs four endless callers for some logical seconds; returns the served and refused requests by second. */
  async function run(headers: Record<string, string>) {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    const { http, seen } = open({});
    const startedAt = performance.now();
    const served: number[] = [];
    const refused: number[] = [];
    let tokens = ALLOWED;
    let filledAt = startedAt;
    server.answer = (request, response) => {
      const now = performance.now();
      tokens = Math.min(ALLOWED, tokens + ((now - filledAt) * ALLOWED) / 1000);
      filledAt = now;
      const isServed = tokens >= 1;
      if (isServed) tokens -= 1;
      (isServed ? served : refused).push((now - startedAt) / 1000);
      json(isServed ? 200 : 429, {}, isServed ? {} : headers)(request, response);
    };
    const over = new AbortController();
    const callers = Array.from({ length: 4 }, async () => {
      while (!over.signal.aborted) {
        await http.get({ route: 'r', path: '/r', signal: over.signal }).catch((error: unknown) => {
          if (!(error instanceof VenueError && ['rate_limited', 'aborted'].includes(error.code))) throw error;
        });
        await nextTurn();
      }
    });
    for (let step = 0; step < (SECONDS * 1000) / STEP_MS; step += 1) {
      // Time does not pass during a request.
      do await nextTurn();
      while (seen.turns > seen.answers);
      vi.advanceTimersByTime(STEP_MS);
    }
    over.abort();
    await Promise.all(callers);
    const isSettled = (at: number) => at > 30 && at <= SECONDS;
    return { served: served.filter(isSettled).length, refused: refused.filter(isSettled).length };
  }

  it.each([
    ['gives no pause', {}],
    ['asks for a pause by Retry-After', { 'retry-after': '1' }],
  ])('gets requests near its limit with few refusals when it %s', async (_, headers) => {
    const { served, refused } = await run(headers);
    expect(served / (SECONDS - 30)).toBeGreaterThan(0.8 * ALLOWED);
    expect(refused / (served + refused)).toBeLessThan(0.05);
  });
});

describe('one answer', () => {
  const get = (http: VenueHttp) => http.get({ route: 'r', path: '/r', signal }).catch((error: unknown) => error);

  it('of 429 without Retry-After halves the rate, and of 200 raises it', async () => {
    const { http, seen } = open({ requestsPerSecond: 1_000 });
    expect(seen.rate).toBe(1_000);
    server.script(json(429, {}), json(200, {}));
    expect(await get(http)).toMatchObject({ code: 'rate_limited' });
    expect(seen.rate).toBe(500);
    await get(http);
    expect(seen.rate).toBeGreaterThan(500);
  });

  it.each([404, 500, 403])('of %i leaves the rate as it is', async (status) => {
    const { http, seen } = open({ requestsPerSecond: 1_000 });
    server.script(json(status, {}));
    expect(await get(http)).toMatchObject({ code: 'http_status' });
    expect(seen.rate).toBe(1_000);
  });

  it('of 503 with Retry-After pauses all calls of the host', async () => {
    const { http, seen } = open({ requestsPerSecond: 1_000 });
    server.script(json(503, {}, { 'retry-after': '120' }));
    expect(await get(http)).toMatchObject({ code: 'http_status', retryAfterMs: 120_000 });
    expect(await get(http)).toMatchObject({ code: 'rate_limited', retryable: true });
    expect(server.requests).toHaveLength(1);
    expect(seen.rate).toBe(1_000);
  });

  it('of 429 to each request of a burst halves the rate once', async () => {
    const { http, seen } = open({ requestsPerSecond: 1_000, connections: 8 });
    const waiting: (() => void)[] = [];
    server.answer = (request, response) => {
      waiting.push(() => json(429, {})(request, response));
      if (waiting.length === 8) for (const answer of waiting) answer();
    };
    const errors = await Promise.all(Array.from({ length: 8 }, () => get(http)));
    for (const error of errors) expect(error).toMatchObject({ code: 'rate_limited' });
    expect(seen.rate).toBe(500);
  });
});

describe('a Solana node', () => {
  async function rateAfter(error: object): Promise<number> {
    let rate = 0;
    const client = createRpcClient({
      url: baseUrl,
      http: { requestsPerSecond: 1_000, maxAttempts: 1 },
      observer: {
        onRate: ({ perSecond }) => {
          rate = perSecond;
        },
      },
    });
    clients.push(client);
    server.script(json(200, { jsonrpc: '2.0', id: 1, error }));
    await expect(client.getTransaction('s', 1, signal)).rejects.toMatchObject({ code: 'rate_limited' });
    return rate;
  }

  it.each([
    [{ code: 429, message: 'slow down' }],
    [{ code: -32429, message: 'slow down' }],
    [{ code: -32005, message: 'request rate limit exceeded' }],
    [{ code: -32007, message: '50/second request limit reached' }],
  ])('that refuses by %j in an answer of 200 halves the rate', async (error) => {
    expect(await rateAfter(error)).toBe(500);
  });

  it.each([
    [{ code: -32005, message: 'Node is behind by 42 slots' }],
    [{ code: -32016, message: 'Minimum context slot has not been reached' }],
  ])('that is behind, by %j, keeps the rate after its pause', async (error) => {
    expect(await rateAfter(error)).toBe(1_000);
  });
});

describe('the metric venue_request_rate', () => {
  it('shows the sum of the clients of a host, and follows their changes', async () => {
    const metrics = createMetrics('poller');
    const observer = venueObserver(metrics, pino({ enabled: false }));
    const { http } = open({ requestsPerSecond: 1_000, observer });
    open({ requestsPerSecond: 40, observer });
    const shown = async () =>
      (await metrics.venueRequestRate.get()).values.map(({ labels, value }) => ({ ...labels, value }));
    const labels = { venue: 'test', host: new URL(baseUrl).host };
    expect(await shown()).toEqual([{ ...labels, value: 1_040 }]);
    server.script(json(429, {}));
    await http.get({ route: 'r', path: '/r', signal }).catch(() => undefined);
    expect(await shown()).toEqual([{ ...labels, value: 540 }]);
  });
});
