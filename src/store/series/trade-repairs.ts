import type { VolumeRule } from '../../domain/markets/volume-witness.ts';
import { type Decimal, decimal } from '../../domain/values/decimal.ts';
import { epochMs, type Queryable, sql, type Tx } from '../db/tx.ts';
import { toWitness, WITNESS_COLUMNS, type Witness, type WitnessRow } from './completeness.ts';
import { BEFORE_LOSS_MS, QUIET_MS } from './feed-faults.ts';
import type { HistoryStatus } from './trade-history.ts';

/** Repairs of a venue that run at once; each takes turns in the history share of the host's rate. */
const MAX_OPEN = 10;
/** A loss must last this long before its repair: late trades often cover it. */
const LASTING_SECONDS = 30;
/**
 * While the loss of any market of the venue grows (`QUIET_MS`), the trade feed is still broken and a walk would read the same gaps. A
 * market waits no longer than an hour for the others.
 */
const WAIT_FOR_OTHERS_SECONDS = 3_600;
/**
 * One repair per market and day. Its walks repeat with waits that double. The first wait is long after a walk that found nothing although
 * trades are missing. It is short after another walk, which a fault that goes on makes necessary again.
 */
const FIRST_WAIT_SECONDS = 60;
const FIRST_WAIT_IN_VAIN_SECONDS = 300;
const MAX_WALKS = 8;

/** $2: now. `true` when a finished repair of this market may walk again. */
const MAY_WALK = `CASE
  WHEN r.status NOT IN ('done', 'failed') OR r.missing_after IS NULL THEN false
  WHEN r.begun_at <= n.now - interval '1 day' THEN true
  WHEN r.attempts >= ${MAX_WALKS} THEN false
  ELSE r.finished_at <= n.now - 2 ^ (r.attempts - 1) * interval '1 second'
    * CASE WHEN r.missing_after > 0 AND r.trades = 0 THEN ${FIRST_WAIT_IN_VAIN_SECONDS} ELSE ${FIRST_WAIT_SECONDS} END END`;

/** No walk of this market began after the fault. */
const NOT_READ_SINCE = 'coalesce(r.requested_at <= n.broken_until, true)';

const REQUEST = sql(
  'request_trade_repairs',
  `WITH n AS MATERIALIZED (
     SELECT to_timestamp($2::float8 / 1000) AS now, (SELECT broken_until FROM venue_completeness WHERE venue = $1) AS broken_until),
   room AS MATERIALIZED (
     SELECT ${MAX_OPEN} - count(*) AS room FROM trade_repair r JOIN market m ON m.id = r.market_id
     WHERE m.venue = $1 AND r.status IN ('queued', 'walking')),
   growing AS MATERIALIZED (
     SELECT EXISTS (SELECT FROM trade_witness w, n WHERE w.venue = $1 AND w.missing_since IS NOT NULL
       AND w.grew_at > n.now - ${QUIET_MS} * interval '1 millisecond') AS growing),
   chosen AS (
     SELECT w.market_id, w.missing_volume, least(w.suspect_from,
       CASE WHEN w.missing_since IS NOT NULL THEN w.covered_at - ($3 + ${BEFORE_LOSS_MS}) * interval '1 millisecond' END,
       CASE WHEN r.missing_after > 0 AND r.begun_at > n.now - interval '1 day' THEN w.since END) AS from_at
     FROM n, growing g, trade_witness w LEFT JOIN trade_repair r ON r.market_id = w.market_id
     WHERE w.venue = $1 AND (w.missing_since <= n.now - interval '${LASTING_SECONDS} s' OR (w.suspect_from IS NOT NULL AND ${NOT_READ_SINCE}))
       AND (NOT g.growing OR w.missing_since <= n.now - interval '${WAIT_FOR_OTHERS_SECONDS} s')
       AND (r.market_id IS NULL OR ${MAY_WALK})
     ORDER BY w.missing_volume DESC, w.market_id LIMIT (SELECT greatest(0, room) FROM room)),
   taken AS (
     UPDATE trade_witness w SET suspect_from = NULL FROM n, trade_witness s LEFT JOIN trade_repair r ON r.market_id = s.market_id
     WHERE s.venue = $1 AND s.suspect_from IS NOT NULL AND w.market_id = s.market_id
       AND (NOT ${NOT_READ_SINCE} OR s.market_id IN (SELECT market_id FROM chosen)))
   INSERT INTO trade_repair AS r (market_id, from_at, to_at, requested_at, begun_at, missing_before)
   SELECT c.market_id, c.from_at, n.now, n.now, n.now, c.missing_volume FROM chosen c, n ORDER BY c.market_id
   ON CONFLICT (market_id) DO UPDATE SET status = 'queued', from_at = excluded.from_at, to_at = excluded.to_at, reached_at = NULL,
     position = NULL, pages = 0, trades = 0, failures = 0, last_error = NULL, requested_at = excluded.requested_at, touched_at = NULL,
     finished_at = NULL, missing_before = excluded.missing_before, missing_after = NULL,
     begun_at = CASE WHEN r.begun_at > excluded.begun_at - interval '1 day' THEN r.begun_at ELSE excluded.begun_at END,
     attempts = CASE WHEN r.begun_at > excluded.begun_at - interval '1 day' THEN r.attempts + 1 ELSE 1 END
   RETURNING r.market_id`,
);

