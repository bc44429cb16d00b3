import { afterAll, beforeAll, expect, it } from 'vitest';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { type Queryable, type Statement, sql } from '../../../../src/store/db/tx.ts';
import { readTrades } from '../../../../src/store/series/reads.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/postgres/database.ts';

const TRADES = 60_000;
const START_MS = Date.UTC(2026, 5, 20);
const SECONDS_APART = 60;
const LIMIT = 50;

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
  const times = Array.from({ length: 3 }, (_, month) => Date.UTC(2026, 5 + month, 20));
  await new Partitions(test.db).ensure('trade', times);
  await test.db.query(
    sql(
      'plan_test_fill',
      `INSERT INTO trade (token_id, ts, trade_id, price, size, side, ordinal)
       SELECT k, to_timestamp($1::float8 + n / 4 * ${SECONDS_APART}), 't' || n, n % 99 / 100.0, 1, n % 3 - 1, n % 2
       FROM generate_series(0, $2::int - 1) n, generate_series(1, 2) k`,
    ),
    [START_MS / 1000, TRADES],
  );
  await test.db.query(sql('plan_test_analyze', 'ANALYZE trade'));
});
afterAll(() => test.drop());

interface PlanNode {
  'Node Type': string;
  'Actual Rows': number;
  'Actual Loops': number;
  Plans?: PlanNode[];
}

function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

function literal(value: unknown): string {
  if (value === null) return 'NULL';
  return Array.isArray(value) ? `'{${value.join(',')}}'` : `'${String(value)}'`;
}

/** The nodes of the generic plan, which is the same for all values, with the row counts for these values. */
async function genericPlan(statement: Statement, values: readonly unknown[]): Promise<PlanNode[]> {
  return test.db.transaction(async ({ em }) => {
    await em.query(`SET LOCAL plan_cache_mode = force_generic_plan`);
    await em.query(`PREPARE explained AS ${statement.text}`);
    const call = `EXECUTE explained(${values.map(literal).join(', ')})`;
    const [row] = (await em.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${call}`)) as {
      'QUERY PLAN': { Plan: PlanNode }[];
    }[];
    await em.query('DEALLOCATE explained');
    return nodesOf(row?.['QUERY PLAN'][0]?.Plan as PlanNode);
  });
}

it.each([
  ['asc', false],
  ['asc', true],
  ['desc', false],
  ['desc', true],
] as const)('readTrades reads one page %s of a long tape (from a cursor: %s)', async (direction, isContinued) => {
  const ran: [Statement, readonly unknown[]][] = [];
  const db: Queryable = {
    query: async (statement, values = []) => {
      ran.push([statement, values]);
      return [];
    },
  };
  const atMicros = String((START_MS + (TRADES / 8) * SECONDS_APART * 1000) * 1000);
  const ordinal = direction === 'asc' ? '-2147483648' : '2147483647';
  const after = { atMicros, ordinal, signedPrice: '0', tradeId: '', tokenId: '0' };
  await readTrades(db, { tokenIds: [1n, 2n], range: {}, direction, limit: LIMIT, ...(isContinued && { after }) });
  const [[statement, values] = []] = ran;
  if (!statement || !values) throw new Error('no statement');
  const nodes = await genericPlan(statement, values);
  const read = nodes
    .filter((node) => /Scan/.test(node['Node Type']) && node['Node Type'] !== 'Function Scan')
    .reduce((sum, node) => sum + node['Actual Rows'] * node['Actual Loops'], 0);
  // A page of each of two outcomes, plus the read-ahead of an incremental sort.
  expect(read).toBeGreaterThan(LIMIT);
  expect(read).toBeLessThan(10 * LIMIT);
  expect(nodes.some((node) => node['Node Type'] === 'Incremental Sort')).toBe(true);
});
