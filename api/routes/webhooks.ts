import { z } from 'zod';
import type { ApiJson } from '../../src/domain/api-json.ts';
import { EVENT_TYPES, SUBSCRIBABLE_EVENTS } from '../../src/domain/event.ts';
import { newId } from '../../src/domain/ids.ts';
import { generateSecret, secretProblem } from '../../src/domain/signature.ts';
import { webhookUrlProblem } from '../../src/domain/webhook-url.ts';
import {
  deleteSubscription,
  findSubscription,
  insertSubscription,
  listSubscriptions,
  rotateSecret,
  type Subscription,
  updateSubscription,
} from '../../src/store/subscriptions.ts';
import { createTestEvent } from '../../src/store/test-events.ts';
import { type SecretBox, SecretCorruptError, SecretKeyMissingError } from '../../src/webhooks/secret-box.ts';
import type { ApiDeps, ApiRouter } from '../deps.ts';
import { ApiError } from '../errors.ts';
import { checkBody } from '../input.ts';
import { authenticate, callerOf } from '../middleware/authenticate.ts';
import { readJsonBody } from '../middleware/json-body.ts';
import { presentDelivery } from '../present-delivery.ts';
import { sendAccountData } from '../respond.ts';
import { testEventBody } from '../test-event.ts';
import { sendAccountList } from './account-list.ts';
import { pathParam } from './market-scope.ts';

const events = z
  .array(z.enum(SUBSCRIBABLE_EVENTS, `must be one of ${SUBSCRIBABLE_EVENTS.join(', ')}`), 'must be an array')
  .min(1, 'must name at least one event')
  .max(20, 'must name at most 20 events')
  .transform((names) => [...new Set(names)]);
const secret = z.string('must be a string').superRefine((text, context) => {
  const problem = secretProblem(text);
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});
const status = z.enum(['active', 'paused'], 'must be active or paused');
const rotateBody = z.strictObject({ secret: secret.optional() });
const testBody = z.strictObject({
  eventType: z.enum(EVENT_TYPES, `must be one of ${EVENT_TYPES.join(', ')}`).default('test'),
});

/** /v1/webhooks: subscriptions and their test events (spec section 4.3). */
export function webhookRoutes(router: ApiRouter, deps: ApiDeps): void {
  const enter = authenticate(deps, { header: 'X-API-Key', scope: 'webhooks' });
  const url = z.string('must be a string').superRefine((text, context) => {
    const problem = webhookUrlProblem(text, deps.webhookAllow);
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  });
  const createBody = z.strictObject({ url, events, secret: secret.optional() });
  const updateBody = z.strictObject({ url: url.optional(), events: events.optional(), status: status.optional() });

  router.post('/v1/webhooks', enter, async (ctx) => {
    const body = checkBody(createBody, await readJsonBody(ctx));
    const id = newId('wh');
    const plainSecret = body.secret ?? generateSecret();
    const made = await insertSubscription(deps.db, callerOf(ctx).accountId, {
      id,
      url: body.url,
      events: body.events,
      sealedSecret: deps.secretBox.seal(plainSecret, id),
    });
    ctx.set('Location', `/v1/webhooks/${id}`);
    const { createdAt, ...fields } = presentSubscription(made);
    sendAccountData(ctx, deps, 201, { ...fields, secret: plainSecret, createdAt });
  });

  router.get('/v1/webhooks', enter, (ctx) =>
    sendAccountList(ctx, deps, 'webhooks', async (limit, after) => {
      const { subscriptions, next } = await listSubscriptions(deps.db, callerOf(ctx).accountId, limit, after);
      // The spec's list items carry these four fields.
      const items = subscriptions.map((item): ApiJson => {
        return { id: item.id, url: item.url, events: item.events, status: item.status };
      });
      return { items, ...(next !== undefined && { next }) };
    }),
  );

  router.get('/v1/webhooks/:webhook_id', enter, async (ctx) => {
    const found = await findSubscription(deps.db, callerOf(ctx).accountId, pathParam(ctx, 'webhook_id'));
    if (!found) throw webhookNotFound();
    sendAccountData(ctx, deps, 200, presentSubscription(found));
  });

  router.put('/v1/webhooks/:webhook_id', enter, async (ctx) => {
    const body = checkBody(updateBody, await readJsonBody(ctx));
    const changed = await updateSubscription(deps.db, callerOf(ctx).accountId, pathParam(ctx, 'webhook_id'), {
      ...(body.url !== undefined && { url: body.url }),
      ...(body.events !== undefined && { events: body.events }),
      ...(body.status !== undefined && { status: body.status }),
    });
    if (!changed) throw webhookNotFound();
    sendAccountData(ctx, deps, 200, presentSubscription(changed));
  });

  router.delete('/v1/webhooks/:webhook_id', enter, async (ctx) => {
    const id = pathParam(ctx, 'webhook_id');
    if (!(await deleteSubscription(deps.db, callerOf(ctx).accountId, id))) throw webhookNotFound();
    sendAccountData(ctx, deps, 200, { id, deleted: true });
  });

  router.post('/v1/webhooks/:webhook_id/test', enter, async (ctx) => {
    const { eventType } = checkBody(testBody, await readJsonBody(ctx, { isOptional: true }));
    const webhookId = pathParam(ctx, 'webhook_id');
    const occurredAt = new Date(deps.now());
    const made = await createTestEvent(deps.db, callerOf(ctx).accountId, webhookId, eventType, (eventId) =>
      testEventBody({ eventId, type: eventType, occurredAt, webhookId }),
    );
    if (!made) throw webhookNotFound();
    deps.producer.wakeDeliveries([made.subscriptionPk]);
    sendAccountData(ctx, deps, 202, presentDelivery(made.delivery));
  });

  router.post('/v1/webhooks/:webhook_id/rotate-secret', enter, async (ctx) => {
    const body = checkBody(rotateBody, await readJsonBody(ctx, { isOptional: true }));
    const id = pathParam(ctx, 'webhook_id');
    const plainSecret = body.secret ?? generateSecret();
    const rotated = await rotateSecret(
      deps.db,
      callerOf(ctx).accountId,
      id,
      deps.secretBox.seal(plainSecret, id),
      (sealed) => body.secret !== undefined && isSealed(deps.secretBox, sealed, id, body.secret),
    );
    if (!rotated) throw webhookNotFound();
    const { createdAt, ...fields } = presentSubscription(rotated.subscription);
    const previousSecretUntil = rotated.previousSecretUntil?.toISOString();
    sendAccountData(ctx, deps, 200, { ...fields, secret: plainSecret, previousSecretUntil, createdAt });
  });
}

/** A foreign subscription answers the same. */
export function webhookNotFound(): ApiError {
  return new ApiError('webhook_not_found', 'no such webhook');
}

/** Whether the sealed value is this secret. One that cannot be opened is none that anybody could go on with. */
function isSealed(box: SecretBox, sealed: string, id: string, plain: string): boolean {
  try {
    return box.open(sealed, id) === plain;
  } catch (error) {
    if (error instanceof SecretCorruptError || error instanceof SecretKeyMissingError) return false;
    throw error;
  }
}

function presentSubscription(subscription: Subscription) {
  return {
    id: subscription.id,
    url: subscription.url,
    events: subscription.events,
    status: subscription.status,
    createdAt: subscription.createdAt.toISOString(),
    pauseReason: subscription.pauseReason ?? undefined,
  };
}
