import { type Lease, LeaseLostError, leaseEnd, leasesIn, positionText } from '../db/leases.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** While a poll holds this lease, no other poll of this kind of this venue runs. */
export interface PollLease extends Lease {
  kind: string;
  /** The adapter's own JSON, from which the walk continues; null at the first poll. */
  position: unknown;
}

const POLL_LEASE_SECONDS = 15;

function subjectOf({ venue, kind }: PollLease): string {
  return `the ${kind} poll of ${venue}`;
}

export const POLL_LEASES = leasesIn<PollLease>({
  table: 'poll_state',
  name: 'poll_lease',
  key: ['venue', 'kind'],
  seconds: POLL_LEASE_SECONDS,
  failuresColumn: 'consecutive_failures',
  successColumn: 'last_success_at',
  subject: subjectOf,
});

/** SQL that tells whether a loss of the tape has grown in the two minutes before the moment. */
function isLosing(moment: string): string {
  return `EXISTS (SELECT FROM venue_completeness c WHERE c.venue = p.venue AND c.broken_until > ${moment} - interval '2 minutes')`;
}

const ACQUIRE = sql(
  'acquire_poll_lease',
  `INSERT INTO poll_state AS p (venue, kind, lease_token, lease_until, last_attempt_at)
   VALUES ($1, $2, $3, ${leaseEnd(POLL_LEASE_SECONDS)}, clock_timestamp())
   ON CONFLICT (venue, kind) DO UPDATE SET lease_token = excluded.lease_token, lease_until = excluded.lease_until,
     last_attempt_at = excluded.last_attempt_at
   WHERE p.lease_until IS NULL OR p.lease_until < clock_timestamp()
   RETURNING position`,
);

/** Takes the lease, for an attempt at once. Returns null while another poll of this kind holds it. */
export async function acquirePollLease(
  db: Queryable,
  venue: string,
  kind: string,
  token: string,
): Promise<PollLease | null> {
  const [row] = await db.query<{ position: string | null }>(ACQUIRE, [venue, kind, token]);
  if (!row) return null;
  return { venue, kind, token, position: row.position === null ? null : JSON.parse(row.position) };
}

const ACQUIRE_ALL = sql(
  'acquire_poll_leases',
  `INSERT INTO poll_state AS p (venue, kind, lease_token, lease_until)
   SELECT $1, kind, $3, ${leaseEnd(POLL_LEASE_SECONDS)} FROM unnest($2::text[]) AS k (kind) ORDER BY kind
   ON CONFLICT (venue, kind) DO UPDATE SET lease_token = excluded.lease_token, lease_until = excluded.lease_until
   WHERE p.lease_until IS NULL OR p.lease_until < clock_timestamp()
   RETURNING kind, position, (extract(epoch FROM clock_timestamp() - last_attempt_at) * 1000)::float8 AS attempted_ms_ago`,
);

/** A lease that a process keeps between the polls. */
interface KeptLease extends PollLease {
  /** Milliseconds since the last poll began; null before the first one. */
  attemptedMsAgo: number | null;
}

/** Takes the free leases of these kinds, for polls later on. */
export async function acquirePollLeases(
  db: Queryable,
  venue: string,
  kinds: readonly string[],
  token: string,
): Promise<KeptLease[]> {
  const rows = await db.query<{ kind: string; position: string | null; attemptedMsAgo: number | null }>(ACQUIRE_ALL, [
    venue,
    kinds,
    token,
  ]);
  return rows.map(({ kind, position, attemptedMsAgo }) => ({
    ...{ venue, kind, token, attemptedMsAgo },
    position: position === null ? null : JSON.parse(position),
  }));
}

/** What a process learned of a poll since it was stored last. Times are milliseconds before the statement. */
export interface PollNews {
  readonly lease: PollLease;
  /** The position, when pages without news moved it. */
  readonly position?: { readonly value: unknown };
  readonly attemptedMsAgo?: number;
  /** The venue answered. */
  readonly succeededMsAgo?: number;
  /** There was nothing to request. */
  readonly idleMsAgo?: number;
  /** A poll ended without a failure. */
  readonly hasEnded: boolean;
  /** The tape was read without a gap up to its state at this moment, epoch milliseconds. */
  readonly caughtUpMs?: number;
  /** Ends the lease. */
  readonly isReleased: boolean;
}

const ago = (milliseconds: string) => `clock_timestamp() - ${milliseconds} * interval '1 millisecond'`;

