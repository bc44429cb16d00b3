import type { AlertCondition, AlertStatus } from '../../domain/alerts/alert.ts';
import type { Decimal } from '../../domain/values/decimal.ts';
import { newId } from '../../domain/values/ids.ts';
import { ensureTokens } from '../catalog/tokens.ts';
import { AlertEntity } from '../db/entities/alert.ts';
import { type Database, type Queryable, sql, type Tx } from '../db/tx.ts';
import { lockSubscription } from '../deliveries/subscriptions.ts';
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
  eventId: string | null;
  /** Whether the token has a price, or a market lists it. */
  isTracked: boolean;
  currency: string;
}

/** The currency of a token without a price so far. */
const DEFAULT_CURRENCY = 'USD';

const SELECT_ALERTS = `SELECT a.pk, a.id, t.mint AS token_mint, a.condition, a.target, a.status, w.id AS webhook_id, a.created_at,
    a.triggered_at, a.event_id, t.currency,
    EXISTS (SELECT FROM latest_price l WHERE l.token_id = a.token_id)
      OR EXISTS (SELECT FROM outcome o WHERE o.token_id = a.token_id) AS is_tracked
  FROM alert a JOIN token t ON t.id = a.token_id LEFT JOIN webhook_subscription w ON w.pk = a.webhook_pk`;

const FIND_ALERT = sql('find_alert', `${SELECT_ALERTS} WHERE a.account_id = $1 AND a.id = $2`);
const LIST_ALERTS = sql('list_alerts', `${SELECT_ALERTS} WHERE a.account_id = $1 ORDER BY a.pk DESC LIMIT $2`);
const LIST_ALERTS_AFTER = sql(
  'list_alerts_after',
  `${SELECT_ALERTS} WHERE a.account_id = $1 AND a.pk < $3 ORDER BY a.pk DESC LIMIT $2`,
);

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
  | { outcome: 'webhook_not_listening' };

/**
 * Creates an active alert and, in the same transaction, the mark for the evaluator. The mark carries no price: the evaluator reads the
 * prices after it claims the mark.
 */
export async function createAlert(tx: Tx, accountId: bigint, request: NewAlert): Promise<AlertCreation> {
  let webhookPk: bigint | undefined;
  if (request.webhookId !== undefined) {
    const subscription = await lockSubscription(tx, accountId, request.webhookId, 'use');
    if (!subscription) return { outcome: 'webhook_not_found' };
    if (!subscription.events.includes('price_alert')) return { outcome: 'webhook_not_listening' };
    webhookPk = subscription.pk;
  }
  const tokens = await ensureTokens(tx, [request.tokenMint], DEFAULT_CURRENCY);
  const tokenId = tokens.get(request.tokenMint);
  if (tokenId === undefined) throw new TypeError('the insert of a token returned no row');
  const id = newId('alert');
  const inserted = await tx.em.getRepository(AlertEntity).insert({
    id,
    accountId: String(accountId),
    tokenId: String(tokenId),
    condition: request.condition,
    target: request.target,
    ...(webhookPk !== undefined && { webhookPk: String(webhookPk) }),
  });
  const pk = BigInt(inserted.identifiers[0]?.['pk'] as string);
  await insertMarks(tx, 'evaluate-alerts', [{ key: tokenId, detail: -pk }]);
  const [alert] = await tx.query<Alert>(FIND_ALERT, [accountId, id]);
  if (!alert) throw new TypeError('an alert that was just made is missing');
  return { outcome: 'created', alert, tokenId };
}

/** A page of an account's alerts, newest first; `next` is the key after which the next page starts, absent on the last page. */
export async function listAlerts(
  db: Queryable,
  accountId: bigint,
  limit: number,
  after: bigint | undefined,
): Promise<{ alerts: Alert[]; next?: bigint }> {
  const found =
    after === undefined
      ? await db.query<Alert>(LIST_ALERTS, [accountId, limit + 1])
      : await db.query<Alert>(LIST_ALERTS_AFTER, [accountId, limit + 1, after]);
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
export async function deleteAlert(db: Database, accountId: bigint, id: string): Promise<boolean> {
  const result = await db.dataSource.getRepository(AlertEntity).delete({ id, accountId: String(accountId) });
  return result.affected === 1;
}
