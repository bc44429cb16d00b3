import { scrubData, scrubText } from '../../domain/values/text.ts';
import { type Queryable, type Statement, sql } from '../db/tx.ts';
import { HISTORY_COLUMNS, type HistoryStatus, type TradeHistory } from './trade-history.ts';
import { REREADS_BETWEEN_MARKETS } from './trade-reread.ts';

/** Consecutive failures of one market, with growing delays, before its walk fails. */
const MAX_HISTORY_FAILURES = 5;
const FIRST_RETRY_SECONDS = 15;

/**
 * `history` walks read trades from before the start of the tape, on a client's request. `repair` walks read a covered range again, because
 * the venue's totals prove that trades are missing. `reread` walks correct the prices of stored trades.
 */
const TABLES = { history: 'trade_history', repair: 'trade_repair', reread: 'trade_reread' } as const;
export type WalkPurpose = keyof typeof TABLES;
const PURPOSES = Object.keys(TABLES) as WalkPurpose[];

/** A walk with pending work. */
export interface OpenHistory extends TradeHistory {
  purpose: WalkPurpose;
  marketPk: bigint;
  marketId: string;
  outcomeIds: string[];
  /** The adapter's own JSON; null at the start. */
  position: unknown;
}

/** The delays after failed attempts are 30 s, 1 min, 2 min and 4 min. */
const IS_DUE = `h.status IN ('queued', 'walking') AND (h.failures = 0 OR h.touched_at IS NULL
  OR h.touched_at < clock_timestamp() - ${FIRST_RETRY_SECONDS} * 2 ^ h.failures * interval '1 second')`;

const COLUMNS = `market_id, status, from_at, to_at, reached_at, position, pages, trades, failures, last_error, requested_at, touched_at,
  finished_at`;
const WALKS = PURPOSES.map((purpose) => `SELECT '${purpose}' AS purpose, ${COLUMNS} FROM ${TABLES[purpose]}`).join(
  ' UNION ALL ',
);

/** The least recently touched of the due walks. */
const longestWaiting = (rank: number, condition: string) =>
  `(SELECT ${rank} AS rank, h.*, m.venue_market_id FROM (${WALKS}) h JOIN market m ON m.id = h.market_id
    WHERE m.venue = $1 AND ${IS_DUE} AND h.market_id <> ALL ($4::bigint[]) AND ${condition} ORDER BY h.touched_at NULLS FIRST, h.requested_at LIMIT 1)`;

const NEXT = sql(
  'next_trade_history',
  `SELECT h.purpose, h.market_id AS market_pk, h.venue_market_id AS market_id, h.position, ${HISTORY_COLUMNS},
     ARRAY (SELECT t.mint FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = h.market_id ORDER BY o.ordinal) AS outcome_ids
   FROM (${longestWaiting(1, `h.touched_at IS NULL AND h.purpose = 'history'`)}
     UNION ALL ${longestWaiting(2, `h.market_id = $2::bigint AND h.purpose = $3 AND h.purpose <> 'reread'`)}
     UNION ALL ${longestWaiting(3, `h.purpose <> 'reread'`)} UNION ALL ${longestWaiting(4, 'true')}) h ORDER BY h.rank LIMIT 1`,
);

/**
 * The next walk: untouched walks for clients in the order of their requests, then the current walk (`keep`), then the least recently
 * touched; a re-read only when no other walk is due. Null when no walk is due but those of the markets `except`.
 */
export async function nextTradeHistory(
  db: Queryable,
  venue: string,
  keep?: Pick<OpenHistory, 'marketPk' | 'purpose'>,
  except: readonly bigint[] = [],
): Promise<OpenHistory | null> {
  const [walk] = await db.query<OpenHistory>(NEXT, [venue, keep?.marketPk ?? null, keep?.purpose ?? null, except]);
  return walk ?? null;
}

/** Matches only the walk that was read: a concurrent new request gives it another range. */
const SAME_WALK = `market_id = $1 AND status IN ('queued', 'walking')
  AND date_trunc('milliseconds', from_at) = $2::timestamptz AND date_trunc('milliseconds', to_at) = $3::timestamptz`;

/** One statement for each table of walks. */
function perPurpose(name: string, text: (table: string) => string): Readonly<Record<WalkPurpose, Statement>> {
  return {
    history: sql(`${name}_trade_history`, text(TABLES.history)),
    repair: sql(`${name}_trade_repair`, text(TABLES.repair)),
    reread: sql(`${name}_trade_reread`, text(TABLES.reread)),
  };
}

