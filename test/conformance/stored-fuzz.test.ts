import { beforeAll, describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../src/domain/markets/market.ts';
import type { VenueName } from '../../src/domain/markets/venue.ts';
import { summarizeQuarantine } from '../../src/store/catalog/quarantine.ts';
import { Partitions } from '../../src/store/db/partitions.ts';
import { sql } from '../../src/store/db/tx.ts';
import { useTestDatabase } from '../support/postgres/database.ts';
import { storePage } from './store-page.ts';
import { mutate, seededRandom } from './venue-adapter/mutations.ts';
import { type Parse, RECORDED_VENUES } from './venue-adapter/recordings/venues.ts';
import type { PollKind, RecordedFile } from './venue-adapter/venue-under-test.ts';

/** The second half of the fuzz: the records that the parsers yield from mutated payloads are stored in the real tables. */

/** The fewest outcomes of a market. */
const LEAST_OUTCOMES: Readonly<Partial<Record<VenueName, number>>> = {
  polymarket: 1,
  kalshi: 2,
  manifold: 1,
  limitless: 2,
};
/** The fewest markets that the damaged payloads leave: two were recorded of Limitless. */
const LEAST_MARKETS: Readonly<Partial<Record<VenueName, number>>> = { limitless: 2 };

const ROWS = 150;
const ANSWERS_PER_KIND = 10;
const MUTATED = 0.7;

const test = useTestDatabase();
let partitions: Partitions;
beforeAll(async () => {
  partitions = new Partitions(test.db);
  for (const table of ['price_history', 'book_history', 'observation'] as const)
    await partitions.ensureAroundNow(table);
});

/** An answer of the venue with mostly damaged records, some of them beside the original; a record may come from any file. */
function damagedAnswer(files: readonly RecordedFile[], random: () => number): unknown[] {
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)];
  const rows: unknown[] = [];
  while (rows.length < ROWS) {
    const record = pick(pick(files)?.records ?? []);
    if (random() > MUTATED || random() < 0.1) rows.push(record);
    rows.push(mutate(record, random).record);
  }
  return rows;
}

/** Each query returns the rows of a table that must not exist. */
const FORBIDDEN: Readonly<Record<string, string>> = {
  'a price outside 0..1': `
    SELECT 'trade' AS what, price FROM trade WHERE price < 0 OR price > 1 UNION ALL
    SELECT 'latest', p FROM latest_price, unnest(ARRAY[price, bid, ask]) p WHERE p < 0 OR p > 1 UNION ALL
    SELECT 'history', p FROM price_history, unnest(ARRAY[price, bid, ask]) p WHERE p < 0 OR p > 1 UNION ALL
    SELECT 'observation', price FROM observation WHERE price < 0 OR price > 1 UNION ALL
    SELECT 'payout', payout FROM outcome WHERE payout < 0 OR payout > 1 UNION ALL
    SELECT 'book', (level ->> 0)::numeric FROM (
      SELECT bids || asks AS levels FROM book_latest UNION ALL SELECT bids || asks FROM book_history) b,
      jsonb_array_elements(levels) level WHERE (level ->> 0)::numeric < 0 OR (level ->> 0)::numeric > 1`,
  'a number that is none': `
    SELECT price FROM trade WHERE 'NaN' IN (price, size) OR 'Infinity' IN (price, size) UNION ALL
    SELECT price FROM latest_price WHERE 'NaN' IN (price, coalesce(bid, 0), coalesce(ask, 0))`,
  'a size that is not positive': `
    SELECT size FROM trade WHERE size <= 0 UNION ALL
    SELECT (level ->> 1)::numeric FROM (
      SELECT bids || asks AS levels FROM book_latest UNION ALL SELECT bids || asks FROM book_history) b,
      jsonb_array_elements(levels) level WHERE (level ->> 1)::numeric <= 0`,
  'an amount below zero': `
    SELECT market_id FROM market_stats WHERE least(volume, volume_24h, liquidity) < 0`,
  'a crossed book': `
    SELECT token_id FROM (SELECT token_id, bids, asks FROM book_latest UNION ALL SELECT token_id, bids, asks FROM book_history) b
    WHERE (bids -> 0 ->> 0)::numeric > (asks -> 0 ->> 0)::numeric`,
  'a book that is not sorted': `
    SELECT token_id FROM (
      SELECT b.token_id, side, (level ->> 0)::numeric AS price, place,
        lag((level ->> 0)::numeric) OVER (PARTITION BY b.token_id, side ORDER BY place) AS before
      FROM book_latest b, LATERAL (VALUES ('bid', bids), ('ask', asks)) AS s (side, levels),
        jsonb_array_elements(levels) WITH ORDINALITY AS l (level, place)) AS sorted
    WHERE (side = 'bid' AND price >= before) OR (side = 'ask' AND price <= before)`,
  'a crossed quote': `
    SELECT token_id FROM latest_price WHERE bid > ask UNION ALL SELECT token_id FROM price_history WHERE bid > ask`,
  'a crossed time': `
    SELECT id FROM market WHERE resolved_at < created_at OR resolved_at > now() OR created_at > now()
      OR (resolved_at IS NOT NULL AND status NOT IN ('resolved', 'settled'))`,
  'a trade in the future': `SELECT token_id FROM trade WHERE ts > now() + interval '5 minutes'`,
  'an outcome without its market or token': `
    SELECT o.token_id FROM outcome o LEFT JOIN market m ON m.id = o.market_id LEFT JOIN token t ON t.id = o.token_id
    WHERE m.id IS NULL OR t.id IS NULL`,
  // A market whose id was damaged claims the outcomes of the real one, and the later of the two has them.
  'a winner that is no outcome of its market, or won nothing': `
    SELECT m.id FROM market m LEFT JOIN token t ON t.mint = m.winning_outcome_id LEFT JOIN outcome o ON o.token_id = t.id
    WHERE m.winning_outcome_id IS NOT NULL AND (m.resolution IS DISTINCT FROM 'outcome' OR o.token_id IS NULL
      OR (o.market_id = m.id AND coalesce(o.payout, 1) <> 1))`,
};

