import { scrubText } from '../../domain/values/text.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** A poll that holds the lease: nobody else polls this kind of this venue until it ends or runs out. */
export interface PollLease {
  venue: string;
  kind: string;
  token: string;
  /** Where the walk goes on: the adapter's own JSON; null at the first poll. */
  position: unknown;
}

/** A killed poller holds up its polls no longer than this; a living one renews it every third of it. */
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

/** Takes the lease, or returns null when another poll of this kind is under way. */
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
 * Moves the position and renews the lease, in the transaction that writes the page. False when the lease is no longer ours
 * (the process was frozen, say): the caller must roll back, so that an overtaken poll writes nothing.
 * The first page that is stored makes the moment from which the poll counts as kept up.
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
 * Ends the poll: with success, or with the reason why not, which venue health shows. Returns the failures in a row, 0 when
 * the lease was no longer ours.
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

/** Keeps the lease while a slow page is fetched. Does nothing when it was lost. */
export async function renewPollLease(db: Queryable, lease: PollLease): Promise<void> {
  await db.query(RENEW, [lease.venue, lease.kind, lease.token]);
}

const ABANDON = sql(
  'abandon_poll_lease',
  `UPDATE poll_state SET lease_until = NULL, lease_token = NULL WHERE venue = $1 AND kind = $2 AND lease_token = $3`,
);

/** Gives the lease back with no word on success: the process is stopping. */
export async function abandonPollLease(db: Queryable, lease: PollLease): Promise<void> {
  await db.query(ABANDON, [lease.venue, lease.kind, lease.token]);
}
