import type { SubscribableEvent } from '../../domain/webhooks/event.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** An event as a stream sends it. */
export interface StoredEvent {
  pk: bigint;
  accountId: bigint;
  type: SubscribableEvent;
  createdAt: Date;
  /** The exact text of its body. */
  body: string;
}

const NEWEST = sql('newest_event', 'SELECT max(pk) AS newest, clock_timestamp() AS read_at FROM event');

/** Writers draw their numbers inside a lock on the table, which they hold until their commit is visible. */
const WRITERS = sql(
  'event_writers',
  `SELECT DISTINCT pid || ' ' || virtualtransaction AS writer FROM pg_locks
   WHERE locktype = 'relation' AND relation = 'event'::regclass AND mode = 'RowExclusiveLock' AND granted
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
);

/**
 * The number up to which every event is visible. Writers draw numbers before they commit, so a reader that follows the largest visible
 * number skips events that commit later. This horizon stops before them: it reads the largest number first, and the transactions that
 * write events afterwards. When these have ended, no smaller number can appear.
 */
export class EventHorizon {
  readonly #db: Queryable;
  #settled: bigint | undefined;
  #pending: { newest: bigint; writers: ReadonlySet<string> } | undefined;

  constructor(db: Queryable) {
    this.#db = db;
  }

  /** Undefined before the first settled read. */
  get settled(): bigint | undefined {
    return this.#settled;
  }

  /** Advances the horizon. `isComplete`: no newer event was visible at `readAt`, by the database clock. */
  async advance(): Promise<{ isComplete: boolean; readAt: Date }> {
    const [row] = await this.#db.query<{ newest: bigint | null; readAt: Date }>(NEWEST);
    const newest = row?.newest ?? 0n;
    const readAt = row?.readAt ?? new Date(0);
    if (this.#settled !== undefined && newest <= this.#settled) return { isComplete: true, readAt };
    const writers = await this.#writers();
    const open = this.#pending;
    if (open && ![...open.writers].some((writer) => writers.has(writer))) {
      this.#settled = open.newest;
      this.#pending = undefined;
    }
    if (writers.size === 0) {
      this.#settled = newest;
      this.#pending = undefined;
    } else this.#pending ??= { newest, writers };
    return { isComplete: this.#settled !== undefined && this.#settled >= newest, readAt };
  }

  async #writers(): Promise<Set<string>> {
    const rows = await this.#db.query<{ writer: string }>(WRITERS);
    return new Set(rows.map(({ writer }) => writer));
  }
}

const EVENTS_OF_ACCOUNTS = sql(
  'events_of_accounts',
  `SELECT pk, account_id, type, created_at, body FROM event
   WHERE pk > $1 AND pk <= $2 AND account_id = ANY ($3::bigint[]) AND dedupe_key IS NOT NULL ORDER BY pk LIMIT $4`,
);
const EVENTS_OF_ACCOUNT = sql(
  'events_of_account',
  `SELECT pk, account_id, type, created_at, body FROM event
   WHERE account_id = $3 AND pk > $1 AND pk <= $2 AND dedupe_key IS NOT NULL ORDER BY pk LIMIT $4`,
);

/** The events of these accounts with `after < pk <= upTo`, oldest first, without test events. */
export function readEventsOf(
  db: Queryable,
  accountIds: readonly bigint[],
  { after, upTo, limit }: { after: bigint; upTo: bigint; limit: number },
): Promise<StoredEvent[]> {
  const [only, ...others] = accountIds;
  if (only !== undefined && others.length === 0) return db.query(EVENTS_OF_ACCOUNT, [after, upTo, only, limit]);
  return db.query(EVENTS_OF_ACCOUNTS, [after, upTo, accountIds, limit]);
}
