import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { VenueError } from '../../../src/venues/errors.ts';
import { type BudgetTerms, createMemoryLedger } from '../../../src/venues/http/rate-ledger.ts';
import { createSolanaTokens } from '../../../src/venues/solana/token-adapter.ts';
import type { TokenAdapter } from '../../../src/venues/token-port.ts';
import { json, raw, ScriptedServer } from './scripted-server.ts';

const NOW = 1_790_000_000_000;
const SOL = 'So11111111111111111111111111111111111111112';
const USDC = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const KEY = 'a-secret-key';
const context = { signal: new AbortController().signal, now: () => NOW };

const server = new ScriptedServer();
let url = '';
let adapter: TokenAdapter;
beforeEach(async () => {
  // Requests take no time, so that times can be compared exactly.
  vi.useFakeTimers({ toFake: ['performance'] });
  url = await server.start();
  server.requests.length = 0;
  adapter = tokens(KEY);
});
afterEach(async () => {
  vi.useRealTimers();
  await adapter.close();
  await server.close();
});

function tokens(jupiterKey?: string): TokenAdapter {
  return createSolanaTokens({
    jupiter: url,
    ...(jupiterKey !== undefined && { jupiterKey }),
    http: { requestsPerSecond: 10_000, burst: 100, maxAttempts: 1 },
  });
}

describe('token prices', () => {
  it('are requested by mint with the key, and have the time of the request', async () => {
    server.answer = json(200, { [SOL]: { usdPrice: 147.48, blockId: 1, decimals: 9 } });
    expect(await adapter.fetchTokenPrices([SOL, USDC, SOL, 'no mint'], context)).toEqual({
      records: [{ outcomeId: SOL, asOfMs: NOW, price: '147.48' }],
      rejected: [],
    });
    const [request] = server.requests;
    expect(request?.path).toBe('/price/v3');
    expect(request?.query.get('ids')).toBe(`${SOL},${USDC}`);
    expect(request?.headers['x-api-key']).toBe(KEY);
  });

  it('are not requested when no id is a mint', async () => {
    expect(await adapter.fetchTokenPrices(['1234'], context)).toEqual({ records: [], rejected: [] });
    expect(server.requests).toEqual([]);
  });

  it('are requested without a header when no key is configured', async () => {
    const keyless = tokens();
    server.answer = json(200, {});
    await keyless.fetchTokenPrices([SOL], context);
    await keyless.close();
    expect(server.requests[0]?.headers).not.toHaveProperty('x-api-key');
  });

  it.each<[string, { jupiterKey?: string; jupiterPerSecond?: number }, number]>([
    ['half a request per second without a key', {}, 0.5],
    ['one request per second with a key', { jupiterKey: KEY }, 1],
    ['the configured requests of a paid key', { jupiterKey: KEY, jupiterPerSecond: 10 }, 10],
  ])('are requested at %s', async (_, options, perSecond) => {
    const rates: number[] = [];
    const openLedger = (terms: BudgetTerms) => {
      rates.push(terms.perSecond);
      return createMemoryLedger(terms);
    };
    await createSolanaTokens({ jupiter: url, ...options, http: { openLedger } }).close();
    expect(rates).toEqual([perSecond]);
  });

  it('without a key are requested once in two seconds, without a burst', async () => {
    // The second turn, after 2,000 ms, comes too late for such a call.
    const keyless = createSolanaTokens({ jupiter: url, http: { maxAttempts: 1, callTimeoutMs: 1_900 } });
    server.answer = json(200, {});
    await keyless.fetchTokenPrices([SOL], context);
    const refusal = { code: 'rate_limited', retryAfterMs: 2_000 };
    await expect(keyless.fetchTokenPrices([SOL], context)).rejects.toMatchObject(refusal);
    await keyless.close();
    expect(server.requests).toHaveLength(1);
  });

  it.each([
    [undefined, 'HTTP 401: Jupiter requires a key: set JUPITER_API_KEY'],
    [KEY, 'HTTP 401: Jupiter refuses the key of JUPITER_API_KEY'],
  ])('with the key %s fail on 401 and name the variable to set', async (key, message) => {
    const priced = tokens(key);
    server.answer = json(401, { code: 401, message: 'Unauthorized' });
    const expected = { code: 'http_status', statusCode: 401, retryable: false, message };
    await expect(priced.fetchTokenPrices([SOL], context)).rejects.toMatchObject(expected);
    await expect(priced.fetchTokenSymbols([SOL], context)).rejects.toMatchObject(expected);
    await priced.close();
  });

  it.each([
    [
      'a refusal of the key',
      json(401, { code: 401, message: `invalid ${KEY}` }),
      { code: 'http_status', statusCode: 401 },
    ],
    ['too many requests', json(429, {}, { 'retry-after': '7' }), { code: 'rate_limited', retryAfterMs: 7_000 }],
    ['a web page', raw('<html>'), { code: 'invalid_payload' }],
    ['a list', json(200, []), { code: 'invalid_payload' }],
  ])('fail on %s without showing the key', async (_, answer, expected) => {
    server.answer = answer;
    const error = await adapter.fetchTokenPrices([SOL], context).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(VenueError);
    expect(error).toMatchObject(expected);
    expect(JSON.stringify([error, (error as Error).message, (error as Error).stack])).not.toContain(KEY);
  });

  it('throw when all entries are unreadable', async () => {
    const mints = Array.from(
      { length: 20 },
      (_, no) => `${SOL.slice(0, 40)}${String.fromCharCode(65 + (no % 8))}${2 + Math.floor(no / 8)}1`,
    );
    server.answer = json(200, Object.fromEntries(mints.map((mint) => [mint, { price: 1 }])));
    expect(mints.every((mint) => adapter.isMint(mint))).toBe(true);
    await expect(adapter.fetchTokenPrices(mints, context)).rejects.toMatchObject({ code: 'invalid_payload' });
    const { rejected } = await adapter.fetchTokenPrices(mints.slice(1), context);
    expect(rejected).toHaveLength(19);
  });
});

describe('token symbols', () => {
  it('are requested a hundred at a time', async () => {
    server.answer = (request, response) => {
      const ids = (request.query.get('query') ?? '').split(',');
      json(
        200,
        ids.map((id) => ({ id, symbol: id.slice(-3) })),
      )(request, response);
    };
    const digits = '123456789ABCDEFGHJKLMNPQRSTUVWXYZ';
    const mints = Array.from(
      { length: 120 },
      (_, no) => `${SOL.slice(0, 41)}${digits[Math.floor(no / 33)]}${digits[no % 33]}`,
    );
    const symbols = await adapter.fetchTokenSymbols(mints, context);
    expect(server.requests.map(({ query }) => query.get('query')?.split(',').length)).toEqual([100, 20]);
    expect(symbols.size).toBe(120);
  });

  it('fail when the answer is not a list', async () => {
    server.answer = json(200, {});
    await expect(adapter.fetchTokenSymbols([SOL], context)).rejects.toMatchObject({ code: 'invalid_payload' });
  });
});
