import { afterAll, beforeAll, expect, it } from 'vitest';
import { isPool } from '../../../../sim/limitless/wire.ts';
import { addDecimals, decimal } from '../../../../src/domain/values/decimal.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import type { VenueAdapter } from '../../../../src/venues/port.ts';
import { pollMarkets } from '../../../../workers/jobs/poll-markets.ts';
import { pollPrices } from '../../../../workers/jobs/poll-prices.ts';
import { startSimulatedLimitless } from '../../../conformance/venue-adapter/limitless-exchange.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { jobContext, testConfig } from '../worker-harness.ts';

const PRICES = sql(
  'test_pool_prices',
  `SELECT m.venue_market_id AS slug, m.has_book, array_agg(l.price::text ORDER BY t.mint DESC) AS prices
   FROM market m JOIN outcome o ON o.market_id = m.id JOIN token t ON t.id = o.token_id
     LEFT JOIN latest_price l ON l.token_id = t.id
   WHERE m.venue = 'limitless' AND m.status = 'open' GROUP BY m.id ORDER BY m.id`,
);

interface StoredPrices {
  slug: string;
  hasBook: boolean;
  /** YES, then NO. */
  prices: (string | null)[];
}

const test = useTestDatabase();
let venue: Awaited<ReturnType<typeof startSimulatedLimitless>>;
let adapter: VenueAdapter;
beforeAll(async () => {
  venue = await startSimulatedLimitless({ nowSecond: Math.floor(Date.now() / 1000) });
  adapter = venue.createAdapter();
});
afterAll(async () => {
  await adapter.close();
  await venue.close();
});

/** The percents of a pool, as its own page has them. */
async function percentsOf(slug: string): Promise<string[]> {
  const answer = await fetch(`${venue.exchange.limitlessUrl}/markets/${slug}`, { headers: { 'user-agent': 'test' } });
  const { prices } = (await answer.json()) as { prices: number[] };
  return prices.map((percent) => decimal((percent / 100).toFixed(3)));
}

it('poll-prices stores prices of markets without books, and follows them, at a venue with books', async () => {
  const context = () => {
    const config = testConfig(test.url, { VENUES: 'limitless' });
    return jobContext({ db: test.db, config, adapter, now: () => venue.now() });
  };
  const isUnpriced = ({ prices }: StoredPrices) => prices.includes(null);
  const pools = venue.exchange.state().markets.filter(({ phase, negRisk, outcomes: [yes] }) => {
    return phase === 'open' && isPool({ tokenId: yes.tokenId, negRisk });
  });
  expect(pools.length).toBeGreaterThan(1);
  await pollMarkets.run({ venue: 'limitless' }, context());

  const check = async () => {
    expect(await pollPrices.run({ venue: 'limitless' }, context())).not.toHaveProperty('failed');
    const stored = await test.db.query<StoredPrices>(PRICES);
    expect(
      stored
        .filter(({ hasBook }) => !hasBook)
        .map(({ slug }) => slug)
        .sort(),
    ).toEqual(pools.map(({ slug }) => slug).sort());
    expect(stored.filter((each) => each.hasBook && !isUnpriced(each)).length).toBeGreaterThan(0);
    const found = new Map<string, string[]>();
    for (const { slug, prices } of stored.filter(({ hasBook }) => !hasBook)) {
      const [yes, no] = prices.map((price) => decimal(price ?? 'NaN'));
      if (yes === undefined || no === undefined) throw new Error(`${slug} has no two outcomes`);
      expect([yes, no]).toEqual(await percentsOf(slug));
      expect(addDecimals(yes, no)).toBe('1');
      found.set(slug, [yes, no]);
    }
    return found;
  };
  const before = await check();
  // The listing comes from a cache for 30 s.
  venue.exchange.step(120);
  const after = await check();
  expect([...after].filter(([slug, prices]) => String(prices) !== String(before.get(slug))).length).toBeGreaterThan(0);
});
