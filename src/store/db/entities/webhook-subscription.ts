import { EntitySchema } from 'typeorm';
import type { ChatFormat } from '../../../domain/chat/chat-url.ts';
import type { SubscribableEvent } from '../../../domain/webhooks/event.ts';
import type { EventFilter } from '../../../domain/webhooks/filter.ts';
import type { OrderBy } from '../../../domain/webhooks/order.ts';
import { BIGINT } from './columns.ts';

/** A webhook subscription. A deleted one stays without its secret, for the deliveries that refer to it. */
export interface WebhookSubscriptionRow {
  pk: bigint;
  id: string;
  accountId: bigint;
  url: string;
  /** Only the API writes them, after validation. */
  events: SubscribableEvent[];
  sealedSecret: string;
  /** The secret before the last rotation, which signs until the time below. */
  previousSealedSecret: string | null;
  previousSecretUntil: Date | null;
  status: 'active' | 'paused';
  /** The reason of an automatic pause; null for a manual pause or an active subscription. */
  pauseReason: string | null;
  failingSince: Date | null;
  exhaustedCount: number;
  /** The key within which events arrive in order; null without order. */
  orderBy: OrderBy | null;
  /** Only events that match make deliveries; null: every event. */
  filter: EventFilter | null;
  /** Attempts per second over all deliverers; null without a limit. */
  maxPerSecond: number | null;
  /** JSON of the additional headers of its requests. */
  sealedHeaders: string | null;
  headerNames: string[] | null;
  description: string | null;
  /** The chat service that it sends messages to; null: the body of the event. */
  format: ChatFormat | null;
  /** The URL of a chat service, which is a secret: `url` then shows its host only. */
  sealedUrl: string | null;
  createdAt: Date;
  deletedAt: Date | null;
}

export const WebhookSubscriptionEntity = new EntitySchema<WebhookSubscriptionRow>({
  name: 'webhook_subscription',
  columns: {
    pk: { ...BIGINT, primary: true, generated: 'increment' },
    id: { type: 'text', unique: true },
    accountId: { ...BIGINT, name: 'account_id' },
    url: { type: 'text' },
    events: { type: 'text', array: true },
    sealedSecret: { type: 'text', name: 'sealed_secret' },
    previousSealedSecret: { type: 'text', name: 'previous_sealed_secret', nullable: true },
    previousSecretUntil: { type: 'timestamptz', name: 'previous_secret_until', nullable: true },
    status: { type: 'text', default: 'active' },
    pauseReason: { type: 'text', name: 'pause_reason', nullable: true },
    failingSince: { type: 'timestamptz', name: 'failing_since', nullable: true },
    exhaustedCount: { type: 'int', name: 'exhausted_count', default: 0 },
    orderBy: { type: 'text', name: 'order_by', nullable: true },
    filter: { type: 'jsonb', nullable: true },
    maxPerSecond: { type: 'double precision', name: 'max_per_second', nullable: true },
    sealedHeaders: { type: 'text', name: 'sealed_headers', nullable: true },
    headerNames: { type: 'text', array: true, name: 'header_names', nullable: true },
    description: { type: 'text', nullable: true },
    format: { type: 'text', nullable: true },
    sealedUrl: { type: 'text', name: 'sealed_url', nullable: true },
    createdAt: { type: 'timestamptz', name: 'created_at', createDate: true },
    // A plain column instead of TypeORM's soft deletion: every query states whether it includes deleted rows.
    deletedAt: { type: 'timestamptz', name: 'deleted_at', nullable: true },
  },
});
