import { type Queryable, sql, type Tx } from '../db/tx.ts';
import { MARKET_COLUMNS, MARKET_PARTS, ONE_MARKET, type StoredMarket } from './market-reads.ts';
import { payoutsOf } from './market-resolutions.ts';

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

/**
 * The current row holds from its `updated_at` on; before that, the version that covers the moment holds. A version holds the
 * columns of its time as JSON; versions of earlier releases lack the titles of the event, the state of the
 * resolution, and the payouts.
 */
const MARKET_AT = sql(
  'market_at',
  `SELECT ${MARKET_COLUMNS}, c.updated_at <= to_timestamp($3::float8) OR v.facts IS NOT NULL AS is_known, v.outcomes AS past_outcomes
   FROM market c
   LEFT JOIN LATERAL (
     SELECT jsonb '{"event_title": null, "sibling_label": null, "resolution_state": null}' || v.facts || jsonb_build_object('updated_at', v.known_from) AS facts,
       (SELECT coalesce(json_agg(json_build_object('outcomeId', e.outcome -> 0, 'label', e.outcome -> 1) ORDER BY e.place), '[]')
        FROM jsonb_array_elements(v.facts -> 'outcomes') WITH ORDINALITY AS e (outcome, place)) AS outcomes
     FROM market_version v
     WHERE v.market_id = c.id AND v.known_until > to_timestamp($3::float8) AND v.known_from <= to_timestamp($3::float8)
     ORDER BY v.known_until LIMIT 1) v ON c.updated_at > to_timestamp($3::float8)
   CROSS JOIN LATERAL jsonb_populate_record(c, v.facts) m ${MARKET_PARTS}
   WHERE c.id = (SELECT m.id FROM market m WHERE ${ONE_MARKET})`,
);

/** A market as known at a moment, epoch seconds; null for a market that is unknown today. */
export async function findMarketAt(
  db: Queryable,
  venues: readonly string[],
  marketId: string,
  at: number,
): Promise<StoredMarket | 'not-yet' | null> {
  type Row = StoredMarket & { isKnown: boolean; pastOutcomes: StoredMarket['outcomes'] | null };
  const [row] = await db.query<Row>(MARKET_AT, [venues, marketId, at]);
  if (!row) return null;
  const { isKnown, pastOutcomes, ...market } = row;
  if (!isKnown) return 'not-yet';
  return { ...market, outcomes: pastOutcomes ?? market.outcomes, volume: null, volume24h: null, liquidity: null };
}
