import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { createAccountLimits } from '../../../../api/access/account-limits.ts';
import type { RequestSample } from '../../../../api/middleware/request-context.ts';
import { type AnswerCache, createAnswerCache } from '../../../../api/reads/answer-cache.ts';
import type { Scope } from '../../../../src/domain/values/api-key.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { createApiKey, revokeApiKey } from '../../../../src/store/accounts/accounts.ts';
import { setAccountQuotas } from '../../../../src/store/accounts/quotas.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { GUARD_MS } from '../../../support/eventually.ts';
import { type Answer, useTestApi } from '../api-harness.ts';

const LIMIT = 1_000;
const log = createLogger({ process: 'test', level: 'silent' });
const clock = { nowMs: 1_800_000_000_000 };

/** A cache with a switch for the fast path. */
function switchable(): { latest: AnswerCache; isFast: boolean; fastAnswers: number } {
  const latest = createAnswerCache({ now: () => 1 });
  const state = {
    isFast: false,
    fastAnswers: 0,
    latest: {
      ...latest,
      recent(target: string) {
        const found = state.isFast ? latest.recent(target) : undefined;
        if (found) state.fastAnswers += 1;
        return found;
      },
    },
  };
  return state;
}

const PAGE = 'https://app.example.com';
const cache = switchable();
const api = useTestApi({
  answers: cache.latest,
  limits: createAccountLimits({
    addUsage: async (entries) => entries.map(({ used }) => used),
    defaults: { requests: LIMIT, cold_reads: 0 },
    log,
    now: () => clock.nowMs,
  }),
  corsOrigins: [PAGE],
  now: () => clock.nowMs,
  onRequest: (sample) => samples.push(sample),
});
const samples: RequestSample[] = [];
/** The number of requests; each must be counted once. */
let requests = 0;
let path: string;
let key: string;
beforeAll(async () => {
  const { call } = api;
  api.call = (...given) => {
    requests += 1;
    return call(...given);
  };
  const market = await aStoredMarket(api.db);
  await aStoredPrice(api.db, market.outcomes[0]?.tokenId ?? 0n, { price: '0.4', asOf: new Date(1_700_000_000_000) });
  path = `/v1/all/markets/${market.marketId}/prices`;
  key = await aKey();
});
afterEach(() => {
  cache.isFast = false;
  clock.nowMs += 60_000;
});

async function aKey(over: { scopes?: readonly Scope[]; rate?: number; expiresAt?: Date } = {}): Promise<string> {
  const accountName = `recent ${Math.random()}`;
  const { scopes = ['markets:read'], expiresAt } = over;
  const made = await createApiKey(api.db, { accountName, name: 'k', scopes, ...(expiresAt && { expiresAt }) });
  if (over.rate !== undefined) await setAccountQuotas(api.db, accountName, { ratePerMinute: over.rate });
  return made.key;
}

const bearer = (value: string, more: Record<string, string> = {}) => ({ Authorization: `Bearer ${value}`, ...more });
/** An answer without the parts that change per request. */
function gist({ status, headers, text }: Answer) {
  const shown = [...headers.entries()].filter(([name]) => name !== 'date');
  return { status, headers: Object.fromEntries(shown), text };
}

