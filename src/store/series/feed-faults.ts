import { sql, type Tx } from '../db/tx.ts';

/** A fault of a feed counts as over when no loss of the venue has grown for this long. Then the markets that traded in it are marked. */
export const QUIET_MS = 45_000;
/**
 * A loss that grows later than this begins another fault. A fault is visible earlier than this in some market, so it began no earlier than
 * this before the first loss: a market that trades rarely was last compared long before.
 */
const APART_MS = 600_000;
/** A loss below the tolerance may have begun this long before the first visible one. */
export const BEFORE_LOSS_MS = 1_800_000;
/** With fewer of the markets that traded in it, a fault concerns these markets and not the feed. */
const WIDE_SHARE = 0.05;

/** The latest time in which the trade feed of a venue lost trades of any market. */
export interface StoredFault {
  fromMs: number | null;
  untilMs: number | null;
  /** The greatest number of markets that missed trades at once. */
  markets: number;
  /** The fault is over, and the markets that traded in it are marked. */
  isMarked: boolean;
}

/**
 * The time from which on trades of a market are suspect, because its total moved between two totals of which a fault lies in between. Null
 * for other markets, and while the fault is not over: `MARK` then finds them all.
 */
export function suspectFrom(
  fault: StoredFault | undefined,
  { sampledMs, madeMs }: { sampledMs: number; madeMs: number },
): number | null {
  if (!fault?.isMarked || fault.fromMs === null || fault.untilMs === null) return null;
  return sampledMs <= fault.untilMs && madeMs >= fault.fromMs ? fault.fromMs - BEFORE_LOSS_MS : null;
}

const NOTE = sql(
  'note_feed_fault',
  `UPDATE venue_completeness SET broken_from = to_timestamp($2::float8 / 1000), broken_until = to_timestamp($3::float8 / 1000),
     broken_markets = greatest($4, markets_missing), marked_at = NULL WHERE venue = $1`,
);

/** Few markets: the fault is theirs, and no other market is suspect. */
const MARK = sql(
  'mark_suspect_markets',
  `WITH fault AS MATERIALIZED (
     SELECT v.broken_from, v.broken_markets >= ${WIDE_SHARE} * (
       SELECT count(*) FROM trade_witness w WHERE w.venue = v.venue AND w.moved_at >= v.broken_from) AS is_wide
     FROM venue_completeness v WHERE v.venue = $1),
   marked AS (
     UPDATE trade_witness w SET suspect_from = least(w.suspect_from, f.broken_from - ${BEFORE_LOSS_MS} * interval '1 millisecond')
     FROM fault f WHERE f.is_wide AND w.venue = $1 AND w.moved_at >= f.broken_from)
   UPDATE venue_completeness v SET marked_at = to_timestamp($2::float8 / 1000),
     broken_from = CASE WHEN f.is_wide THEN v.broken_from END FROM fault f WHERE v.venue = $1`,
);

/**
 * Records the times in which losses of a venue grow (`grownMs`, the moments before which their markets were covered). A fault of a feed
 * also loses trades of markets whose loss stays below the tolerance: when it is over, all markets that traded in it are suspect.
 */
export async function noteFault(
  tx: Tx,
  venue: string,
  grownMs: readonly number[],
  fault: StoredFault | undefined,
  nowMs: number,
): Promise<void> {
  const { fromMs = null, untilMs = null, markets = 0, isMarked = false } = fault ?? {};
  if (grownMs.length > 0) {
    const isSame = fromMs !== null && untilMs !== null && nowMs - untilMs < APART_MS;
    const beganMs = Math.max(nowMs - APART_MS, Math.min(...grownMs));
    await tx.query(NOTE, [venue, isSame ? Math.min(fromMs, beganMs) : beganMs, nowMs, isSame ? markets : 0]);
  } else if (untilMs !== null && !isMarked && nowMs - untilMs >= QUIET_MS) {
    await tx.query(MARK, [venue, nowMs]);
  }
}