const ADVANCE = perPurpose(
  'advance',
  (table) => `UPDATE ${table} SET status = CASE WHEN $4 THEN 'done' ELSE 'walking' END, position = $5::jsonb,
     reached_at = CASE WHEN $4 AND $7::text IS NULL THEN from_at
       ELSE greatest(from_at, least(reached_at, to_at, $6::timestamptz)) END,
     pages = pages + 1, failures = 0,
     last_error = coalesce($7, CASE WHEN failures = 0 THEN last_error END),
     touched_at = clock_timestamp(), finished_at = CASE WHEN $4 THEN clock_timestamp() END
   WHERE ${SAME_WALK} RETURNING pages, trades::float8 AS trades, extract(epoch FROM clock_timestamp() - requested_at)::float8 AS seconds`,
);

interface HistoryStep {
  position: unknown;
  reachedMs: number;
  isDone: boolean;
  /** The limit of the venue that cuts the walk short. */
  truncated?: string;
}

/** The totals of a walk so far. */
interface HistoryProgress {
  pages: number;
  trades: number;
  /** Seconds since the request. */
  seconds: number;
}

/** Advances a walk in the transaction that stores its page; null and without effect after a concurrent new request. */
export async function advanceTradeHistory(
  tx: Queryable,
  walk: OpenHistory,
  step: HistoryStep,
): Promise<HistoryProgress | null> {
  const position = step.position ?? null;
  const [progress] = await tx.query<HistoryProgress>(ADVANCE[walk.purpose], [
    walk.marketPk,
    iso(walk.fromMs),
    iso(walk.toMs),
    step.isDone,
    position === null ? null : JSON.stringify(scrubData(position)),
    iso(step.reachedMs),
    step.truncated === undefined ? null : reasonText(step.truncated),
  ]);
  return progress ?? null;
}

type WalkKey = Pick<OpenHistory, 'marketPk' | 'purpose'>;

const COUNT_TRADES = perPurpose('count', (table) => `UPDATE ${table} SET trades = trades + $2 WHERE market_id = $1`);

/** Adds the trades that a walk stored to its count, in the transaction that stores them. */
export async function countHistoryTrades(tx: Queryable, walk: WalkKey, trades: number): Promise<void> {
  if (trades === 0) return;
  await tx.query(COUNT_TRADES[walk.purpose], [walk.marketPk, trades]);
}

const CHARGE = perPurpose(
  'charge',
  (table) => `UPDATE ${table} SET failures = failures + 1, last_error = $4, touched_at = clock_timestamp(),
     status = CASE WHEN failures + 1 < ${MAX_HISTORY_FAILURES} THEN status ELSE 'failed' END,
     finished_at = CASE WHEN failures + 1 < ${MAX_HISTORY_FAILURES} THEN NULL ELSE clock_timestamp() END
   WHERE ${SAME_WALK} RETURNING status`,
);

/** Counts a failed attempt of this market; true when it was the last one. */
export async function chargeTradeHistory(tx: Queryable, walk: OpenHistory, reason: string): Promise<boolean> {
  const values = [walk.marketPk, iso(walk.fromMs), iso(walk.toMs), reasonText(reason)];
  const [row] = await tx.query<{ status: HistoryStatus }>(CHARGE[walk.purpose], values);
  return row?.status === 'failed';
}

const TOUCH = perPurpose(
  'touch',
  (table) =>
    `UPDATE ${table} SET touched_at = clock_timestamp() WHERE market_id = $1 AND status IN ('queued', 'walking')`,
);

/** Moves a walk to the end of the queue, so that a market without an answer does not delay the others. */
export async function touchTradeHistory(db: Queryable, walk: WalkKey): Promise<void> {
  await db.query(TOUCH[walk.purpose], [walk.marketPk]);
}

/** The number of unfinished walks of a venue. */
interface HistoryCount {
  venue: string;
  status: Exclude<HistoryStatus, 'done'>;
  walks: number;
  /** Walks that are due now. */
  due: number;
}

const COUNT = sql(
  'count_trade_histories',
  `SELECT venue, status, sum(walks)::int AS walks, sum(due)::int AS due FROM (
     SELECT m.venue, h.status, count(*) AS walks, count(*) FILTER (WHERE ${IS_DUE}) AS due
     FROM (${WALKS}) h JOIN market m ON m.id = h.market_id WHERE h.status <> 'done' GROUP BY 1, 2
     UNION ALL ${REREADS_BETWEEN_MARKETS}) w
   GROUP BY 1, 2 ORDER BY 1, 2`,
);

/** Unfinished walks of all purposes, for metrics and wake-ups. */
export function countTradeHistories(db: Queryable): Promise<HistoryCount[]> {
  return db.query<HistoryCount>(COUNT);
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function reasonText(reason: string): string {
  return scrubText(reason.slice(0, 500));
}
