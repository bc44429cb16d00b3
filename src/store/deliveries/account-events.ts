import type { SubscribableEvent } from '../../domain/webhooks/event.ts';
import { boundedPage, type ScanExtent } from '../db/bounded-page.ts';
import { type Queryable, sql, sqlPlannedPerCall } from '../db/tx.ts';

/** An event of an account, without test events. */
export interface AccountEvent {
  pk: bigint;
  id: string;
  type: SubscribableEvent;
  createdAt: Date;
  /** The existing subscription that its alert names. */
  webhookId: string | null;
  /** The number of its deliveries. */
  deliveries: number;
  /** Whether no delivery of it is pending or was successful. */
  isUndelivered: boolean;
  /** The exact text of its body. */
  body: string;
}

interface EventFilter {
  type?: SubscribableEvent;
  undelivered?: boolean;
}

/** A page of events, newest first; `next` is the key after which the next page starts, absent on the last page. */
interface EventPage {
  events: AccountEvent[];
  next?: bigint;
}

/** Rows that one page reads with a filter: most events of an account may have another type, or be delivered. */
const MAX_SCANNED = 5_000;

/** A delivery that succeeded once stays a success when it is sent again. Test events have no dedupe key. */
const LIST_EVENTS = sqlPlannedPerCall(
  'list_account_events',
  `WITH candidate AS MATERIALIZED (
     SELECT pk, type, dedupe_key, created_at FROM event
     WHERE account_id = $1 AND ($2::bigint IS NULL OR pk < $2) ORDER BY pk DESC LIMIT $3),
   judged AS (
     SELECT c.*, NOT EXISTS (SELECT FROM delivery d
       WHERE d.event_pk = c.pk AND (d.status IN ('pending', 'delivered') OR d.delivered_at IS NOT NULL)) AS is_undelivered
     FROM candidate c WHERE c.dedupe_key IS NOT NULL AND ($4::text IS NULL OR c.type = $4)),
   page AS MATERIALIZED (
     SELECT pk, is_undelivered FROM judged WHERE $5::boolean IS NULL OR is_undelivered = $5 ORDER BY pk DESC LIMIT $6)
   SELECT s.*, e.pk, e.id, e.type, e.created_at, e.body, p.is_undelivered, w.id AS webhook_id,
     (SELECT count(*)::int FROM delivery d WHERE d.event_pk = e.pk) AS deliveries
   FROM (SELECT count(*)::int AS scanned, min(pk) AS last_pk, min(created_at) AS last_at FROM candidate) s
   LEFT JOIN (page p JOIN event e ON e.pk = p.pk LEFT JOIN webhook_subscription w ON w.pk = e.target_pk AND w.deleted_at IS NULL)
     ON true
   ORDER BY e.pk DESC`,
);

type Row = (AccountEvent | { pk: null }) & ScanExtent;

/** A page of an account's events. With a filter it reads a bounded number of rows, so it may be short although more follow. */
export async function listAccountEvents(
  db: Queryable,
  accountId: bigint,
  filter: EventFilter,
  limit: number,
  after: bigint | undefined,
): Promise<EventPage> {
  const rows = await db.query<Row>(LIST_EVENTS, [
    accountId,
    after ?? null,
    MAX_SCANNED,
    filter.type ?? null,
    filter.undelivered ?? null,
    limit + 1,
  ]);
  const events = rows.filter((row) => row.pk !== null);
  const { items, next } = boundedPage(events, rows[0], { limit, maxScanned: MAX_SCANNED });
  return { events: items, ...(next !== undefined && { next }) };
}

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
