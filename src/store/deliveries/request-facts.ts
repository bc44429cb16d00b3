import type { ChatFormat } from '../../domain/chat/chat-url.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { SKIPPED_BEFORE } from './order.ts';

/** The facts of the requests of a delivery beside its event, by the present options of its webhook. */
export interface RequestFacts {
  webhookId: string;
  /** Null: the body of the event with signatures. */
  format: ChatFormat | null;
  /** The webhook's own headers. */
  headerNames: string[];
  /** The skipped events that the next request of a pending delivery names. */
  skipped: string[];
}

const REQUEST_FACTS = sql(
  'request_facts',
  `SELECT w.id AS webhook_id, w.format, coalesce(w.header_names, '{}') AS header_names,
     coalesce(CASE WHEN d.status = 'pending' THEN ${SKIPPED_BEFORE} END, '{}') AS skipped
   FROM delivery d JOIN webhook_subscription w ON w.pk = d.subscription_pk WHERE d.id = $1`,
);

/** Null when the delivery does not exist. */
export async function readRequestFacts(db: Queryable, deliveryId: string): Promise<RequestFacts | null> {
  const [found] = await db.query<RequestFacts>(REQUEST_FACTS, [deliveryId]);
  return found ?? null;
}
