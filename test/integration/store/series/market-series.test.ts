import pg from 'pg';
import { beforeAll, expect, it } from 'vitest';
import type { TradeRecord } from '../../../../src/domain/markets/market.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { type Queryable, sessionQueryable, sql } from '../../../../src/store/db/tx.ts';
import {
  readMarketBook,
  readMarketCandles,
  readMarketTrades,
  readMarketVolume,
} from '../../../../src/store/series/market-series.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const MARKETS = 100;
const TRADES = 5;

const test = useTestDatabase();
let markets: TestMarket[];
beforeAll(async () => {
  const nowMs = Date.now();
  await new Partitions(test.db).ensure('trade', [nowMs]);
  await new Partitions(test.db).ensureAroundNow('observation');
  markets = [];
  for (let n = 0; n < MARKETS; n++) {
    const market = await aStoredMarket(test.db, { marketId: `m-${n}` });
    const trades = Array.from({ length: TRADES }, (_, i): TradeRecord => {
      const outcomeId = market.outcomes[0]?.outcomeId ?? '';
      return { tradeId: `${n}-${i}`, outcomeId, tsMs: nowMs + i, price: decimal('0.5'), size: decimal('1') };
    });
    await test.db.transaction((tx) => writeTrades(tx, trades, 'USD'));
    markets.push(market);
  }
});

/** The database, with the number of its statements. */
function counted(): Queryable & { statements: number } {
  return {
    statements: 0,
    query(statement, values) {
      this.statements += 1;
      return test.db.query(statement, values);
    },
  };
}

it('readMarketTrades gives each of many reads at once its own page, in shared statements', async () => {
  const db = counted();
  const pages = await Promise.all(
    markets.map(async ({ marketId }, n) => {
      const query = { range: {}, direction: n % 2 === 0 ? 'asc' : 'desc', limit: 1 + (n % TRADES) } as const;
      const read = await readMarketTrades(db, { venues: ['kalshi', 'polymarket'], marketId }, query);
      return {
        marketId: read?.market.marketId,
        trades: read?.rows.slice(0, query.limit).map(({ tradeId }) => tradeId),
      };
    }),
  );
  expect(pages).toEqual(
    markets.map(({ marketId }, n) => {
      const ids = Array.from({ length: TRADES }, (_, i) => `${n}-${i}`);
      return { marketId, trades: (n % 2 === 0 ? ids : ids.toReversed()).slice(0, 1 + (n % TRADES)) };
    }),
  );
  expect(db.statements).toBeLessThan(MARKETS / 4);
});

it('readMarketBook gives null for an unknown market beside known ones', async () => {
  const ids = ['m-1', 'nowhere', 'm-2', 'has,"quotes"\\ and {braces}'];
  const found = await Promise.all(
    ids.map((marketId) => readMarketBook(test.db, { venues: ['polymarket'], marketId, outcomeId: `${marketId}:no` })),
  );
  expect(found.map((read) => read?.market.marketId ?? null)).toEqual(['m-1', null, 'm-2', null]);
});

it('a read runs at once when no other one waits', async () => {
  const db = counted();
  await readMarketBook(db, { venues: ['polymarket'], marketId: 'm-1' });
  expect(db.statements).toBe(1);
});

const PLANS = sql(
  'test_plans',
  `SELECT name, custom_plans::int AS custom_plans FROM pg_prepared_statements WHERE name LIKE 'read_market_%' ORDER BY name`,
);
/** Postgres plans a prepared statement for its values this often before it compares the cost with that of a plan for any values. */
const FIRST_PLANS = 5;

it('a statement is not planned again for another number of reads', async () => {
  const client = new pg.Client({ connectionString: test.url });
  await client.connect();
  const db = sessionQueryable(client);
  const buckets = { seconds: 3_600, range: { start: 0, end: 3_600_000 } };
  for (const reads of [1, 1, 1, 1, 1, 1, 1, 2, 5, 20, 40, 1]) {
    await Promise.all(
      markets.slice(0, reads).flatMap(({ marketId }) => {
        const target = { venues: ['polymarket'], marketId };
        return [
          readMarketTrades(db, target, { range: {}, direction: 'desc', limit: 2 }),
          readMarketCandles(db, target, { ...buckets, withCloseBefore: true }),
          readMarketVolume(db, target, buckets),
          readMarketBook(db, target),
        ];
      }),
    );
  }
  const plans = await db.query<{ name: string; customPlans: number }>(PLANS);
  expect(plans.map(({ name }) => name)).toEqual([
    'read_market_book',
    'read_market_candles',
    'read_market_trades_desc',
    'read_market_volume',
  ]);
  for (const { customPlans } of plans) expect(customPlans).toBeLessThanOrEqual(FIRST_PLANS);
  await client.end();
});
