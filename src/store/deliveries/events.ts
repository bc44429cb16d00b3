import { newId } from '../../domain/values/ids.ts';
import type { SubscribableEvent } from '../../domain/webhooks/event.ts';
import { sql, type Tx } from '../db/tx.ts';

/** An event with its final body: these bytes are stored, signed and sent on every attempt. */
export interface NewEvent {
  /** Derived from the occurrence: a restored database emits the same occurrence again with the same id. */
  id: string;
  accountId: bigint;
  type: SubscribableEvent;
  body: string;
  /** Unique over all events, so that an occurrence is emitted once. */
  dedupeKey: string;
  /** The subscription that its alert names. */
  targetPk?: bigint;
}

const INSERT_EVENTS = sql(
  'insert_events',
  `INSERT INTO event (id, account_id, type, body, dedupe_key, target_pk)
   SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[])
   ON CONFLICT (dedupe_key) DO NOTHING RETURNING pk, id`,
);

/** Inserts events with a new dedupe key; returns the internal key of each inserted event by its id. */
export async function insertEvents(tx: Tx, events: readonly NewEvent[]): Promise<Map<string, bigint>> {
  if (events.length === 0) return new Map();
  const rows = await tx.query<{ pk: bigint; id: string }>(INSERT_EVENTS, [
    events.map((event) => event.id),
    events.map((event) => event.accountId),
    events.map((event) => event.type),
    events.map((event) => event.body),
    events.map((event) => event.dedupeKey),
    events.map((event) => event.targetPk ?? null),
  ]);
  return new Map(rows.map((row) => [row.id, row.pk]));
}

const INSERT_DELIVERIES = sql(
  'insert_deliveries',
  `INSERT INTO delivery (id, event_pk, subscription_pk)
   SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]) ON CONFLICT DO NOTHING RETURNING id, event_pk`,
);

/** An inserted delivery. */
interface MadeDelivery {
  id: string;
  eventPk: bigint;
}

/** Inserts pending deliveries, due at once, in the transaction of their events. Returns the new ones. */
export async function insertDeliveries(
  tx: Tx,
  deliveries: readonly { eventPk: bigint; subscriptionPk: bigint }[],
): Promise<MadeDelivery[]> {
  if (deliveries.length === 0) return [];
  return tx.query(INSERT_DELIVERIES, [
    deliveries.map(() => newId('dlv')),
    deliveries.map((delivery) => delivery.eventPk),
    deliveries.map((delivery) => delivery.subscriptionPk),
  ]);
}
