import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  MARKET_SORTS,
  MARKET_STATUSES,
  type MarketSort,
  type MarketStatus,
} from '../../../../src/domain/markets/market.ts';
import { listMarkets } from '../../../../src/store/catalog/market-list.ts';
import type { StoredMarket } from '../../../../src/store/catalog/market-reads.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const test = useTestDatabase();

const VENUES = ['kalshi', 'polymarket'] as const;
const CATEGORIES = ['Sports', 'Weather', null] as const;
const EVENTS = ['final', null] as const;

interface Row {
  venue: string;
  status: MarketStatus;
  category: string | null;
  event_id: string | null;
  created_at: string | null;
  close_at: string | null;
  updated_at: string;
  volume_24h: string | null;
}

const CLEAR = sql('test_clear_markets', 'TRUNCATE market CASCADE');
const FILL = sql(
  'test_fill_markets',
  `WITH made AS (
     INSERT INTO market (venue, venue_market_id, title, description, tags, has_book, content_hash, status, category, event_id,
       created_at, close_at, updated_at)
     SELECT r.venue, 'm' || r.n, 't', '', '{}', true, '\\x00', r.status, r.category, r.event_id, r.created_at, r.close_at, r.updated_at
     FROM jsonb_to_recordset($1::jsonb) AS r (n int, venue text, status text, category text, event_id text, created_at timestamptz,
       close_at timestamptz, updated_at timestamptz) ORDER BY r.n
     RETURNING id, venue_market_id)
   INSERT INTO market_stats (market_id, volume_24h)
   SELECT made.id, r.volume_24h FROM made
   JOIN jsonb_to_recordset($1::jsonb) AS r (n int, volume_24h numeric) ON made.venue_market_id = 'm' || r.n
   WHERE r.n % 5 > 0`,
);
/** A change of every sort key and filter of some markets. */
const CHANGE = sql(
  'test_change_markets',
  `WITH changed AS (
     UPDATE market SET created_at = now() - random() * interval '4 seconds', close_at = NULL, updated_at = clock_timestamp(), status = 'open'
     WHERE venue_market_id = ANY ($1::text[]) RETURNING id)
   UPDATE market_stats SET volume_24h = random() * 4 WHERE market_id IN (SELECT id FROM changed)`,
);
const ARRIVE = sql(
  'test_market_arrives',
  `INSERT INTO market (venue, venue_market_id, title, description, tags, has_book, content_hash, status, category, event_id, created_at)
   VALUES ('kalshi', $1, 't', '', '{}', true, '\\x00', 'open', 'Sports', 'final', now())`,
);

/** Few different values, so that many markets are equal. Microseconds distinguish some of them. */
const time = fc
  .tuple(fc.integer({ min: 0, max: 3 }), fc.constantFrom('000000', '000001', '000999'))
  .map(([second, micros]) => `2026-01-01T00:00:0${second}.${micros}Z`);
const row: fc.Arbitrary<Row> = fc.record({
  venue: fc.constantFrom(...VENUES),
  status: fc.constantFrom(...MARKET_STATUSES),
  category: fc.constantFrom(...CATEGORIES),
  event_id: fc.constantFrom(...EVENTS),
  created_at: fc.option(time),
  close_at: fc.option(time),
  updated_at: time,
  volume_24h: fc.option(fc.constantFrom('0', '0.1', '0.10000000000000000001', '1', '12', '3')),
});

interface Filter {
  venues: readonly string[];
  statuses?: readonly MarketStatus[];
  category?: string;
  eventId?: string;
}
const filter: fc.Arbitrary<Filter> = fc.record(
  {
    venues: fc.subarray([...VENUES], { minLength: 1 }),
    statuses: fc.subarray([...MARKET_STATUSES], { minLength: 1 }),
    category: fc.constant('Sports'),
    eventId: fc.constant('final'),
  },
  { requiredKeys: ['venues'] },
);

/** The market behind a stored row, in the terms of the contract. */
interface Facts {
  n: number;
  row: Row;
}

/** Whether the order puts `a` before `b`; equal keys leave the place open. */
function isInOrder(sort: MarketSort, a: Row, b: Row): boolean {
  switch (sort) {
    case 'created':
      return (a.created_at ?? '') >= (b.created_at ?? '');
    case 'close_at':
      return (a.close_at ?? '~') <= (b.close_at ?? '~');
    case 'updated':
      return a.updated_at >= b.updated_at;
    case 'volume_24h':
      return Number(a.volume_24h ?? 0) >= Number(b.volume_24h ?? 0);
  }
}

function matches({ venues, statuses, category, eventId }: Filter, candidate: Row): boolean {
  return (
    venues.includes(candidate.venue) &&
    (statuses === undefined || statuses.includes(candidate.status)) &&
    (category === undefined || candidate.category === category) &&
    (eventId === undefined || candidate.event_id === eventId)
  );
}

