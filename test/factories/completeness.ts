import { type Database, sql } from '../../src/store/db/tx.ts';

const INSERT_WITNESS = sql(
  'test_insert_witness',
  `INSERT INTO trade_witness (market_id, venue, since, baseline_volume, lowest_baseline, sampled_at, venue_volume, stored_volume, other_volume, compared_at,
     moved_at, covered_at, missing_volume, missing_since, grew_at)
   VALUES ($1, $2, $3, 1000, 1000, $4, 1000 + $5::numeric, $6, $6, $4, $4, $4, greatest(0, $5::numeric - $6::numeric), $7, $7)`,
);
const INSERT_SUMMARY = sql(
  'test_insert_completeness',
  `INSERT INTO venue_completeness (venue, unit, checked_at, since, share, markets, markets_missing, missing_since)
   VALUES ($1, 'contracts', $2, $3, $4, $5, $6, $7)`,
);
const INSERT_REPAIR = sql(
  'test_insert_repair',
  `INSERT INTO trade_repair (market_id, status, from_at, to_at, trades, finished_at, missing_before, missing_after)
   VALUES ($1, 'done', $2, $2, $3, $2, 9, $4)`,
);

/** Inserts the comparison of a market: volumes since `since`. */
export async function aWitness(
  db: Database,
  marketPk: bigint,
  witness: {
    venue: string;
    since: Date;
    comparedAt: Date;
    venueVolume: string;
    storedVolume: string;
    missingSince?: Date;
  },
): Promise<void> {
  const { venue, since, comparedAt, venueVolume, storedVolume, missingSince } = witness;
  const times = [since, comparedAt].map((at) => at.toISOString());
  const values = [marketPk, venue, ...times, venueVolume, storedVolume, missingSince?.toISOString() ?? null];
  await db.query(INSERT_WITNESS, values);
}

/** Inserts the sum of the comparisons of a venue. */
export async function aVenueCompleteness(
  db: Database,
  venue: string,
  summary: {
    checkedAt: Date;
    since: Date | null;
    share: number | null;
    markets: number;
    missing: number;
    missingSince?: Date;
  },
): Promise<void> {
  const { checkedAt, since, share, markets, missing, missingSince } = summary;
  const times = [checkedAt, since].map((at) => at?.toISOString() ?? null);
  await db.query(INSERT_SUMMARY, [venue, ...times, share, markets, missing, missingSince?.toISOString() ?? null]);
}

/** Inserts a finished repair. */
export async function aRepair(
  db: Database,
  marketPk: bigint,
  repair: { finishedAt: Date; trades: number; missingAfter: string },
): Promise<void> {
  await db.query(INSERT_REPAIR, [marketPk, repair.finishedAt.toISOString(), repair.trades, repair.missingAfter]);
}
