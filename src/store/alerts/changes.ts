import type { AlertStatus, Direction, Unit } from '../../domain/alerts/condition.ts';
import { isBookCondition, probeOf } from '../../domain/alerts/conditions.ts';
import type { OrderSide } from '../../domain/markets/market.ts';
import type { ResolutionState } from '../../domain/markets/resolution.ts';
import type { Decimal } from '../../domain/values/decimal.ts';
import { AlertEntity, type FormerRule } from '../db/entities/alert.ts';
import { sql, type Tx } from '../db/tx.ts';
import { alertKey, encodeCause } from '../marks/detail.ts';
import { insertMarks } from '../marks/marks.ts';
import { type Alert, type AlertRefusal, findAlert, isUnreachable, refuseScope } from './alerts.ts';
import { insertAlertBooks, isStartOpen } from './books/alert-books.ts';
import { type OrderRefusal, refuseOrder } from './books/order-outcomes.ts';
import { pendingSince } from './expiry.ts';
import { isKnownToAll } from './former-processes.ts';

/** The changed fields of an alert; null removes an optional one. */
export interface AlertChange {
  status?: 'active' | 'paused' | undefined;
  target?: Decimal | undefined;
  direction?: Direction | null | undefined;
  unit?: Unit | undefined;
  windowSeconds?: number | undefined;
  windows?: number | undefined;
  states?: ResolutionState[] | undefined;
  side?: OrderSide | undefined;
  /** A new size replaces the notional, and the reverse. */
  size?: Decimal | undefined;
  notional?: Decimal | undefined;
  /** Null: the alert does not repeat any more. */
  cooldownSeconds?: number | null | undefined;
  expiresAt?: Date | null | undefined;
  name?: string | null | undefined;
  note?: string | null | undefined;
  /** Null: the default webhook. */
  webhookPk?: bigint | null | undefined;
}

type AlertUpdate =
  | { outcome: 'changed'; alert: Alert; markKey: bigint | null }
  /** It has fired for the only time, or expired. */
  | { outcome: 'finished'; status: AlertStatus }
  | Extract<AlertRefusal, { outcome: 'unreachable_target' | 'too_many_scopes' | 'not_known_to_all' }>
  | OrderRefusal
  /** The account has this number of paused alerts. */
  | { outcome: 'too_many_paused'; limit: number };

/** They have no quota, so that an account can always pause all its active ones. Concurrent pauses may exceed it by their number. */
const MAX_PAUSED_PER_ACCOUNT = 100_000;

const COUNT_PAUSED = sql(
  'count_paused_alerts',
  `SELECT count(*)::int AS alerts FROM (SELECT FROM alert WHERE account_id = $1 AND status = 'paused' LIMIT ${MAX_PAUSED_PER_ACCOUNT}) p`,
);

const LOCK_ALERT = sql(
  'lock_alert',
  `SELECT pk, date_trunc('milliseconds', clock_timestamp()) AS now FROM alert WHERE account_id = $1 AND id = $2 FOR UPDATE`,
);

/** Locks the alert against firings until the transaction ends; null when the account has no such alert. */
export async function lockAlert(tx: Tx, accountId: bigint, id: string): Promise<{ alert: Alert; now: Date } | null> {
  const [row] = await tx.query<{ now: Date }>(LOCK_ALERT, [accountId, id]);
  const alert = row ? await findAlert(tx, accountId, id) : null;
  return row && alert ? { alert, now: row.now } : null;
}

/** The first moment whose observations may wait for their evaluation, and whether the mark of the alert itself waits. */
const PENDING = sql(
  'pending_of_alert',
  `SELECT floor(extract(epoch FROM ${pendingSince('$3::timestamptz')}) * 1000)::bigint AS from_ms,
     EXISTS (SELECT FROM mark WHERE stage = 'evaluate-alerts' AND key = $1 AND detail = $2) AS is_new`,
);

/** The older ones of more changes than these, while the evaluation is behind, have no effect any more. */
const MAX_FORMER = 50;

/** The same for a condition on books, whose cursors state the judged part. */
async function withPresentOrder(tx: Tx, alert: Alert, now: Date): Promise<FormerRule[]> {
  const { target, direction, side, size, notional, cooldownSeconds, expiresAt } = alert;
  const present: FormerRule = {
    ...{ target, direction, side, size, notional, cooldownSeconds, unit: null, windowSeconds: null, windows: null },
    isWhole: await isStartOpen(tx, alert.pk),
    fromMs: (alert.changedAt ?? alert.createdAt).getTime(),
    untilMs: Math.min(now.getTime(), expiresAt?.getTime() ?? Number.POSITIVE_INFINITY),
  };
  return [...(alert.formerOrders ?? []), present].slice(-MAX_FORMER);
}

/** The former conditions of an alert with the present one, which ends now. */
async function withPresent(tx: Tx, alert: Alert, now: Date): Promise<FormerRule[]> {
  const cause = encodeCause({ kind: 'alertCreated', alertPk: alert.pk });
  const [pending] = await tx.query<{ fromMs: bigint; isNew: boolean }>(PENDING, [alertKey(alert), cause, now]);
  const startMs = (alert.changedAt ?? alert.createdAt).getTime();
  const isWhole = !alert.isArmed || pending?.isNew !== false;
  const { target, direction, unit, windowSeconds, windows, states, cooldownSeconds, expiresAt } = alert;
  const present: FormerRule = {
    ...{ target, direction, unit, windowSeconds, windows, states, cooldownSeconds, isWhole },
    fromMs: isWhole ? startMs : Math.max(startMs, Number(pending?.fromMs)),
    untilMs: Math.min(now.getTime(), expiresAt?.getTime() ?? Number.POSITIVE_INFINITY),
  };
  return [...(alert.former ?? []), present].slice(-MAX_FORMER);
}

