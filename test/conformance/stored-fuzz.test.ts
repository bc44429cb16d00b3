import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { priceOfBook } from '../../src/domain/book-price.ts';
import { newToken } from '../../src/domain/ids.ts';
import type { BookRecord, MarketRecord, PriceRecord, TradeRecord } from '../../src/domain/market.ts';
import { VENUES, type VenueName } from '../../src/domain/venue.ts';
import { writeBooks } from '../../src/store/books.ts';
import { writeMarkets } from '../../src/store/markets.ts';
import { Partitions } from '../../src/store/partitions.ts';
import { acquirePollLease, releasePollLease } from '../../src/store/poll-state.ts';
import { writePrices } from '../../src/store/prices.ts';
import { summarizeQuarantine } from '../../src/store/quarantine-reads.ts';
import { ensureTokens } from '../../src/store/tokens.ts';
import { writeTrades } from '../../src/store/trades.ts';
import { sql, type Tx } from '../../src/store/tx.ts';
import * as kalshiBooks from '../../src/venues/kalshi/parse-book.ts';
import * as kalshiMarkets from '../../src/venues/kalshi/parse-market.ts';
import * as kalshiPrices from '../../src/venues/kalshi/parse-price.ts';
import * as kalshiTrades from '../../src/venues/kalshi/parse-trade.ts';
import { parseBets } from '../../src/venues/manifold/parse-bet.ts';
import * as manifoldMarkets from '../../src/venues/manifold/parse-market.ts';
import * as polymarketBooks from '../../src/venues/polymarket/parse-book.ts';
import * as polymarketMarkets from '../../src/venues/polymarket/parse-market.ts';
import * as polymarketTrades from '../../src/venues/polymarket/parse-trade.ts';
import type { PollKind, RejectedRecord } from '../../src/venues/port.ts';
import { writePage } from '../../workers/page-writer.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { kalshiRecordings } from './venue-adapter/kalshi-recordings.ts';
import { manifoldRecordings } from './venue-adapter/manifold-recordings.ts';
import { mutate, seededRandom } from './venue-adapter/mutations.ts';
import { polymarketRecordings } from './venue-adapter/polymarket-recordings.ts';
import type { ParsedRecords, RecordedFile, Recordings } from './venue-adapter/venue-under-test.ts';

/** The second half of the fuzz: what the parsers yield of mutated payloads goes into the real tables. */

type Parse = (records: readonly unknown[], nowMs: number) => ParsedRecords;

interface Fuzzed {
  name: VenueName;
  recordings: () => Recordings | undefined;
  parse: Readonly<Partial<Record<PollKind, Parse>>>;
  leastOutcomes: number;
}

const FUZZED: readonly Fuzzed[] = [
  {
    name: 'polymarket',
    recordings: polymarketRecordings,
    parse: {
      markets: polymarketMarkets.parseMarkets,
      books: (records, nowMs) => polymarketBooks.parseBooks('books', records, nowMs),
      trades: (records, nowMs) => polymarketTrades.identifyTrades(polymarketTrades.readFeed(records, nowMs)),
    },
    leastOutcomes: 1,
  },
  {
    name: 'kalshi',
    recordings: kalshiRecordings,
    parse: {
      markets: kalshiMarkets.parseMarkets,
      books: kalshiBooks.parseBooks,
      prices: kalshiPrices.parsePrices,
      trades: (records, nowMs) => kalshiTrades.collectTrades(kalshiTrades.readFeed(records, nowMs)),
    },
    leastOutcomes: 2,
  },
  {
    name: 'manifold',
    recordings: manifoldRecordings,
    parse: { markets: manifoldMarkets.parseMarkets, trades: parseBets },
    leastOutcomes: 1,
  },
];

const ROWS = 150;
const ANSWERS_PER_KIND = 10;
const MUTATED = 0.7;

let test: TestDatabase;
let partitions: Partitions;
beforeAll(async () => {
  test = await createTestDatabase();
  partitions = new Partitions(test.db);
  for (const table of ['price_history', 'book_history', 'observation'] as const)
    await partitions.ensureAroundNow(table);
});
afterAll(() => test.drop());

/** An answer of the venue in which most records are damaged, some of them beside the original; a record from any file. */
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

type Write = (tx: Tx, records: readonly unknown[], nowMs: number) => Promise<unknown>;

