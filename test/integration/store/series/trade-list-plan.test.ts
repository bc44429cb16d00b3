import { beforeAll, describe, expect, it } from 'vitest';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { type Queryable, sql } from '../../../../src/store/db/tx.ts';
import { readMarketTrades } from '../../../../src/store/series/market-series.ts';
import { readTrades } from '../../../../src/store/series/reads.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { genericPlanOf } from '../../../support/postgres/generic-plan.ts';

const TRADES = 60_000;
const START_MS = Date.UTC(2026, 5, 20);
const SECONDS_APART = 60;
const LIMIT = 50;

const test = useTestDatabase();
let market: TestMarket;
beforeAll(async () => {
  market = await aStoredMarket(test.db);
  const times = Array.from({ length: 3 }, (_, month) => Date.UTC(2026, 5 + month, 20));
  await new Partitions(test.db).ensure('trade', times);
  await test.db.query(
    sql(
      'plan_test_fill',
      `INSERT INTO trade (token_id, ts, trade_id, price, size, side, ordinal)
       SELECT k, to_timestamp($1::float8 + n / 4 * ${SECONDS_APART}), 't' || n, n % 99 / 100.0, 1, n % 3 - 1, n % 2
       FROM generate_series(0, $2::int - 1) n, unnest($3::bigint[]) k`,
    ),
    [START_MS / 1000, TRADES, market.outcomes.map(({ tokenId }) => tokenId)],
  );
  await test.db.query(sql('plan_test_analyze', 'ANALYZE trade'));
});

/** The rows that the statement of a read takes from tables and indexes, by the generic plan. */
async function rowsOf(read: (db: Queryable) => Promise<unknown>): Promise<{ rows: number; isIncremental: boolean }> {
  const nodes = await genericPlanOf(test.db, read);
  const rows = nodes
    .filter((node) => /Scan/.test(node['Node Type']) && node['Node Type'] !== 'Function Scan')
    .reduce((sum, node) => sum + node['Actual Rows'] * node['Actual Loops'], 0);
  return { rows, isIncremental: nodes.some((node) => node['Node Type'] === 'Incremental Sort') };
}

describe.each([
  ['asc', false],
  ['asc', true],
  ['desc', false],
  ['desc', true],
] as const)('one page %s of a long tape (from a cursor: %s)', (direction, isContinued) => {
  const atMicros = String((START_MS + (TRADES / 8) * SECONDS_APART * 1000) * 1000);
  const ordinal = direction === 'asc' ? '-2147483648' : '2147483647';
  const after = { atMicros, ordinal, signedPrice: '0', tradeId: '', tokenId: '0' };
  const query = { range: {}, direction, limit: LIMIT, ...(isContinued && { after }) };

  it.each<[string, (db: Queryable) => Promise<unknown>]>([
    ['readTrades', (db) => readTrades(db, { ...query, tokenIds: market.outcomes.map(({ tokenId }) => tokenId) })],
    ['readMarketTrades', (db) => readMarketTrades(db, { venues: ['polymarket'], marketId: market.marketId }, query)],
  ])('%s reads little more than the page', async (_name, read) => {
    const { rows, isIncremental } = await rowsOf(read);
    // A page of each of two outcomes, plus the read-ahead of an incremental sort.
    expect(rows).toBeGreaterThan(LIMIT);
    expect(rows).toBeLessThan(10 * LIMIT);
    expect(isIncremental).toBe(true);
  });
});
