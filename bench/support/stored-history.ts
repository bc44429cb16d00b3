import { Partitions } from '../../src/store/db/partitions.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { runLarge, settle, storingTrades } from './stored-trades.ts';

export interface HistoryOptions {
  markets: number;
  /** Over all markets, spread evenly over the days. */
  trades: number;
  days: number;
}

const MARKETS = sql(
  'bench_markets',
  `WITH made AS (
     INSERT INTO market (venue, venue_market_id, title, description, tags, status, has_book, created_at, content_hash)
     SELECT 'polymarket', 'bench-' || n, 'Will event number ' || n || ' happen before the end of the year?',
       repeat('This market resolves to Yes if the event happens, as reported by a consensus of sources. ', 8),
       '{bench}', 'open', true, now() - interval '90 days', '\\x00'
     FROM generate_series(1, $1::int) n RETURNING id, venue_market_id),
   token AS (
     INSERT INTO token (mint) SELECT venue_market_id || suffix FROM made, unnest('{:yes,:no}'::text[]) suffix RETURNING id, mint)
   INSERT INTO outcome (token_id, market_id, ordinal, label)
   SELECT t.id, m.id, o.ordinal, o.label FROM made m
   CROSS JOIN (VALUES (0, 'Yes', ':yes'), (1, 'No', ':no')) AS o (ordinal, label, suffix)
   JOIN token t ON t.mint = m.venue_market_id || o.suffix`,
);
const PRICES = sql(
  'bench_prices',
  `INSERT INTO latest_price (token_id, price, bid, ask, as_of, received_at)
   SELECT token_id, (1 + token_id % 98) / 100.0, (token_id % 98) / 100.0 + 0.005, (1 + token_id % 98) / 100.0 + 0.005, now(), now() FROM outcome`,
);
/** Twenty levels per side, which polls of the next hours have seen already, so that no read fetches a book. */
const BOOKS = sql(
  'bench_books',
  `INSERT INTO book_latest (token_id, as_of, received_at, bids, asks)
   SELECT token_id, now(), now() + interval '6 hours', l.bids, l.asks FROM outcome o
   CROSS JOIN (SELECT jsonb_agg(jsonb_build_array((0.5 - n * 0.01)::text, (n * 10)::text) ORDER BY n) AS bids,
                      jsonb_agg(jsonb_build_array((0.5 + n * 0.01)::text, (n * 10)::text) ORDER BY n) AS asks
               FROM generate_series(1, 20) n) l
   WHERE o.ordinal = 0`,
);
const FEES = sql(
  'bench_fees',
  `WITH kept AS (
     INSERT INTO fee_statement (hash, statement) VALUES ('\\x01', '{"periods": [{"rule": {"model": "price_curve", "takerRate": "0.04", "exponent": 1, "digits": 5, "rounding": "half_up"}}]}') RETURNING id)
   INSERT INTO market_fee (market_id, known_at, fee_id) SELECT m.id, now(), kept.id FROM market m, kept`,
);
const TRADES = storingTrades(
  'bench_trades',
  `SELECT o.token_id, date_trunc('minute', now()) - n * $2::float8 * interval '1 second' AS ts, 't' || n AS trade_id,
     (1 + (n * 31 + o.token_id) % 98) / 100.0 AS price, 1 + (n * 17) % 1000 / 10.0 AS size,
     CASE WHEN n % 2 = 0 THEN 1 ELSE -1 END AS side
   FROM outcome o CROSS JOIN generate_series(1, $1::int) n
   WHERE o.token_id % 2 = 1 AND o.token_id > $3::bigint AND o.token_id <= $4::bigint`,
);
/** Polls that are older than the markets, so that their trades are complete and a read asks for none. */
const POLLED = sql(
  'bench_polled',
  `INSERT INTO poll_state (venue, kind, first_success_at, caught_up_at)
   VALUES ('polymarket', 'trades', now() - interval '100 days', now() + interval '1 day')`,
);
/** Tokens of one statement, which holds their trades in memory. */
const TOKENS_AT_ONCE = 10_000;

/** Fills a database with markets, prices, books, fees, trades and their candles, in SQL, for the reads of a bench. */
export async function storeHistory(db: Database, { markets, trades, days }: HistoryOptions): Promise<string[]> {
  const now = Date.now();
  const months = Array.from({ length: days + 1 }, (_, day) => now - day * 86_400_000);
  await new Partitions(db).ensure('trade', months);
  await db.query(MARKETS, [markets]);
  await db.query(PRICES);
  await db.query(BOOKS);
  await db.query(FEES);
  await db.query(POLLED);
  const each = Math.max(1, Math.round(trades / markets));
  for (let from = 0; from < 2 * markets; from += TOKENS_AT_ONCE) {
    await runLarge(db, TRADES, [each, (days * 86_400) / each, from, from + TOKENS_AT_ONCE]);
  }
  await settle(db);
  return Array.from({ length: markets }, (_, n) => `bench-${n + 1}`);
}