/** As the poll jobs write them, but for every outcome that is named. */
function writerOf(venue: VenueName, kind: PollKind): Write {
  const { currency } = VENUES[venue];
  const tokensOf = (tx: Tx, records: readonly { outcomeId: string }[]) =>
    ensureTokens(
      tx,
      records.map(({ outcomeId }) => outcomeId),
      currency,
    );
  const writers: Readonly<Record<PollKind, Write>> = {
    markets: (tx, records, nowMs) => writeMarkets(tx, venue, currency, records as MarketRecord[], nowMs),
    trades: (tx, records) => writeTrades(tx, records as TradeRecord[], currency),
    async prices(tx, records) {
      const prices = records as PriceRecord[];
      const tokens = await tokensOf(tx, prices);
      await writePrices(
        tx,
        prices.map((price) => ({ ...price, tokenId: tokens.get(price.outcomeId) ?? 0n })),
      );
    },
    async books(tx, records) {
      const books = records as BookRecord[];
      const tokens = await tokensOf(tx, books);
      const tokenOf = ({ outcomeId }: { outcomeId: string }) => ({ tokenId: tokens.get(outcomeId) ?? 0n });
      await writeBooks(
        tx,
        books.map((book) => ({ ...book, ...tokenOf(book) })),
      );
      const prices = books.flatMap((book) => priceOfBook(book) ?? []);
      await writePrices(
        tx,
        prices.map((price) => ({ ...price, ...tokenOf(price) })),
      );
    },
  };
  return writers[kind];
}

async function store(
  venue: VenueName,
  kind: PollKind,
  { records, rejected }: ParsedRecords,
  nowMs: number,
): Promise<RejectedRecord[]> {
  if (kind === 'trades') {
    await partitions.ensure(
      'trade',
      (records as TradeRecord[]).map(({ tsMs }) => tsMs),
    );
  }
  const lease = await acquirePollLease(test.db, venue, kind, newToken());
  if (!lease) throw new Error(`no lease for ${venue} ${kind}`);
  const write = async (tx: Tx, some: readonly unknown[]) => {
    await writerOf(venue, kind)(tx, some, nowMs);
    return { written: some.length, wake: () => undefined };
  };
  const page = { records, rejected, position: { at: newToken() }, more: false };
  const { refused } = await writePage({ db: test.db, lease, kind, from: lease.position, write }, page);
  await releasePollLease(test.db, lease, null);
  return [...rejected, ...refused];
}

/** Each names the rows of a table that must not be there. */
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

describe.each(FUZZED)('what $name damaged, stored', (venue) => {
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
        for (const rejected of await store(venue.name, kind, batch, nowMs)) {
          const key = `${rejected.kind} ${rejected.reason}`;
          seen.set(key, (seen.get(key) ?? 0) + 1);
        }
      }
    }
    const [counts] = await test.db.query<{ markets: number; trades: number; prices: number }>(COUNTS, [venue.name]);
    expect(counts?.markets).toBeGreaterThan(50);
    expect(counts?.trades).toBeGreaterThan(100);
    for (const [what, query] of Object.entries(FORBIDDEN)) {
      const rows: unknown[] = await test.db.dataSource.query(query);
      expect(rows.slice(0, 3), what).toEqual([]);
    }
    const quarantined = await summarizeQuarantine(test.db, { venue: venue.name });
    expect(seen.size).toBeGreaterThan(5);
    expect(new Map(quarantined.map((row) => [`${row.kind} ${row.reason}`, row.times]))).toEqual(seen);
    // Whatever Postgres had to refuse passed a door that should have been shut.
    expect([...seen.keys()].filter((key) => key.endsWith('refused_by_store'))).toEqual([]);

    const claims = new Map<string, number>();
    for (const { outcomes } of written.values()) {
      for (const { outcomeId } of outcomes) claims.set(outcomeId, (claims.get(outcomeId) ?? 0) + 1);
    }
    const stored = await test.db.query<{ market_id: string; mints: string[] }>(OUTCOMES, [venue.name]);
    expect(stored.map((row) => row.market_id).sort()).toEqual([...written.keys()].sort());
    for (const { market_id, mints } of stored) {
      const outcomes = written.get(market_id)?.outcomes ?? [];
      expect(outcomes.length).toBeGreaterThanOrEqual(venue.leastOutcomes);
      // A market whose id was damaged claims the outcomes of the real one, and the later of the two has them.
      const own = outcomes.filter(({ outcomeId }) => claims.get(outcomeId) === 1).map(({ outcomeId }) => outcomeId);
      expect(mints, market_id).toEqual(expect.arrayContaining(own));
    }
  });
});
