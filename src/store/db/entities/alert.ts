import { EntitySchema } from 'typeorm';
import type { AlertStatus, Direction, Scope, Unit } from '../../../domain/alerts/condition.ts';
import type { Condition } from '../../../domain/alerts/conditions.ts';
import type { OrderSide } from '../../../domain/markets/market.ts';
import type { ResolutionState } from '../../../domain/markets/resolution.ts';
import { BIGINT } from './columns.ts';

/** The condition of an alert before a change or a pause. Observations of its time may still wait for their evaluation. */
export interface FormerRule {
  /** The threshold, numeric as text. */
  target: string | null;
  direction: Direction | null;
  unit: Unit | null;
  windowSeconds: number | null;
  windows: number | null;
  /** Absent in conditions of a former release. */
  states?: ResolutionState[] | null;
  /** Of a condition on books. */
  side?: OrderSide | null;
  size?: string | null;
  notional?: string | null;
  cooldownSeconds: number | null;
  /** The first moment whose observations may wait, and the first one that does not count, epoch milliseconds. */
  fromMs: number;
  untilMs: number;
  /** Whether `fromMs` is the start of the alert. */
  isWhole: boolean;
}

/** An alert. */
interface AlertRow {
  pk: bigint;
  id: string;
  accountId: bigint;
  /** Null: the alert has a scope. */
  tokenId: bigint | null;
  condition: Condition;
  /** The threshold of the condition, numeric as text. */
  target: string | null;
  direction: Direction | null;
  unit: Unit | null;
  windowSeconds: number | null;
  windows: number | null;
  states: ResolutionState[] | null;
  /** The order of a condition on books, numeric as text. */
  side: OrderSide | null;
  size: string | null;
  notional: string | null;
  /** The second outcome of a condition on two books. */
  sellTokenId: bigint | null;
  scope: Scope | null;
  scopeKey: string | null;
  probe: string | null;
  cooldownSeconds: number | null;
  expiresAt: Date | null;
  name: string | null;
  note: string | null;
  changedAt: Date | null;
  isArmed: boolean;
  former: FormerRule[] | null;
  /** In place of `former` for a condition on books. */
  formerOrders: FormerRule[] | null;
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
    tokenId: { ...BIGINT, name: 'token_id', nullable: true },
    condition: { type: 'text' },
    target: { type: 'numeric', nullable: true },
    direction: { type: 'text', nullable: true },
    unit: { type: 'text', nullable: true },
    windowSeconds: { type: 'int', name: 'window_seconds', nullable: true },
    windows: { type: 'int', nullable: true },
    states: { type: 'text', array: true, nullable: true },
    side: { type: 'text', nullable: true },
    size: { type: 'numeric', nullable: true },
    notional: { type: 'numeric', nullable: true },
    sellTokenId: { ...BIGINT, name: 'sell_token_id', nullable: true },
    scope: { type: 'jsonb', nullable: true },
    scopeKey: { type: 'text', name: 'scope_key', nullable: true },
    probe: { type: 'text', nullable: true },
    cooldownSeconds: { type: 'int', name: 'cooldown_seconds', nullable: true },
    expiresAt: { type: 'timestamptz', name: 'expires_at', nullable: true },
    name: { type: 'text', nullable: true },
    note: { type: 'text', nullable: true },
    changedAt: { type: 'timestamptz', name: 'changed_at', nullable: true },
    isArmed: { type: 'boolean', name: 'is_armed', default: true },
    former: { type: 'jsonb', nullable: true },
    formerOrders: { type: 'jsonb', name: 'former_orders', nullable: true },
    status: { type: 'text', default: 'active' },
    webhookPk: { ...BIGINT, name: 'webhook_pk', nullable: true },
    createdAt: { type: 'timestamptz', name: 'created_at', createDate: true },
    triggeredAt: { type: 'timestamptz', name: 'triggered_at', nullable: true },
    expiredAt: { type: 'timestamptz', name: 'expired_at', nullable: true },
    triggeredPrice: { type: 'numeric', name: 'triggered_price', nullable: true },
    eventId: { type: 'text', name: 'event_id', nullable: true },
  },
});
