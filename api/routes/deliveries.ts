import { z } from 'zod';
import { EVENT_TYPES } from '../../src/domain/event.ts';
import { DELIVERY_STATUSES, findDeliveryWithLog, listDeliveries } from '../../src/store/delivery-reads.ts';
import { recoverDeliveries, retryDelivery } from '../../src/store/delivery-recovery.ts';
import { findSubscription } from '../../src/store/subscriptions.ts';
import type { ApiDeps, ApiRouter } from '../deps.ts';
import { ApiError, invalidRequest } from '../errors.ts';
import { checkBody, param, readQuery } from '../input.ts';
import { authenticate, callerOf } from '../middleware/authenticate.ts';
import { readJsonBody } from '../middleware/json-body.ts';
import { presentDelivery, presentDeliveryWithLog } from '../present-delivery.ts';
import { sendAccountData } from '../respond.ts';
import { sendAccountList } from './account-list.ts';
import { pathParam } from './market-scope.ts';
import { webhookNotFound } from './webhooks.ts';

const DAY_MS = 86_400_000;
/** How far back a recovery may reach. */
const MAX_RECOVERY_DAYS = 14;

const WRONG_MOMENT = 'must be an ISO 8601 time with an offset, such as 2026-01-31T12:00:00.000Z, or a date';
const moment = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], WRONG_MOMENT)
  // A date is the midnight it begins with, in UTC.
  .transform((text) => new Date(text))
  .refine((at) => at.getUTCFullYear() >= 1970, WRONG_MOMENT);

const listQuery = z.object({
  limit: param.limit,
  cursor: param.cursor,
  status: z.enum(DELIVERY_STATUSES, `must be one of ${DELIVERY_STATUSES.join(', ')}`).optional(),
  eventType: z.enum(EVENT_TYPES, `must be one of ${EVENT_TYPES.join(', ')}`).optional(),
  since: moment.optional(),
});
const retryBody = z.strictObject({});
const recoverBody = z.strictObject({ since: moment });

/** /v1/webhooks/{id}/deliveries, and what brings deliveries back (DESIGN sections 4 and 8). */
export function deliveryRoutes(router: ApiRouter, deps: ApiDeps): void {
  const enter = authenticate(deps, { header: 'X-API-Key', scope: 'webhooks' });

  router.get('/v1/webhooks/:webhook_id/deliveries', enter, (ctx) => {
    const { status, eventType, since } = readQuery(ctx, listQuery);
    const webhookId = pathParam(ctx, 'webhook_id');
    const scope = JSON.stringify(['deliveries', webhookId, status, eventType, since]);
    return sendAccountList(ctx, deps, scope, async (limit, after) => {
      const filter = {
        ...(status !== undefined && { status }),
        ...(eventType !== undefined && { eventType }),
        ...(since !== undefined && { since }),
      };
      const page = await listDeliveries(deps.db, callerOf(ctx).accountId, webhookId, filter, limit, after);
      if (!page) throw webhookNotFound();
      return { items: page.deliveries.map(presentDelivery), ...(page.next !== undefined && { next: page.next }) };
    });
  });

  router.get('/v1/webhooks/:webhook_id/deliveries/:delivery_id', enter, async (ctx) => {
    const subscription = await findSubscription(deps.db, callerOf(ctx).accountId, pathParam(ctx, 'webhook_id'));
    if (!subscription) throw webhookNotFound();
    const found = await findDeliveryWithLog(deps.db, subscription.pk, pathParam(ctx, 'delivery_id'));
    if (!found) throw deliveryNotFound();
    sendAccountData(ctx, deps, 200, presentDeliveryWithLog(found));
  });

  router.post('/v1/webhooks/:webhook_id/deliveries/:delivery_id/retry', enter, async (ctx) => {
    checkBody(retryBody, await readJsonBody(ctx, { isOptional: true }));
    const [webhookId, deliveryId] = [pathParam(ctx, 'webhook_id'), pathParam(ctx, 'delivery_id')];
    const retry = await retryDelivery(deps.db, callerOf(ctx).accountId, webhookId, deliveryId);
    switch (retry.outcome) {
      case 'webhook_not_found':
        throw webhookNotFound();
      case 'delivery_not_found':
        throw deliveryNotFound();
      case 'paused':
        throw webhookPaused();
      case 'pending':
        throw new ApiError('conflict', 'this delivery is pending: it will be attempted anyway');
      case 'retried':
        deps.producer.wakeDeliveries([retry.subscriptionPk]);
        sendAccountData(ctx, deps, 202, presentDelivery(retry.delivery));
    }
  });

  router.post('/v1/webhooks/:webhook_id/recover', enter, async (ctx) => {
    const { since } = checkBody(recoverBody, await readJsonBody(ctx));
    checkReach(since, deps.now());
    const recovery = await recoverDeliveries({
      db: deps.db,
      accountId: callerOf(ctx).accountId,
      subscriptionId: pathParam(ctx, 'webhook_id'),
      since,
      onCommit: (subscriptionPk) => deps.producer.wakeDeliveries([subscriptionPk]),
    });
    switch (recovery.outcome) {
      case 'webhook_not_found':
        throw webhookNotFound();
      case 'paused':
        throw webhookPaused();
      case 'recovered':
        sendAccountData(ctx, deps, 202, { recovered: recovery.recovered });
    }
  });
}

function checkReach(since: Date, nowMs: number): void {
  const ageMs = nowMs - since.getTime();
  if (ageMs < 0) throw invalidRequest([{ path: 'since', message: 'must not be in the future' }]);
  if (ageMs > MAX_RECOVERY_DAYS * DAY_MS) {
    throw invalidRequest([{ path: 'since', message: `must not be more than ${MAX_RECOVERY_DAYS} days ago` }]);
  }
}

function deliveryNotFound(): ApiError {
  return new ApiError('not_found', 'no such delivery');
}

function webhookPaused(): ApiError {
  return new ApiError('conflict', 'this webhook is paused: set its status to active first');
}
