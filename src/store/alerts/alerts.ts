import type { AlertStatus, Direction, Scope, Unit } from '../../domain/alerts/condition.ts';
import { type Condition, isBookCondition, probeOf } from '../../domain/alerts/conditions.ts';
import type { OrderSide } from '../../domain/markets/market.ts';
import type { ResolutionState } from '../../domain/markets/resolution.ts';
import { compareDecimals, type Decimal, ONE } from '../../domain/values/decimal.ts';
import { newId } from '../../domain/values/ids.ts';
import { ensureTokens } from '../catalog/tokens.ts';
import { AlertEntity, type FormerRule } from '../db/entities/alert.ts';
import { type Queryable, type Repositories, type Statement, sql, sqlPlannedPerCall, type Tx } from '../db/tx.ts';
import { lockSubscription } from '../deliveries/subscriptions.ts';
import { alertKey, encodeCause } from '../marks/detail.ts';
import { insertMarks } from '../marks/marks.ts';
import { insertAlertBooks } from './books/alert-books.ts';
import { type OrderRefusal, refuseOrder } from './books/order-outcomes.ts';
import { isKnownToAll } from './former-processes.ts';
import { isWide, MAX_WIDE_SCOPES, scopeKeyOf, WIDE_ALERT } from './scopes.ts';

/** The owner's view of an alert. */
export interface Alert {
  pk: bigint;
  id: string;
  /** Null: the alert has a scope. */
  tokenMint: string | null;
  tokenId: bigint | null;
  condition: Condition;
  /** The threshold, `numeric` text; prices are in `currency`. */
  target: string | null;
  direction: Direction | null;
  unit: Unit | null;
  windowSeconds: number | null;
  windows: number | null;
  states: ResolutionState[] | null;
  /** The order of a condition on books, `numeric` text. */
  side: OrderSide | null;
  size: string | null;
  notional: string | null;
  sellTokenId: bigint | null;
  sellTokenMint: string | null;
  scope: Scope | null;
  cooldownSeconds: number | null;
  expiresAt: Date | null;
  name: string | null;
  note: string | null;
  status: AlertStatus;
  webhookId: string | null;
  createdAt: Date;
  changedAt: Date | null;
  triggeredAt: Date | null;
  /** Of the last firing, `numeric` text. */
  triggeredPrice: string | null;
  expiredAt: Date | null;
  eventId: string | null;
  /** Whether the token has a price, or a market lists it; true for a scope. */
  isTracked: boolean;
  /** Whether the mark of its creation or last change has been evaluated. */
  isArmed: boolean;
  former: FormerRule[] | null;
  /** In place of `former` for a condition on books. */
  formerOrders: FormerRule[] | null;
  /** Null without a token. */
  currency: string | null;
}

/** The currency of a token without a price so far. */
const DEFAULT_CURRENCY = 'USD';

const SELECT_ALERTS = `SELECT a.pk, a.id, t.mint AS token_mint, a.token_id, a.condition, a.target, a.direction, a.unit, a.window_seconds,
    a.windows, a.states, a.side, a.size, a.notional, a.sell_token_id, s.mint AS sell_token_mint, a.scope, a.cooldown_seconds, a.expires_at, a.name, a.note, a.status, w.id AS webhook_id, a.created_at, a.changed_at,
    a.triggered_at, a.triggered_price, a.expired_at, a.event_id, t.currency, a.is_armed, a.former, a.former_orders,
    a.scope IS NOT NULL OR EXISTS (SELECT FROM latest_price l WHERE l.token_id = a.token_id)
      OR EXISTS (SELECT FROM outcome o WHERE o.token_id = a.token_id) AS is_tracked
  FROM alert a LEFT JOIN token t ON t.id = a.token_id LEFT JOIN token s ON s.id = a.sell_token_id
    LEFT JOIN webhook_subscription w ON w.pk = a.webhook_pk AND (w.deleted_at IS NULL OR a.status <> 'active')`;

const FIND_ALERT = sql('find_alert', `${SELECT_ALERTS} WHERE a.account_id = $1 AND a.id = $2`);

interface AlertFilter {
  statuses?: readonly AlertStatus[];
  condition?: Condition;
  tokenMint?: string;
  /** Of the market of its outcome, or of its scope. */
  venue?: string;
  marketId?: string;
  eventId?: string;
  category?: string;
  name?: string;
  /** The public id of the subscription that the alert names. */
  webhookId?: string;
}