const COUNTS = sql(
  'test_stored_counts',
  `SELECT (SELECT count(*)::int FROM market WHERE venue = $1) AS markets, (SELECT count(*)::int FROM trade) AS trades,
     (SELECT count(*)::int FROM latest_price) AS prices, (SELECT count(*)::int FROM book_latest) AS books`,
);
const OUTCOMES = sql(
  'test_stored_outcomes',
  `SELECT m.venue_market_id AS market_id, coalesce(array_agg(t.mint) FILTER (WHERE t.id IS NOT NULL), '{}') AS mints
   FROM market m LEFT JOIN outcome o ON o.market_id = m.id LEFT JOIN token t ON t.id = o.token_id
   WHERE m.venue = $1 GROUP BY 1`,
);

describe.each(RECORDED_VENUES)('storing damaged records of $name', (venue) => {
  const recordings = venue.recordings();
  if (recordings === undefined) {
    it.skip('SKIPPED: the recorded payloads are absent (../shared/venue-data or ODDSWIRE_VENUE_DATA)', () => {
      expect(recordings).toBeDefined();
    });
    return;
  }

  it('leaves the tables sound, and every rejected record counted', async () => {
    const random = seededRandom(venue.name.length * 104_729);
    const seen = new Map<string, number>();
    const written = new Map<string, MarketRecord>();
    for (const [kind, parse] of Object.entries(venue.parse) as [PollKind, Parse][]) {
      const files = recordings.files.filter((each) => each.kind === kind && each.records.length > 0);
      for (let answer = 0; answer < ANSWERS_PER_KIND; answer += 1) {
        const nowMs = files[0]?.nowMs ?? 0;
        const batch = parse(damagedAnswer(files, random), nowMs);
        if (kind === 'markets')
          for (const market of batch.records as MarketRecord[]) written.set(market.marketId, market);
        for (const rejected of (await storePage(test.db, partitions, { venue: venue.name, kind, nowMs }, batch))
          .rejected) {
          const key = `${rejected.kind} ${rejected.reason}`;
          seen.set(key, (seen.get(key) ?? 0) + 1);
        }
      }
    }
    const [counts] = await test.db.query<{ markets: number; trades: number; prices: number }>(COUNTS, [venue.name]);
    expect(counts?.markets).toBeGreaterThan(LEAST_MARKETS[venue.name] ?? 50);
    expect(counts?.trades).toBeGreaterThan(100);
    for (const [what, query] of Object.entries(FORBIDDEN)) {
      const rows: unknown[] = await test.db.dataSource.query(query);
      expect(rows.slice(0, 3), what).toEqual([]);
    }
    const quarantined = await summarizeQuarantine(test.db, { venue: venue.name });
    expect(seen.size).toBeGreaterThan(5);
    expect(new Map(quarantined.map((row) => [`${row.kind} ${row.reason}`, row.times]))).toEqual(seen);
    // A record that Postgres refuses should have been rejected by a parser.
    expect([...seen.keys()].filter((key) => key.endsWith('refused_by_store'))).toEqual([]);

    const claims = new Map<string, number>();
    for (const { outcomes } of written.values()) {
      for (const { outcomeId } of outcomes) claims.set(outcomeId, (claims.get(outcomeId) ?? 0) + 1);
    }
    const stored = await test.db.query<{ marketId: string; mints: string[] }>(OUTCOMES, [venue.name]);
    expect(stored.map((row) => row.marketId).sort()).toEqual([...written.keys()].sort());
    for (const { marketId, mints } of stored) {
      const outcomes = written.get(marketId)?.outcomes ?? [];
      expect(outcomes.length).toBeGreaterThanOrEqual(LEAST_OUTCOMES[venue.name] ?? 0);
      // A market whose id was damaged claims the outcomes of the real one, and the later of the two has them.
      const own = outcomes.filter(({ outcomeId }) => claims.get(outcomeId) === 1).map(({ outcomeId }) => outcomeId);
      expect(mints, marketId).toEqual(expect.arrayContaining(own));
    }
  });
});
