import { shownUrl } from '../../../src/domain/values/parse-url.ts';
import { retryDelivery } from '../../../src/store/deliveries/recovery.ts';
import { findOpsDelivery, locateDelivery, type OpsDeliveryWithLog } from '../../../src/store/ops/webhooks.ts';
import { ApiError } from '../../errors.ts';
import { presentDeliveryWithLog } from '../../routes/deliveries.ts';
import { attemptAnswers, attemptTimeline } from '../kit/attempts.ts';
import { actionButton } from '../kit/forms.ts';
import { ago, badge, code, facts, type Html, html, NONE, number, time } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { sentRequest } from '../kit/sent-request.ts';
import { deliveryState } from '../kit/shown-values.ts';
import type { OpsRequest, OpsRouter } from './actions.ts';
import { DELIVERIES_PATH } from './deliveries.ts';
import { subscriptionState, webhookPath } from './webhook.ts';

type DeliveryDeps = Pick<PageDeps, 'db' | 'producer'>;

/** /ops/deliveries/{id}: one delivery with every attempt, and the retry button. */
export function deliveryPage(router: OpsRouter, deps: DeliveryDeps): void {
  router.page({
    path: `${DELIVERIES_PATH}/:delivery_id`,
    section: 'deliveries',
    async load(request) {
      const found = await findOpsDelivery(deps.db, request.params['delivery_id'] ?? '');
      if (!found) throw new ApiError('not_found', 'the delivery does not exist, or retention has deleted it');
      return {
        title: `Delivery ${found.delivery.id}`,
        body: deliveryBody(request, found, await sentRequest(deps, found.delivery, { isCopied: false })),
      };
    },
  });

  router.action({
    path: `${DELIVERIES_PATH}/:delivery_id/retry`,
    section: 'deliveries',
    action: 'delivery.retry',
    target: ({ params }) => params['delivery_id'] ?? '',
    async inTransaction(tx, { params }) {
      const id = params['delivery_id'] ?? '';
      const place = await locateDelivery(tx, id);
      if (!place) throw new ApiError('not_found', 'the delivery does not exist');
      const retry = await retryDelivery(tx, place.accountId, place.webhookId, id);
      switch (retry.outcome) {
        case 'webhook_not_found':
          throw new ApiError('conflict', 'the webhook of this delivery was deleted');
        case 'delivery_not_found':
          throw new ApiError('not_found', 'the delivery does not exist');
        case 'paused':
          throw new ApiError('conflict', 'the webhook of this delivery is paused; resume it first');
        case 'pending':
          throw new ApiError('conflict', 'this delivery is already pending');
        case 'retried':
          return {
            result: 'The delivery is due again. The next attempt starts at once.',
            to: `${DELIVERIES_PATH}/${id}`,
            afterCommit: () => deps.producer.wakeDeliveries([retry.subscriptionPk]),
          };
      }
    },
  });
}

function deliveryBody(request: OpsRequest, found: OpsDeliveryWithLog, sent: Html): Html {
  const { delivery, subscription, isTest, isInFlight, eventCreatedAt, alertId } = found;
  const { nowMs } = request;
  const isOver = delivery.status !== 'pending';
  const log = presentDeliveryWithLog(delivery).attemptLog;
  return html`<p class="state">${deliveryState(delivery)}
${isInFlight && badge('idle', 'attempt in flight')}${isTest && badge('idle', 'test event')}</p>
${facts([
  ['Event', html`<a href="${DELIVERIES_PATH}?event=${delivery.eventId}">${code(delivery.eventId)}</a>`],
  ['Event type', delivery.eventType],
  ['Event time', html`${time(eventCreatedAt)} <span class="muted">${ago(eventCreatedAt, nowMs)}</span>`],
  ['Delivery created', html`${time(delivery.createdAt)} <span class="muted">${ago(delivery.createdAt, nowMs)}</span>`],
  ['Attempts', number(delivery.attempts)],
  [
    'Next attempt',
    isOver
      ? NONE
      : html`${time(delivery.nextAttemptAt)} <span class="muted">${ago(delivery.nextAttemptAt, nowMs)}</span>`,
  ],
  ['First delivered', time(delivery.deliveredAt)],
  ['Last status', delivery.lastStatusCode === null ? NONE : String(delivery.lastStatusCode)],
  ['Last error', code(delivery.lastError)],
  ...(alertId === null
    ? []
    : [['Fired by alert', html`<a href="/ops/alerts?id=${alertId}">${code(alertId)}</a>`] as const]),
])}
<div class="actions">${
    isOver &&
    subscription.deletedAt === null &&
    actionButton(request, {
      action: `${DELIVERIES_PATH}/${delivery.id}/retry`,
      label: delivery.status === 'delivered' ? 'Resend' : 'Retry',
      submitLabel: delivery.status === 'delivered' ? 'Resend now' : 'Retry now',
      of: `delivery ${delivery.id}`,
      confirm:
        delivery.status === 'delivered'
          ? 'The receiver has already confirmed this delivery. It gets the same event again, with the same id.'
          : 'The receiver gets the event again at once, with the same id.',
    })
  }</div>
<h2>Webhook</h2>
${facts([
  ['Webhook', html`<a href="${webhookPath(subscription.id)}">${code(subscription.id)}</a>`],
  ['Address', html`<span class="long">${shownUrl(subscription.url)}</span>`],
  ['State', subscriptionState(subscription)],
  [
    'Failing since',
    subscription.failingSince === null
      ? NONE
      : html`${time(subscription.failingSince)} <span class="muted">${ago(subscription.failingSince, nowMs)}</span>`,
  ],
  ['Account', html`<a href="${DELIVERIES_PATH}?account=${subscription.accountId}">${subscription.accountName}</a>`],
])}
<h2>Attempts</h2>
${attemptTimeline({
  log,
  count: delivery.attempts,
  createdMs: delivery.createdAt.getTime(),
  nextMs: isOver ? undefined : delivery.nextAttemptAt?.getTime(),
  nowMs,
})}
${attemptAnswers(log, { isCopied: false })}
<h2>Request</h2>
${sent}`;
}
