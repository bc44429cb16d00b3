import { INTERVAL_SECONDS } from '../src/domain/candle.ts';
import { Partitions } from '../src/store/partitions.ts';
import { type Database, sql } from '../src/store/tx.ts';

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
const TRADES = sql(
  'bench_trades',
  `INSERT INTO trade (token_id, ts, trade_id, price, size, side)
   SELECT o.token_id, date_trunc('minute', now()) - n * $3::float8 * interval '1 second', 't' || n,
     (1 + (n * 31 + o.token_id) % 98) / 100.0, 1 + (n * 17) % 1000 / 10.0, CASE WHEN n % 2 = 0 THEN 1 ELSE -1 END
   FROM outcome o CROSS JOIN generate_series(1, $2::int) n WHERE o.token_id % 2 = $1::int`,
);
const CANDLES = sql(
  'bench_candles',
  `INSERT INTO candle (token_id, interval_seconds, bucket, open, high, low, close, volume, notional, trades)
   SELECT token_id, $1::int, floor(extract(epoch FROM ts) / $1)::bigint * $1, (array_agg(price ORDER BY ts, trade_id))[1],
     max(price), min(price), (array_agg(price ORDER BY ts DESC, trade_id DESC))[1], sum(size), sum(price * size), count(*)
   FROM trade GROUP BY 1, 3`,
);
const ANALYZE = sql('bench_analyze', 'ANALYZE');

/** Fills a database with markets, prices, trades and their candles, in SQL: what the reads of a bench run against. */
export async function storeHistory(db: Database, { markets, trades, days }: HistoryOptions): Promise<string[]> {
  const now = Date.now();
  const months = Array.from({ length: days + 1 }, (_, day) => now - day * 86_400_000);
  await new Partitions(db).ensure('trade', months);
  await db.query(MARKETS, [markets]);
  await db.query(PRICES);
  const each = Math.max(1, Math.round(trades / markets));
  await db.query(TRADES, [1, each, (days * 86_400) / each]);
  for (const seconds of Object.values(INTERVAL_SECONDS)) await db.query(CANDLES, [seconds]);
  await db.query(ANALYZE);
  return Array.from({ length: markets }, (_, n) => `bench-${n + 1}`);
}
