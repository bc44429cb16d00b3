import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { VenueError } from '../../../src/venues/errors.ts';
import { createVenueHttp, type VenueHttp, type VenueHttpOptions } from '../../../src/venues/http/http.ts';
import { type BudgetTerms, createMemoryLedger, type RateLedger } from '../../../src/venues/http/rate-ledger.ts';
import { createPolymarketAdapter } from '../../../src/venues/polymarket/adapter.ts';
import { createPolymarketWallets } from '../../../src/venues/polymarket/wallet-adapter.ts';
import { createRpcClient } from '../../../src/venues/solana/rpc-client.ts';
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

/** Opens ledgers in memory, and reads the rate of the last one. */
function ledgers() {
  let ledger: RateLedger | undefined;
  const openLedger = (terms: BudgetTerms) => {
    ledger = createMemoryLedger(terms);
    return ledger;
  };
  return { openLedger, rate: async () => (await ledger?.take(0, []))?.rate };
}

/** A client with its present rate. */
function open(options: Partial<VenueHttpOptions>) {
  const seen = { turns: 0, answers: 0 };
  const { openLedger, rate } = ledgers();
  const http = createVenueHttp({
    venue: 'test',
    baseUrl,
    requestsPerSecond: 20,
    maxAttempts: 1,
    openLedger,
    observer: {
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
  return { http, seen, rate };
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
    const { http, rate } = open({ requestsPerSecond: 1_000 });
    expect(await rate()).toBe(1_000);
    server.script(json(429, {}), json(200, {}), json(200, {}));
    expect(await get(http)).toMatchObject({ code: 'rate_limited' });
    expect(await rate()).toBe(500);
    await get(http);
    // The next request reports the success.
    await get(http);
    expect(await rate()).toBeGreaterThan(500);
  });

  it.each([404, 500, 403])('of %i leaves the rate as it is', async (status) => {
    const { http, rate } = open({ requestsPerSecond: 1_000 });
    server.script(json(status, {}));
    expect(await get(http)).toMatchObject({ code: 'http_status' });
    expect(await rate()).toBe(1_000);
  });

  it('of 503 with Retry-After pauses all calls of the host', async () => {
    const { http, rate } = open({ requestsPerSecond: 1_000 });
    server.script(json(503, {}, { 'retry-after': '120' }));
    expect(await get(http)).toMatchObject({ code: 'http_status', retryAfterMs: 120_000 });
    expect(await get(http)).toMatchObject({ code: 'rate_limited', retryable: true });
    expect(server.requests).toHaveLength(1);
    expect(await rate()).toBe(1_000);
  });
});

describe('a call', () => {
  const get = (http: VenueHttp) => http.get({ route: 'r', path: '/r', signal });

  it('that is refused by 429 is sent again within the call, and leaves the breaker closed', async () => {
    const { http } = open({ requestsPerSecond: 1_000, maxAttempts: 3, retryDelayMs: 1, breakerFailures: 1 });
    server.script(json(429, {}), json(429, {}), json(200, 'served'));
    expect(await get(http)).toMatchObject({ json: 'served' });
    expect(http.breakerState()).toBe('closed');
  });

  it('whose ledger does not answer fails as budget_unavailable, sends nothing, and leaves the breaker closed', async () => {
    const away = () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.7:5432'));
    const openLedger = () => ({ take: away, limited: away, pause: away });
    const { http } = open({ openLedger, breakerFailures: 1 });
    const message = 'the request budget is unavailable';
    await expect(get(http)).rejects.toMatchObject({ code: 'budget_unavailable', retryable: true, message });
    expect(http.breakerState()).toBe('closed');
    expect(server.requests).toHaveLength(0);
  });

  it('is served when the ledger answers its retry', async () => {
    const { openLedger } = ledgers();
    let failures = 1;
    const { http } = open({
      maxAttempts: 2,
      retryDelayMs: 1,
      openLedger: (terms) => {
        const ledger = openLedger(terms);
        const take: RateLedger['take'] = async (...of) => {
          failures -= 1;
          if (failures >= 0) throw new Error('gone');
          return ledger.take(...of);
        };
        return { ...ledger, take };
      },
    });
    server.script(json(200, 'served'));
    expect(await get(http)).toMatchObject({ json: 'served' });
  });

  it('that the host refuses fails as rate_limited when the ledger cannot record it', async () => {
    const { openLedger } = ledgers();
    const away = () => Promise.reject(new Error('gone'));
    const { http } = open({ openLedger: (terms) => ({ ...openLedger(terms), limited: away, pause: away }) });
    server.script(json(429, {}, { 'retry-after': '120' }));
    await expect(get(http)).rejects.toMatchObject({ code: 'rate_limited', retryAfterMs: 120_000 });
    await expect(get(http)).rejects.toMatchObject({ code: 'rate_limited' });
    expect(server.requests).toHaveLength(1);
  });
});

describe('the budgets of one host', () => {
  it('have a key of host and client, so that clients with rates of their own share none', async () => {
    const keys: string[] = [];
    const openLedger = (terms: BudgetTerms) => {
      keys.push(terms.key);
      return createMemoryLedger(terms);
    };
    const host = 'data-api.test';
    const urls = { gamma: `https://${host}`, clob: `https://${host}`, data: `https://${host}` };
    clients.push(createPolymarketAdapter({ urls, http: { openLedger } }));
    clients.push(createPolymarketWallets({ url: urls.data, http: { openLedger } }));
    expect(keys.toSorted()).toEqual(
      ['clob', 'gamma', 'polymarket-history', 'trades', 'wallets'].map((client) => `${host}#${client}`),
    );
  });
});

describe('a Solana node', () => {
  async function rateAfter(error: object) {
    const { openLedger, rate } = ledgers();
    const client = createRpcClient({
      url: baseUrl,
      http: { requestsPerSecond: 1_000, maxAttempts: 1, openLedger },
    });
    clients.push(client);
    server.script(json(200, { jsonrpc: '2.0', id: 1, error }));
    await expect(client.getTransaction('s', 1, signal)).rejects.toMatchObject({ code: 'rate_limited' });
    return rate();
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
