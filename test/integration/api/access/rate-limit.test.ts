import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type AccountLimits, createAccountLimits } from '../../../../api/access/account-limits.ts';
import { createFailedKeys } from '../../../../api/access/failed-keys.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { createApiKey, revokeApiKey } from '../../../../src/store/accounts/accounts.ts';
import { setAccountQuotas } from '../../../../src/store/accounts/quotas.ts';
import { addRateUsage } from '../../../../src/store/accounts/rate-usage.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { type Answer, startTestApi, type TestApi } from '../api-harness.ts';

const MAX_FAILED_KEYS = 30;

const LIMIT = 20;
const log = createLogger({ process: 'test', level: 'silent' });
/** The start of the windows of accounts with an id that is a multiple of 60, and inside the windows of the others. */
const clock = { nowMs: 1_800_000_000_000 };

let api: TestApi;
let other: TestApi;
let limits: AccountLimits[];
beforeAll(async () => {
  const process = () =>
    createAccountLimits({
      addUsage: (entries) => addRateUsage(api.db, entries),
      defaults: { requests: LIMIT, cold_reads: 5 },
      log,
      now: () => clock.nowMs,
    });
  const failedKeys = (own: AccountLimits) => createFailedKeys({ limits: own, trustedProxies: [] });
  const now = () => clock.nowMs;
  limits = [process(), process()];
  const [mine, theirs] = limits as [AccountLimits, AccountLimits];
  api = await startTestApi({ limits: mine, failedKeys: failedKeys(mine), now });
  other = await startTestApi({ limits: theirs, failedKeys: failedKeys(theirs), now }, { beside: api });
});
afterEach(() => {
  clock.nowMs += 60_000;
});
afterAll(async () => {
  for (const each of limits) await each.close();
  await other.close();
  await api.close();
});

const sync = async () => {
  for (const each of limits) await each.sync();
};
const limitsIn = ({ headers }: Answer) =>
  ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'].map((name) => headers.get(name));
const bearer = (key: string) => ({ headers: { Authorization: `Bearer ${key}` } });

describe('the limit of an account', () => {
  it('appears in every answer of a route with a key, and in no other answer', async () => {
    const client = await api.client(['markets:read', 'alerts']);
    const first = await client.market('/v1/venues');
    const etag = first.headers.get('etag') ?? '';
    expect(first.headers.get('ratelimit-policy')).toBe(`"default";q=${LIMIT};w=60`);
    expect(first.headers.get('ratelimit')).toMatch(/^"default";r=19;t=\d+$/);
    const answers = [
      first,
      await client.market('/v1/venues', { headers: { 'If-None-Match': etag } }),
      await client.market('/v1/all/markets?limit=0'),
      await client.market('/v1/all/markets/unknown'),
      await client.market('/v1/venues', { method: 'HEAD' }),
      await client.account('GET', '/v1/webhooks'),
      await client.account('GET', '/v1/alerts'),
      await client.account('POST', '/v1/alerts', { tokenMint: 't', condition: 'above', price: 1 }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 304, 400, 404, 200, 403, 200, 201]);
    const reset = first.headers.get('ratelimit-reset');
    expect(answers.map(limitsIn)).toEqual(answers.map((_, i) => [String(LIMIT), String(LIMIT - 1 - i), reset]));
    for (const { headers } of [
      await api.call('/v1/venues'),
      await api.call('/v1/venues', bearer('an-unknown-key')),
      await api.call('/health/live'),
      await client.market('/v1/nowhere'),
      await client.market('/v1/venues', { method: 'DELETE' }),
    ]) {
      expect(headers.get('ratelimit')).toBeNull();
    }
  });

  it('holds per account over all keys and processes, and rejects further requests until the minute is over', async () => {
    const account = `shared ${clock.nowMs}`;
    const make = () => createApiKey(api.db, { accountName: account, name: 'k', scopes: ['alerts', 'markets:read'] });
    const [one, two] = [await make(), await make()];
    for (let i = 0; i < LIMIT / 2; i++) {
      expect((await api.call('/v1/venues', bearer(one.key))).status).toBe(200);
      expect((await other.call('/v1/venues', bearer(two.key))).status).toBe(200);
    }
    await sync();
    await sync();
    // The first process learns the count of the other with its next sync, so it admits at most one extra request.
    await api.call('/v1/venues', bearer(two.key));
    await sync();
    for (const [process, key] of [
      [api, two.key],
      [other, one.key],
    ] as const) {
      const rejected = await process.call('/v1/venues', bearer(key));
      expect([rejected.status, rejected.body.error.code]).toEqual([429, 'rate_limited']);
      expect(rejected.headers.get('retry-after')).toBe(rejected.headers.get('ratelimit-reset'));
      expect(limitsIn(rejected).slice(0, 2)).toEqual([String(LIMIT), '0']);
    }
    const body = JSON.stringify({ tokenMint: 'rejected', condition: 'above', price: 1 });
    const headers = { 'X-API-Key': one.key, 'Content-Type': 'application/json' };
    expect((await api.call('/v1/alerts', { method: 'POST', headers, body })).status).toBe(429);
    const made = sql(
      'test_alerts_made',
      `SELECT 1 FROM alert JOIN token t ON t.id = token_id WHERE t.mint = 'rejected'`,
    );
    expect(await api.db.query(made)).toEqual([]);
    expect((await (await api.client()).market('/v1/venues')).status).toBe(200);
    clock.nowMs += 60_000;
    expect((await api.call('/v1/venues', bearer(one.key))).status).toBe(200);
  });

  it('uses its own value from the next key look-up on when it has one', async () => {
    const account = `own ${clock.nowMs}`;
    const { key } = await createApiKey(api.db, { accountName: account, name: 'k', scopes: ['markets:read'] });
    await setAccountQuotas(api.db, account, { ratePerMinute: 1 });
    const statuses = [];
    for (let i = 0; i < 2; i++) statuses.push((await api.call('/v1/venues', bearer(key))).status);
    expect(statuses).toEqual([200, 429]);
    await setAccountQuotas(api.db, account, { ratePerMinute: 0 });
    const free = await other.call('/v1/venues', bearer(key));
    expect([free.status, free.headers.get('ratelimit')]).toEqual([200, null]);
  });
});

