import {
  type PayoutReason,
  RESOLUTION_STATES,
  type ResolutionState,
  type ResolutionTransition,
} from '../../domain/markets/resolution.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** A published row of a timeline with its market. Payouts are `numeric` text. */
export interface LatestResolution {
  venue: string;
  marketId: string;
  title: string;
  siblingLabel: string | null;
  category: string | null;
  /** The outcomes of the market, in order; none when the venue states none. */
  outcomes: { outcomeId: string; label: string }[];
  transition: ResolutionTransition;
  state: ResolutionState;
  round: number | null;
  at: Date | null;
  receivedAt: Date;
  payouts: { outcomeId: string; payout: string }[] | null;
  reason: PayoutReason | null;
  rawState: string | null;
  observedValue: string | null;
  seq: bigint;
}

interface LatestQuery {
  venues: readonly string[];
  /** The state after the row. Default: every state. */
  state?: ResolutionState;
  category?: string;
  /** Rows before this number. */
  before?: string;
  limit: number;
}

const LATEST = sql(
  'latest_resolutions',
  `SELECT m.venue, m.venue_market_id AS market_id, m.title, m.sibling_label, m.category, r.transition, r.state, r.round, r.at, r.received_at,
     r.payouts, r.reason, r.facts ->> 'rawState' AS raw_state, r.facts ->> 'observedValue' AS observed_value, r.seq,
     (SELECT coalesce(json_agg(json_build_object('outcomeId', t.mint, 'label', o.label) ORDER BY o.ordinal), '[]')
      FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = m.id) AS outcomes
   FROM unnest($1::text[]) AS v (venue) CROSS JOIN unnest($3::text[]) AS s (state)
   CROSS JOIN LATERAL (
     SELECT r.* FROM market_resolution r JOIN market k ON k.id = r.market_id
     WHERE r.venue = v.venue AND r.state = s.state AND r.seq < coalesce($2::bigint, 9223372036854775807)
       AND ($4::text IS NULL OR k.category = $4) ORDER BY r.seq DESC LIMIT $5) r
   JOIN market m ON m.id = r.market_id ORDER BY r.seq DESC LIMIT $5`,
);

/** Changes of results, the last published first. */
export function latestResolutions(db: Queryable, query: LatestQuery): Promise<LatestResolution[]> {
  const { venues, state = null, category = null, before = null, limit } = query;
  return db.query(LATEST, [venues, before, state === null ? RESOLUTION_STATES : [state], category, limit]);
}

/** The time from close to result of the markets of a venue and category. */
export interface ResultDelay {
  venue: string;
  category: string | null;
  /** Markets that closed before their result. */
  markets: number;
  /** Of these markets; null without one. */
  medianMs: bigint | null;
  /** Markets with a result before their close, and those whose venue states no close. */
  early: number;
  withoutClose: number;
}

/** A result that was not seen when it came about has no other time than the venue's. */
const RESULT_DELAYS = sql(
  'result_delays',
  `SELECT m.venue, m.category, count(*) FILTER (WHERE m.close_at < f.result_at)::int AS markets,
     round(1000 * extract(epoch FROM percentile_cont(0.5) WITHIN GROUP (ORDER BY f.result_at - m.close_at)
       FILTER (WHERE m.close_at < f.result_at)))::bigint AS median_ms,
     count(*) FILTER (WHERE m.close_at >= f.result_at)::int AS early, count(*) FILTER (WHERE m.close_at IS NULL)::int AS without_close
   FROM (
     SELECT r.market_id, coalesce(r.at, CASE WHEN r.is_report THEN r.received_at END) AS result_at FROM market_resolution r
     WHERE r.venue = ANY ($1::text[]) AND r.received_at > clock_timestamp() - interval '30 days'
       AND r.transition IN ('resolved', 'settled', 'voided') AND NOT EXISTS (
         SELECT FROM market_resolution e WHERE e.market_id = r.market_id AND e.n < r.n AND e.transition IN ('resolved', 'settled', 'voided'))) f
   JOIN market m ON m.id = f.market_id
   WHERE f.result_at > clock_timestamp() - interval '30 days'
   GROUP BY m.venue, m.category ORDER BY count(*) DESC, m.venue, m.category LIMIT $2`,
);

/** The times from close to the first result of markets within 30 days, the largest groups first. */
export function readResultDelays(db: Queryable, venues: readonly string[], limit: number): Promise<ResultDelay[]> {
  return db.query(RESULT_DELAYS, [venues, limit]);
}
