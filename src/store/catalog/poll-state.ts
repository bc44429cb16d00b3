import { LEASE_ENDED, type Lease, leaseEnd, leasesIn, positionText } from '../db/leases.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** While a poll holds this lease, no other poll of this kind of this venue runs. */
interface PollLease extends Lease {
  kind: string;
  /** The adapter's own JSON, from which the walk continues; null at the first poll. */
  position: unknown;
}

const POLL_LEASE_SECONDS = 15;

export const POLL_LEASES = leasesIn<PollLease>({
  table: 'poll_state',
  name: 'poll_lease',
  key: ['venue', 'kind'],
  seconds: POLL_LEASE_SECONDS,
  failuresColumn: 'consecutive_failures',
  successColumn: 'last_success_at',
  subject: ({ venue, kind }) => `the ${kind} poll of ${venue}`,
});

const ACQUIRE = sql(
  'acquire_poll_lease',
  `INSERT INTO poll_state AS p (venue, kind, lease_token, lease_until, last_attempt_at)
   VALUES ($1, $2, $3, ${leaseEnd(POLL_LEASE_SECONDS)}, clock_timestamp())
   ON CONFLICT (venue, kind) DO UPDATE SET lease_token = excluded.lease_token, lease_until = excluded.lease_until,
     last_attempt_at = excluded.last_attempt_at
   WHERE p.lease_until IS NULL OR p.lease_until < clock_timestamp()
   RETURNING position`,
);

/** Takes the lease. Returns null while another poll of this kind holds it. */
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

const advance = POLL_LEASES.advancing(
  'advance_poll',
  (position) => `position = ${position}, last_success_at = clock_timestamp(),
     first_success_at = coalesce(first_success_at, clock_timestamp())`,
);

const advanceIdle = POLL_LEASES.advancing('advance_idle_poll', (position) => `position = ${position}`);

/**
 * Advances the position and renews the lease, in the transaction that writes the page. The first stored page sets the time from which
 * the poll counts as live. A page without a request (`isIdle`) is no success.
 * @throws LeaseLostError when another poll took over.
 */
export function advancePoll(tx: Queryable, lease: PollLease, position: unknown, isIdle = false): Promise<void> {
  return (isIdle ? advanceIdle : advance)(tx, lease, positionText(position));
}

const REST = sql(
  'rest_poll',
  `UPDATE poll_state SET ${LEASE_ENDED}, last_error = NULL, consecutive_failures = 0,
     idle_at = CASE WHEN $4::boolean THEN clock_timestamp() ELSE idle_at END
   WHERE venue = $1 AND kind = $2 AND lease_token = $3`,
);

/**
 * Ends the lease of a poll that sent no request, which is neither a success nor a failure. `isIdle`: there was nothing to request. It has
 * no effect after a takeover.
 */
export async function restPoll(db: Queryable, { venue, kind, token }: PollLease, isIdle: boolean): Promise<void> {
  await db.query(REST, [venue, kind, token, isIdle]);
}

const NOTE_CAUGHT_UP = sql(
  'note_caught_up',
  `UPDATE poll_state SET caught_up_at = to_timestamp($2::float8 / 1000)
   WHERE venue = $1 AND kind = 'trades' AND (caught_up_at IS NULL OR caught_up_at < to_timestamp($2::float8 / 1000) - interval '1 second')
   RETURNING EXISTS (
     SELECT FROM venue_completeness c WHERE c.venue = $1 AND c.broken_until > caught_up_at - interval '2 minutes') AS is_losing`,
);

/**
 * Records that the tape was read without a gap up to its state at this moment, in the transaction of its last page. Returns whether a loss
 * of the venue has grown in the last two minutes; undefined when this moment was recorded already.
 */
export async function noteCaughtUp(tx: Queryable, venue: string, caughtUpMs: number): Promise<boolean | undefined> {
  const [row] = await tx.query<{ isLosing: boolean }>(NOTE_CAUGHT_UP, [venue, caughtUpMs]);
  return row?.isLosing;
}
