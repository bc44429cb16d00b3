import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../../src/domain/markets/market.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { ensureTokens } from '../../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

beforeAll(async () => {
  await new Partitions(api.db).ensure('price_history', [T0 * 1000]);
  await new Partitions(api.db).ensure('price_history', [Date.now()]);
});

/** Moments of the first knowledge of each state, epoch seconds. */
const T0 = 1_750_000_000;
const T1 = T0 + 100;
const T2 = T0 + 200;

/** Moves the change after the n-th version to a past moment. The last change starts the current row. */
const MOVE_VERSIONS = sql(
  'test_move_versions',
  `WITH m AS (SELECT id FROM market WHERE venue_market_id = $1),
   v AS (SELECT v.market_id, v.known_until, row_number() OVER (ORDER BY v.known_until) AS n
         FROM market_version v JOIN m ON v.market_id = m.id),
   moved AS (
     UPDATE market_version w SET known_from = to_timestamp(($2::float8[])[v.n]),
       known_until = to_timestamp(($2::float8[])[v.n + 1])
     FROM v WHERE w.market_id = v.market_id AND w.known_until = v.known_until)
   UPDATE market SET updated_at = to_timestamp(($2::float8[])[cardinality($2::float8[])])
   WHERE id = (SELECT id FROM m)`,
);
const INSERT_HISTORY = sql(
  'test_insert_price_history',
  `INSERT INTO price_history (token_id, received_at, as_of, price, bid, ask)
   VALUES ($1, to_timestamp($2::float8), to_timestamp($3::float8), $4, $5, $6)`,
);

/** Writes the versions of the market from these moments on, with the writer of the catalog. */
async function aMarketWithPast(
  versions: readonly [knownFrom: number, facts: Partial<MarketRecord>][],
): Promise<string> {
  const marketId = `0x${randomBytes(8).toString('hex')}`;
  for (const [, facts] of versions) {
    await api.db.transaction((tx) =>
      writeMarkets(tx, 'polymarket', 'USD', [aMarketRecord({ marketId, ...facts })], Date.now()),
    );
  }
  await api.db.query(MOVE_VERSIONS, [marketId, versions.map(([knownFrom]) => knownFrom)]);
  return marketId;
}

async function pricedAt(mint: string, receivedAt: number, price: string, quotes: { bid?: string; ask?: string } = {}) {
  const tokens = await ensureTokens(api.db, [mint], 'USD');
  const values = [tokens.get(mint), receivedAt, receivedAt - 3, price, quotes.bid ?? null, quotes.ask ?? null];
  await api.db.query(INSERT_HISTORY, values);
}

const read = (path: string, asOf: number) => client.market(`/v1/all/${path}as_of=${asOf}`);

