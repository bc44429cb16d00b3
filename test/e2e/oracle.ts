import { INTERVAL_SECONDS } from '../../src/domain/markets/candle.ts';
import { decimal } from '../../src/domain/values/decimal.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { foldTrades } from '../support/postgres/candle-fold.ts';

/**
 * Alerts that break the promise of exactly one event per met alert. An alert is met by an observation received since its creation or
 * by the price in effect at its creation. Listed are met alerts without exactly one event, unmet alerts that fired, and duplicates.
 */
const BROKEN_ALERTS = sql(
  'oracle_broken_alerts',
  `WITH judged AS (
     SELECT a.id, a.status, (SELECT count(*)::int FROM event e WHERE e.dedupe_key = 'alert:' || a.id) AS events,
       EXISTS (SELECT FROM observation o WHERE o.token_id = a.token_id
         AND o.received_at >= date_trunc('milliseconds', a.created_at)
         AND CASE a.condition WHEN 'above' THEN o.price >= a.target ELSE o.price <= a.target END) AS observed,
       EXISTS (SELECT FROM latest_price l WHERE l.token_id = a.token_id
         AND CASE a.condition WHEN 'above' THEN l.price >= a.target ELSE l.price <= a.target END) AS current,
       EXISTS (SELECT FROM price_history h WHERE h.token_id = a.token_id
         AND CASE a.condition WHEN 'above' THEN h.price >= a.target ELSE h.price <= a.target END) AS ever
     FROM alert a)
   SELECT * FROM judged
   WHERE events > 1 OR (status = 'triggered') <> (events = 1)
      OR (status = 'active' AND (observed OR current))
      OR (status = 'triggered' AND NOT (observed OR ever))`,
);

export interface BrokenAlert {
  id: string;
  status: string;
  events: number;
}

export function brokenAlerts(db: Database): Promise<BrokenAlert[]> {
  return db.query(BROKEN_ALERTS);
}

const TRADES = sql(
  'oracle_trades',
  `SELECT token_id, extract(epoch FROM ts) * 1000 AS ts_ms, trade_id, price, size, side, ordinal FROM trade ORDER BY token_id`,
);
const CANDLES = sql(
  'oracle_candles',
  `SELECT bucket::int, open, high, low, close, volume, notional, trades FROM candle
   WHERE token_id = $1 AND interval_seconds = $2 ORDER BY bucket`,
);

interface TradeRow {
  tokenId: bigint;
  tsMs: string;
  tradeId: string;
  price: string;
  size: string;
  side: number | null;
  ordinal: number;
}

/** Candles that differ from the fold of the stored trades, as text. */
export async function wrongCandles(db: Database): Promise<string[]> {
  const byToken = new Map<bigint, TradeRow[]>();
  for (const row of await db.query<TradeRow>(TRADES)) {
    const rows = byToken.get(row.tokenId) ?? [];
    rows.push(row);
    byToken.set(row.tokenId, rows);
  }
  const wrong: string[] = [];
  for (const [tokenId, rows] of byToken) {
    const tape = rows.map((row) => ({
      tsMs: Number(row.tsMs),
      tradeId: row.tradeId,
      price: decimal(row.price),
      size: decimal(row.size),
      ordinal: row.ordinal,
      ...(row.side !== null && { side: row.side > 0 ? ('buy' as const) : ('sell' as const) }),
    }));
    for (const interval of Object.values(INTERVAL_SECONDS)) {
      const stored = await db.query<Record<string, string>>(CANDLES, [tokenId, interval]);
      const actual = stored.map((row) =>
        JSON.stringify([
          Number(row['bucket']),
          ...['open', 'high', 'low', 'close', 'volume', 'notional'].map((field) => decimal(row[field] ?? '')),
          Number(row['trades']),
        ]),
      );
      const expected = foldTrades(tape, interval).map((candle) => JSON.stringify(Object.values(candle)));
      for (let index = 0; index < Math.max(actual.length, expected.length); index++) {
        if (actual[index] === expected[index]) continue;
        wrong.push(`token ${tokenId}, ${interval} s: ${actual[index]} instead of ${expected[index]}`);
      }
    }
  }
  return wrong;
}

const UNDELIVERED = sql(
  'oracle_undelivered',
  `SELECT e.id, d.status FROM event e JOIN delivery d ON d.event_pk = e.pk WHERE d.status <> 'delivered'`,
);

/** Deliveries in a status other than `delivered`. */
export function undelivered(db: Database): Promise<{ id: string; status: string }[]> {
  return db.query(UNDELIVERED);
}

const EVENT_IDS = sql('oracle_event_ids', 'SELECT id FROM event');

export async function eventIds(db: Database): Promise<string[]> {
  return (await db.query<{ id: string }>(EVENT_IDS)).map((row) => row.id);
}

const PENDING_WORK = sql(
  'oracle_pending_work',
  `SELECT (SELECT count(*)::int FROM mark WHERE stage <> 'sample-snapshots') AS marks,
          (SELECT count(*)::int FROM parked_mark) AS dead_letters,
          (SELECT count(*)::int FROM delivery WHERE status = 'pending') AS deliveries`,
);

export interface PendingWork {
  marks: number;
  deadLetters: number;
  deliveries: number;
}

export async function pendingWork(db: Database): Promise<PendingWork> {
  const [row] = await db.query<PendingWork>(PENDING_WORK);
  if (!row) throw new Error('no row');
  return row;
}

/** A read of a wallet ends with its balances, which keep the time when the read began. */
const UNREAD_WALLETS = sql(
  'oracle_unread_wallets',
  `SELECT address FROM watched_wallet WHERE (balance_position->>'readAt')::timestamptz > $1 IS NOT TRUE`,
);

/** Watched wallets without a complete read that began after `since`, a time of this machine's clock, which the database shares. */
export async function unreadWallets(db: Database, since: Date): Promise<string[]> {
  return (await db.query<{ address: string }>(UNREAD_WALLETS, [since])).map(({ address }) => address);
}

const STORED_TRADES = sql(
  'oracle_stored_trades',
  `SELECT t.mint, floor(extract(epoch FROM r.ts))::bigint AS second, r.price, r.size FROM trade r JOIN token t ON t.id = r.token_id
   WHERE r.ts >= to_timestamp($1) AND r.ts < to_timestamp($2)`,
);

/** Stored trades of `[from, until)` epoch seconds, one canonical line each, sorted, for comparison with the exchange's ledger. */
export async function storedTape(db: Database, from: number, until: number): Promise<string[]> {
  const rows = await db.query<{ mint: string; second: bigint; price: string; size: string }>(STORED_TRADES, [
    from,
    until,
  ]);
  return rows.map((row) => `${row.second} ${row.mint} ${decimal(row.price)} ${decimal(row.size)}`).sort();
}
