import { type Database, epochMs, type Queryable, sql } from '../db/tx.ts';
import { insertFactsSql } from '../marks/publish-marks.ts';
import { ASK_AGAIN_SECONDS } from './trade-history.ts';

/** The open walks of a venue above which `oddswire backfill` requests no more, so that a new request of a client has a short queue. */
export const MAX_OPEN_WALKS = 50;
/** The same with the unanswered walks, which give their place to others. */
const MAX_UNANSWERED_WALKS = 500;
/** A walk without a page for this time is unanswered: the venue may never answer for its market. */
const UNANSWERED_MINUTES = 10;

/** The history of a venue since a moment. */
export interface VenueBackfill {
  venue: string;
  /** Epoch milliseconds. */
  sinceMs: number;
  /** The venue's ids; absent: every market. */
  marketIds?: readonly string[];
}

const IS_OPEN = `h.status IN ('queued', 'walking')`;
const IS_UNANSWERED = `(h.reached_at IS NULL AND h.touched_at > h.requested_at + interval '${UNANSWERED_MINUTES} minutes')`;

/**
 * The markets that traded since `$2` (epoch milliseconds) and before the start of live polling, of venue `$1`, and of the ids `$3` when they
 * are not null. `w.wanted` is the start of their wanted trades, `l.live` their end. Walks have whole milliseconds.
 */
const TARGETS = `market m
   JOIN poll_state p ON p.venue = m.venue AND p.kind = 'trades' AND p.first_success_at IS NOT NULL
   CROSS JOIN LATERAL (SELECT date_trunc('milliseconds', p.first_success_at) + interval '1 millisecond' AS live) l
   CROSS JOIN LATERAL (
     SELECT date_trunc('milliseconds', greatest(least(m.created_at, m.open_at), to_timestamp($2::bigint / 1000.0))) AS wanted) w
   LEFT JOIN trade_history h ON h.market_id = m.id
   WHERE m.venue = $1 AND ($3::text[] IS NULL OR m.venue_market_id = ANY ($3)) AND w.wanted < l.live
     AND (m.status IN ('resolved', 'settled') AND m.resolved_at < to_timestamp($2::bigint / 1000.0)) IS NOT TRUE`;

/** No walk covers the wanted time; a failed one is requested again an hour later. */
const LACKS_REQUEST = `(h.market_id IS NULL OR h.from_at > w.wanted)`;
const IS_DUE_AGAIN = `(h.status = 'failed' AND h.finished_at < clock_timestamp() - ${ASK_AGAIN_SECONDS} * interval '1 second')`;

const LOCK = sql('lock_venue_backfill', `SELECT pg_advisory_xact_lock(hashtextextended('backfill ' || $1, 0))`);

/**
 * Continues an open walk below its reached time, like the request of a client. An untouched walk keeps its place before the planned ones.
 * The constant limit lets Postgres read the markets in the order of their keys, and stop: it expects a computed one to need many rows.
 */
const PLAN = sql(
  'plan_venue_backfill',
  `WITH room AS MATERIALIZED (
     SELECT greatest(0, least(${MAX_OPEN_WALKS} - count(*) FILTER (WHERE NOT coalesce(${IS_UNANSWERED}, false)),
       ${MAX_UNANSWERED_WALKS} - count(*)))::int AS places
     FROM trade_history h JOIN market m ON m.id = h.market_id WHERE m.venue = $1 AND ${IS_OPEN}),
   picked AS MATERIALIZED (
     SELECT * FROM (
       SELECT m.id, w.wanted, l.live FROM ${TARGETS} AND m.id > $4 AND (${LACKS_REQUEST} OR ${IS_DUE_AGAIN})
         AND (SELECT places FROM room) > 0
       ORDER BY m.id LIMIT ${MAX_OPEN_WALKS}) next
     ORDER BY id LIMIT (SELECT places FROM room)),
   requested AS (
     INSERT INTO trade_history AS h (market_id, from_at, to_at, requested_at, touched_at)
     SELECT k.id, k.wanted, k.live, n.at, n.at FROM picked k CROSS JOIN (SELECT clock_timestamp() AS at) n ORDER BY k.id
     ON CONFLICT (market_id) DO UPDATE SET status = 'queued', from_at = least(h.from_at, excluded.from_at),
       to_at = coalesce(h.reached_at, h.to_at), reached_at = NULL, position = NULL, failures = 0, last_error = NULL,
       requested_at = CASE WHEN ${IS_OPEN} AND h.touched_at IS NULL THEN h.requested_at ELSE excluded.requested_at END,
       touched_at = CASE WHEN ${IS_OPEN} AND h.touched_at IS NULL THEN NULL ELSE excluded.touched_at END, finished_at = NULL
     WHERE excluded.from_at < h.from_at OR ${IS_DUE_AGAIN}
     RETURNING market_id),
   published AS (${insertFactsSql('coverage', 'SELECT market_id FROM requested')})
   SELECT r.places, count(k.id)::int AS picked, max(k.id) AS last, (SELECT count(*)::int FROM requested) AS requested
   FROM room r LEFT JOIN picked k ON true GROUP BY r.places`,
);