/** The kinds of requests to a cached target, with headers and expected answer. */
const REQUESTS: readonly {
  name: string;
  /** Whether the fast path may answer it. */
  fast: boolean;
  status: number;
  headers(): Promise<Record<string, string>> | Record<string, string>;
  method?: string;
}[] = [
  { name: 'a plain read', fast: true, status: 200, headers: () => bearer(key) },
  { name: 'a current ETag', fast: true, status: 304, headers: () => bearer(key, { 'If-None-Match': '*' }) },
  { name: 'a stale copy', fast: true, status: 200, headers: () => bearer(key, { 'If-None-Match': 'W/"old", "x"' }) },
  { name: 'an account without a limit', fast: true, status: 200, headers: async () => bearer(await aKey({ rate: 0 })) },
  {
    name: 'an account with its own limit',
    fast: true,
    status: 200,
    headers: async () => bearer(await aKey({ rate: 7 })),
  },
  {
    name: 'a compressed answer',
    fast: true,
    status: 200,
    headers: () => bearer(key, { 'Accept-Encoding': 'gzip, br' }),
  },
  { name: 'an account at its limit', fast: false, status: 429, headers: async () => bearer(await aKey({ rate: 1 })) },
  {
    name: 'a key with other scopes',
    fast: false,
    status: 403,
    headers: async () => bearer(await aKey({ scopes: ['alerts'] })),
  },
  { name: 'an unknown key', fast: false, status: 401, headers: () => bearer('an-unknown-key') },
  {
    name: 'an expired key',
    fast: false,
    status: 401,
    headers: async () => bearer(await aKey({ expiresAt: new Date(clock.nowMs) })),
  },
  { name: 'no key', fast: false, status: 401, headers: () => ({}) },
  { name: 'the key in the wrong header', fast: false, status: 401, headers: () => ({ 'X-API-Key': key }) },
  { name: 'the scheme in lower case', fast: false, status: 200, headers: () => ({ Authorization: `bearer ${key}` }) },
  { name: 'a page of a listed origin', fast: false, status: 200, headers: () => bearer(key, { Origin: PAGE }) },
  {
    name: 'a page of another origin',
    fast: false,
    status: 200,
    headers: () => bearer(key, { Origin: 'https://evil.example' }),
  },
  {
    name: 'text that cannot be stored',
    fast: false,
    status: 400,
    headers: () => bearer(key, { 'X-Odd': '\xed\xa0\x80' }),
  },
  { name: 'HEAD', fast: false, status: 200, method: 'HEAD', headers: () => bearer(key) },
  { name: 'a method without a route', fast: false, status: 405, method: 'DELETE', headers: () => bearer(key) },
];

describe('a recent answer', () => {
  it.each(REQUESTS)('to $name equals the answer of the app', async ({ fast, status, headers, method = 'GET' }) => {
    const sent = { method, headers: { 'X-Request-Id': 'mine', ...(await headers()) } };
    // The answer is cached, and the key is in use.
    await api.call(path, { headers: bearer(key) });
    await api.call(path, sent);
    const both: ReturnType<typeof gist>[] = [];
    const counted: (RequestSample | undefined)[] = [];
    for (const isFast of [false, true]) {
      // A new minute for each, so that both have the same remaining limit.
      clock.nowMs += 60_000;
      cache.isFast = isFast;
      cache.fastAnswers = 0;
      if (status === 429) await api.call(path, sent);
      await vi.waitFor(() => expect(samples.length).toBe(requests), { timeout: GUARD_MS });
      both.push(gist(await api.call(path, sent)));
      await vi.waitFor(() => expect(samples.length).toBe(requests), { timeout: GUARD_MS });
      counted.push(samples.at(-1));
    }
    const timeless = (each: ReturnType<typeof gist> | undefined) => ({
      ...each,
      text: each?.text.replace(/"timestamp":\d+/, ''),
    });
    expect(timeless(both[1])).toEqual(timeless(both[0]));
    expect(both[0]?.status).toBe(status);
    expect({ ...counted[1], durationSeconds: 0 }).toEqual({ ...counted[0], durationSeconds: 0 });
    if (fast) expect(cache.fastAnswers).toBe(1);
  });

  it('is not sent after the revocation of the key, and every request counts once', async () => {
    const made = await createApiKey(api.db, { accountName: 'counted', name: 'k', scopes: ['markets:read'] });
    const left = async () => (await api.call(path, { headers: bearer(made.key) })).headers.get('ratelimit-remaining');
    expect([await left(), await left()]).toEqual([String(LIMIT - 1), String(LIMIT - 2)]);
    cache.isFast = true;
    expect([await left(), await left()]).toEqual([String(LIMIT - 3), String(LIMIT - 4)]);
    cache.isFast = false;
    expect(await left()).toBe(String(LIMIT - 5));
    cache.isFast = true;
    await revokeApiKey(api.db, made.id);
    await vi.waitFor(async () => expect(await left()).toBeNull(), { timeout: GUARD_MS, interval: 50 });
  });

  it('comes from the app when the key was not used before, so that a guess costs the same', async () => {
    cache.isFast = true;
    const unused = await aKey();
    let answeredByApp = 0;
    const fetch = api.keys.find;
    api.keys.find = (...given) => {
      answeredByApp += 1;
      return fetch(...given);
    };
    for (let i = 0; i < 2; i++) expect((await api.call(path, { headers: bearer(unused) })).status).toBe(200);
    api.keys.find = fetch;
    expect(answeredByApp).toBe(1);
  });
});
