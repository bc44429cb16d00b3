import type { AlertCondition, AlertStatus } from '../../domain/alerts/alert.ts';
import { compareDecimals, type Decimal, ONE } from '../../domain/values/decimal.ts';
import { newId } from '../../domain/values/ids.ts';
import { ensureTokens } from '../catalog/tokens.ts';
import { AlertEntity } from '../db/entities/alert.ts';
import { type Queryable, type Repositories, type Statement, sql, sqlPlannedPerCall, type Tx } from '../db/tx.ts';
import { lockSubscription } from '../deliveries/subscriptions.ts';
import { encodeCause } from '../marks/detail.ts';
import { insertMarks } from '../marks/marks.ts';

/** The owner's view of an alert. */
export interface Alert {
  pk: bigint;
  id: string;
  tokenMint: string;
  condition: AlertCondition;
  /** The target, `numeric` text in `currency`. */
  target: string;
  status: AlertStatus;
  webhookId: string | null;
  createdAt: Date;
  triggeredAt: Date | null;
  expiredAt: Date | null;
  eventId: string | null;
  /** Whether the token has a price, or a market lists it. */
  isTracked: boolean;
  currency: string;
}

/** The currency of a token without a price so far. */
const DEFAULT_CURRENCY = 'USD';

const SELECT_ALERTS = `SELECT a.pk, a.id, t.mint AS token_mint, a.condition, a.target, a.status, w.id AS webhook_id, a.created_at,
    a.triggered_at, a.expired_at, a.event_id, t.currency,
    EXISTS (SELECT FROM latest_price l WHERE l.token_id = a.token_id)
      OR EXISTS (SELECT FROM outcome o WHERE o.token_id = a.token_id) AS is_tracked
  FROM alert a JOIN token t ON t.id = a.token_id
    LEFT JOIN webhook_subscription w ON w.pk = a.webhook_pk AND (w.deleted_at IS NULL OR a.status <> 'active')`;

const FIND_ALERT = sql('find_alert', `${SELECT_ALERTS} WHERE a.account_id = $1 AND a.id = $2`);

export interface AlertFilter {
  statuses?: readonly AlertStatus[];
  condition?: AlertCondition;
  tokenMint?: string;
  /** The venue of the market of its outcome. */
  venue?: string;
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
  if (filter.venue) {
    const outcomes = 'outcome o JOIN market m ON m.id = o.market_id';
    add(
      'venue',
      `EXISTS (SELECT FROM ${outcomes} WHERE o.token_id = a.token_id AND m.venue = $${values.push(filter.venue)})`,
    );
  }
  if (filter.webhookId) add('webhook', `w.id = $${values.push(filter.webhookId)}`);
  if (after !== undefined) add('after', `a.pk < $${values.push(after)}::bigint`);
  return sqlPlannedPerCall(name, `${SELECT_ALERTS} WHERE ${where.join(' AND ')} ORDER BY a.pk DESC LIMIT $2`);
}

interface NewAlert {
  tokenMint: string;
  condition: AlertCondition;
  target: Decimal;
  /** The public id of one of the account's subscriptions. */
  webhookId?: string;
}

type AlertCreation =
  | { outcome: 'created'; alert: Alert; tokenId: bigint }
  | { outcome: 'webhook_not_found' }
  | { outcome: 'webhook_not_listening' }
  /** The token is an outcome of a market, whose price is at most 1. */
  | { outcome: 'unreachable_target' };

const IS_OUTCOME = sql('is_outcome', `SELECT EXISTS (SELECT FROM outcome WHERE token_id = $1) AS is_outcome`);

/**
 * Creates an active alert and, in the same transaction, the mark for the evaluator. The mark carries no price: the evaluator reads the
 * prices after it claims the mark.
 */
export async function createAlert(tx: Tx, accountId: bigint, request: NewAlert): Promise<AlertCreation> {
  let webhookPk: bigint | null = null;
  if (request.webhookId !== undefined) {
    const subscription = await lockSubscription(tx, accountId, request.webhookId, 'use');
    if (!subscription) return { outcome: 'webhook_not_found' };
    if (!subscription.events.includes('price_alert')) return { outcome: 'webhook_not_listening' };
    webhookPk = subscription.pk;
  }
  const tokens = await ensureTokens(tx, [request.tokenMint], DEFAULT_CURRENCY);
  const tokenId = tokens.get(request.tokenMint);
  if (tokenId === undefined) throw new TypeError('the insert of a token returned no row');
  const { condition, target } = request;
  if (compareDecimals(target, ONE) > 0) {
    const [found] = await tx.query<{ isOutcome: boolean }>(IS_OUTCOME, [tokenId]);
    if (found?.isOutcome) return { outcome: 'unreachable_target' };
  }
  const id = newId('alert');
  await tx.em.getRepository(AlertEntity).insert({ id, accountId, tokenId, condition, target, webhookPk });
  const alert = await findAlert(tx, accountId, id);
  if (!alert) throw new TypeError('an alert that was just made is missing');
  const detail = encodeCause({ kind: 'alertCreated', alertPk: alert.pk });
  await insertMarks(tx, 'evaluate-alerts', [{ key: tokenId, detail }]);
  return { outcome: 'created', alert, tokenId };
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
