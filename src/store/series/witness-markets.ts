import type { VolumeRule } from '../../domain/markets/volume-witness.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** `only` of a `VolumeRule` as SQL, with the placeholder of its value. */
const COMPARABLE = (only: string) =>
  `(${only}::text IS NULL OR (${only} = 'without_event' AND m.event_id IS NULL) OR (${only} = 'with_book' AND m.has_book))`;

const MOST_ACTIVE = sql(
  'most_active_markets',
  `SELECT m.id FROM market m JOIN market_stats s ON s.market_id = m.id
   WHERE m.venue = $1 AND m.status = 'open' AND m.gone_at IS NULL AND ${COMPARABLE('$3')}
   ORDER BY s.volume_24h DESC NULLS LAST, s.volume DESC NULLS LAST, m.id LIMIT $2`,
);

/** Keys of the open markets with the highest 24 h volume. It reads every market of the venue, so it is too slow for every run. */
export async function mostActiveMarkets(
  db: Queryable,
  venue: string,
  { only }: Pick<VolumeRule, 'only'>,
  limit: number,
): Promise<bigint[]> {
  return (await db.query<{ id: bigint }>(MOST_ACTIVE, [venue, limit, only ?? null])).map(({ id }) => id);
}

/** The rotation has at least a quarter of a run; markets with missing trades have at most an eighth, so that they do not fill it. */
const WANTED = sql(
  'markets_to_witness',
  `WITH wanted AS (
     (SELECT market_id, 1 AS rank, row_number() OVER (ORDER BY compared_at) AS place FROM trade_witness
      WHERE venue = $1 AND missing_since IS NOT NULL ORDER BY place LIMIT ceil($2 / 8.0))
     UNION ALL
     (SELECT market_id, 2, row_number() OVER (ORDER BY sampled_at DESC) AS place FROM trade_witness
      WHERE venue = $1 ORDER BY place LIMIT ceil($2 * 3 / 8.0))
     UNION ALL
     (SELECT id, 3, place FROM unnest($3::bigint[]) WITH ORDINALITY AS t (id, place) ORDER BY place LIMIT ceil($2 / 4.0))
     UNION ALL
     (SELECT m.id, 4, m.id FROM market m
      WHERE m.venue = $1 AND m.status = 'open' AND m.id > $4 AND m.gone_at IS NULL AND ${COMPARABLE('$5')} ORDER BY m.id LIMIT $2)),
   once AS (SELECT DISTINCT ON (market_id) market_id, rank, place FROM wanted ORDER BY market_id, rank)
   SELECT o.market_id AS market_pk, m.venue_market_id AS market_id, o.rank = 4 AS is_rotation
   FROM once o JOIN market m ON m.id = o.market_id WHERE m.gone_at IS NULL ORDER BY o.rank, o.place LIMIT $2`,
);

export interface WitnessMarket {
  marketPk: bigint;
  marketId: string;
  /** Chosen because its turn has come, not because it trades. */
  isRotation: boolean;
}

/**
 * The markets whose totals are requested next, at most `limit`: with missing trades, with totals that moved lately, with the highest 24 h
 * volume (`active`), and the open markets with keys after `afterPk` in turn.
 */
export function marketsToWitness(
  db: Queryable,
  venue: string,
  { only }: Pick<VolumeRule, 'only'>,
  { limit, active, afterPk }: { limit: number; active: readonly bigint[]; afterPk: bigint },
): Promise<WitnessMarket[]> {
  return db.query(WANTED, [venue, limit, active, afterPk, only ?? null]);
}