/** Planned per call, because a token may have few alerts and an account many, or the reverse. */
function listStatement(filter: AlertFilter, after: bigint | undefined, values: unknown[]): Statement {
  const where = ['a.account_id = $1'];
  let name = 'list_alerts';
  const add = (part: string, condition: string) => {
    name += `_${part}`;
    where.push(condition);
  };
  if (filter.statuses) add('status', `a.status = ANY ($${values.push(filter.statuses)}::text[])`);
  if (filter.condition) add('condition', `a.condition = $${values.push(filter.condition)}`);
  if (filter.tokenMint) add('token', `t.mint = $${values.push(filter.tokenMint)}`);
  for (const [part, column, wanted] of [
    ['venue', 'venue', filter.venue],
    ['market_id', 'venue_market_id', filter.marketId],
    ['event_id', 'event_id', filter.eventId],
    ['category', 'category', filter.category],
  ] as const) {
    if (wanted === undefined) continue;
    const value = `$${values.push(wanted)}::text`;
    const outcomes = 'outcome o JOIN market m ON m.id = o.market_id';
    add(
      part,
      `(a.scope ->> '${part}' = ${value}
        OR EXISTS (SELECT FROM ${outcomes} WHERE o.token_id = a.token_id AND m.${column} = ${value}))`,
    );
  }
  if (filter.name !== undefined) add('name', `a.name = $${values.push(filter.name)}`);
  if (filter.webhookId) add('webhook', `w.id = $${values.push(filter.webhookId)}`);
  if (after !== undefined) add('after', `a.pk < $${values.push(after)}::bigint`);
  return sqlPlannedPerCall(name, `${SELECT_ALERTS} WHERE ${where.join(' AND ')} ORDER BY a.pk DESC LIMIT $2`);
}

/** An alert before its creation. Its API has checked which fields belong to the condition. */
export interface NewAlert {
  /** Exactly one of token and scope is given. */
  tokenMint?: string | undefined;
  scope?: Scope | undefined;
  condition: Condition;
  /** The threshold. */
  target?: Decimal | undefined;
  direction?: Direction | undefined;
  unit?: Unit | undefined;
  windowSeconds?: number | undefined;
  windows?: number | undefined;
  states?: ResolutionState[] | undefined;
  /** The order of a condition on books. */
  side?: OrderSide | undefined;
  size?: Decimal | undefined;
  notional?: Decimal | undefined;
  sellTokenMint?: string | undefined;
  /** Absent: fires once. */
  cooldownSeconds?: number | undefined;
  expiresAt?: Date | undefined;
  name?: string | undefined;
  note?: string | undefined;
  /** The public id of one of the account's subscriptions. */
  webhookId?: string | undefined;
}

export type AlertRefusal =
  | { outcome: 'webhook_not_found' }
  | { outcome: 'webhook_not_listening' }
  /** A process of the former release runs. */
  | { outcome: 'not_known_to_all'; condition: Condition }
  /** The token is an outcome of a market, whose price is at most 1. */
  | { outcome: 'unreachable_target' }
  /** The search of the scope has no word. */
  | { outcome: 'empty_search' }
  | OrderRefusal
  /** The account has this number of active alerts on a venue, category or search. */
  | { outcome: 'too_many_scopes'; limit: number };

type AlertCreation = { outcome: 'created'; alert: Alert; markKey: bigint } | AlertRefusal;

const COUNT_WIDE = sql(
  'count_wide_scopes',
  `SELECT count(*)::int AS alerts FROM alert WHERE account_id = $1 AND ${WIDE_ALERT}`,
);

const IS_OUTCOME = sql('is_outcome', `SELECT EXISTS (SELECT FROM outcome WHERE token_id = $1) AS is_outcome`);

/**
 * Creates an active alert and, in the same transaction, the mark for the evaluator. The mark carries no price: the evaluator reads the
 * prices after it claims the mark.
 */
export async function createAlert(tx: Tx, accountId: bigint, request: NewAlert): Promise<AlertCreation> {
  const webhook = request.webhookId === undefined ? null : await useWebhook(tx, accountId, request.webhookId);
  if (webhook && 'outcome' in webhook) return webhook;
  if (!(await isKnownToAll(tx, request.condition)))
    return { outcome: 'not_known_to_all', condition: request.condition };
  const subject = await subjectOf(tx, accountId, request);
  if ('outcome' in subject) return subject;
  const { condition, cooldownSeconds = null, expiresAt = null } = request;
  const id = newId('alert');
  const probe = isRule(request) ? probeOf(request) : null;
  await tx.em.getRepository(AlertEntity).insert({
    id,
    accountId,
    ...subject,
    condition,
    target: request.target ?? null,
    direction: request.direction ?? null,
    unit: request.unit ?? null,
    windowSeconds: request.windowSeconds ?? null,
    windows: request.windows ?? null,
    states: request.states ?? null,
    side: request.side ?? null,
    size: request.size ?? null,
    notional: request.notional ?? null,
    probe,
    cooldownSeconds,
    expiresAt,
    name: request.name ?? null,
    note: request.note ?? null,
    webhookPk: webhook?.pk ?? null,
    isArmed: probe === null,
  });
  const alert = await findAlert(tx, accountId, id);
  if (!alert) throw new TypeError('an alert that was just made is missing');
  const isOnBooks = isBookCondition(condition);
  if (isOnBooks) await insertAlertBooks(tx, alert);
  const markKey = alertKey(alert);
  const cause = isOnBooks ? ({ kind: 'bookSeen' } as const) : ({ kind: 'alertCreated', alertPk: alert.pk } as const);
  await insertMarks(tx, 'evaluate-alerts', [{ key: markKey, detail: encodeCause(cause) }]);
  return { outcome: 'created', alert, markKey };
}

