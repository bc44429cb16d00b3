import { z } from 'zod';
import {
  CONDITION_FIELDS,
  DEFAULT_COOLDOWN_SECONDS,
  type GivenFields,
  THRESHOLD_FIELDS,
  type ThresholdField,
} from '../../src/domain/alerts/condition.ts';
import { isBookCondition, thresholdField } from '../../src/domain/alerts/conditions.ts';
import { type Alert, createAlert, findAlert, useWebhook } from '../../src/store/alerts/alerts.ts';
import { type AlertChange, changeAlert, deleteAlerts, lockAlert } from '../../src/store/alerts/changes.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import { requireQuota } from '../access/quota.ts';
import type { Caller, RouteGroup } from '../context.ts';
import {
  alert,
  alertExample,
  type CreateAlertBody,
  type CreatedItem,
  createAlertBody,
  createAlertExample,
  createAlertsBody,
  createdItem,
  deleteAlertsBody,
  deletedItem,
  type UpdateAlertBody,
  updateAlertBody,
} from '../contract/alert.ts';
import { conditionFaults, type Fault } from '../contract/alert-conditions.ts';
import { ApiError, invalidRequest } from '../errors.ts';
import type { WriteDeps } from '../http/deps.ts';
import { bodyChecker } from '../http/input.ts';
import { accountRoute, type Route, writeRoute } from '../http/route.ts';
import { alertNotFound, presentAlert, refused, toNewAlert } from './alerts.ts';
import { marketVenues } from './market-scope.ts';

const tag = 'alerts';
const group: RouteGroup = { header: 'X-API-Key', scope: 'alerts' };

/** Changes of an alert, and creations and deletions of many. */
export function alertWriteRoutes(deps: WriteDeps): Route[] {
  const checkItem = bodyChecker(createAlertBody(marketVenues(deps)));
  return [
    accountRoute(
      {
        method: 'patch',
        path: '/v1/alerts/:alert_id',
        operationId: 'updateAlert',
        summary: 'Pause, resume or change an alert',
        description:
          'Omitted fields stay. A new field of the condition, repetition, cool-down or end, and a resumption, start the alert anew: it looks at observations from then on. A triggered or expired alert gives 409.',
        tag,
        group,
        body: { schema: updateAlertBody, example: { status: 'paused' } },
        answer: { description: 'The alert.', data: alert, example: { ...alertExample, status: 'paused' } },
        errors: ['conflict', 'webhook_not_found', 'quota_exceeded'],
      },
      async ({ caller, params, body }) => {
        const updated = await deps.db.transaction((tx) => update(tx, deps, caller, params.alert_id, body));
        if (updated.markKey !== null) deps.producer.wakeStage('evaluate-alerts', shardsOf([updated.markKey]));
        return { data: presentAlert(updated.alert) };
      },
    ),
    writeRoute(
      {
        path: '/v1/alerts/bulk/create',
        operationId: 'createAlerts',
        summary: 'Create up to 100 alerts',
        description:
          'Each item has a result of its own, in the order of the request. A wrong item does not prevent the others.',
        tag,
        group,
        body: { schema: createAlertsBody, example: { alerts: [createAlertExample] } },
        answer: {
          description: 'The results.',
          data: z.array(createdItem),
          example: [{ index: 0, alert: alertExample }],
        },
      },
      async (tx, { caller, body }) => {
        const items: CreatedItem[] = [];
        const markKeys: bigint[] = [];
        const takeOne = quotaOfMany(tx, deps, caller);
        for (const [index, item] of body.alerts.entries()) {
          try {
            const made = await createOne(tx, deps, caller, checkItem(item), takeOne);
            markKeys.push(made.markKey);
            items.push({ index, alert: presentAlert(made.alert) });
          } catch (error) {
            if (!(error instanceof ApiError) || error.status >= 500) throw error;
            const { code, message, details } = error;
            items.push({ index, error: { code, message, ...(details.length > 0 && { details: [...details] }) } });
          }
        }
        return {
          data: items,
          afterCommit: () => deps.producer.wakeStage('evaluate-alerts', shardsOf(markKeys)),
        };
      },
    ),
    writeRoute(
      {
        path: '/v1/alerts/bulk/delete',
        operationId: 'deleteAlerts',
        summary: 'Delete up to 100 alerts',
        description: 'Each id has a result of its own, in the order of the request.',
        tag,
        group,
        body: { schema: deleteAlertsBody, example: { ids: [alertExample.id] } },
        answer: {
          description: 'The results.',
          data: z.array(deletedItem),
          example: [{ id: alertExample.id, deleted: true }],
        },
      },
      async (tx, { caller, body }) => {
        const gone = await deleteAlerts(tx, caller.accountId, body.ids);
        return { data: body.ids.map((id) => ({ id, deleted: gone.has(id) })) };
      },
    ),
  ];
}

/** Nothing is written before the last check, so a failure needs no rollback of its own. */
async function createOne(tx: Tx, deps: WriteDeps, caller: Caller, body: CreateAlertBody, takeOne: () => Promise<void>) {
  const request = toNewAlert(body, deps.now());
  await takeOne();
  const made = await createAlert(tx, caller.accountId, request);
  if (made.outcome !== 'created') throw refused(made);
  return made;
}

