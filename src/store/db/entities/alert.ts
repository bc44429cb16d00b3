import { EntitySchema } from 'typeorm';
import type { AlertCondition, AlertStatus } from '../../../domain/alerts/alert.ts';
import { BIGINT } from './columns.ts';

/** A price alert. */
interface AlertRow {
  pk: bigint;
  id: string;
  accountId: bigint;
  tokenId: bigint;
  condition: AlertCondition;
  /** numeric as text. */
  target: string;
  status: AlertStatus;
  /** Null: the account's default webhook, chosen when the alert fires. */
  webhookPk: bigint | null;
  createdAt: Date;
  triggeredAt: Date | null;
  expiredAt: Date | null;
  /** numeric as text. */
  triggeredPrice: string | null;
  eventId: string | null;
}

export const AlertEntity = new EntitySchema<AlertRow>({
  name: 'alert',
  columns: {
    pk: { ...BIGINT, primary: true, generated: 'increment' },
    id: { type: 'text', unique: true },
    accountId: { ...BIGINT, name: 'account_id' },
    tokenId: { ...BIGINT, name: 'token_id' },
    condition: { type: 'text' },
    target: { type: 'numeric' },
    status: { type: 'text', default: 'active' },
    webhookPk: { ...BIGINT, name: 'webhook_pk', nullable: true },
    createdAt: { type: 'timestamptz', name: 'created_at', createDate: true },
    triggeredAt: { type: 'timestamptz', name: 'triggered_at', nullable: true },
    expiredAt: { type: 'timestamptz', name: 'expired_at', nullable: true },
    triggeredPrice: { type: 'numeric', name: 'triggered_price', nullable: true },
    eventId: { type: 'text', name: 'event_id', nullable: true },
  },
});
