import { OddswireError } from '../../domain/values/errors.ts';
import { newToken } from '../../domain/values/ids.ts';
import { scrubText } from '../../domain/values/text.ts';
import { type Queryable, sql } from './tx.ts';

/**
 * The right of one poll to work on a row. When the lease has ended, another process may take the row with a token of its own; until then
 * the poll continues. The key columns of the row are fields of the lease.
 */
export interface Lease {
  readonly venue: string;
  readonly token: string;
}

/**
 * Another process took the row after the lease had ended, or released all leases of this process, or the row is gone: the caller's transaction
 * must roll back.
 */
export class LeaseLostError extends OddswireError {
  constructor(subject: string) {
    super('lease_lost', `${subject} was taken over`, { retryable: true });
  }
}

interface LeaseTable<L> {
  table: string;
  /** A statement is called `release_<name>`. */
  name: string;
  key: readonly (keyof L & string)[];
  /** A process that lost its presence blocks its row at most this long. A running one renews the lease after every third of it. */
  seconds: number;
  /** Counts consecutive failures. */
  failuresColumn: string;
  /** Keeps the time of the last success. */
  successColumn?: string;
  /** For the message of `LeaseLostError`. */
  subject(lease: L): string;
}

export interface Leases<L extends Lease> {
  readonly seconds: number;
  /** Extends the lease during a slow fetch, also one that has ended. Has no effect on a lost lease. */
  renew(db: Queryable, lease: L): Promise<void>;
  /** Ends the lease with success (`error` null) or a failure. Returns the number of consecutive failures, 0 when the lease was lost. */
  release(db: Queryable, lease: L, error: string | null): Promise<number>;
  /**
   * Ends the lease without success or failure, because the process stops or the fault is not the row's. A `reason` becomes the last error,
   * and is not counted.
   */
  abandon(db: Queryable, lease: L, reason?: string | null): Promise<void>;
  /** Ends every lease of a process; returns their number. A process that still runs finds its leases lost. */
  endOf(db: Queryable, presence: number): Promise<number>;
  /**
   * Creates a statement that advances a position and renews the lease. `assignments` gets the placeholder of the value. The statement
   * throws LeaseLostError after a takeover, so that the transaction of an overtaken poll writes nothing.
   */
  advancing(
    name: string,
    assignments: (value: string) => string,
  ): (tx: Queryable, lease: L, value: string | null) => Promise<void>;
}

/** A new token, which names the process (src/store/db/presence.ts) so that its leases can end with it. */
export function newLeaseToken(presence: number | null): string {
  return presence === null ? newToken() : `${presence}.${newToken()}`;
}

/** The end of a lease that starts now, as SQL. */
export function leaseEnd(seconds: number): string {
  return `clock_timestamp() + ${seconds} * interval '1 second'`;
}

/** The columns of a free lease, as SQL. */
export const LEASE_ENDED = 'lease_until = NULL, lease_token = NULL';

/** A position as stored JSON text; null at the start of a walk. */
export function positionText(position: unknown): string | null {
  return position === null || position === undefined ? null : JSON.stringify(position);
}

function errorText(error: string | null): string | null {
  return error === null ? null : scrubText(error.slice(0, 500));
}

/** The streamer that reads a venue's feed, as far as it holds the parts. */
export interface FeedReader {
  readonly streamer: string;
  readonly venue: string;
}

/**
 * SQL of the parts that a streamer holds in the snapshot of the statement, from the placeholders of the streamer and the venue. It takes no
 * lock, which would delay each renewal: a statement that began before a takeover may still write, and the venue's time of its facts
 * decides against those of the new owner. It is here because prices and books do not import the room of the feeds.
 */
export function heldPartsSql(streamer: string, venue: string): string {
  return `SELECT part FROM feed_part WHERE owner = ${streamer} AND venue = ${venue}`;
}

/** The leases of a table with the columns `lease_token`, `lease_until` and `last_error`. */
export function leasesIn<L extends Lease>({ table, name, key, seconds, ...columns }: LeaseTable<L>): Leases<L> {
  const { failuresColumn: failures, successColumn: success, subject } = columns;
  const value = `$${key.length + 2}`;
  const isRenewed = `lease_until = ${leaseEnd(seconds)}`;
  const isOurs = [...key, 'lease_token'].map((column, index) => `${column} = $${index + 1}`).join(' AND ');
  const byOutcome = (column: string, succeeded: string, failed: string) =>
    `${column} = CASE WHEN ${value}::text IS NULL THEN ${succeeded} ELSE ${failed} END`;
  const noteSuccess = success === undefined ? '' : `${byOutcome(success, 'clock_timestamp()', success)}, `;
  const valuesOf = (lease: L): unknown[] => [...key.map((column) => lease[column]), lease.token];

  const RENEW = sql(`renew_${name}`, `UPDATE ${table} SET ${isRenewed} WHERE ${isOurs}`);
  const ABANDON = sql(
    `abandon_${name}`,
    `UPDATE ${table} SET ${LEASE_ENDED}, last_error = coalesce(${value}, last_error) WHERE ${isOurs}`,
  );
  const END = sql(`end_${name}s`, `UPDATE ${table} SET ${LEASE_ENDED} WHERE lease_token LIKE $1 RETURNING lease_token`);
  const RELEASE = sql(
    `release_${name}`,
    `UPDATE ${table} SET ${LEASE_ENDED}, last_error = ${value}, ${noteSuccess}${byOutcome(failures, '0', `${failures} + 1`)}
     WHERE ${isOurs} RETURNING ${failures} AS failures`,
  );
  return {
    seconds,
    async renew(db, lease) {
      await db.query(RENEW, valuesOf(lease));
    },
    async release(db, lease, error) {
      const [row] = await db.query<{ failures: number }>(RELEASE, [...valuesOf(lease), errorText(error)]);
      return row?.failures ?? 0;
    },
    async abandon(db, lease, reason = null) {
      await db.query(ABANDON, [...valuesOf(lease), errorText(reason)]);
    },
    async endOf(db, presence) {
      return (await db.query(END, [`${presence}.%`])).length;
    },
    advancing(statementName, assignments) {
      const text = `UPDATE ${table} SET ${assignments(value)}, ${isRenewed} WHERE ${isOurs} RETURNING lease_until`;
      const ADVANCE = sql(statementName, text);
      return async (tx, lease, moved) => {
        const rows = await tx.query(ADVANCE, [...valuesOf(lease), moved]);
        if (rows.length === 0) throw new LeaseLostError(subject(lease));
      };
    },
  };
}
