import type { ChatFormat } from '../../src/domain/chat/chat-url.ts';
import { EVENTS } from '../../src/domain/events/events.ts';
import { newId } from '../../src/domain/values/ids.ts';
import type { EventType } from '../../src/domain/webhooks/event.ts';
import { type ResponseHeaders, storedHeaders } from '../../src/domain/webhooks/response-headers.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { insertDeliveries, insertEvents } from '../../src/store/deliveries/events.ts';

const INSERT_EVENT = sql(
  'test_insert_event',
  `INSERT INTO event (id, account_id, type, body, dedupe_key) VALUES ($1, $2, $3, $4, $5) RETURNING pk`,
);
const INSERT_DELIVERY = sql(
  'test_insert_delivery',
  `INSERT INTO delivery (id, event_pk, subscription_pk, is_test, status, attempt_count, next_attempt_at, locked_until, created_at)
   VALUES ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 second', now() + $8 * interval '1 second', now() - $9 * interval '1 minute')
   RETURNING pk`,
);

export interface DeliveryFields {
  accountId: bigint;
  subscriptionPk: bigint;
  isTest?: boolean;
  status?: 'pending' | 'delivered' | 'failed' | 'cancelled';
  attemptCount?: number;
  /** Negative: overdue by this much. Default: due now. */
  dueInSeconds?: number;
  /** Negative: an expired lease. Default: no lease. */
  lockedForSeconds?: number;
  /** The age of the delivery. Default: new. */
  minutesAgo?: number;
  type?: EventType;
  body?: string;
}

/** Inserts an event and its delivery directly. */
export async function aDelivery(
  db: Database,
  fields: DeliveryFields,
): Promise<{ pk: bigint; id: string; eventId: string }> {
  const { isTest = false, type = isTest ? 'test' : 'price_alert' } = fields;
  const eventId = newId('evt');
  const id = newId('dlv');
  const occurredAt = new Date('2026-01-01T00:00:00.000Z');
  const body = fields.body ?? EVENTS[type].sample({ eventId, occurredAt }, 'wh_sample');
  const [event] = await db.query<{ pk: bigint }>(INSERT_EVENT, [
    eventId,
    fields.accountId,
    type,
    body,
    isTest ? null : eventId,
  ]);
  const [row] = await db.query<{ pk: bigint }>(INSERT_DELIVERY, [
    id,
    event?.pk,
    fields.subscriptionPk,
    isTest,
    fields.status ?? 'pending',
    fields.attemptCount ?? 0,
    fields.dueInSeconds ?? 0,
    fields.lockedForSeconds ?? null,
    fields.minutesAgo ?? 0,
  ]);
  return { pk: row?.pk ?? 0n, id, eventId };
}

const INSERT_ATTEMPT = sql(
  'test_insert_attempt',
  `INSERT INTO delivery_attempt (delivery_pk, attempt_number, started_at, duration_ms, outcome, status_code, error_code, response_excerpt,
     response_headers)
   VALUES ($1, $2, now() - $3 * interval '1 minute', $4, $5, $6, $7, $8, $9)`,
);

export interface AttemptFields {
  number?: number;
  minutesAgo: number;
  ms: number;
  /** Default: delivered, with the status 200. */
  outcome?: 'delivered' | 'failed';
  status?: number | null;
  error?: string | null;
  response?: Buffer | null;
  /** Default: of a release that stored none. */
  headers?: ResponseHeaders;
}

/** Inserts an attempt of a delivery, whose own state stays. */
export async function anAttempt(db: Database, deliveryPk: bigint, fields: AttemptFields): Promise<void> {
  const { number = 1, minutesAgo, ms, outcome = 'delivered', error = null, response = null } = fields;
  const headers = fields.headers === undefined ? null : storedHeaders(fields.headers);
  const { status = outcome === 'delivered' ? 200 : null } = fields;
  await db.query(INSERT_ATTEMPT, [deliveryPk, number, minutesAgo, ms, outcome, status, error, response, headers]);
}

const SET_LAST = sql(
  'test_set_last_attempt',
  'UPDATE delivery SET attempt_count = $2, last_status_code = $3, last_error = $4 WHERE pk = $1',
);

