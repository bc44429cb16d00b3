import { describe, expect, it } from 'vitest';
import { listCategories, readTrends } from '../../../../src/store/series/market-trends.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice, storedCandles, storedSnapshots } from '../../../factories/stored-series.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const HOUR = 3_600;
const NOW_MS = Date.UTC(2026, 0, 5, 12, 30);
const FULL_HOUR = Date.UTC(2026, 0, 5, 12) / 1_000;

const test = useTestDatabase();

describe('readTrends', () => {
  it('carries prices forward over the last 24 full hours, and begins with null before the first sample', async () => {
    const market = await aStoredMarket(test.db);
    const tokenId = market.outcomes[0]?.tokenId ?? 0n;
    await storedSnapshots(test.db, tokenId, [
      { ts: FULL_HOUR - 2 * HOUR, price: '0.4' },
      { ts: FULL_HOUR - HOUR + 60, price: '0.5' },
    ]);
    await aStoredPrice(test.db, tokenId, { price: '0.55', asOf: new Date(NOW_MS) });
    const [trend, ...others] = await readTrends(
      test.db,
      [
        { venue: 'polymarket', marketId: market.marketId },
        { venue: 'kalshi', marketId: market.marketId },
      ],
      NOW_MS,
    );
    expect(others).toEqual([]);
    expect(trend).toMatchObject({ venue: 'polymarket', marketId: market.marketId, label: 'Yes', price: '0.55' });
    expect(trend?.points).toEqual([...Array<null>(22).fill(null), '0.4', '0.4', '0.5']);
  });

  it('reads the named outcome of a market, and omits a market without it', async () => {
    const market = await aStoredMarket(test.db);
    const [yes, no] = market.outcomes;
    await storedSnapshots(test.db, yes?.tokenId ?? 0n, [{ ts: FULL_HOUR - 26 * HOUR, price: '0.4' }]);
    await storedSnapshots(test.db, no?.tokenId ?? 0n, [{ ts: FULL_HOUR - 26 * HOUR, price: '0.6' }]);
    await aStoredPrice(test.db, no?.tokenId ?? 0n, { price: '0.5', asOf: new Date(NOW_MS) });
    const of = { venue: 'polymarket', marketId: market.marketId };
    const [trend] = await readTrends(test.db, [{ ...of, outcomeId: no?.outcomeId }], NOW_MS);
    expect(trend).toMatchObject({ label: 'No', price: '0.5', outcomeId: no?.outcomeId });
    expect(trend?.points[0]).toBe('0.6');
    expect(await readTrends(test.db, [{ ...of, outcomeId: 'another' }], NOW_MS)).toEqual([]);
  });

  it('reads the leader of a market with more than two outcomes, and the first outcome of two', async () => {
    const many = await aStoredMarket(test.db, { labels: ['Anna', 'Bert', 'Cora'] });
    const two = await aStoredMarket(test.db, { labels: ['Lions', 'Tigers'] });
    for (const [at, price] of ['0.04', '0.7', '0.26'].entries())
      await aStoredPrice(test.db, many.outcomes[at]?.tokenId ?? 0n, { price, asOf: new Date(NOW_MS) });
    await aStoredPrice(test.db, two.outcomes[1]?.tokenId ?? 0n, { price: '0.9', asOf: new Date(NOW_MS) });
    const asked = [many, two].map(({ marketId }) => ({ venue: 'polymarket', marketId }));
    const trends = await readTrends(test.db, asked, NOW_MS);
    expect(new Map(trends.map(({ marketId, label, price }) => [marketId, [label, price]]))).toEqual(
      new Map<string, unknown>([
        [many.marketId, ['Bert', '0.7']],
        [two.marketId, ['Lions', null]],
      ]),
    );
  });

  it('has the closes of ended hours before the first sample', async () => {
    const market = await aStoredMarket(test.db);
    const tokenId = market.outcomes[0]?.tokenId ?? 0n;
    await storedCandles(test.db, tokenId, HOUR, [
      { bucket: FULL_HOUR - 5 * HOUR, close: '0.2' },
      { bucket: FULL_HOUR - 3 * HOUR, close: '0.3' },
      { bucket: FULL_HOUR - HOUR, close: '0.9' },
    ]);
    await storedSnapshots(test.db, tokenId, [{ ts: FULL_HOUR - HOUR, price: '0.5' }]);
    const [trend] = await readTrends(test.db, [{ venue: 'polymarket', marketId: market.marketId }], NOW_MS);
    expect(trend?.points).toEqual([...Array<null>(20).fill(null), '0.2', '0.2', '0.3', '0.5', '0.5']);
  });

  it('has a market without a price', async () => {
    const market = await aStoredMarket(test.db);
    const [trend] = await readTrends(test.db, [{ venue: 'polymarket', marketId: market.marketId }], NOW_MS);
    expect(trend).toMatchObject({ price: null, points: Array<null>(25).fill(null) });
  });
});

describe('listCategories', () => {
  it('lists each category once by name, up to the limit', async () => {
    for (const category of ['b', 'a', 'b', 'x'.repeat(300)]) await aStoredMarket(test.db, { category });
    const all = await listCategories(test.db, 100);
    expect(all).toEqual([...new Set(all)].sort());
    expect(all.slice(0, 2)).toEqual(['a', 'b']);
    expect(await listCategories(test.db, 1)).toEqual(['a']);
  });
});
