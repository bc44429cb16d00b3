import { DAY_MS } from '../../../src/domain/values/durations.ts';
import { shownUrl } from '../../../src/domain/values/parse-url.ts';
import { recoverDeliveries } from '../../../src/store/deliveries/recovery.ts';
import { updateSubscription } from '../../../src/store/deliveries/subscriptions.ts';
import {
  type FailedAttempt,
  findOpsSubscription,
  MAX_COUNTED_PENDING,
  type OpsSubscription,
  readWebhookActivity,
  type WebhookActivity,
} from '../../../src/store/ops/webhooks.ts';
import { checkReach, MAX_RECOVERY_DAYS } from '../../contract/delivery.ts';
import { ApiError, invalidRequest } from '../../errors.ts';
import { fieldMoment, momentField } from '../kit/filters.ts';
import { actionButton, actionForm, field } from '../kit/forms.ts';
import { lastDay } from '../kit/hour-charts.ts';
import { ago, badge, code, facts, type Html, html, NONE, number, table, time } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { shortId } from '../kit/shown-values.ts';
import type { ActionRequest, OpsRequest, OpsRouter } from './actions.ts';

const PATH = '/ops/webhooks/:webhook_id';

type WebhookDeps = Pick<PageDeps, 'db' | 'producer'>;

/** The page of one subscription. */
export function webhookPath(id: string): string {
  return `/ops/webhooks/${encodeURIComponent(id)}`;
}

/** /ops/webhooks/{id}: the state of one subscription, and the actions of an operator. */
export function webhookPage(router: OpsRouter, deps: WebhookDeps): void {
  router.page({
    path: PATH,
    section: 'webhooks',
    async load(request) {
      const subscription = await subscriptionOf(deps, request);
      const activity = await readWebhookActivity(deps.db, subscription.pk);
      return { title: `Webhook ${subscription.id}`, body: webhookBody(request, subscription, activity) };
    },
  });
  changeStatus(router, deps, 'pause', 'paused', 'Paused. Its pending deliveries are cancelled; recover them later.');
  changeStatus(router, deps, 'resume', 'active', 'Active again. Recover the missed events below.');

  router.action({
    path: `${PATH}/recover`,
    section: 'webhooks',
    action: 'webhook.recover',
    target: ({ params, form }) => `${params['webhook_id'] ?? ''} since ${(form.get('since') ?? '').slice(0, 40)}`,
    async run(request) {
      const { form, nowMs } = request;
      const since = momentField(form, 'since');
      if (since === undefined) throw invalidRequest([{ path: 'since', message: 'must not be empty' }]);
      checkReach(since, nowMs);
      const { id, accountId } = await subscriptionOf(deps, request);
      const recovery = await recoverDeliveries({
        db: deps.db,
        accountId,
        subscriptionId: id,
        since,
        onCommit: (subscriptionPk) => deps.producer.wakeDeliveries([subscriptionPk]),
      });
      if (recovery.outcome === 'webhook_not_found') throw new ApiError('conflict', 'this webhook was deleted');
      if (recovery.outcome === 'paused') throw new ApiError('conflict', 'this webhook is paused; resume it first');
      const { recovered } = recovery;
      const count = recovered === 1 ? '1 delivery is' : `${recovered.toLocaleString('en-US')} deliveries are`;
      return { result: `${count} due again.`, to: webhookPath(id) };
    },
  });
}

function changeStatus(
  router: OpsRouter,
  deps: WebhookDeps,
  verb: 'pause' | 'resume',
  status: 'paused' | 'active',
  result: string,
): void {
  router.action({
    path: `${PATH}/${verb}`,
    section: 'webhooks',
    action: `webhook.${verb}`,
    target: ({ params }) => params['webhook_id'] ?? '',
    async run(request) {
      const { id, pk, accountId } = await subscriptionOf(deps, request);
      if ((await updateSubscription(deps.db, accountId, id, { status })) === null) {
        throw new ApiError('conflict', 'this webhook was deleted');
      }
      return { result, to: webhookPath(id), afterCommit: () => deps.producer.wakeDeliveries([pk]) };
    },
  });
}

async function subscriptionOf(
  deps: Pick<PageDeps, 'db'>,
  { params }: OpsRequest | ActionRequest,
): Promise<OpsSubscription> {
  const found = await findOpsSubscription(deps.db, params['webhook_id'] ?? '');
  if (!found) throw new ApiError('webhook_not_found', 'the webhook does not exist');
  return found;
}