/** Sets the outcome of the latest attempt of a delivery. */
export async function setLastAttempt(
  db: Database,
  pk: bigint,
  { count, status = null, error = null }: { count: number; status?: number | null; error?: string | null },
): Promise<void> {
  await db.query(SET_LAST, [pk, count, status, error]);
}

const SET_REQUESTS = sql(
  'test_set_requests',
  'UPDATE webhook_subscription SET format = $2, header_names = $3 WHERE pk = $1',
);
const SKIP_BEFORE = sql(
  'test_skip_before',
  `UPDATE delivery SET order_key = 'key', is_skip_unreported = CASE WHEN pk = $1 THEN true END WHERE pk = $1 OR pk = $2`,
);

/** Sets the options of a webhook that change its requests. */
export async function setRequests(
  db: Database,
  subscriptionPk: bigint,
  { format = null, headerNames = null }: { format?: ChatFormat | null; headerNames?: string[] | null },
): Promise<void> {
  await db.query(SET_REQUESTS, [subscriptionPk, format, headerNames]);
}

/** Makes the first delivery a skipped one of the key of the second. */
export async function skipBefore(db: Database, skipped: bigint, next: bigint): Promise<void> {
  await db.query(SKIP_BEFORE, [skipped, next]);
}

export interface StoredDelivery {
  status: string;
  attemptCount: number;
  /** Seconds until the next attempt; negative when due. */
  dueIn: number;
  isLocked: boolean;
  lastStatusCode: number | null;
  lastError: string | null;
  deliveredAt: Date | null;
}

const SELECT_DELIVERY = sql(
  'test_select_delivery',
  `SELECT status, attempt_count, extract(epoch FROM next_attempt_at - clock_timestamp())::float AS due_in,
     coalesce(locked_until > clock_timestamp(), false) AS is_locked, last_status_code, last_error, delivered_at
   FROM delivery WHERE pk = $1`,
);

export async function storedDelivery(db: Database, pk: bigint): Promise<StoredDelivery> {
  const [row] = await db.query<StoredDelivery>(SELECT_DELIVERY, [pk]);
  if (!row) throw new Error(`no delivery ${pk}`);
  return row;
}

export interface StoredAttempt {
  attemptNumber: number;
  outcome: string;
  statusCode: number | null;
  errorCode: string | null;
  durationMs: number;
  responseExcerpt: Buffer | null;
}

const SELECT_ATTEMPTS = sql(
  'test_select_attempts',
  `SELECT attempt_number, outcome, status_code, error_code, duration_ms, response_excerpt
   FROM delivery_attempt WHERE delivery_pk = $1 ORDER BY attempt_number`,
);

export function storedAttempts(db: Database, pk: bigint): Promise<StoredAttempt[]> {
  return db.query<StoredAttempt>(SELECT_ATTEMPTS, [pk]);
}

export interface StoredSubscription {
  status: string;
  pauseReason: string | null;
  failingSince: Date | null;
  exhaustedCount: number;
}

const SELECT_SUBSCRIPTION = sql(
  'test_select_subscription',
  'SELECT status, pause_reason, failing_since, exhausted_count FROM webhook_subscription WHERE pk = $1',
);

export async function storedSubscription(db: Database, pk: bigint): Promise<StoredSubscription> {
  const [row] = await db.query<StoredSubscription>(SELECT_SUBSCRIPTION, [pk]);
  if (!row) throw new Error(`no subscription ${pk}`);
  return row;
}

/** Stores an event per market and its delivery as the alerter does, in this order; returns the ids of the events. */
export async function emitOrdered(
  db: Database,
  accountId: bigint,
  subscriptionPk: bigint,
  markets: readonly string[],
): Promise<string[]> {
  const events = markets.map((marketId) => {
    const id = newId('evt');
    const body = JSON.stringify({ id, type: 'price_alert', data: { venue: 'sample', marketId } });
    return { id, accountId, type: 'price_alert' as const, body, dedupeKey: id };
  });
  await db.transaction(async (tx) => {
    const pks = await insertEvents(tx, events);
    const wanted = events.map(({ id }) => ({ eventPk: pks.get(id) ?? 0n, subscriptionPk }));
    await insertDeliveries(tx, wanted);
  });
  return events.map(({ id }) => id);
}
