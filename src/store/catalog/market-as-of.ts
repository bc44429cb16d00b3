import { type Queryable, sql } from '../db/tx.ts';
import { MARKET_COLUMNS, MARKET_PARTS, ONE_MARKET, type StoredMarket } from './market-reads.ts';

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
