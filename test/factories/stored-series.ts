import { Partitions } from '../../src/store/db/partitions.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';

const UPSERT_PRICE = sql(
  'test_upsert_price',
  `INSERT INTO latest_price (token_id, price, bid, ask, as_of, received_at) VALUES ($1, $2, $3, $4, $5, now())
   ON CONFLICT (token_id) DO UPDATE SET price = excluded.price, bid = excluded.bid, ask = excluded.ask, as_of = excluded.as_of`,
);

/** Sets the latest price of a token. */
export async function aStoredPrice(
  db: Database,
  tokenId: bigint,
  price: { price: string; bid?: string; ask?: string; asOf: Date },
): Promise<void> {
  await db.query(UPSERT_PRICE, [tokenId, price.price, price.bid ?? null, price.ask ?? null, price.asOf.toISOString()]);
}

const INSERT_TRADE = sql(
  'test_insert_trades',
  `INSERT INTO trade (token_id, ts, trade_id, price, size, side, ordinal)
   SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::numeric[], $5::numeric[], $6::smallint[], $7::int[])`,
);

export interface TestTrade {
  tokenId: bigint;
  at: Date;
  tradeId: string;
  price?: string;
  size?: string;
  side?: 'buy' | 'sell';
  ordinal?: number;
}

/** Inserts trades without marks and candles. */
export async function storedTrades(db: Database, trades: readonly TestTrade[]): Promise<void> {
  await new Partitions(db).ensure(
    'trade',
    trades.map(({ at }) => at.getTime()),
  );
  await db.query(INSERT_TRADE, [
    trades.map(({ tokenId }) => tokenId),
    trades.map(({ at }) => at.toISOString()),
    trades.map(({ tradeId }) => tradeId),
    trades.map(({ price = '0.5' }) => price),
    trades.map(({ size = '10' }) => size),
    trades.map(({ side }) => (side === undefined ? null : side === 'buy' ? 1 : -1)),
    trades.map(({ ordinal = 0 }) => ordinal),
  ]);
}

const INSERT_CANDLE = sql(
  'test_insert_candle',
  `INSERT INTO candle (token_id, interval_seconds, bucket, open, high, low, close, volume, notional, trades)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
);

export interface TestCandle {
  bucket: number;
  close: string;
  open?: string;
  high?: string;
  low?: string;
  volume?: string;
  notional?: string;
  trades?: number;
}

/** Inserts candles of one token and interval. Omitted prices equal the close; volume is 10 with one trade. */
export async function storedCandles(
  db: Database,
  tokenId: bigint,
  intervalSeconds: number,
  candles: readonly TestCandle[],
): Promise<void> {
  for (const { bucket, close, open = close, high = close, low = close, ...rest } of candles) {
    const { volume = '10', notional = '5', trades = 1 } = rest;
    await db.query(INSERT_CANDLE, [tokenId, intervalSeconds, bucket, open, high, low, close, volume, notional, trades]);
  }
}

const INSERT_BOOK = sql(
  'test_insert_book',
  `INSERT INTO book_latest (token_id, as_of, bids, asks) VALUES ($1, $2, $3::jsonb, $4::jsonb)
   ON CONFLICT (token_id) DO UPDATE SET as_of = excluded.as_of, bids = excluded.bids, asks = excluded.asks, received_at = now()`,
);
type Levels = readonly (readonly [price: string, size: string, count?: number])[];

/** Stores the present book: bids falling, asks rising. */
export async function aStoredBook(
  db: Database,
  tokenId: bigint,
  book: { asOf: Date; bids: Levels; asks: Levels },
): Promise<void> {
  const { asOf, bids, asks } = book;
  await db.query(INSERT_BOOK, [tokenId, asOf.toISOString(), JSON.stringify(bids), JSON.stringify(asks)]);
}

const INSERT_SNAPSHOT = sql(
  'test_insert_snapshot',
  `INSERT INTO snapshot (token_id, ts, price, bid, ask) VALUES ($1, $2, $3, $4, $5)`,
);

/** Inserts price samples at minute boundaries, epoch seconds. */
export async function storedSnapshots(
  db: Database,
  tokenId: bigint,
  samples: readonly { ts: number; price: string; bid?: string; ask?: string }[],
): Promise<void> {
  for (const { ts, price, bid = null, ask = null } of samples) {
    await db.query(INSERT_SNAPSHOT, [tokenId, ts, price, bid, ask]);
  }
}

const AGE_BOOKS = sql(
  'test_age_books',
  `WITH aged AS (
     UPDATE book_history SET received_at = received_at - $1::float8 * interval '1 millisecond' WHERE token_id = ANY ($2::bigint[]))
   UPDATE book_latest SET received_at = received_at - $1::float8 * interval '1 millisecond' WHERE token_id = ANY ($2::bigint[])`,
);

/**
 * Moves the times at which the books of tokens were received, those of history included: a book that alone goes back can be stored a second time in
 * the millisecond of its row.
 */
export async function ageBooks(db: Database, byMs: number, ...tokenIds: bigint[]): Promise<void> {
  await new Partitions(db).ensure('book_history', [Date.now() - byMs]);
  await db.query(AGE_BOOKS, [byMs, tokenIds]);
}
