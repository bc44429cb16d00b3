import { heldPartsSql } from '../db/leases.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** A part of the markets of a venue's feed: the markets of one connection. */
export interface FeedPart {
  readonly venue: string;
  readonly part: number;
}

/** A part that this streamer took over. */
interface ClaimedPart extends FeedPart {
  /** The last moment at which a streamer certainly read the part, epoch milliseconds; null for a new part. */
  readonly seenAtMs: number | null;
}

/** A part without an owner moves after this time. Streamers renew their leases every second. */
const PART_LEASE_MS = 3_500;

const LEASE_END = `clock_timestamp() + ${PART_LEASE_MS} * interval '1 millisecond'`;

const CREATE = sql(
  'create_feed_parts',
  `INSERT INTO feed_part (venue, part) SELECT $1, generate_series(0, $2::int - 1) ON CONFLICT DO NOTHING`,
);

/** Makes the parts of a venue that do not exist yet. */
export async function createParts(db: Queryable, venue: string, parts: number): Promise<void> {
  await db.query(CREATE, [venue, parts]);
}

const CLAIM = sql(
  'claim_feed_parts',
  `WITH free AS MATERIALIZED (
     SELECT venue, part FROM feed_part WHERE venue = $1 AND part < $2 AND part <> ALL ($5::int[]) AND (owner IS NULL OR owner = $4 OR lease_until <= clock_timestamp())
     ORDER BY part LIMIT $3 FOR UPDATE SKIP LOCKED)
   UPDATE feed_part p SET owner = $4, lease_until = ${LEASE_END} FROM free WHERE p.venue = free.venue AND p.part = free.part
   RETURNING p.venue, p.part, (extract(epoch FROM p.seen_at) * 1000)::float8 AS seen_at_ms`,
);

/** Takes at most `limit` parts without a living owner. `held`: the parts that this streamer reads. */
export function claimParts(
  db: Queryable,
  streamer: string,
  { venue, parts, limit, held = [] }: { venue: string; parts: number; limit: number; held?: readonly number[] },
): Promise<ClaimedPart[]> {
  return limit <= 0 ? Promise.resolve([]) : db.query(CLAIM, [venue, parts, limit, streamer, held]);
}

/**
 * SQL that extends the leases of streamer `$1`, also one that ended while it was late: nobody else has read its part since. Only the parts
 * of `$2` and `$3`, venues and numbers, count as seen: a claim whose answer was lost has an owner that does not read its part.
 */
export const RENEW_PARTS = `UPDATE feed_part SET lease_until = ${LEASE_END},
       seen_at = CASE WHEN (venue, part) IN (SELECT * FROM unnest($2::text[], $3::int[])) THEN clock_timestamp() ELSE seen_at END
     WHERE owner = $1 RETURNING venue, part`;

const RELEASE = sql(
  'release_feed_parts',
  `UPDATE feed_part SET owner = NULL, lease_until = NULL,
     seen_at = CASE WHEN part = ANY ($4::int[]) THEN clock_timestamp() ELSE seen_at END
   WHERE owner = $1 AND venue = $2 AND part = ANY ($3::int[])`,
);

/** Gives parts back, so that another streamer takes them at once. `seen`: those whose changes until now are stored. */
export async function releaseParts(
  db: Queryable,
  streamer: string,
  venue: string,
  parts: readonly number[],
  seen: readonly number[],
): Promise<void> {
  if (parts.length > 0) await db.query(RELEASE, [streamer, venue, parts, seen]);
}

const HELD = sql('held_feed_parts', `${heldPartsSql('$1', '$2')} AND part = ANY ($3::int[])`);

/** The parts among these that the streamer holds now. A write of another part must not happen: its new owner writes newer facts. */
export async function heldParts(
  tx: Queryable,
  streamer: string,
  venue: string,
  parts: readonly number[],
): Promise<Set<number>> {
  const rows = await tx.query<{ part: number }>(HELD, [streamer, venue, parts]);
  return new Set(rows.map(({ part }) => part));
}
