import { actionButton } from '../kit/forms.ts';
import { ago, badge, facts, type Html, html, NONE, number } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { sentRequest } from '../kit/sent-request.ts';
import { DELIVERY_TONES } from '../kit/shown-values.ts';
import type { Attempt, Delivery } from './answers.ts';
import { programExamples, quoted, quotedForPython } from './program.ts';
import type { ConsoleRequest, ConsoleRouter } from './route.ts';
import { clock, minute } from './values.ts';
import { WEBHOOKS_PATH } from './webhooks.ts';

const PATH = `${WEBHOOKS_PATH}/:webhook_id/deliveries/:delivery_id`;
const PAYLOAD = '"payload":';

/** One delivery: request and attempts side by side, and the button that sends it again. */
export function deliveryPage(router: ConsoleRouter, deps: Pick<PageDeps, 'db'>): void {
  const [section, scope] = ['webhooks', 'webhooks'] as const;
  router.page({
    path: PATH,
    section,
    scope,
    async load(request) {
      const params = paramsOf(request);
      const call = { operationId: 'getDelivery', params };
      const { data: delivery, text } = await request.api<Delivery & { attemptLog: Attempt[] }>(call);
      const { nowMs } = request;
      const next = delivery.nextAttemptAt;
      const sent = await sentRequest(deps, { ...delivery, body: payloadOf(text) });
      const body = html`${facts([
        ['State', badge(DELIVERY_TONES[delivery.status] ?? 'idle', delivery.status)],
        ['Event', html`${delivery.eventType} <code>${delivery.eventId}</code>`],
        ['Created (UTC)', minute(new Date(delivery.createdAt))],
        ['Delivered (UTC)', minute(delivery.deliveredAt === undefined ? undefined : new Date(delivery.deliveredAt))],
        ['Next attempt', next === undefined ? NONE : ago(new Date(next), nowMs)],
        ['Attempts', number(delivery.attempts)],
      ])}
<div class="actions">${
        delivery.status !== 'pending' &&
        actionButton(request, {
          action: `${WEBHOOKS_PATH}/${params.webhook_id}/deliveries/${delivery.id}/resend`,
          label: 'Send again',
          confirm: 'Your receiver gets the event again, with the same event id.',
        })
      }</div>
<div class="columns"><section><h2>Request</h2>
${sent}</section>
<section><h2>Attempts</h2>${attempts(delivery.attemptLog, delivery.attempts)}</section></div>
${programExamples(request, {
  calls: [
    ['this delivery', call],
    ['send it again', { operationId: 'retryDelivery', params, body: {} }],
  ],
  typescript: `const delivery = await client.deliveries.get(${quoted(params.webhook_id)}, ${quoted(delivery.id)});`,
  python: `delivery = client.deliveries.get(${quotedForPython(params.webhook_id)}, ${quotedForPython(delivery.id)})`,
  json: text,
})}`;
      const webhook = `${WEBHOOKS_PATH}/${params.webhook_id}`;
      const above = html`<p class="crumbs"><a href="${WEBHOOKS_PATH}">Webhooks</a> · <a href="${webhook}">Deliveries</a></p>`;
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

function attempts(log: readonly Attempt[], count: number): Html {
  if (log.length === 0) {
    return html`<p class="empty">${count === 0 ? 'No attempt yet.' : 'The log of the attempts is no longer stored.'}</p>`;
  }
  return html`${[...log].reverse().map(
    ({
      attempt,
      startedAt,
      durationMs,
      outcome,
      statusCode,
      errorCode,
      responseBody,
      responseEncoding,
    }) => html`<div class="card attempt">
<h3>#${attempt} ${badge(outcome === 'delivered' ? 'good' : 'bad', errorCode ?? String(statusCode ?? outcome))}</h3>
<p class="muted">${clock(new Date(startedAt))} UTC, ${minute(new Date(startedAt))} · ${number(durationMs)} ms${
      statusCode !== undefined && html` · status ${statusCode}`
    }</p>
${
  responseBody === undefined
    ? html`<p class="hint">no answer</p>`
    : html`<p class="hint">answer${responseEncoding && ` (${responseEncoding})`}</p>
<pre tabindex="0" aria-label="Answer to attempt ${attempt}">${responseBody || 'an empty body'}</pre>`
}</div>`,
  )}`;
}
