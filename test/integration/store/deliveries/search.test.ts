import { beforeAll, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { type DeliverySearch, searchDeliveries } from '../../../../src/store/deliveries/search.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

/** Deliveries per webhook: every 500th failed, every 700th cancelled, and the oldest 10 pending. */
const FILL = sql(
  'test_fill_deliveries',
  `WITH made AS (
     INSERT INTO event (id, account_id, type, body)
     SELECT 'evt_' || $2::bigint || '_' || n, $1, 'price_alert', '{}' FROM generate_series(1, $3::int) n RETURNING pk, id)
   INSERT INTO delivery (id, event_pk, subscription_pk, status, attempt_count)
   SELECT 'dlv_' || id, pk, $2, CASE WHEN n <= 10 THEN 'pending' WHEN n % 500 = 0 THEN 'failed' WHEN n % 700 = 0 THEN 'cancelled'
     ELSE 'delivered' END, 1
   FROM made CROSS JOIN LATERAL (SELECT split_part(id, '_', 3)::int AS n) numbered ORDER BY pk`,
);
const ANALYZE = sql('test_analyze_deliveries', 'ANALYZE delivery, event');
const LIMIT = 50;

const test = useTestDatabase({ poolSize: 4 });
let accountId: bigint;
let ids: string[];
beforeAll(async () => {
  accountId = await anAccount(test.db);
  ids = ['a', 'b', 'c'].map((name) => `wh_search_${name}`);
  for (const id of ids) await test.db.query(FILL, [accountId, await aSubscription(test.db, { accountId, id }), 6_000]);
  const other = await anAccount(test.db);
  await test.db.query(FILL, [other, await aSubscription(test.db, { accountId: other }), 20_000]);
  await test.db.query(ANALYZE);
});

interface PlanNode {
  'Node Type': string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

/** The rows that the scans of tables and indexes read. */
function scanned({ 'Actual Rows': rows, 'Actual Loops': loops, ...node }: PlanNode): number {
  const isScan = /Index Scan|Index Only Scan|Seq Scan|Bitmap Heap Scan/.test(node['Node Type']);
  const own = isScan ? (rows + (node['Rows Removed by Filter'] ?? 0)) * loops : 0;
  return (node.Plans ?? []).reduce((sum, child) => sum + scanned(child), own);
}

async function rowsRead(filter: DeliverySearch): Promise<number> {
  let sum = 0;
  await searchDeliveries(
    {
      query: async (statement, values = []) => {
        const [row] = (await test.db.em.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${statement.text}`, [...values])) as {
          'QUERY PLAN': [{ Plan: PlanNode }];
        }[];
        sum += scanned(row?.['QUERY PLAN'][0].Plan as PlanNode);
        return test.db.query(statement, values);
      },
    },
    filter,
    LIMIT,
    undefined,
  );
  return sum;
}

it.each([
  ['all', {}, 1_000],
  ['failed', { status: 'failed' }, 1_000],
  ['cancelled', { status: 'cancelled' }, 1_000],
  ['pending', { status: 'pending' }, 1_000],
  ['of one webhook', { webhook: 'wh_search_a' }, 1_000],
  ['failed of one webhook', { webhook: 'wh_search_b', status: 'failed' }, 1_000],
  ['of one event', { eventId: 'evt_1_77' }, 1_000],
] as const)('a page of deliveries (%s) reads rows of the page, not of the tables', async (_, filter, most) => {
  expect(await rowsRead({ accountId, ...filter })).toBeLessThan(most);
});

it('the rows of each state are the same as those of the tables', async () => {
  for (const [status, count] of [
    ['failed', 36],
    ['cancelled', 21],
    ['pending', 30],
  ] as const) {
    const found: string[] = [];
    let after: bigint | undefined;
    do {
      const page = await searchDeliveries(test.db, { accountId, status }, 10, after);
      if (page.outcome !== 'page') throw new Error(page.outcome);
      found.push(...page.deliveries.map(({ id }) => id));
      after = page.next;
    } while (after !== undefined);
    expect([status, found.length, new Set(found).size]).toEqual([status, count, count]);
  }
});
