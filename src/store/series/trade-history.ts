import { epochMs, type Queryable, sql } from '../db/tx.ts';
import { insertFactsSql } from '../marks/publish-marks.ts';
import { toWitness, WITNESS_COLUMNS, type Witness, type WitnessRow } from './completeness.ts';

/** `queued` and `walking` walks have pending work. `failed` walks gave up with their reason. */
const HISTORY_STATUSES = ['queued', 'walking', 'done', 'failed'] as const;
export type HistoryStatus = (typeof HISTORY_STATUSES)[number];

/** The walk back through one market's older trades. Epoch milliseconds; it covers `[fromMs, toMs)`, newest first. */
export interface TradeHistory {
  status: HistoryStatus;
  fromMs: number;
  toMs: number;
  /** All trades from this time on are stored; null before the first page. */
  reachedMs: number | null;
  pages: number;
  /** The number of trades that the walk added. */
  trades: number;
  failures: number;
  /** The error of the latest attempt, or the limit of the venue that cut the walk short. */
  lastError: string | null;
  requestedMs: number;
  finishedMs: number | null;
  /** The time of this read by the database clock, which stamps all times here. */
  asOfMs: number;
  /** A page arrived, or an attempt failed, since the request; or `oddswire backfill` requested it, so that no client waits for it. */
  isTouched: boolean;
  /** `oddswire backfill` requested it, and no page arrived: a request of a client precedes it. */
  isPlanned: boolean;
}

/** A failed walk is requested again after this time. */
export const ASK_AGAIN_SECONDS = 3_600;

/**
 * A walk of `oddswire backfill` counts as touched at its request. So each untouched walk of a client comes first, also in a process of the
 * former release, and the planned walks follow in the order of their requests.
 */
const IS_PLANNED = `(h.status = 'queued' AND h.touched_at = h.requested_at)`;

/** The columns of a `TradeHistory`, of `trade_history AS h`. */
export const HISTORY_COLUMNS = `h.status, ${epochMs('h.from_at')} AS from_ms, ${epochMs('h.to_at')} AS to_ms,
  ${epochMs('h.reached_at')} AS reached_ms, h.pages, h.trades::float8 AS trades, h.failures, h.last_error,
  ${epochMs('h.requested_at')} AS requested_ms, ${epochMs('h.finished_at')} AS finished_ms,
  ${epochMs('clock_timestamp()')} AS as_of_ms, h.touched_at IS NOT NULL AS is_touched,
  coalesce(${IS_PLANNED}, false) AS is_planned`;

/** Of which time a market's trades are stored. Epoch milliseconds. */
export interface TradeFacts {
  /** The start of polling of the venue's tape; null before the first poll. */
  liveMs: number | null;
  /** The tape was read without a gap up to its state at this moment; null before the first time. */
  caughtUpMs: number | null;
  /** No trade is older than this; null when the venue does not report it. */
  beganMs: number | null;
  history: TradeHistory | null;
  /** The comparison with the venue's volume; null before the first one. */
  witness: Witness | null;
}

/** A market may trade before its official opening, but not before both of these times. */
const BEGAN_AT = 'least(m.created_at, m.open_at)';

/** The columns of `TradeFacts`, of `market AS m` with `FACTS_PARTS`. Postgres keeps microseconds of the first success: it is live from the next whole millisecond on. */
export const FACTS_COLUMNS = `${epochMs('p.first_success_at')} + 1 AS live_ms, ${epochMs('p.caught_up_at')} AS caught_up_ms, ${epochMs(BEGAN_AT)} AS began_ms,
  ${WITNESS_COLUMNS},
  ${HISTORY_COLUMNS}`;

export const FACTS_PARTS = `LEFT JOIN poll_state p ON p.venue = m.venue AND p.kind = 'trades'
  LEFT JOIN trade_history h ON h.market_id = m.id LEFT JOIN trade_witness w ON w.market_id = m.id`;

const READ_FACTS = sql('read_trade_facts', `SELECT ${FACTS_COLUMNS} FROM market m ${FACTS_PARTS} WHERE m.id = $1`);

/** Reads the stored trade history of a market. */
export async function readTradeFacts(db: Queryable, marketPk: bigint): Promise<TradeFacts> {
  const [row] = await db.query<FactsRow>(READ_FACTS, [marketPk]);
  return row ? toTradeFacts(row) : { liveMs: null, caughtUpMs: null, beganMs: null, history: null, witness: null };
}

/** A row of `FACTS_COLUMNS`. */
export type FactsRow = Omit<TradeFacts, 'history' | 'witness'> &
  WitnessRow &
  (TradeHistory | { [Name in keyof TradeHistory]: null });

export function toTradeFacts(row: FactsRow): TradeFacts {
  const { liveMs, caughtUpMs, beganMs, since, comparedAt, venueVolume, storedVolume, missingSince, ...history } = row;
  const witness = toWitness({ since, comparedAt, venueVolume, storedVolume, missingSince });
  return { liveMs, caughtUpMs, beganMs, history: history.status === null ? null : history, witness };
}

/** Whether a request for all trades from `fromMs` on would change the row, by the same rule as `requestTradeHistory`. */
export function isWorthAsking(history: TradeHistory | null, fromMs: number): boolean {
  if (history === null || history.isPlanned || fromMs < history.fromMs) return true;
  const { status, asOfMs, finishedMs } = history;
  return status === 'failed' && finishedMs !== null && asOfMs - finishedMs > ASK_AGAIN_SECONDS * 1000;
}

const REQUEST = sql(
  'request_trade_history',
  `WITH requested AS (
   INSERT INTO trade_history AS h (market_id, from_at, to_at) VALUES ($1, $2, $3)
   ON CONFLICT (market_id) DO UPDATE SET status = 'queued', from_at = least(h.from_at, excluded.from_at),
     to_at = coalesce(h.reached_at, h.to_at), reached_at = NULL, position = NULL, failures = 0, last_error = NULL,
     requested_at = clock_timestamp(), touched_at = NULL, finished_at = NULL
   WHERE excluded.from_at < h.from_at OR ${IS_PLANNED}
     OR (h.status = 'failed' AND h.finished_at < clock_timestamp() - ${ASK_AGAIN_SECONDS} * interval '1 second')
   RETURNING market_id),
   published AS (${insertFactsSql('coverage', 'SELECT market_id FROM requested')})
   SELECT market_id FROM requested`,
);

/**
 * Requests a market's trades in `[fromMs, toMs)`. An earlier request continues unchanged, unless this one reaches further back or the
 * earlier one failed an hour ago: then the walk continues below its reached time. A planned walk becomes one of a client. False when nothing
 * changed.
 */
export async function requestTradeHistory(
  db: Queryable,
  request: { marketPk: bigint; fromMs: number; toMs: number },
): Promise<boolean> {
  const { marketPk, fromMs, toMs } = request;
  return (await db.query(REQUEST, [marketPk, new Date(fromMs).toISOString(), new Date(toMs).toISOString()])).length > 0;
}
