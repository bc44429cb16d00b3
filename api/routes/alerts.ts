import { z } from 'zod';
import { DEFAULT_COOLDOWN_SECONDS } from '../../src/domain/alerts/alert.ts';
import { thresholdField } from '../../src/domain/alerts/rule-event.ts';
import { numberField } from '../../src/domain/values/api-json.ts';
import {
  type Alert,
  type AlertRefusal,
  createAlert,
  deleteAlert,
  findAlert,
  listAlerts,
  type NewAlert,
} from '../../src/store/alerts/alerts.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import { requireQuota } from '../access/quota.ts';
import {
  type AlertBody,
  alert,
  alertExample,
  alertListQuery,
  type CreateAlertBody,
  createAlertBody,
  createAlertExample,
} from '../contract/alert.ts';
import { deleted } from '../contract/envelope.ts';
import type { ApiDeps, RouteGroup } from '../deps.ts';
import { ApiError, invalidRequest } from '../errors.ts';
import { accountRoute, type Route, writeRoute } from '../http/route.ts';
import { accountList } from './account-list.ts';
import { webhookNotFound } from './webhooks.ts';

const tag = 'alerts';
const group: RouteGroup = { header: 'X-API-Key', scope: 'alerts' };

/** /v1/alerts: alerts (specification section 4.4). */
export function alertRoutes(deps: ApiDeps): Route[] {
  const venues = deps.venues.filter(({ capabilities }) => capabilities.markets).map(({ venue }) => venue);
  return [
    writeRoute(
      {
        path: '/v1/alerts',
        operationId: 'createAlert',
        summary: 'Create an alert',
        description:
          'The alert fires once, at the first observation that meets its condition; with `repeat` again after each cool-down. Which fields belong to a condition: docs/alerts.md.',
        tag,
        group,
        body: { schema: createAlertBody, example: createAlertExample },
        answer: { status: 201, description: 'The alert.', data: alert, example: alertExample },
        errors: ['webhook_not_found', 'quota_exceeded'],
      },
      async (tx, { caller, body }) => {
        await requireQuota(tx, deps, caller, 'alerts');
        const made = await createAlert(tx, caller.accountId, toNewAlert(body, deps.now()));
        if (made.outcome !== 'created') throw refused(made);
        return {
          data: presentAlert(made.alert),
          location: `/v1/alerts/${made.alert.id}`,
          afterCommit: () => deps.producer.wakeStage('evaluate-alerts', shardsOf([made.markKey])),
        };
      },
    ),
    accountRoute(
      {
        method: 'get',
        path: '/v1/alerts',
        operationId: 'listAlerts',
        summary: 'List alerts, newest first',
        description: 'All filters combine. `status` takes several values.',
        tag,
        group,
        query: alertListQuery(venues),
        answer: { description: 'Alerts.', data: z.array(alert), example: [alertExample], isPaged: true },
        errors: ['invalid_cursor'],
      },
      (request) => {
        const { status, condition, tokenMint, venue, webhookId } = request.query;
        const filter = {
          ...(status && { statuses: status.toSorted() }),
          ...(condition !== undefined && { condition }),
          ...(tokenMint !== undefined && { tokenMint }),
          ...(venue !== undefined && { venue }),
          ...(webhookId !== undefined && { webhookId }),
        };
        return accountList(request, deps, ['alerts', filter], async (limit, after) => {
          const { alerts, next } = await listAlerts(deps.db, request.caller.accountId, filter, limit, after);
          return { items: alerts.map(presentAlert), next };
        });
      },
    ),
    accountRoute(
      {
        method: 'get',
        path: '/v1/alerts/:alert_id',
        operationId: 'getAlert',
        summary: 'Read an alert',
        description: 'An alert of another account is unknown.',
        tag,
        group,
        answer: { description: 'The alert.', data: alert, example: alertExample },
      },
      async ({ caller, params }) => {
        const found = await findAlert(deps.db, caller.accountId, params.alert_id);
        if (!found) throw alertNotFound();
        return { data: presentAlert(found) };
      },
    ),
    accountRoute(
      {
        method: 'delete',
        path: '/v1/alerts/:alert_id',
        operationId: 'deleteAlert',
        summary: 'Delete an alert',
        description: 'The event and the deliveries of an alert that fired stay.',
        tag,
        group,
        answer: { description: 'Deleted.', data: deleted, example: { id: alertExample.id, deleted: true } },
      },
      async ({ caller, params: { alert_id: id } }) => {
        if (!(await deleteAlert(deps.db, caller.accountId, id))) throw alertNotFound();
        return { data: { id, deleted: true } };
      },
    ),
  ];
}

/** An alert of another account gets the same answer. */
function alertNotFound(): ApiError {
  return new ApiError('alert_not_found', 'no such alert');
}

/** The alert of a checked body. */
function toNewAlert(body: CreateAlertBody, nowMs: number): NewAlert {
  const { condition, price, change, notional, times, repeat, cooldownSeconds, expiresAt, ...rest } = body;
  if (condition === undefined) throw new TypeError('a checked body has a condition');
  const expires = expiresAt === undefined ? undefined : new Date(expiresAt);
  if (expires !== undefined && expires.getTime() <= nowMs) {
    throw invalidRequest([{ path: 'expiresAt', message: 'must be in the future' }]);
  }
  return {
    ...rest,
    condition,
    target: price ?? change ?? notional ?? times,
    cooldownSeconds: repeat === true ? (cooldownSeconds ?? DEFAULT_COOLDOWN_SECONDS) : undefined,
    expiresAt: expires,
  };
}

function refused(refusal: AlertRefusal): ApiError {
  switch (refusal.outcome) {
    case 'webhook_not_found':
      return webhookNotFound();
    case 'webhook_not_listening':
      return invalidRequest([{ path: 'webhookId', message: 'this webhook does not list price_alert in its events' }]);
    case 'unreachable_target':
      return invalidRequest([
        { path: 'price', message: 'must be at most 1, because the price of an outcome is between 0 and 1' },
      ]);
    case 'empty_search':
      return invalidRequest([{ path: 'scope.q', message: 'must have a letter or a digit' }]);
    case 'too_many_scopes':
      return new ApiError(
        'quota_exceeded',
        `this account may have at most ${refusal.limit} active alerts on a venue, a category or a search`,
      );
  }
}

function presentAlert(alert: Alert): AlertBody {
  const { condition, windows, target, scope, cooldownSeconds } = alert;
  const field = thresholdField({ condition, windows: windows ?? undefined });
  return {
    id: alert.id,
    tokenMint: alert.tokenMint ?? undefined,
    scope: scope ?? undefined,
    condition,
    ...(field !== null && target !== null && { [field]: numberField(target) }),
    direction: alert.direction ?? undefined,
    unit: alert.unit ?? undefined,
    windowSeconds: alert.windowSeconds ?? undefined,
    windows: windows ?? undefined,
    repeat: cooldownSeconds === null ? undefined : true,
    cooldownSeconds: cooldownSeconds ?? undefined,
    expiresAt: alert.expiresAt?.toISOString(),
    name: alert.name ?? undefined,
    note: alert.note ?? undefined,
    status: alert.status,
    webhookId: alert.webhookId ?? undefined,
    createdAt: alert.createdAt.toISOString(),
    triggeredAt: alert.triggeredAt?.toISOString(),
    expiredAt: alert.expiredAt?.toISOString(),
    eventId: alert.eventId ?? undefined,
    tracked: alert.isTracked,
    currency: alert.currency ?? undefined,
  };
}
