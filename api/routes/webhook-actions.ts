import { EVENTS } from '../../src/domain/events/events.ts';
import { generateSecret } from '../../src/domain/webhooks/signature.ts';
import { createTestEvent } from '../../src/store/deliveries/events.ts';
import { rotateSecret } from '../../src/store/deliveries/subscriptions.ts';
import { type SecretBox, SecretCorruptError } from '../../src/webhooks/secret-box.ts';
import { delivery, deliveryExample } from '../contract/delivery.ts';
import { rotateBody, rotatedWebhook, rotatedWebhookExample, testBody } from '../contract/webhook.ts';
import { webhookNotFound } from '../errors.ts';
import type { WriteDeps } from '../http/deps.ts';
import { type Route, WEBHOOKS_GROUP, writeRoute } from '../http/route.ts';
import { presentDelivery } from './deliveries.ts';
import { presentSubscription } from './webhooks.ts';

const tag = 'webhooks';
const group = WEBHOOKS_GROUP;

/** Actions on a subscription: test events and new secrets (specification section 4.3). */
export function webhookActionRoutes(deps: WriteDeps): Route[] {
  return [
    writeRoute(
      {
        path: '/v1/webhooks/:webhook_id/test',
        operationId: 'testWebhook',
        summary: 'Send a test event',
        description: 'Makes one attempt, also while the webhook is paused, and changes no failure counter.',
        tag,
        group,
        body: { schema: testBody, example: { eventType: 'price_alert' }, isOptional: true },
        answer: {
          status: 202,
          description: 'The delivery.',
          data: delivery,
          example: {
            id: deliveryExample.id,
            eventId: deliveryExample.eventId,
            eventType: 'price_alert',
            status: 'pending',
            attempts: 0,
            createdAt: deliveryExample.createdAt,
            nextAttemptAt: deliveryExample.createdAt,
          },
        },
      },
      async (tx, { caller, params: { webhook_id: webhookId }, body: { eventType } }) => {
        const occurredAt = new Date(deps.now());
        const made = await createTestEvent(tx, caller.accountId, webhookId, eventType, (eventId) =>
          EVENTS[eventType].sample({ eventId, occurredAt }, webhookId),
        );
        if (!made) throw webhookNotFound();
        return {
          data: presentDelivery(made.delivery),
          afterCommit: () => deps.producer.wakeDeliveries([made.subscriptionPk]),
        };
      },
    ),
    writeRoute(
      {
        path: '/v1/webhooks/:webhook_id/rotate-secret',
        operationId: 'rotateWebhookSecret',
        recordedAs: 'webhook.rotate_secret',
        summary: 'Rotate the secret of a webhook',
        description:
          'For 24 hours `webhook-signature` carries signatures with both the new and the previous secret. `X-Webhook-Signature` uses the ' +
          'new secret at once. A repeated request with the same `secret` changes nothing.',
        tag,
        group,
        body: { schema: rotateBody, example: {}, isOptional: true },
        answer: {
          description: 'The webhook with its new secret, which no other answer contains.',
          data: rotatedWebhook,
          example: rotatedWebhookExample,
        },
      },
      async (tx, { caller, params: { webhook_id: id }, body }) => {
        const plainSecret = body.secret ?? generateSecret();
        const rotated = await rotateSecret(
          tx,
          caller.accountId,
          id,
          deps.secretBox.seal(plainSecret, id),
          (sealed) => body.secret !== undefined && isSealed(deps.secretBox, sealed, id, body.secret),
        );
        if (!rotated) throw webhookNotFound();
        const { createdAt, ...fields } = presentSubscription(rotated.subscription);
        const previousSecretUntil = rotated.previousSecretUntil?.toISOString();
        return { data: { ...fields, secret: plainSecret, previousSecretUntil, createdAt } };
      },
    ),
  ];
}

/**
 * Whether the sealed value is this secret. A corrupt value never matches, so the rotation replaces it.
 * @throws SecretKeyMissingError because a repeated rotation must not replace the previous secret
 */
function isSealed(box: SecretBox, sealed: string, id: string, plain: string): boolean {
  try {
    return box.open(sealed, id) === plain;
  } catch (error) {
    if (error instanceof SecretCorruptError) return false;
    throw error;
  }
}
