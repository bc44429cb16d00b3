import { scrubText } from '../../domain/values/text.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** A held lease: no other process polls this kind of this venue until its release or expiry. */
export interface PollLease {
  venue: string;
  kind: string;
  token: string;
  /** The position of the walk: the adapter's own JSON; null at the first poll. */
  position: unknown;
}

/** A killed poller delays its polls at most this long; a running one renews the lease after every third of it. */
export const POLL_LEASE_SECONDS = 15;

const ACQUIRE = sql(
  'acquire_poll_lease',
  `INSERT INTO poll_state AS p (venue, kind, lease_token, lease_until, last_attempt_at)
   VALUES ($1, $2, $3, clock_timestamp() + ${POLL_LEASE_SECONDS} * interval '1 second', clock_timestamp())
   ON CONFLICT (venue, kind) DO UPDATE SET lease_token = excluded.lease_token, lease_until = excluded.lease_until,
     last_attempt_at = excluded.last_attempt_at
   WHERE p.lease_until IS NULL OR p.lease_until < clock_timestamp()
   RETURNING position`,
);

/** Takes the lease, or returns null when another poll of this kind is in flight. */
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

const ADVANCE = sql(
  'advance_poll',
  `UPDATE poll_state SET position = $4, last_success_at = clock_timestamp(),
     first_success_at = coalesce(first_success_at, clock_timestamp()),
     lease_until = clock_timestamp() + ${POLL_LEASE_SECONDS} * interval '1 second'
   WHERE venue = $1 AND kind = $2 AND lease_token = $3 AND lease_until > clock_timestamp() RETURNING venue`,
);

/**
 * Advances the position and renews the lease, in the transaction that writes the page. False when this process lost the lease (for
 * example because it was frozen): the caller must roll back, so that an overtaken poll writes nothing.
 * The first stored page sets the time from which the poll counts as live.
 */
export async function advancePoll(tx: Queryable, lease: PollLease, position: unknown): Promise<boolean> {
  const text = position === null ? null : JSON.stringify(position);
  const rows = await tx.query(ADVANCE, [lease.venue, lease.kind, lease.token, text]);
  return rows.length === 1;
}

const RELEASE = sql(
  'release_poll_lease',
  `UPDATE poll_state SET lease_until = NULL, lease_token = NULL,
     last_success_at = CASE WHEN $4::text IS NULL THEN clock_timestamp() ELSE last_success_at END,
     last_error = $4, consecutive_failures = CASE WHEN $4::text IS NULL THEN 0 ELSE consecutive_failures + 1 END
   WHERE venue = $1 AND kind = $2 AND lease_token = $3 RETURNING consecutive_failures`,
);

/**
 * Ends the poll with success, or with an error, which venue health shows. Returns the number of consecutive failures, 0 when this process
 * had lost the lease.
 */
export async function releasePollLease(db: Queryable, lease: PollLease, error: string | null): Promise<number> {
  const [row] = await db.query<{ consecutiveFailures: number }>(RELEASE, [
    lease.venue,
    lease.kind,
    lease.token,
    error === null ? null : scrubText(error),
  ]);
  return row?.consecutiveFailures ?? 0;
}

const RENEW = sql(
  'renew_poll_lease',
  `UPDATE poll_state SET lease_until = clock_timestamp() + ${POLL_LEASE_SECONDS} * interval '1 second'
   WHERE venue = $1 AND kind = $2 AND lease_token = $3 AND lease_until > clock_timestamp()`,
);

/** Extends the lease during a slow fetch. Has no effect on a lost lease. */
export async function renewPollLease(db: Queryable, lease: PollLease): Promise<void> {
  await db.query(RENEW, [lease.venue, lease.kind, lease.token]);
}

const ABANDON = sql(
  'abandon_poll_lease',
  `UPDATE poll_state SET lease_until = NULL, lease_token = NULL WHERE venue = $1 AND kind = $2 AND lease_token = $3`,
);

/** Releases the lease without recording success or failure, because the process is stopping. */
export async function abandonPollLease(db: Queryable, lease: PollLease): Promise<void> {
  await db.query(ABANDON, [lease.venue, lease.kind, lease.token]);
}
