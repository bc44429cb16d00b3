import { attemptAnswers, attemptTimeline } from '../../kit/attempts.ts';
import { actionButton } from '../../kit/forms.ts';
import { ago, code, facts, html, NONE, number, time } from '../../kit/html.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import { sentRequest } from '../../kit/sent-request.ts';
import { deliveryState } from '../../kit/shown-values.ts';
import type { Attempt, Delivery, Webhook } from '../answers.ts';
import { programExamples, quoted, quotedForPython } from '../program.ts';
import type { ConsoleRequest, ConsoleRouter } from '../route.ts';
import { WEBHOOKS_PATH } from '../webhooks/page.ts';
import { alertWords, DELIVERIES_PATH, subjectsOf, subjectWords, webhookNames } from './page.ts';
import { deliveryVerdict, verdictText } from './verdict.ts';

const PATH = `${WEBHOOKS_PATH}/:webhook_id/deliveries/:delivery_id`;
const PAYLOAD = '"payload":';

/** One delivery: its fault, its attempts with request and answers, and the button that sends it again. */
export function deliveryPage(router: ConsoleRouter, deps: Pick<PageDeps, 'db'>): void {
  const [section, scope] = ['deliveries', 'webhooks'] as const;
  router.page({
    path: PATH,
    section,
    scope,
    async load(request) {
      const params = paramsOf(request);
      const call = { operationId: 'getDelivery', params };
      const { data: delivery, text } = await request.api<Delivery & { attemptLog: Attempt[] }>(call);
      const { data: webhook } = await request.api<Webhook>({ operationId: 'getWebhook', params });
      const { nowMs } = request;
      const { attemptLog: log } = delivery;
      const next = delivery.nextAttemptAt === undefined ? undefined : new Date(delivery.nextAttemptAt);
      const subject = (await subjectsOf(deps, request, [delivery.id])).get(delivery.id);
      const sent = await sentRequest(deps, { ...delivery, body: payloadOf(text) }, { isCopied: true });
      const webhookPath = `${WEBHOOKS_PATH}/${params.webhook_id}`;
      const body = html`${verdictText(deliveryVerdict(delivery, nowMs))}
<div class="actions">${
        delivery.status !== 'pending' &&
        actionButton(request, {
          action: `${webhookPath}/deliveries/${delivery.id}/resend`,
          label: 'Send again',
          confirm: 'Your receiver gets the event again, with the same event id.',
        })
      }<a class="button" href="${DELIVERIES_PATH}?event=${delivery.eventId}">All deliveries of the event</a></div>
${facts([
  ['Subject', subjectWords(subject)],
  ['Alert', alertWords(subject)],
  ['Webhook', html`<a href="${webhookPath}">${webhookNames([webhook]).get(webhook.id)}</a>`],
  ['State', deliveryState(delivery)],
  ['Event', html`${delivery.eventType} ${code(delivery.eventId)}`],
  ['Stored (UTC)', time(new Date(delivery.createdAt))],
  ['Delivered (UTC)', time(delivery.deliveredAt === undefined ? undefined : new Date(delivery.deliveredAt))],
  ['Next attempt', next === undefined ? NONE : ago(next, nowMs)],
  ['Attempts', number(delivery.attempts)],
  ['Delivery', code(delivery.id)],
])}
<h2>Attempts</h2>
${attemptTimeline({
  log,
  count: delivery.attempts,
  createdMs: Date.parse(delivery.createdAt),
  nextMs: next?.getTime(),
  nowMs,
})}
<div class="columns exchange"><section><h2>Request</h2>
${sent}</section>
<section><h2>Answers</h2>${log.length === 0 ? html`<p class="empty">No answer is stored.</p>` : attemptAnswers(log, { isCopied: true })}</section></div>
${programExamples(request, {
  calls: [
    ['this delivery', call],
    ['send it again', { operationId: 'retryDelivery', params, body: {} }],
  ],
  typescript: `const delivery = await client.deliveries.get(${quoted(params.webhook_id)}, ${quoted(delivery.id)});`,
  python: `delivery = client.deliveries.get(${quotedForPython(params.webhook_id)}, ${quotedForPython(delivery.id)})`,
  json: text,
})}`;
      const above = html`<p class="crumbs"><a href="${DELIVERIES_PATH}">Deliveries</a> · <a href="${DELIVERIES_PATH}?webhook=${params.webhook_id}">of this webhook</a></p>`;
      return { title: 'Delivery', above, body };
    },
  });

  router.action({
    path: `${PATH}/resend`,
    section,
    scope,
    async run(request) {
      const params = paramsOf(request);
      await request.api({ operationId: 'retryDelivery', params, body: {}, once: request.form.get('once') ?? '' });
      const to = `${WEBHOOKS_PATH}/${params.webhook_id}/deliveries/${params.delivery_id}`;
      return { result: 'The delivery is due again. The next attempt starts at once.', to };
    },
  });
}

function paramsOf({ params }: ConsoleRequest): { webhook_id: string; delivery_id: string } {
  return { webhook_id: params['webhook_id'] ?? '', delivery_id: params['delivery_id'] ?? '' };
}

/** The payload with its digits: the last field of the answer's data. */
function payloadOf(answer: string): string {
  return answer.slice(answer.indexOf(PAYLOAD) + PAYLOAD.length, -'}}'.length);
}