/** The delivery state of a webhook, with the reason of a pause. */
export function subscriptionState({ deletedAt, status, pauseReason, failingSince }: OpsSubscription): Html {
  if (deletedAt !== null) return badge('idle', 'deleted');
  if (status === 'paused') return badge('warn', pauseReason === null ? 'paused' : `paused: ${pauseReason}`);
  return failingSince === null ? badge('good', 'active') : badge('bad', 'failing');
}

function webhookBody(request: OpsRequest, subscription: OpsSubscription, activity: WebhookActivity): Html {
  const { id, deletedAt, failingSince, pauseReason } = subscription;
  const { pending } = activity;
  const { nowMs } = request;
  return html`<p class="state">${subscriptionState(subscription)}</p>
${facts([
  ['Address', html`<span class="long">${shownUrl(subscription.url)}</span>`],
  ['Events', subscription.events.join(', ')],
  ['Account', html`<a href="/ops/deliveries?account=${subscription.accountId}">${subscription.accountName}</a>`],
  ['Created', time(subscription.createdAt)],
  ...(deletedAt === null ? [] : [['Deleted', time(deletedAt)] as const]),
  [
    'Failing since',
    failingSince === null ? NONE : html`${time(failingSince)} <span class="muted">${ago(failingSince, nowMs)}</span>`,
  ],
  ['Exhausted', html`${number(subscription.exhaustedCount)} deliveries since the last success`],
  ['Pause reason', code(pauseReason)],
  [
    'Pending',
    html`<a href="/ops/deliveries?webhook=${id}&amp;status=pending">${number(Math.min(pending, MAX_COUNTED_PENDING))}${pending > MAX_COUNTED_PENDING && ' or more'}</a>`,
  ],
])}
<div class="actions"><a class="button" href="/ops/deliveries?webhook=${id}">Deliveries</a>${deletedAt === null && statusButton(request, subscription)}</div>
<h2>Last 24 hours</h2>
${lastDay(activity, nowMs)}
<h2>Last errors</h2>
${errorTable(activity.errors, nowMs)}
${deletedAt === null && subscription.status === 'active' && recoverForm(request, id)}`;
}

function statusButton(request: OpsRequest, { id, status }: OpsSubscription): Html {
  return status === 'active'
    ? actionButton(request, {
        action: `${webhookPath(id)}/pause`,
        label: 'Pause',
        of: `webhook ${id}`,
        isDangerous: true,
        confirm: 'This cancels the pending deliveries. The webhook gets no new events until you resume it.',
      })
    : actionButton(request, { action: `${webhookPath(id)}/resume`, label: 'Resume', of: `webhook ${id}` });
}

function recoverForm(request: OpsRequest, id: string): Html {
  if (!request.session.mayAct) return html``;
  return html`<h2>Recover</h2>
<p class="lead">Makes the undelivered events of this webhook since a moment due again. You can repeat this safely.</p>
${actionForm(
  request,
  `${webhookPath(id)}/recover`,
  html`${field({
    label: 'Since (UTC)',
    name: 'since',
    type: 'datetime-local',
    value: fieldMoment(new Date(request.nowMs - DAY_MS)),
    isRequired: true,
    hint: `at most ${MAX_RECOVERY_DAYS} days ago`,
  })}<button type="submit">Recover</button>`,
)}`;
}

function errorTable(errors: readonly FailedAttempt[], nowMs: number): Html {
  return table<FailedAttempt>({
    caption: 'Failed attempts, newest first',
    columns: [
      {
        label: 'Delivery',
        cell: ({ deliveryId, attempt }) =>
          html`<a href="/ops/deliveries/${deliveryId}">${shortId(deliveryId)}</a> <span class="muted">#${attempt}</span>`,
      },
      { label: 'Time', cell: ({ startedAt }) => ago(startedAt, nowMs) },
      { label: 'Status', cell: ({ statusCode }) => (statusCode === null ? NONE : String(statusCode)), isNumeric: true },
      { label: 'Error', cell: ({ errorCode }) => code(errorCode) },
      { label: 'Duration', cell: ({ durationMs }) => html`${number(durationMs)} ms`, isNumeric: true },
    ],
    rows: errors,
    empty: 'The newest deliveries have no failed attempts.',
  });
}
