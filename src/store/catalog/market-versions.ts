import { sql, type Tx } from '../db/tx.ts';

/** SQL of the known payouts of a market's outcomes, as `[[mint, payout], ...]`: `[]` when none is known. */
export const payoutsOf = (
  marketId: string,
) => `(SELECT coalesce(jsonb_agg(jsonb_build_array(t.mint, o.payout::text) ORDER BY o.ordinal), '[]')
       FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = ${marketId} AND o.payout IS NOT NULL)`;

/**
 * Reads the clock after the rows: they are locked, so an earlier writer has set its `updated_at` by then. A clock that was set back
 * creates no version of negative length.
 */
const KEEP_VERSIONS = sql(
  'keep_market_versions',
  `WITH before AS MATERIALIZED (
     SELECT id, updated_at, event_id, title, description, category, tags, status, has_book, created_at, open_at,
       close_at, resolved_at, resolution, resolution_state, winning_outcome_id, resolution_criteria, settlement_source, url, event_title, sibling_label
     FROM market WHERE id = ANY ($1::bigint[])),
   clock AS MATERIALIZED (
     SELECT greatest(clock_timestamp(), max(updated_at) + interval '1 microsecond') AS at FROM before),
   kept AS (
     INSERT INTO market_version (market_id, known_until, known_from, facts)
     SELECT b.id, at, b.updated_at, jsonb_build_object('event_id', b.event_id, 'title', b.title,
       'description', b.description, 'category', b.category, 'tags', b.tags, 'status', b.status, 'has_book', b.has_book,
       'created_at', b.created_at, 'open_at', b.open_at, 'close_at', b.close_at, 'resolved_at', b.resolved_at,
       'resolution', b.resolution, 'resolution_state', b.resolution_state, 'winning_outcome_id', b.winning_outcome_id,
       'resolution_criteria', b.resolution_criteria, 'settlement_source', b.settlement_source, 'url', b.url, 'event_title', b.event_title,
       'sibling_label', b.sibling_label, 'outcomes', coalesce(o.outcomes, '[]'), 'payouts', ${payoutsOf('b.id')})
     FROM before b CROSS JOIN clock LEFT JOIN LATERAL (
       SELECT jsonb_agg(jsonb_build_array(t.mint, o.label) ORDER BY o.ordinal) AS outcomes
       FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = b.id) o ON true
     ORDER BY b.id)
   SELECT at::text AS at FROM clock`,
);

/**
 * Stores the current state of these markets before the caller changes them in the same transaction. A statement before this one must have
 * locked their rows, so that the commit of an earlier writer is visible. Returns the time of the change, as text with microseconds: the
 * caller writes it to `market.updated_at`, so that versions join without gap or overlap.
 */
export async function keepVersions(tx: Tx, marketPks: readonly bigint[]): Promise<string> {
  const [row] = await tx.query<{ at: string }>(KEEP_VERSIONS, [marketPks]);
  return row?.at ?? '-infinity';
}
