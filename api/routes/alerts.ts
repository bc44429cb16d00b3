import { z } from 'zod';
import { DEFAULT_COOLDOWN_SECONDS } from '../../src/domain/alerts/condition.ts';
import { isBookCondition, thresholdField } from '../../src/domain/alerts/conditions.ts';
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
import { readFirings, type StoredFiring } from '../../src/store/alerts/firings.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import { requireQuota } from '../access/quota.ts';
import type { RouteGroup } from '../context.ts';
import {
  type AlertBody,
  type AlertWithFiringsBody,
  alert,
  alertExample,
  alertListQuery,
  alertWithFirings,
  type CreateAlertBody,
  createAlertBody,
  createAlertExample,
} from '../contract/alert.ts';
import { deleted } from '../contract/wire.ts';
import { ApiError, invalidRequest, webhookNotFound } from '../errors.ts';
import type { WriteDeps } from '../http/deps.ts';
import { accountRoute, type Route, writeRoute } from '../http/route.ts';
import { accountList } from './account-list.ts';
import { marketVenues } from './market-scope.ts';

const MAX_FIRINGS = 100;
const tag = 'alerts';
const group: RouteGroup = { header: 'X-API-Key', scope: 'alerts' };

/** /v1/alerts: alerts (specification section 4.4). */
export function alertRoutes(deps: WriteDeps): Route[] {
  const venues = marketVenues(deps);
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
        body: { schema: createAlertBody(venues), example: createAlertExample },
        answer: { status: 201, description: 'The alert.', data: alert, example: alertExample },
        errors: ['webhook_not_found', 'quota_exceeded', 'different_currencies'],
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
        const { status, condition, tokenMint, venue, market_id, event_id, category, name, webhookId } = request.query;
        const filter = {
          ...(status && { statuses: status.toSorted() }),
          ...(condition !== undefined && { condition }),
          ...(tokenMint !== undefined && { tokenMint }),
          ...(venue !== undefined && { venue }),
          ...(market_id !== undefined && { marketId: market_id }),
          ...(event_id !== undefined && { eventId: event_id }),
          ...(category !== undefined && { category }),
          ...(name !== undefined && { name }),
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
        description: 'The newest firings come with it. An alert of another account is unknown.',
        tag,
        group,
        answer: { description: 'The alert.', data: alertWithFirings, example: alertExample },
      },
      async ({ caller, params }) => {
        const found = await findAlert(deps.db, caller.accountId, params.alert_id);
        if (!found) throw alertNotFound();
        return { data: presentWithFirings(found, await readFirings(deps.db, found.pk, MAX_FIRINGS)) };
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
export function alertNotFound(): ApiError {
  return new ApiError('alert_not_found', 'no such alert');
}

/** The alert of a checked body. */
export function toNewAlert(body: CreateAlertBody, nowMs: number): NewAlert {
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
    // Of an order, and no threshold.
    notional: isBookCondition(condition) ? notional : undefined,
    cooldownSeconds: repeat === true ? (cooldownSeconds ?? DEFAULT_COOLDOWN_SECONDS) : undefined,
    expiresAt: expires,
  };
}

export function refused(refusal: AlertRefusal): ApiError {
  switch (refusal.outcome) {
    case 'webhook_not_found':
      return webhookNotFound();
    case 'webhook_not_listening':
      return invalidRequest([{ path: 'webhookId', message: 'this webhook does not list price_alert in its events' }]);
    case 'not_known_to_all':
      return new ApiError(
        'conflict',
        `a process of the former release runs, which does not know the condition ${refusal.condition}: try again after the upgrade`,
      );
    case 'unreachable_target':
      return invalidRequest([
        { path: 'price', message: 'must be at most 1, because the price of an outcome is between 0 and 1' },
      ]);
    case 'empty_search':
      return invalidRequest([{ path: 'scope.q', message: 'must have a letter or a digit' }]);
    case 'no_book':
      return invalidRequest([
        { path: refusal.field, message: 'must be an outcome of a stored market with an orderbook' },
      ]);
    case 'different_currencies':
      return new ApiError('different_currencies', 'the two outcomes have prices in different currencies');
    case 'too_fine_size':
      return invalidRequest([{ path: 'size', message: `must have at most ${refusal.digits} digits after the point` }]);
    case 'too_many_scopes':
      return new ApiError(
        'quota_exceeded',
        `this account may have at most ${refusal.limit} active alerts on a venue, a category or a search`,
      );
  }
}

export function presentAlert(alert: Alert): AlertBody {
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
    states: alert.states ?? undefined,
    side: alert.side ?? undefined,
    size: optionalNumber(alert.size),
    ...(alert.notional !== null && { notional: numberField(alert.notional) }),
    sellTokenMint: alert.sellTokenMint ?? undefined,
    repeat: cooldownSeconds === null ? undefined : true,
    cooldownSeconds: cooldownSeconds ?? undefined,
    expiresAt: alert.expiresAt?.toISOString(),
    name: alert.name ?? undefined,
    note: alert.note ?? undefined,
    status: alert.status,
    webhookId: alert.webhookId ?? undefined,
    createdAt: alert.createdAt.toISOString(),
    triggeredAt: alert.triggeredAt?.toISOString(),
    triggeredPrice: optionalNumber(alert.triggeredPrice),
    expiredAt: alert.expiredAt?.toISOString(),
    eventId: alert.eventId ?? undefined,
    tracked: alert.isTracked,
    currency: alert.currency ?? undefined,
  };
}

const optionalNumber = (text: string | null) => (text === null ? undefined : numberField(text));

/** The firings are absent before the first one. */
function presentWithFirings(alert: Alert, firings: readonly StoredFiring[]): AlertWithFiringsBody {
  if (firings.length === 0) return presentAlert(alert);
  return {
    ...presentAlert(alert),
    firings: firings.map((one) => ({
      at: new Date(Number(one.atMs)).toISOString(),
      tokenMint: one.tokenMint ?? undefined,
      venue: one.venue ?? undefined,
      marketId: one.venueMarketId ?? undefined,
      price: optionalNumber(one.price),
      fromPrice: optionalNumber(one.fromPrice),
      value: optionalNumber(one.value),
      eventId: one.eventId,
    })),
  };
}
