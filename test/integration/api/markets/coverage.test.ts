import { beforeAll, describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../../../src/domain/markets/coverage.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

const SETTLED = sql(
  'test_api_coverage_settled',
  `INSERT INTO coverage_settled (venue, kind, since, settled_to) VALUES ('polymarket', $1, to_timestamp($2), to_timestamp($3))`,
);
const HOUR = sql(
  'test_api_coverage',
  `INSERT INTO coverage (venue, kind, hour, market_id, class, cause, reason, stored, missing, pause_ms, from_at, to_at, checked_at)
   VALUES ('polymarket', $1, to_timestamp($2), $3, $4, $5, $6, $7, $8, $9, to_timestamp($2), to_timestamp($2 + 60), to_timestamp($2 + 4500))`,
);

const HISTORY = sql(
  'test_api_history_end',
  `INSERT INTO trade_history (market_id, status, from_at, to_at, reached_at, last_error)
   VALUES ($1, 'done', to_timestamp($2), to_timestamp($3), to_timestamp($4), 'the venue serves three years')`,
);

const HOUR_S = HOUR_MS / 1000;
const since = 480_000 * HOUR_S;
const settledTo = since + 4 * HOUR_S;

interface Stored {
  kind: string;
  start: number;
  marketPk?: bigint;
  class: string;
  cause?: string;
  reason?: string;
  stored?: string;
  missing?: string;
  pauseMs?: number;
}

async function aStoredHour({ marketPk = 0n, ...hour }: Stored): Promise<void> {
  const { kind, start, cause = null, reason = null, stored = null, missing = null, pauseMs = null } = hour;
  await api.db.query(HOUR, [kind, start, marketPk, hour.class, cause, reason, stored, missing, pauseMs]);
}

beforeAll(async () => {
  for (const kind of ['trades', 'books', 'prices']) await api.db.query(SETTLED, [kind, since, settledTo]);
  await aStoredHour({ kind: 'trades', start: since, class: 'complete', stored: '1200000000000000000.5' });
  await aStoredHour({ kind: 'trades', start: since + HOUR_S, class: 'gap', cause: 'missing_trades', missing: '7.10' });
  await aStoredHour({ kind: 'trades', start: since + 2 * HOUR_S, class: 'quiet' });
  await aStoredHour({ kind: 'trades', start: since + 3 * HOUR_S, class: 'unknown', reason: 'markets_unknown' });
  for (let hour = 0; hour < 4; hour += 1) {
    const gap = hour === 2 ? { class: 'gap', cause: 'feed_gap' } : { class: 'observed' };
    for (const kind of ['books', 'prices'])
      await aStoredHour({ kind, start: since + hour * HOUR_S, pauseMs: 10_250, ...gap });
  }
});

const path = (query: string) => `/v1/polymarket/coverage?start=${since - HOUR_S}&end=${settledTo + HOUR_S}&${query}`;
const classesOf = (data: unknown) =>
  (data as { class: string; reason?: string }[]).map((hour) =>
    hour.reason ? `${hour.class} ${hour.reason}` : hour.class,
  );

describe('GET /v1/{venue}/coverage', () => {
  it('states no settled time to come when the first hour that can be judged is not over', async () => {
    const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_S;
    await api.db.query(SETTLED, ['markets', hour + HOUR_S, hour + HOUR_S]);
    const { body } = await client.market('/v1/polymarket/coverage?kind=markets');
    const stated = Number(body.meta['settled_to']);
    expect([hour, hour + HOUR_S]).toContain(stated);
    expect(stated).toBeLessThanOrEqual(Date.now() / 1000);
  });

  it('has a row per hour, unknown ones before the first evidence and behind the settled time', async () => {
    const answer = await client.market(path('kind=trades'));
    expect(answer.status).toBe(200);
    expect(classesOf(answer.body.data)).toEqual([
      'unknown not_observed',
      'complete',
      'gap',
      'quiet',
      'unknown markets_unknown',
      'unknown not_settled',
    ]);
    expect(answer.body.meta).toMatchObject({ kind: 'trades', settled_to: settledTo, next_cursor: null });
    expect((answer.body.data as object[])[2]).toEqual({
      venue: 'polymarket',
      start: since + HOUR_S,
      class: 'gap',
      missing: 7.1,
      cause: 'missing_trades',
      from: since + HOUR_S,
      to: since + HOUR_S + 60,
      checked_at: since + HOUR_S + 4500,
    });
  });

  it('continues behind each page, also over the hours of several venues', async () => {
    const all = (await client.market(path('kind=books').replace('polymarket', 'all'))).body.data as object[];
    const paged: object[] = [];
    let cursor: unknown = '';
    while (cursor !== null) {
      const suffix = cursor === '' ? '' : `&cursor=${cursor}`;
      const page = await client.market(path(`kind=books&limit=4${suffix}`).replace('polymarket', 'all'));
      expect(page.status).toBe(200);
      paged.push(...(page.body.data as object[]));
      cursor = (page.body.meta as { next_cursor: unknown }).next_cursor;
    }
    expect(paged).toEqual(all);
  });

  it('has the hours of a market: the polls of its venue, and only its own gaps of feeds', async () => {
    const market = await aStoredMarket(api.db);
    await aStoredHour({ kind: 'prices', start: since, marketPk: market.pk, class: 'gap', cause: 'feed_gap' });
    const prices = await client.market(path(`kind=prices&market_id=${market.marketId}`));
    expect(classesOf(prices.body.data)).toEqual([
      'unknown not_observed',
      'gap',
      'observed',
      'observed',
      'observed',
      'unknown not_settled',
    ]);
    const books = await client.market(path(`kind=books&market_id=${market.marketId}`));
    expect(classesOf(books.body.data)[1]).toBe('unknown not_recorded');
    const trades = await client.market(path(`kind=trades&market_id=${market.marketId}`));
    expect(classesOf(trades.body.data)[1]).toBe('unknown no_earlier_total');
  });

  it('has the hours of a market that the venue did not serve as unknown', async () => {
    const { pk, marketId } = await aStoredMarket(api.db);
    await api.db.query(HISTORY, [pk, since - 4 * HOUR_S, since - 60, since - 2 * HOUR_S + 1]);
    const range = `start=${since - 5 * HOUR_S}&end=${since}`;
    const answer = await client.market(`/v1/polymarket/coverage?${range}&market_id=${marketId}`);
    const unserved = 'unknown history_not_served';
    const expected = ['unknown not_observed', unserved, unserved, unserved, 'unknown not_observed'];
    expect(classesOf(answer.body.data)).toEqual(expected);
    expect((answer.body.data as object[])[1]).toMatchObject({ from: since - 4 * HOUR_S, to: since - 2 * HOUR_S + 1 });
    const prices = await client.market(`/v1/polymarket/coverage?${range}&kind=prices&market_id=${marketId}`);
    expect(new Set(classesOf(prices.body.data))).toEqual(new Set(['unknown not_observed']));
  });

  it.each([
    ['kind=candles', 400, 'invalid_request'],
    ['market_id=unknown', 404, 'market_not_found'],
    ['start=1', 400, 'invalid_request'],
    ['cursor=x', 400, 'invalid_cursor'],
  ])('refuses %s', async (query, status, code) => {
    const answer = await client.market(
      `/v1/polymarket/coverage?${query}${query === 'start=1' ? `&end=${settledTo}` : ''}`,
    );
    expect([answer.status, answer.body.error?.code]).toEqual([status, code]);
  });

  it('refuses an unknown venue', async () => {
    const answer = await client.market('/v1/nowhere/coverage');
    expect([answer.status, answer.body.error?.code]).toEqual([404, 'venue_not_found']);
  });
});