/** An equal position keeps the stored value, which a large one, such as a ranking of markets, has in another table. */
const STORE_NEWS = sql(
  'store_poll_news',
  `UPDATE poll_state p SET
     lease_until = CASE WHEN NOT n.is_released THEN ${leaseEnd(POLL_LEASE_SECONDS)} END,
     lease_token = CASE WHEN NOT n.is_released THEN p.lease_token END,
     position = CASE WHEN n.is_moved AND n.position IS DISTINCT FROM p.position THEN n.position ELSE p.position END,
     last_attempt_at = greatest(p.last_attempt_at, ${ago('n.attempted')}),
     last_success_at = greatest(p.last_success_at, ${ago('n.succeeded')}),
     first_success_at = coalesce(p.first_success_at, ${ago('n.succeeded')}),
     idle_at = greatest(p.idle_at, ${ago('n.idle')}),
     caught_up_at = greatest(p.caught_up_at, to_timestamp(n.caught_up / 1000)),
     consecutive_failures = CASE WHEN n.has_ended THEN 0 ELSE p.consecutive_failures END,
     last_error = CASE WHEN NOT n.has_ended THEN p.last_error END,
     requested_at = CASE WHEN n.attempted IS NULL OR p.requested_at > ${ago('n.attempted')} THEN p.requested_at END
   FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[], $5::text[], $6::float8[], $7::float8[], $8::float8[], $9::float8[], $10::boolean[],
     $11::boolean[]) AS n (venue, kind, token, is_moved, position, attempted, succeeded, idle, caught_up, has_ended, is_released)
   WHERE p.venue = n.venue AND p.kind = n.kind AND p.lease_token = n.token
   RETURNING p.venue, p.kind, p.requested_at IS NOT NULL AS is_requested, ${isLosing('p.caught_up_at')} AS is_losing`,
);

interface StoredPoll {
  venue: string;
  kind: string;
  /** Another process was asked for a poll that begins after the last one. */
  isRequested: boolean;
  /** Whether a loss of the tape has grown in the last two minutes. */
  isLosing: boolean;
}

/** Stores the news of polls and renews their leases. A lease that is absent from the result is lost, and its news is not stored. */
export function storePollNews(db: Queryable, news: readonly PollNews[]): Promise<StoredPoll[]> {
  return db.query<StoredPoll>(STORE_NEWS, [
    news.map(({ lease }) => lease.venue),
    news.map(({ lease }) => lease.kind),
    news.map(({ lease }) => lease.token),
    news.map(({ position }) => position !== undefined),
    news.map(({ position }) => (position === undefined ? null : positionText(position.value))),
    news.map(({ attemptedMsAgo }) => attemptedMsAgo ?? null),
    news.map(({ succeededMsAgo }) => succeededMsAgo ?? null),
    news.map(({ idleMsAgo }) => idleMsAgo ?? null),
    news.map(({ caughtUpMs }) => caughtUpMs ?? null),
    news.map(({ hasEnded }) => hasEnded),
    news.map(({ isReleased }) => isReleased),
  ]);
}

const REQUEST = sql(
  'request_poll',
  `UPDATE poll_state SET requested_at = clock_timestamp() WHERE venue = $1 AND kind = $2 AND requested_at IS NULL`,
);

/** Asks the process that holds the lease for a poll. It learns of it when it renews the lease. */
export async function requestPoll(db: Queryable, venue: string, kind: string): Promise<void> {
  await db.query(REQUEST, [venue, kind]);
}

/** What a page shows, beside its records. */
export interface PageFacts {
  /** No request succeeded. */
  readonly isIdle?: boolean;
  /** The tape was read without a gap up to its state at this moment, epoch milliseconds. */
  readonly caughtUpMs?: number;
}

const ADVANCE = sql(
  'advance_poll',
  `UPDATE poll_state p SET position = $4, lease_until = ${leaseEnd(POLL_LEASE_SECONDS)},
     last_success_at = CASE WHEN $5::boolean THEN p.last_success_at ELSE clock_timestamp() END,
     first_success_at = CASE WHEN $5::boolean THEN p.first_success_at ELSE coalesce(p.first_success_at, clock_timestamp()) END,
     caught_up_at = greatest(p.caught_up_at, to_timestamp($6::float8 / 1000))
   WHERE p.venue = $1 AND p.kind = $2 AND p.lease_token = $3
   RETURNING ${isLosing('p.caught_up_at')} AS is_losing`,
);

/**
 * Advances the position and renews the lease, in the transaction that writes the page. The first stored page sets the time from which
 * the poll counts as live. A page without a request is no success. Returns whether a loss of the tape has grown in the last two minutes.
 * @throws LeaseLostError when another poll took over.
 */
export async function advancePoll(
  tx: Queryable,
  lease: PollLease,
  position: unknown,
  { isIdle = false, caughtUpMs }: PageFacts = {},
): Promise<boolean> {
  const { venue, kind, token } = lease;
  const values = [venue, kind, token, positionText(position), isIdle, caughtUpMs ?? null];
  const [row] = await tx.query<{ isLosing: boolean }>(ADVANCE, values);
  if (!row) throw new LeaseLostError(subjectOf(lease));
  return row.isLosing;
}
