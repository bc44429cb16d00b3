import { beforeEach, describe, expect, it } from 'vitest';
import { noteMarketReads, pruneReads } from '../../../../src/store/catalog/market-heat.ts';
import {
  bookOutcomesOfMarket,
  hotOutcomes,
  mostTradedMarkets,
  recentlyReadOutcomes,
  type WatchedOutcome,
} from '../../../../src/store/catalog/watched-outcomes.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const CLEAR = sql('test_clear_heat', 'TRUNCATE market, outcome, market_stats, token, market_read CASCADE');
const READS = sql('test_reads', 'SELECT market_id::int AS id FROM market_read ORDER BY read_at DESC');
const GONE = sql('test_gone', 'UPDATE market SET gone_at = now() WHERE id = $1');
const MINUTE = 60_000;

const test = useTestDatabase();
beforeEach(() => test.db.query(CLEAR));

const market = (marketId: string, volume24h: string | null, over: Parameters<typeof aStoredMarket>[1] = {}) =>
  aStoredMarket(test.db, { venue: 'v', marketId, labels: ['Yes'], stats: [null, volume24h, null], ...over });
const read = (...ages: [pk: bigint, ageMs: number][]) => noteMarketReads(test.db, new Map(ages));
const names = (outcomes: readonly WatchedOutcome[]) => outcomes.map(({ outcomeId }) => outcomeId.split(':')[0]);
const hotOf = async (markets: number) =>
  hotOutcomes(test.db, 'v', markets, await mostTradedMarkets(test.db, 'v', markets));
const hot = async (markets: number) => names(await hotOf(markets));

describe('noteMarketReads', () => {
  it('keeps the latest read of each market in any write order, and skips unknown markets', async () => {
    const [a, b] = [await market('a', null), await market('b', null)];
    await read([a.pk, 30_000], [b.pk, 50_000], [a.pk + 1_000n, 0]);
    await read([a.pk, 90_000]);
    expect(await test.db.query(READS)).toEqual([{ id: Number(a.pk) }, { id: Number(b.pk) }]);
    await read([b.pk, 0]);
    expect(await test.db.query(READS)).toEqual([{ id: Number(b.pk) }, { id: Number(a.pk) }]);
  });

  it('keeps reads until pruneReads deletes them after a day', async () => {
    const [a, b] = [await market('a', null), await market('b', null)];
    await read([a.pk, 25 * 60 * MINUTE], [b.pk, 23 * 60 * MINUTE]);
    expect(await pruneReads(test.db)).toBe(1);
    expect(await test.db.query(READS)).toEqual([{ id: Number(b.pk) }]);
  });
});

describe('hotOutcomes', () => {
  it('lists outcomes of markets read within 15 minutes, latest first, then of the most traded markets', async () => {
    await market('busy', '1000');
    await market('calm', '10');
    await market('unknown', null);
    const earlier = await market('earlier', '5');
    const just = await market('just', null);
    const longAgo = await market('long-ago', '20');
    await read([earlier.pk, 14 * MINUTE], [just.pk, 1_000], [longAgo.pk, 16 * MINUTE]);
    expect(await hot(10)).toEqual(['just', 'earlier', 'busy', 'long-ago', 'calm', 'unknown']);
    expect(await hot(3)).toEqual(['just', 'earlier', 'busy']);
    expect(await hot(1)).toEqual(['just']);
    expect(await hot(0)).toEqual([]);
  });

  it('lists only outcomes of tradable markets of the venue with books', async () => {
    const others = [
      await market('resolved', '9', { status: 'resolved' }),
      await market('bookless', '9', { hasBook: false }),
      await market('elsewhere', '9', { venue: 'w' }),
      await market('gone', '9'),
    ];
    await test.db.query(GONE, [others.at(-1)?.pk]);
    const halted = await market('halted', '1', { status: 'halted', labels: ['Yes', 'No'] });
    await read(...[...others, halted].map(({ pk }): [bigint, number] => [pk, 0]));
    expect((await hotOf(10)).map(({ outcomeId }) => outcomeId)).toEqual(['halted:yes', 'halted:no']);
    const named = others.map(({ pk }) => pk);
    expect(names(await hotOutcomes(test.db, 'v', 10, named))).toEqual(['halted', 'halted']);
    for (const pk of named) expect(await bookOutcomesOfMarket(test.db, 'v', pk)).toEqual([]);
    expect(names(await bookOutcomesOfMarket(test.db, 'v', halted.pk))).toEqual(['halted', 'halted']);
  });
});

describe('recentlyReadOutcomes', () => {
  it('lists outcomes of tradable markets, with or without books, latest read first', async () => {
    const bookless = await market('bookless', null, { hasBook: false });
    const open = await market('open', null, { labels: ['Yes', 'No'] });
    const closed = await market('closed', null, { status: 'closed' });
    const longAgo = await market('long-ago', null);
    await read([bookless.pk, 1_000], [open.pk, 2_000], [closed.pk, 0], [longAgo.pk, 16 * MINUTE]);
    const outcomes = (limit: number) => recentlyReadOutcomes(test.db, 'v', limit);
    expect((await outcomes(9)).map(({ outcomeId }) => outcomeId)).toEqual(['bookless:yes', 'open:yes', 'open:no']);
    expect((await outcomes(2)).map(({ outcomeId }) => outcomeId)).toEqual(['bookless:yes', 'open:yes']);
  });
});