describe('a market as of a moment', () => {
  it('is the version of that moment, field by field, without later volumes', async () => {
    const first: Partial<MarketRecord> = {
      title: 'Will it snow?',
      description: 'In May.',
      eventId: 'evt-1',
      category: 'weather',
      tags: ['snow', 'may'],
      outcomes: [
        { outcomeId: 'pit:b', label: 'Yes' },
        { outcomeId: 'pit:a', label: 'No' },
      ],
      createdAtMs: 1_700_000_000_000,
      openAtMs: 1_700_000_100_000,
      closeAtMs: 1_700_000_200_000,
      resolutionCriteria: 'Report of the weather office.',
      url: 'https://example.com/snow',
      volume: decimal('7'),
    };
    const marketId = await aMarketWithPast([
      [T0, first],
      [T1, { ...first, status: 'halted' }],
      [
        T2,
        {
          title: 'Did it snow?',
          status: 'resolved',
          resolvedAtMs: T2 * 1000,
          winningOutcomeId: 'pit:b',
          volume: decimal('9'),
        },
      ],
    ]);
    const path = `markets/${marketId}?`;
    const atFirst = await read(path, T0);
    const facts = {
      market_id: marketId,
      venue: 'polymarket',
      event_id: 'evt-1',
      title: 'Will it snow?',
      description: 'In May.',
      category: 'weather',
      tags: ['snow', 'may'],
      status: 'open',
      outcomes: [
        { outcome_id: 'pit:b', label: 'Yes' },
        { outcome_id: 'pit:a', label: 'No' },
      ],
      created_at: 1_700_000_000,
      open_at: 1_700_000_100,
      close_at: 1_700_000_200,
      resolution_state: 'none',
      resolution_criteria: 'Report of the weather office.',
      url: 'https://example.com/snow',
      updated_at: T0,
    };
    expect(atFirst.body.data).toEqual(facts);
    expect((await read(path, T1 - 1)).body.data).toEqual(facts);
    expect((await read(path, T1)).body.data).toEqual({ ...facts, status: 'halted', updated_at: T1 });
    expect((await read(path, T2 - 1)).body.data).toMatchObject({ status: 'halted' });
    const atLast = (await read(path, T2)).body.data;
    expect(atLast).toMatchObject({
      title: 'Did it snow?',
      status: 'resolved',
      resolution_state: 'resolved',
      winning_outcome_id: 'pit:b',
    });
    for (const data of [atFirst.body.data, atLast]) expect(data).not.toHaveProperty('volume');
    const now = await client.market(`/v1/all/markets/${marketId}`);
    expect(now.body.data).toMatchObject({ status: 'resolved', volume: 9 });
  });

  it('is no_data_yet before the first record, unlike an unknown market', async () => {
    const marketId = await aMarketWithPast([
      [T0, {}],
      [T1, { title: 'x' }],
    ]);
    const young = await aMarketWithPast([[T1, {}]]);
    for (const id of [marketId, young]) {
      const answer = await read(`markets/${id}?`, T0 - 1);
      expect([answer.status, answer.body.error.code]).toEqual([404, 'no_data_yet']);
    }
    expect((await read('markets/nope?', T0)).body.error.code).toBe('market_not_found');
  });

  it('is rejected for a future moment on every route with as_of', async () => {
    const marketId = await aMarketWithPast([[T0, {}]]);
    const future = Math.floor(api.clock.nowMs / 1000) + 2;
    for (const path of [`markets/${marketId}?`, `markets/${marketId}/prices?`, `prices?market_ids=${marketId}&`]) {
      const rejected = await read(path, future);
      expect([rejected.status, rejected.body.error.details?.[0]?.path]).toEqual([400, 'as_of']);
      for (const bad of ['-1', 'x', '1.5', '']) {
        expect((await client.market(`/v1/all/${path}as_of=${bad}`)).status).toBe(400);
      }
    }
  });

  it('may be cached like history only after records can no longer arrive', async () => {
    const marketId = await aMarketWithPast([[T0, {}]]);
    expect((await read(`markets/${marketId}?`, T0)).headers.get('cache-control')).toBe('private, max-age=60');
    const now = Math.floor(api.clock.nowMs / 1000);
    expect((await read(`markets/${marketId}?`, now)).headers.get('cache-control')).toBe('private, max-age=1');
  });
});

describe('prices as of a moment', () => {
  it('are the prices received until then, for the outcomes of that time', async () => {
    const id = randomBytes(4).toString('hex');
    const outcomes = (...names: string[]) => ({
      outcomes: names.map((name) => ({ outcomeId: `${id}:${name}`, label: name })),
    });
    const marketId = await aMarketWithPast([
      [T0, outcomes('yes', 'no')],
      [T2, outcomes('no', 'maybe')],
    ]);
    await pricedAt(`${id}:yes`, T0 + 10, '0.4000000000000000000001', { bid: '0.39', ask: '0.41' });
    await pricedAt(`${id}:yes`, T0 + 20, '0.5');
    await pricedAt(`${id}:no`, T0 + 20.001, '0.5');
    await pricedAt(`${id}:maybe`, T1, '0.9');
    const path = `markets/${marketId}/prices?`;
    for (const at of [T0 - 1, T0, T0 + 9]) expect((await read(path, at)).body.error.code).toBe('no_data_yet');
    const first = await read(path, T0 + 10);
    expect(first.text).toContain('"price":0.4000000000000000000001,"probability":0.4000000000000000000001,');
    expect(first.body.data).toMatchObject({
      market_id: marketId,
      as_of: T0 + 7,
      outcomes: [{ outcome_id: `${id}:yes`, best_bid: 0.39, best_ask: 0.41 }, { outcome_id: `${id}:no` }],
    });
    // Received a millisecond after the second, so it is not known at the second.
    expect((await read(path, T0 + 20)).body.data).toMatchObject({
      outcomes: [{ outcome_id: `${id}:yes`, price: 0.5 }, { outcome_id: `${id}:no` }],
    });
    expect((await read(path, T0 + 20)).text).not.toContain('best_bid');
    expect((await read(path, T0 + 21)).body.data).toMatchObject({
      outcomes: [{ price: 0.5 }, { outcome_id: `${id}:no`, price: 0.5 }],
    });
    expect((await read(path, T2)).body.data).toMatchObject({
      outcomes: [
        { outcome_id: `${id}:no`, price: 0.5 },
        { outcome_id: `${id}:maybe`, price: 0.9 },
      ],
    });
    expect((await read('markets/nope/prices?', T0)).body.error.code).toBe('market_not_found');

    const batch = await read(`prices?market_ids=nope,${marketId}&`, T0 + 10);
    expect(batch.body.data).toEqual([first.body.data]);
    expect(batch.body.meta['missing']).toEqual(['nope']);
    expect((await read(`prices?market_ids=${marketId}&`, T0)).body.meta['missing']).toEqual([marketId]);
  });
});
