import { z } from 'zod';
import { createAlert, deleteAlert, findAlert, listAlerts } from '../../src/store/alerts/alerts.ts';
import { readFirings } from '../../src/store/alerts/firings.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import { requireQuota } from '../access/quota.ts';
import type { RouteGroup } from '../context.ts';
import {
  alert,
  alertExample,
  alertListQuery,
  alertWithFirings,
  createAlertBody,
  createAlertExample,
} from '../contract/alert.ts';
import { deleted } from '../contract/envelope.ts';
import { accountRoute, type Route, writeRoute } from '../http/route.ts';
import type { WriteDeps } from '../http/write-deps.ts';
import { accountList } from './account-list.ts';
import { alertNotFound, presentAlert, presentWithFirings, refused, toNewAlert } from './alert-bodies.ts';
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