/**
 * Changes a locked alert. A new condition and a resumption start it anew: it looks at observations from then on, and like a new alert at
 * the quote in effect. Observations before a change or a pause still count under the condition of their time, also when their evaluation
 * comes later. An alert of the specification continues as an alert with a probe, which has a start of its own. A caller that resumes holds
 * the lock of the account.
 */
export async function changeAlert(
  tx: Tx,
  accountId: bigint,
  { alert, now }: { alert: Alert; now: Date },
  change: AlertChange,
): Promise<AlertUpdate> {
  if (alert.status !== 'active' && alert.status !== 'paused') return { outcome: 'finished', status: alert.status };
  const { status = alert.status, target, direction, unit, windowSeconds, windows, states } = change;
  const { side, size, notional, cooldownSeconds, expiresAt, name, note, webhookPk } = change;
  const isOnBooks = isBookCondition(alert.condition);
  if (!(await isKnownToAll(tx, alert.condition))) return { outcome: 'not_known_to_all', condition: alert.condition };
  if (await isUnreachable(tx, alert, target)) return { outcome: 'unreachable_target' };
  const finer = size === undefined ? null : await refuseOrder(tx, orderOf(alert, size));
  if (finer) return finer;
  const isResumed = status === 'active' && alert.status === 'paused';
  const isPaused = status === 'paused' && alert.status === 'active';
  const refusal = isResumed && alert.scope !== null ? await refuseScope(tx, accountId, alert.scope) : null;
  if (refusal) return refusal;
  if (isPaused) {
    const [paused] = await tx.query<{ alerts: number }>(COUNT_PAUSED, [accountId]);
    const limit = MAX_PAUSED_PER_ACCOUNT;
    if ((paused?.alerts ?? 0) >= limit) return { outcome: 'too_many_paused', limit };
  }
  const condition = { target, direction, unit, windowSeconds, windows, states, side, size, notional };
  const isAnew =
    isResumed ||
    isPaused ||
    Object.values({ ...condition, cooldownSeconds, expiresAt }).some((value) => value !== undefined);
  const probe = probeOf({
    condition: alert.condition,
    direction: (direction === undefined ? alert.direction : direction) ?? undefined,
    unit: unit ?? alert.unit ?? undefined,
    windowSeconds: windowSeconds ?? alert.windowSeconds ?? undefined,
    windows: windows ?? alert.windows ?? undefined,
  });
  // On a token, an alert without repetition fires once: it has.
  const hasEnded = cooldownSeconds === null && alert.tokenId !== null && alert.triggeredAt !== null;
  const fields = {
    status: hasEnded ? ('triggered' as const) : status,
    ...(target !== undefined && { target }),
    ...(direction !== undefined && { direction }),
    ...(unit !== undefined && { unit }),
    ...(windowSeconds !== undefined && { windowSeconds }),
    ...(windows !== undefined && { windows }),
    ...(states !== undefined && { states }),
    ...(side !== undefined && { side }),
    ...(size !== undefined && { size, notional: null }),
    ...(notional !== undefined && { notional, size: null }),
    ...(webhookPk !== undefined && { webhookPk }),
    ...(cooldownSeconds !== undefined && { cooldownSeconds }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(name !== undefined && { name }),
    ...(note !== undefined && { note }),
    ...(isAnew && { probe, isArmed: false, changedAt: now }),
    ...(isAnew &&
      alert.status === 'active' &&
      (isOnBooks
        ? { formerOrders: await withPresentOrder(tx, alert, now) }
        : { former: await withPresent(tx, alert, now) })),
  };
  await tx.em.getRepository(AlertEntity).update({ pk: alert.pk }, fields);
  const changed = await findAlert(tx, accountId, alert.id);
  if (!changed) throw new TypeError('a locked alert is missing');
  const isEvaluated = changed.status === 'active' || changed.former !== null || changed.formerOrders !== null;
  if (!isAnew || !isEvaluated) return { outcome: 'changed', alert: changed, markKey: null };
  const markKey = alertKey(changed);
  if (isOnBooks) await insertAlertBooks(tx, changed);
  const cause = isOnBooks ? ({ kind: 'bookSeen' } as const) : ({ kind: 'alertCreated', alertPk: changed.pk } as const);
  await insertMarks(tx, 'evaluate-alerts', [{ key: markKey, detail: encodeCause(cause) }]);
  return { outcome: 'changed', alert: changed, markKey };
}

/** The order of an alert with another size. */
function orderOf({ tokenMint, sellTokenMint }: Alert, size: Decimal): Parameters<typeof refuseOrder>[1] {
  return { tokenMint: tokenMint ?? '', sellTokenMint: sellTokenMint ?? undefined, size };
}

const DELETE_ALERTS = sql(
  'delete_alerts',
  `DELETE FROM alert WHERE pk IN (
     SELECT pk FROM alert WHERE account_id = $1 AND id = ANY ($2::text[]) ORDER BY pk FOR UPDATE) RETURNING id`,
);

/** Deletes these alerts of an account; returns the ids of the ones that existed. Events and deliveries stay. */
export async function deleteAlerts(tx: Tx, accountId: bigint, ids: readonly string[]): Promise<Set<string>> {
  const rows = await tx.query<{ id: string }>(DELETE_ALERTS, [accountId, ids]);
  return new Set(rows.map(({ id }) => id));
}
