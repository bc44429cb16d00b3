import { epochMs } from '../db/epoch-ms.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** `queued` and `walking` are open: work is left. `failed` gave up, with its reason. */
const HISTORY_STATUSES = ['queued', 'walking', 'done', 'failed'] as const;
export type HistoryStatus = (typeof HISTORY_STATUSES)[number];

/** The walk back through one market's older trades. Epoch milliseconds; it covers `[fromMs, toMs)`, newest first. */
export interface TradeHistory {
  status: HistoryStatus;
  fromMs: number;
  toMs: number;
  /** Everything from here on is stored; null before the first page. */
  reachedMs: number | null;
  pages: number;
  /** Trades that it stored: those not stored before. */
  trades: number;
  failures: number;
  /** Why the latest try failed, or what the venue would not give. */
  lastError: string | null;
  requestedMs: number;
  finishedMs: number | null;
  /** When this was read, by the database's clock, as all times here. */
  asOfMs: number;
  /** A page came in, or a try failed, since it was asked for. */
  isTouched: boolean;
}

/** A read asks again for what failed this long ago. */
const ASK_AGAIN_SECONDS = 3_600;

/** The columns of a `TradeHistory`, of `trade_history AS h`. */
export const HISTORY_COLUMNS = `h.status, ${epochMs('h.from_at')} AS from_ms, ${epochMs('h.to_at')} AS to_ms,
  ${epochMs('h.reached_at')} AS reached_ms, h.pages, h.trades::float8 AS trades, h.failures, h.last_error,
  ${epochMs('h.requested_at')} AS requested_ms, ${epochMs('h.finished_at')} AS finished_ms,
  ${epochMs('clock_timestamp()')} AS as_of_ms, h.touched_at IS NOT NULL AS is_touched`;

/** What is known of how far back a market's trades are stored. Epoch milliseconds. */
export interface TradeFacts {
  /** From then on the venue's tape is followed; null while it never was polled. */
  liveMs: number | null;
  /** No trade is older than this; null when the venue does not say. */
  beganMs: number | null;
  history: TradeHistory | null;
}

/** A market may trade before the moment its venue calls its opening, but not before both moments that are known of it. */
const BEGAN_AT = 'least(m.created_at, m.open_at)';

/** Postgres keeps microseconds of the first success: it is live from the next whole millisecond on. */
const READ_FACTS = sql(
  'read_trade_facts',
  `SELECT ${epochMs('p.first_success_at')} + 1 AS live_ms, ${epochMs(BEGAN_AT)} AS began_ms, ${HISTORY_COLUMNS}
   FROM market m LEFT JOIN poll_state p ON p.venue = m.venue AND p.kind = 'trades'
   LEFT JOIN trade_history h ON h.market_id = m.id WHERE m.id = $1`,
);

/** Reads, and only reads, what is known of a market's trades. */
export async function readTradeFacts(db: Queryable, marketPk: bigint): Promise<TradeFacts> {
  type Row = Omit<TradeFacts, 'history'> & (TradeHistory | { status: null });
  const [row] = await db.query<Row>(READ_FACTS, [marketPk]);
  if (!row) return { liveMs: null, beganMs: null, history: null };
  const { liveMs, beganMs, ...history } = row;
  return { liveMs, beganMs, history: history.status === null ? null : history };
}

/** Whether asking for everything from `fromMs` on would change the row; `requestTradeHistory` decides by the same rule. */
export function isWorthAsking(history: TradeHistory | null, fromMs: number): boolean {
  if (history === null || fromMs < history.fromMs) return true;
  const { status, asOfMs, finishedMs } = history;
  return status === 'failed' && finishedMs !== null && asOfMs - finishedMs > ASK_AGAIN_SECONDS * 1000;
}

const REQUEST = sql(
  'request_trade_history',
  `INSERT INTO trade_history AS h (market_id, from_at, to_at) VALUES ($1, $2, $3)
   ON CONFLICT (market_id) DO UPDATE SET status = 'queued', from_at = least(h.from_at, excluded.from_at),
     to_at = coalesce(h.reached_at, h.to_at), reached_at = NULL, position = NULL, failures = 0, last_error = NULL,
     requested_at = clock_timestamp(), touched_at = NULL, finished_at = NULL
   WHERE excluded.from_at < h.from_at
     OR (h.status = 'failed' AND h.finished_at < clock_timestamp() - ${ASK_AGAIN_SECONDS} * interval '1 second')
   RETURNING market_id`,
);

/**
 * Asks for a market's trades in `[fromMs, toMs)`. What was asked for before goes on undisturbed, unless this reaches further
 * back or it failed an hour ago: then the walk goes on below what it reached. False when nothing changed.
 */
export async function requestTradeHistory(
  db: Queryable,
  request: { marketPk: bigint; fromMs: number; toMs: number },
): Promise<boolean> {
  const { marketPk, fromMs, toMs } = request;
  return (await db.query(REQUEST, [marketPk, new Date(fromMs).toISOString(), new Date(toMs).toISOString()])).length > 0;
}
