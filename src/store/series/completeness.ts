import { type Queryable, sql } from '../db/tx.ts';

/** The volume of a market since the start of the comparison, by the venue and as stored. */
export interface Witness {
  since: Date;
  comparedAt: Date;
  venueVolume: number;
  storedVolume: number;
}

/** The columns of a `Witness`, of `trade_witness AS w`. */
export const WITNESS_COLUMNS = `w.since, w.compared_at, greatest(0, w.venue_volume - w.baseline_volume)::float8 AS venue_volume,
  w.stored_volume::float8 AS stored_volume`;

/** The share of a venue's volume that the stored trades cover, over all compared markets. */
export interface VenueCompleteness {
  venue: string;
  checkedAt: Date;
  /** The start of the oldest comparison. */
  since: Date | null;
  /** 0 to 1; null while no compared market has traded. */
  share: number | null;
  markets: number;
  marketsMissing: number;
  /** When the first of the markets that miss trades began to miss them. */
  missingSince: Date | null;
}

const READ = sql(
  'read_venue_completeness',
  `SELECT venue, checked_at, since, share, markets, markets_missing, missing_since FROM venue_completeness
   WHERE venue = ANY ($1::text[])`,
);

/** The latest result of each venue that was compared. */
export async function readVenueCompleteness(
  db: Queryable,
  venues: readonly string[],
): Promise<Map<string, VenueCompleteness>> {
  const rows = await db.query<VenueCompleteness>(READ, [venues]);
  return new Map(rows.map((row) => [row.venue, row]));
}