/** Locks the webhook of an alert against a deletion, before the lock of the alert. */
export async function useWebhook(
  tx: Tx,
  accountId: bigint,
  id: string,
): Promise<{ pk: bigint } | Extract<AlertRefusal, { outcome: `webhook_${string}` }>> {
  const subscription = await lockSubscription(tx, accountId, id, 'use');
  if (!subscription) return { outcome: 'webhook_not_found' };
  return subscription.events.includes('price_alert') ? { pk: subscription.pk } : { outcome: 'webhook_not_listening' };
}

/** Whether the evaluation of rules handles an alert. The others are the alerts of the specification. */
function isRule({ condition, scope, cooldownSeconds, expiresAt }: NewAlert): boolean {
  const isSpecified = condition === 'above' || condition === 'below';
  return !isSpecified || scope !== undefined || cooldownSeconds !== undefined || expiresAt !== undefined;
}

/** Whether no price can meet the target, because the token is an outcome. An alert without a token has a scope of outcomes. */
export async function isUnreachable(
  db: Queryable,
  { tokenId, condition }: { tokenId: bigint | null; condition: Condition },
  target: Decimal | undefined,
): Promise<boolean> {
  const isTarget = condition === 'above' || condition === 'below' || condition.startsWith('crosses_');
  if (!isTarget || target === undefined || compareDecimals(target, ONE) <= 0) return false;
  if (tokenId === null) return true;
  const [found] = await db.query<{ isOutcome: boolean }>(IS_OUTCOME, [tokenId]);
  return found?.isOutcome === true;
}

/** The refusal of one more active alert with this scope; null when the account may have it. Call it under the lock of the account. */
export async function refuseScope(
  tx: Tx,
  accountId: bigint,
  scope: Scope,
): Promise<Extract<AlertRefusal, { outcome: 'too_many_scopes' }> | null> {
  if (!isWide(scope)) return null;
  const [row] = await tx.query<{ alerts: number }>(COUNT_WIDE, [accountId]);
  return (row?.alerts ?? 0) < MAX_WIDE_SCOPES ? null : { outcome: 'too_many_scopes', limit: MAX_WIDE_SCOPES };
}

interface Subject {
  tokenId: bigint | null;
  sellTokenId: bigint | null;
  scope: Scope | null;
  scopeKey: string | null;
}

/** The tokens or the scope of an alert. */
async function subjectOf(
  tx: Tx,
  accountId: bigint,
  { tokenMint, scope, condition, target, sellTokenMint, size }: NewAlert,
): Promise<Subject | AlertRefusal> {
  if (tokenMint === undefined) {
    const scopeKey = await scopeKeyOf(tx, scope ?? {});
    if (scope === undefined || scopeKey === null) return { outcome: 'empty_search' };
    return (await refuseScope(tx, accountId, scope)) ?? { tokenId: null, sellTokenId: null, scope, scopeKey };
  }
  const refusal = isBookCondition(condition) ? await refuseOrder(tx, { tokenMint, sellTokenMint, size }) : null;
  if (refusal) return refusal;
  const tokens = await ensureTokens(tx, [tokenMint, sellTokenMint ?? []].flat(), DEFAULT_CURRENCY);
  const tokenId = tokens.get(tokenMint);
  if (tokenId === undefined) throw new TypeError('the insert of a token returned no row');
  if (await isUnreachable(tx, { tokenId, condition }, target)) return { outcome: 'unreachable_target' };
  const sellTokenId = sellTokenMint === undefined ? null : (tokens.get(sellTokenMint) ?? null);
  return { tokenId, sellTokenId, scope: null, scopeKey: null };
}

/** A page of an account's alerts, newest first; `next` is the key after which the next page starts, absent on the last page. */
export async function listAlerts(
  db: Queryable,
  accountId: bigint,
  filter: AlertFilter,
  limit: number,
  after: bigint | undefined,
): Promise<{ alerts: Alert[]; next?: bigint }> {
  const values: unknown[] = [accountId, limit + 1];
  const found = await db.query<Alert>(listStatement(filter, after, values), values);
  const alerts = found.slice(0, limit);
  const last = alerts.at(-1);
  return found.length > limit && last ? { alerts, next: last.pk } : { alerts };
}

/** One alert of an account; null when it is unknown or of another account. */
export async function findAlert(db: Queryable, accountId: bigint, id: string): Promise<Alert | null> {
  const [alert] = await db.query<Alert>(FIND_ALERT, [accountId, id]);
  return alert ?? null;
}

/** Deletes an alert and keeps the event and deliveries of a fired one. False when the account has no such alert. */
export async function deleteAlert({ em }: Repositories, accountId: bigint, id: string): Promise<boolean> {
  return (await em.getRepository(AlertEntity).delete({ id, accountId })).affected === 1;
}
