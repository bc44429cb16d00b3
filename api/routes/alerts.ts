import { z } from 'zod';
import { ALERT_CONDITIONS } from '../../src/domain/alert.ts';
import { type ApiJson, numberField } from '../../src/domain/api-json.ts';
import { compareDecimals, decimal, ZERO } from '../../src/domain/decimal.ts';
import { type Alert, createAlert, deleteAlert, findAlert, listAlerts } from '../../src/store/alerts.ts';
import { shardsOf } from '../../src/store/marks.ts';
import type { ApiDeps, ApiRouter } from '../deps.ts';
import { ApiError, invalidRequest } from '../errors.ts';
import { checkBody } from '../input.ts';
import { authenticate, callerOf } from '../middleware/authenticate.ts';
import { readJsonBody } from '../middleware/json-body.ts';
import { sendAccountData } from '../respond.ts';
import { sendAccountList } from './account-list.ts';
import { pathParam } from './market-scope.ts';
import { webhookNotFound } from './webhooks.ts';

const createBody = z.strictObject({
  tokenMint: z
    .string('must be a string')
    .min(1, 'must not be empty')
    .max(256, 'must have at most 256 characters')
    .regex(/^[^\s\p{Cc}]*$/u, 'must not hold spaces or control characters'),
  condition: z.enum(ALERT_CONDITIONS, 'must be above or below'),
  price: z
    .number('must be a number')
    .transform((price) => decimal(price))
    .refine((price) => compareDecimals(price, ZERO) > 0, 'must be greater than 0'),
  webhookId: z
    .string('must be a string')
    .min(1, 'must not be empty')
    .max(256, 'must have at most 256 characters')
    .optional(),
});

/** /v1/alerts: price alerts (spec section 4.4, DESIGN section 7). */
export function alertRoutes(router: ApiRouter, deps: ApiDeps): void {
  const enter = authenticate(deps, { header: 'X-API-Key', scope: 'alerts' });

  router.post('/v1/alerts', enter, async (ctx) => {
    const body = checkBody(createBody, await readJsonBody(ctx));
    const made = await createAlert(deps.db, callerOf(ctx).accountId, {
      tokenMint: body.tokenMint,
      condition: body.condition,
      target: body.price,
      ...(body.webhookId !== undefined && { webhookId: body.webhookId }),
    });
    if (made.outcome === 'webhook_not_found') throw webhookNotFound();
    if (made.outcome === 'webhook_not_listening') {
      throw invalidRequest([{ path: 'webhookId', message: 'this webhook does not list price_alert in its events' }]);
    }
    deps.producer.wakeStage('evaluate-alerts', shardsOf([made.tokenId]));
    ctx.set('Location', `/v1/alerts/${made.alert.id}`);
    sendAccountData(ctx, deps, 201, presentAlert(made.alert));
  });

  router.get('/v1/alerts', enter, (ctx) =>
    sendAccountList(ctx, deps, 'alerts', async (limit, after) => {
      const { alerts, next } = await listAlerts(deps.db, callerOf(ctx).accountId, limit, after);
      return { items: alerts.map(presentAlert), ...(next !== undefined && { next }) };
    }),
  );

  router.get('/v1/alerts/:alert_id', enter, async (ctx) => {
    const found = await findAlert(deps.db, callerOf(ctx).accountId, pathParam(ctx, 'alert_id'));
    if (!found) throw alertNotFound();
    sendAccountData(ctx, deps, 200, presentAlert(found));
  });

  router.delete('/v1/alerts/:alert_id', enter, async (ctx) => {
    const id = pathParam(ctx, 'alert_id');
    if (!(await deleteAlert(deps.db, callerOf(ctx).accountId, id))) throw alertNotFound();
    sendAccountData(ctx, deps, 200, { id, deleted: true });
  });
}

/** A foreign alert answers the same. */
function alertNotFound(): ApiError {
  return new ApiError('alert_not_found', 'no such alert');
}

function presentAlert(alert: Alert): ApiJson {
  return {
    id: alert.id,
    tokenMint: alert.tokenMint,
    condition: alert.condition,
    price: numberField(alert.target),
    status: alert.status,
    webhookId: alert.webhookId ?? undefined,
    createdAt: alert.createdAt.toISOString(),
    triggeredAt: alert.triggeredAt?.toISOString(),
    eventId: alert.eventId ?? undefined,
    tracked: alert.isTracked,
    currency: alert.currency,
  };
}
