import { type Decimal, decimal } from '../../domain/values/decimal.ts';
import { epochMs, type Queryable, sql } from '../db/tx.ts';

/** The volume of a market since the start of the comparison, by the venue and as stored. */
export interface Witness {
  since: Date;
  comparedAt: Date;
  venueVolume: Decimal;
  storedVolume: Decimal;
  /** When the market began to miss trades; null while no loss is proven. */
  missingSince: Date | null;
}

/** The columns of a `Witness`, of `trade_witness AS w`. */
export const WITNESS_COLUMNS = `w.since, w.compared_at, greatest(0, w.venue_volume - w.baseline_volume) AS venue_volume,
  w.stored_volume, w.missing_since`;

/** The columns as read: null for a market that was never compared, and `numeric` text with zeros behind it. */
export type WitnessRow = { [Name in keyof Witness]: Witness[Name] | null };

export function toWitness(row: WitnessRow): Witness | null {
  const { since, comparedAt, venueVolume, storedVolume, missingSince } = row;
  if (since === null || comparedAt === null || venueVolume === null || storedVolume === null) return null;
  return { since, comparedAt, venueVolume: decimal(venueVolume), storedVolume: decimal(storedVolume), missingSince };
}

/** The share of a venue's volume that the stored trades cover, over all compared markets. */
export interface VenueCompleteness {
  venue: string;
  checkedAt: Date;
  /** The start of the oldest comparison. */
  since: Date | null;
  /** 0 to 1; null while no compared market has traded. */
  share: number | null;
  /** The tape of the venue was read without a gap up to this moment, epoch milliseconds; null before the first time. */
  caughtUpMs: number | null;
  /** The latest success of the polls of the tape, epoch milliseconds. */
  tapeSuccessMs: number | null;
  markets: number;
  marketsMissing: number;
  /** When the first of the markets that miss trades began to miss them. */
  missingSince: Date | null;
}

const READ = sql(
  'read_venue_completeness',
  `SELECT v.venue, v.checked_at, v.since, v.share, v.markets, v.markets_missing, v.missing_since, ${epochMs('p.caught_up_at')} AS caught_up_ms,
     ${epochMs('p.last_success_at')} AS tape_success_ms
   FROM venue_completeness v LEFT JOIN poll_state p ON p.venue = v.venue AND p.kind = 'trades' WHERE v.venue = ANY ($1::text[])`,
);

/** The latest result of each venue that was compared. */
export async function readVenueCompleteness(
  db: Queryable,
  venues: readonly string[],
): Promise<Map<string, VenueCompleteness>> {
  const rows = await db.query<VenueCompleteness>(READ, [venues]);
  return new Map(rows.map((row) => [row.venue, row]));
}