/** One step of a pass over the markets of a venue. */
interface PlanStep {
  /** The number of requested walks. */
  requested: number;
  /** The pass continues behind this market. */
  after: bigint;
  /** No market behind it lacks a request. */
  isOver: boolean;
}

/**
 * Requests the walks of the next markets behind `after`, as many as the venue has places for. A step is one statement under a lock of the
 * venue, so runs at once share the places, and a run that is killed leaves complete requests.
 */
export function planVenueBackfill(db: Database, backfill: VenueBackfill, after: bigint): Promise<PlanStep> {
  return db.transaction(async (tx) => {
    await tx.query(LOCK, [backfill.venue]);
    type Row = { places: number; picked: number; last: bigint | null; requested: number };
    const [row] = await tx.query<Row>(PLAN, [...valuesOf(backfill), String(after)]);
    if (!row) throw new TypeError('the plan of a backfill returned no row');
    const { places, picked, last, requested } = row;
    return { requested, after: last ?? after, isOver: picked < places };
  });
}

/** `served`: the trades since the wanted time are stored. `unserved`: the venue did not serve all of them. */
const STATES = ['missing', 'open', 'unanswered', 'failed', 'unserved', 'served'] as const;
type BackfillState = (typeof STATES)[number];

const STATE = `CASE WHEN ${LACKS_REQUEST} THEN 'missing'
   WHEN ${IS_OPEN} THEN CASE WHEN ${IS_UNANSWERED} THEN 'unanswered' ELSE 'open' END
   WHEN h.status = 'failed' THEN 'failed'
   WHEN h.last_error IS NOT NULL AND h.reached_at > w.wanted THEN 'unserved' ELSE 'served' END`;

const COUNT = sql(
  'count_venue_backfill',
  `SELECT ${STATE} AS state, count(*)::int AS markets, coalesce(sum(h.trades), 0)::float8 AS trades FROM ${TARGETS} GROUP BY 1`,
);

/** The stored state of a backfill: the number of its markets by state, and the trades that their walks stored. */
export interface BackfillProgress {
  markets: Readonly<Record<BackfillState, number>>;
  trades: number;
}

export async function readBackfillProgress(db: Queryable, backfill: VenueBackfill): Promise<BackfillProgress> {
  const rows = await db.query<{ state: BackfillState; markets: number; trades: number }>(COUNT, valuesOf(backfill));
  const counts = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<BackfillState, number>;
  for (const { state, markets } of rows) counts[state] = markets;
  return { markets: counts, trades: rows.reduce((sum, { trades }) => sum + trades, 0) };
}

const SHORT = sql(
  'short_venue_backfill',
  `SELECT m.venue_market_id AS market_id, ${STATE} AS state, ${epochMs('coalesce(h.reached_at, h.to_at)')} AS stored_from_ms, h.last_error AS reason
   FROM ${TARGETS} AND (${STATE}) IN ('unserved', 'failed', 'unanswered') ORDER BY m.id`,
);

/** A market whose trades do not reach back to the wanted time. */
export interface ShortHistory {
  marketId: string;
  state: Extract<BackfillState, 'unserved' | 'failed' | 'unanswered'>;
  /** The trades from this time on are stored, epoch milliseconds. */
  storedFromMs: number;
  reason: string | null;
}

export function listShortHistories(db: Queryable, backfill: VenueBackfill): Promise<ShortHistory[]> {
  return db.query<ShortHistory>(SHORT, valuesOf(backfill));
}

const UNKNOWN = sql(
  'unknown_market_ids',
  `SELECT a.id FROM unnest($2::text[]) WITH ORDINALITY AS a (id, place)
   WHERE NOT EXISTS (SELECT FROM market m WHERE m.venue = $1 AND m.venue_market_id = a.id) ORDER BY a.place`,
);

/** The ids that name no stored market of the venue. */
export async function unknownMarketIds(db: Queryable, venue: string, marketIds: readonly string[]): Promise<string[]> {
  return (await db.query<{ id: string }>(UNKNOWN, [venue, marketIds])).map(({ id }) => id);
}

const POLLED = sql(
  'read_backfill_polls',
  `SELECT EXISTS (SELECT FROM poll_state WHERE venue = $1 AND kind = 'trades' AND first_success_at IS NOT NULL) AS is_polled,
     (SELECT last_error FROM poll_state WHERE venue = $1 AND kind = 'history' AND consecutive_failures > 0) AS failure`,
);

interface BackfillPolls {
  /** The trades of the venue were polled: older ones are history. */
  isPolled: boolean;
  /** The fault of the latest run of the walks; null after a success. */
  failure: string | null;
}

export async function readBackfillPolls(db: Queryable, venue: string): Promise<BackfillPolls> {
  const [row] = await db.query<BackfillPolls>(POLLED, [venue]);
  return row ?? { isPolled: false, failure: null };
}

function valuesOf({ venue, sinceMs, marketIds }: VenueBackfill): unknown[] {
  return [venue, sinceMs, marketIds ?? null];
}