describe('failed authentications of an address', () => {
  const wrong = (process: TestApi, i: number) =>
    process.call('/v1/venues', bearer(`ow_live_wrong${i}_${'0'.repeat(36)}`));

  it('cause 429 for wrong keys, while valid keys pass at their first use', async () => {
    for (let i = 0; i < MAX_FAILED_KEYS; i++) expect((await wrong(api, i)).status).toBe(401);
    const rejections = [await wrong(api, 99), await wrong(api, 0)];
    expect(rejections.map(({ status, body }) => [status, body.error])).toEqual(
      rejections.map(() => [
        429,
        { code: 'rate_limited', message: 'too many failed authentications from this address' },
      ]),
    );
    for (const { headers } of rejections) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    const unused = await api.client();
    expect((await unused.market('/v1/venues')).status).toBe(200);
    expect((await unused.account('GET', '/v1/alerts')).status).toBe(200);
    expect((await api.call('/v1/venues')).status).toBe(401);
    clock.nowMs += 60_000;
    expect((await wrong(api, 1)).status).toBe(401);
  });

  it('count in all processes together', async () => {
    for (let i = 0; i < MAX_FAILED_KEYS; i++) expect((await wrong(api, i)).status).toBe(401);
    await sync();
    // The second process knows the count of the first from its own next sync on, which needs a failure of its own.
    await wrong(other, 0);
    await sync();
    expect((await wrong(other, 1)).status).toBe(429);
    expect((await (await other.client()).market('/v1/venues')).status).toBe(200);
  });

  it('do not include the first uses of valid keys', async () => {
    for (let i = 0; i <= MAX_FAILED_KEYS; i++) {
      expect((await (await other.client()).market('/v1/venues')).status).toBe(200);
    }
  });

  it('count a revoked key like an unknown key', async () => {
    const { id, key } = await createApiKey(other.db, { accountName: 'ended', name: 'k', scopes: ['markets:read'] });
    await revokeApiKey(other.db, id);
    for (let i = 0; i < MAX_FAILED_KEYS; i++) expect((await other.call('/v1/venues', bearer(key))).status).toBe(401);
    expect((await other.call('/v1/venues', bearer(key))).status).toBe(429);
  });
});