/**
 * Queues walks over the ranges of a venue that lack trades, the greatest losses first, then over those of suspect markets. Returns the keys
 * of their markets.
 */
export async function requestTradeRepairs(
  tx: Tx,
  venue: string,
  { delayMs }: Pick<VolumeRule, 'delayMs'>,
  nowMs: number,
): Promise<bigint[]> {
  const rows = await tx.query<{ marketId: bigint }>(REQUEST, [venue, nowMs, delayMs]);
  return rows.map(({ marketId }) => marketId);
}

const SETTLE = sql(
  'settle_trade_repairs',
  `UPDATE trade_repair r SET missing_after = coalesce(w.missing_volume, 0)
   FROM market m LEFT JOIN trade_witness w ON w.market_id = m.id
   WHERE m.id = r.market_id AND m.venue = $1 AND r.status IN ('done', 'failed') AND r.missing_after IS NULL
     AND (w.missing_since IS NULL OR w.compared_at >= r.finished_at)
   RETURNING m.venue_market_id AS market_id, r.status, r.trades::float8 AS trades, r.missing_before::float8 AS missing_before,
     r.missing_after::float8 AS missing_after`,
);

/** The result of a repair, for the log. */
export interface SettledRepair {
  marketId: string;
  status: HistoryStatus;
  /** The number of trades that the walk added. */
  trades: number;
  /** The missing volume before the walk and after it. */
  missingBefore: number;
  missingAfter: number;
}

/** Records the missing volume after each finished walk, once a comparison has counted its trades. */
export function settleTradeRepairs(tx: Tx, venue: string): Promise<SettledRepair[]> {
  return tx.query(SETTLE, [venue]);
}

/** The comparison of a market and its latest repair, for the operator. */
export interface MarketCompleteness extends Witness {
  missingVolume: Decimal;
  repair: {
    status: HistoryStatus;
    trades: number;
    finishedMs: number | null;
    missingAfter: Decimal | null;
    lastError: string | null;
  } | null;
}

const READ = sql(
  'read_market_completeness',
  `SELECT ${WITNESS_COLUMNS}, w.missing_volume,
     r.status, r.trades::float8 AS trades, ${epochMs('r.finished_at')} AS finished_ms, r.missing_after, r.last_error
   FROM trade_witness w LEFT JOIN trade_repair r ON r.market_id = w.market_id WHERE w.market_id = $1`,
);

/** Null for a market that was never compared. */
export async function readMarketCompleteness(db: Queryable, marketPk: bigint): Promise<MarketCompleteness | null> {
  type Repair = NonNullable<MarketCompleteness['repair']>;
  type Row = WitnessRow & Pick<MarketCompleteness, 'missingVolume'> & (Repair | { status: null });
  const [row] = await db.query<Row>(READ, [marketPk]);
  const witness = row ? toWitness(row) : null;
  if (!row || witness === null) return null;
  const facts = { ...witness, missingVolume: decimal(row.missingVolume) };
  if (row.status === null) return { ...facts, repair: null };
  const { status, trades, finishedMs, missingAfter, lastError } = row;
  const stillMissing = missingAfter === null ? null : decimal(missingAfter);
  return { ...facts, repair: { status, trades, finishedMs, missingAfter: stillMissing, lastError } };
}
