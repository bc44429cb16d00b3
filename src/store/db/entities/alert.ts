import { EntitySchema } from 'typeorm';
import type { AlertCondition, AlertStatus } from '../../../domain/alerts/alert.ts';

/** A price alert. */
export interface AlertRow {
  /** bigint as text. */
  pk: string;
  id: string;
  /** bigint as text. */
  accountId: string;
  /** bigint as text. */
  tokenId: string;
  condition: AlertCondition;
  /** numeric as text. */
  target: string;
  status: AlertStatus;
  /** bigint as text; null: the account's default webhook, chosen when the alert fires. */
  webhookPk: string | null;
  createdAt: Date;
  triggeredAt: Date | null;
  /** numeric as text. */
  triggeredPrice: string | null;
  eventId: string | null;
}

export const AlertEntity = new EntitySchema<AlertRow>({
  name: 'alert',
  columns: {
    pk: { type: 'bigint', primary: true, generated: 'increment' },
    id: { type: 'text', unique: true },
    accountId: { type: 'bigint', name: 'account_id' },
    tokenId: { type: 'bigint', name: 'token_id' },
    condition: { type: 'text' },
    target: { type: 'numeric' },
    status: { type: 'text', default: 'active' },
    webhookPk: { type: 'bigint', name: 'webhook_pk', nullable: true },
    createdAt: { type: 'timestamptz', name: 'created_at', createDate: true },
    triggeredAt: { type: 'timestamptz', name: 'triggered_at', nullable: true },
    triggeredPrice: { type: 'numeric', name: 'triggered_price', nullable: true },
    eventId: { type: 'text', name: 'event_id', nullable: true },
  },
});