/** Every page of a walk. */
async function walk(
  query: Filter & { sort: MarketSort; limit: number },
  onPage: (page: number) => Promise<unknown>,
): Promise<StoredMarket[]> {
  const seen: StoredMarket[] = [];
  let after: readonly string[] | undefined;
  for (let page = 0; ; page++) {
    const { markets, next } = await listMarkets(test.db, { ...query, ...(after && { after }) });
    expect(markets.length).toBeLessThanOrEqual(query.limit);
    if (next) expect(page === 0 || markets.length > 0).toBe(true);
    seen.push(...markets);
    if (!next) return seen;
    after = next;
    await onPage(page);
  }
}

describe('listMarkets', () => {
  it.each(MARKET_SORTS)('returns each market once, in the order %s, when rows change during the walk', async (sort) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(row, { minLength: 1, maxLength: 40 }),
        filter,
        fc.integer({ min: 1, max: 9 }),
        fc.boolean(),
        async (rows, filters, limit, isChanging) => {
          await test.db.query(CLEAR);
          await test.db.query(FILL, [JSON.stringify(rows.map((fields, n) => ({ n, ...fields })))]);
          // A fifth has no row of volumes, and a seventh changes during the walk.
          const facts = rows.map((fields, n): Facts => ({ n, row: n % 5 ? fields : { ...fields, volume_24h: null } }));
          const isSteady = ({ n }: Facts) => !isChanging || n % 7 > 0;
          const changing = facts.filter((one) => !isSteady(one)).map(({ n }) => `m${n}`);
          const listed = await walk({ ...filters, sort, limit }, async (page) => {
            if (!isChanging) return;
            await test.db.query(CHANGE, [changing]);
            if (page < 3) await test.db.query(ARRIVE, [`new${page}`]);
          });
          const factsOf = new Map(facts.map((one) => [`m${one.n}`, one]));
          const steady = listed.flatMap(({ marketId }) => {
            const found = factsOf.get(marketId);
            return found && isSteady(found) ? [found] : [];
          });
          const expected = facts.filter((one) => isSteady(one) && matches(filters, one.row));
          expect(steady.map(({ n }) => n).toSorted((a, b) => a - b)).toEqual(expected.map(({ n }) => n));
          for (const [at, { row: fields }] of steady.entries()) {
            const before = steady[at - 1];
            if (before) expect(isInOrder(sort, before.row, fields)).toBe(true);
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it.each(MARKET_SORTS)('reads one page of the order %s along an index of a large catalog', async (sort) => {
    await test.db.query(CLEAR);
    await test.db.query(
      sql(
        'test_large_catalog',
        `INSERT INTO market (venue, venue_market_id, title, description, tags, has_book, content_hash, status, category, created_at, close_at,
           updated_at)
         SELECT (ARRAY['kalshi', 'polymarket'])[1 + n % 2], 'm' || n, 't', '', '{}', true, '\\x00', (ARRAY['open', 'closed'])[1 + n % 3 / 2],
           'Sports', now() - n * interval '1 second', now() + n * interval '1 second', now() - n * interval '1 second'
         FROM generate_series(1, 20000) n`,
      ),
    );
    await test.db.query(
      sql(
        'test_large_volumes',
        `INSERT INTO market_stats (market_id, volume_24h) SELECT id, CASE WHEN id % 10 = 0 THEN id % 977 END FROM market`,
      ),
    );
    await test.db.query(sql('test_analyze_catalog', 'ANALYZE market, market_stats'));
    const ran: [text: string, values: readonly unknown[]][] = [];
    const query = { venues: VENUES, sort, limit: 20 };
    const { next } = await listMarkets(test.db, query);
    await listMarkets(
      {
        query: async (statement, values = []) => {
          ran.push([statement.text, values]);
          return [];
        },
      },
      { ...query, ...(next && { after: next }) },
    );
    const [[text, values] = ['', []]] = ran;
    const [plan] = (await test.db.em.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, [...values])) as {
      'QUERY PLAN': [{ Plan: PlanNode }];
    }[];
    const scans = plan ? scansOf(plan['QUERY PLAN'][0].Plan) : [];
    expect(scans.reduce((sum, rows) => sum + rows, 0)).toBeLessThan(1_500);
  });
});

interface PlanNode {
  'Node Type': string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

/** The rows that each scan read. */
function scansOf(node: PlanNode): number[] {
  const { 'Actual Rows': rows, 'Actual Loops': loops, 'Rows Removed by Filter': removed = 0 } = node;
  const own = /Index Scan|Index Only Scan|Seq Scan/.test(node['Node Type']) ? [(rows + removed) * loops] : [];
  return [...own, ...(node.Plans ?? []).flatMap(scansOf)];
}