/** Each call takes one of the quota of alerts. After a refusal the next calls throw it again without a count, because none is left. */
function quotaOfMany(tx: Tx, deps: WriteDeps, caller: Caller): () => Promise<void> {
  let refusal: unknown;
  return async () => {
    if (refusal !== undefined) throw refusal;
    try {
      await requireQuota(tx, deps, caller, 'alerts');
    } catch (error) {
      refusal = error;
      throw error;
    }
  };
}

async function update(
  tx: Tx,
  deps: WriteDeps,
  caller: Caller,
  id: string,
  body: UpdateAlertBody,
): Promise<{ alert: Alert; markKey: bigint | null }> {
  // Before the lock of the alert, as in a creation.
  const mayResume = body.status === 'active' && (await requireQuotaToResume(tx, deps, caller, id));
  const { webhookId } = body;
  const webhook = typeof webhookId === 'string' ? await useWebhook(tx, caller.accountId, webhookId) : { pk: webhookId };
  if ('outcome' in webhook) throw refused(webhook);
  const locked = await lockAlert(tx, caller.accountId, id);
  if (!locked) throw alertNotFound();
  if (body.status === 'active' && locked.alert.status === 'paused' && !mayResume) {
    throw new ApiError('conflict', 'another request paused the alert at the same time');
  }
  const change = { ...toChange(locked.alert, body, deps.now()), webhookPk: webhook.pk };
  const made = await changeAlert(tx, caller.accountId, locked, change);
  if (made.outcome === 'finished') throw new ApiError('conflict', `the alert is ${made.status}`);
  if (made.outcome === 'too_many_paused') {
    throw new ApiError('quota_exceeded', `this account may have at most ${made.limit} paused alerts`);
  }
  if (made.outcome !== 'changed') throw refused(made);
  return made;
}

/** Takes one of the quota of alerts for a paused alert; false for another one, which needs none. */
async function requireQuotaToResume(tx: Tx, deps: WriteDeps, caller: Caller, id: string): Promise<boolean> {
  const found = await findAlert(tx, caller.accountId, id);
  if (found?.status !== 'paused') return false;
  await requireQuota(tx, deps, caller, 'alerts');
  return true;
}

/** The change of a checked body. The changed alert must meet the rules of a new one. */
function toChange(found: Alert, body: UpdateAlertBody, nowMs: number): Omit<AlertChange, 'webhookPk'> {
  const { status, direction, unit, windowSeconds, windows, states, side, size, notional } = body;
  const { repeat, cooldownSeconds, expiresAt, name, note } = body;
  const isOnBooks = isBookCondition(found.condition);
  const own = thresholdField({ condition: found.condition, windows: found.windows ?? undefined });
  const isOther = (field: ThresholdField) => field !== own && !(isOnBooks && field === 'notional');
  const faults = THRESHOLD_FIELDS.filter((field) => body[field] !== undefined && isOther(field)).map((field) => ({
    path: field as string,
    message: `does not belong to the condition ${found.condition}`,
  }));
  if (faults.length === 0) {
    for (const { path, message } of changedFaults(found, body, own)) faults.push({ path: path.join('.'), message });
  }
  const repeats = repeat ?? found.cooldownSeconds !== null;
  if (cooldownSeconds !== undefined && !repeats) {
    faults.push({ path: 'cooldownSeconds', message: 'this alert does not repeat' });
  }
  if (typeof expiresAt === 'string' && new Date(expiresAt).getTime() <= nowMs) {
    faults.push({ path: 'expiresAt', message: 'must be in the future' });
  }
  if (faults.length > 0) throw invalidRequest(faults);
  return {
    status,
    target: own === null ? undefined : body[own],
    direction,
    unit,
    windowSeconds,
    windows,
    states,
    side,
    size,
    notional: isOnBooks ? notional : undefined,
    cooldownSeconds: toCooldown(found.cooldownSeconds, body),
    expiresAt: typeof expiresAt === 'string' ? new Date(expiresAt) : expiresAt,
    name,
    note,
  };
}

/** The new cool-down, null for an alert that does not repeat any more, undefined without a change. */
function toCooldown(before: number | null, { repeat, cooldownSeconds }: UpdateAlertBody): number | null | undefined {
  if (repeat === false) return before === null ? undefined : null;
  return cooldownSeconds ?? (repeat === true && before === null ? DEFAULT_COOLDOWN_SECONDS : undefined);
}

/** The faults of the fields of the condition after the change, with paths of the body. */
function changedFaults(found: Alert, body: UpdateAlertBody, own: ThresholdField | null): Fault[] {
  const fields: GivenFields = body;
  const given = Object.fromEntries(
    CONDITION_FIELDS.filter((name) => fields[name] !== undefined).map((name) => [name, fields[name] ?? undefined]),
  );
  const { direction, unit, windowSeconds, windows, states, side, size, notional, sellTokenMint, target } = found;
  // A new size replaces the notional of an order, and the reverse.
  const isNewOrder = isBookCondition(found.condition) && (body.size !== undefined || body.notional !== undefined);
  const order = isNewOrder ? {} : { size, ...(notional !== null && { notional }) };
  const before = {
    ...{ direction, unit, windowSeconds, windows, states, side, sellTokenMint, ...order },
    ...(own !== null && { [own]: target }),
  };
  const stored = Object.fromEntries(Object.entries(before).map(([name, value]) => [name, value ?? undefined]));
  return conditionFaults({ ...stored, ...given }, found.condition).map(({ path, message }) =>
    // All windows together are too long: a new length is the fault too.
    path[0] === 'windows' && given['windows'] === undefined ? { path: ['windowSeconds'], message } : { path, message },
  );
}
