import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { RequestSample } from '../../../../api/middleware/request-context.ts';
import { createAnswerCache } from '../../../../api/reads/answer-cache.ts';
import type { Statement } from '../../../../src/store/db/tx.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { GUARD_MS } from '../../../support/eventually.ts';
import { type Answer, type Client, useTestApi } from '../api-harness.ts';

const clock = { nowMs: 1_000_000 };
const api = useTestApi({
  answers: createAnswerCache({ now: () => clock.nowMs }),
  onRequest: (sample) => samples.push(sample),
});
let client: Client;
/** Names of the statements that routes ran, without key look-ups and read notes. */
let statements: string[] = [];
let samples: RequestSample[] = [];
let restore: () => void;

beforeAll(async () => {
  client = await api.client();
  const query = api.db.query.bind(api.db);
  api.db.query = <Row>(statement: Statement, values?: readonly unknown[]) => {
    if (!/api_key|note_market_reads/.test(statement.name)) statements.push(statement.name);
    return query<Row>(statement, values);
  };
  restore = () => {
    api.db.query = query;
  };
});
afterEach(() => {
  clock.nowMs += 10_000;
  statements = [];
});
afterAll(async () => {
  restore();
});

async function aPricedMarket(price = '0.4') {
  const market = await aStoredMarket(api.db, { title: `cached ${Math.random()}` });
  const tokenId = market.outcomes[0]?.tokenId ?? 0n;
  await aStoredPrice(api.db, tokenId, { price, asOf: new Date(1_700_000_000_000) });
  statements = [];
  return { ...market, tokenId, path: `/v1/all/markets/${market.marketId}/prices` };
}

describe('cached answers', () => {
  it('are sent without SQL, with the same ETag and a new envelope', async () => {
    const { path } = await aPricedMarket();
    const first = await client.market(path);
    clock.nowMs += 999;
    const second = await client.market(path);
    expect(statements).toEqual(['one_market_prices']);
    expect(second.body.data).toEqual(first.body.data);
    expect(second.headers.get('etag')).toBe(first.headers.get('etag'));
    expect(second.body.meta.request_id).not.toBe(first.body.meta.request_id);
    const unchanged = await client.market(path, { headers: { 'If-None-Match': first.headers.get('etag') ?? '' } });
    expect([unchanged.status, unchanged.text]).toEqual([304, '']);
    expect(statements).toHaveLength(1);
  });

  it('have the same headers as the first answer and count alike', async () => {
    const { path } = await aPricedMarket();
    const headersOf = (answer: Answer) =>
      Object.fromEntries(
        [...answer.headers.entries()].filter(([name]) => !/^(date|ratelimit|ratelimit-remaining)$/.test(name)),
      );
    const id = { headers: { 'X-Request-Id': 'mine' } };
    samples = [];
    const [first, second] = [await client.market(path, id), await client.market(path, id)];
    expect(headersOf(second)).toEqual(headersOf(first));
    expect(second.text).toBe(first.text);
    const route = '/v1/:venue/markets/:market_id/prices';
    const counted = { method: 'GET', route, status: 200, durationSeconds: expect.any(Number) };
    await vi.waitFor(() => expect(samples).toEqual([counted, counted]), { timeout: GUARD_MS });
    const head = await client.market(path, { method: 'HEAD' });
    expect([head.status, head.text, head.headers.get('etag')]).toEqual([200, '', first.headers.get('etag')]);
  });

  it('require a key for market data and reject the same requests as the app', async () => {
    const { path } = await aPricedMarket();
    expect((await client.market(path)).status).toBe(200);
    const other = await api.client(['alerts']);
    expect((await other.market(path)).body.error.code).toBe('insufficient_scope');
    for (const headers of [{}, { Authorization: 'Bearer nope' }, { 'X-API-Key': client.key }, { Authorization: 'x' }]) {
      expect((await api.call(path, { headers })).body.error.code).toBe('unauthorized');
    }
    const rejected = await client.market(path, { headers: { 'X-Odd': '\xed\xa0\x80' } });
    expect([rejected.status, rejected.body.error.code]).toEqual([400, 'invalid_request']);
    expect((await client.market(path, { method: 'POST' })).status).toBe(405);
    // The lower-case scheme is valid, but takes the path through the app.
    expect((await api.call(path, { headers: { Authorization: `bearer ${client.key}` } })).status).toBe(200);
    expect(statements).toEqual(['one_market_prices']);
  });

  it('show a new price after at most a second', async () => {
    const { path, tokenId } = await aPricedMarket('0.4');
    expect((await client.market(path)).text).toContain('"price":0.4,');
    await aStoredPrice(api.db, tokenId, { price: '0.7', asOf: new Date(1_700_000_001_000) });
    expect((await client.market(path)).text).toContain('"price":0.4,');
    clock.nowMs += 1_001;
    expect((await client.market(path)).text).toContain('"price":0.7,');
  });

  it('are loaded once for concurrent requests of all accounts', async () => {
    const { path } = await aPricedMarket();
    const other = await api.client();
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) => (i % 2 === 0 ? client : other).market(path)),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map(({ body }) => body.meta.request_id)).size).toBe(30);
    expect(statements).toEqual(['one_market_prices']);
  });

  it('are distinct per venue, market and parameter value, independent of the spelling', async () => {
    const { path, marketId } = await aPricedMarket();
    const paths = [
      path,
      `/v1/venue/markets/${marketId}/prices`,
      `${path}?ignored=1`,
      path.replace(marketId, `%30${marketId.slice(1)}`),
      `/v1/polymarket/markets/${marketId}/prices`,
      `/v1/all/markets/${marketId}`,
      `/v1/all/prices?market_ids=${marketId}`,
      `/v1/all/markets?q=cached`,
      `/v1/all/markets?q=cached&limit=50`,
      `/v1/all/markets?limit=50&q=+cached+`,
    ];
    const etags = [];
    for (const each of paths) etags.push((await client.market(each)).headers.get('etag'));
    expect(statements.filter((name) => name === 'one_market_prices')).toHaveLength(3);
    expect(statements.filter((name) => name === 'read_market')).toHaveLength(1);
    // Two searches with five tiers each.
    expect(statements.filter((name) => name.startsWith('search_markets'))).toHaveLength(10);
    expect(etags.every((etag) => etag?.startsWith('W/'))).toBe(true);
  });

  it('never include a failure, so the next request repeats a failed look-up', async () => {
    const marketId = `0xlater${Math.random()}`;
    const path = `/v1/all/markets/${marketId}`;
    expect((await client.market(path)).body.error.code).toBe('market_not_found');
    const market = await aStoredMarket(api.db, { marketId });
    expect((await client.market(path)).body.data).toMatchObject({ market_id: marketId });
    expect((await client.market(`${path}/prices`)).body.error.code).toBe('no_data_yet');
    await aStoredPrice(api.db, market.outcomes[0]?.tokenId ?? 0n, { price: '0.5', asOf: new Date(1_700_000_000_000) });
    expect((await client.market(`${path}/prices`)).status).toBe(200);
  });

  it('never include an internal error', async () => {
    const { path } = await aPricedMarket();
    const working = api.db.query;
    api.db.query = (statement, values) =>
      statement.name === 'one_market_prices' ? Promise.reject(new Error('out of order')) : working(statement, values);
    const failed = await client.market(path);
    api.db.query = working;
    expect([failed.status, failed.headers.get('etag')]).toEqual([500, null]);
    expect((await client.market(path)).status).toBe(200);
  });
});
