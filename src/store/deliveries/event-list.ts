import type { SubscribableEvent } from '../../domain/webhooks/event.ts';
import { boundedPage, type ScanExtent } from '../db/bounded-page.ts';
import { type Queryable, sqlPlannedPerCall } from '../db/tx.ts';

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
