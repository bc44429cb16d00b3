import { DAY_MS } from '../../../src/domain/values/durations.ts';
import { EVENT_TYPES } from '../../../src/domain/webhooks/event.ts';
import { FIGURED_DELIVERIES, readWebhookFigures } from '../../../src/store/deliveries/webhook-figures.ts';
import { fieldMoment, momentField } from '../kit/filters.ts';
import { type FormView, formView } from '../kit/form-view.ts';
import { actionButton, actionForm, choice } from '../kit/forms.ts';
import { ago, badge, facts, type Html, type HtmlValue, html, NONE, number, table } from '../kit/html.ts';
import { PAGE_ROWS, pager, switches } from '../kit/lists.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import type { PageContent } from '../kit/router.ts';
import { DELIVERY_TONES, shortId, shownUrl } from '../kit/shown-values.ts';
import type { Delivery, Webhook } from './answers.ts';
import { programExamples, quoted, quotedForPython } from './program.ts';
import type { ActionRequest, ConsoleRequest, ConsoleRouter } from './route.ts';
import { minute } from './values.ts';
import { atWebhookFields, filterWords, webhookChange, webhookFields, withoutEmptyRows } from './webhook-fields.ts';
import { pendingText, secretPage, successRate, WEBHOOKS_CRUMBS, WEBHOOKS_PATH, webhookState } from './webhooks.ts';

const PATH = `${WEBHOOKS_PATH}/:webhook_id`;

/** /webhooks/{id}: one webhook with its deliveries and actions. */
export function webhookPage(router: ConsoleRouter, deps: Pick<PageDeps, 'db'>): void {
  const [section, scope] = ['webhooks', 'webhooks'] as const;
  router.page({
    path: PATH,
    section,
    scope,
    async load(request) {
      const params = paramsOf(request);
      const { data: webhook } = await request.api<Webhook>({ operationId: 'getWebhook', params });
      const query = {
        status: request.query.get('status') ?? undefined,
        limit: PAGE_ROWS,
        cursor: request.query.get('cursor') ?? undefined,
      };
      const call = { operationId: 'listDeliveries', params, query };
      const { data: deliveries, meta, text } = await request.api<Delivery[]>(call);
      const figures = (await readWebhookFigures(deps.db, request.session.caller.accountId, [webhook.id])).get(
        webhook.id,
      );
      const p95 = figures?.p95Ms ?? null;
      const body = html`${facts([
        ['State', webhookState(webhook)],
        ['Events', webhook.events.join(', ')],
        ['Success, 24 h', successRate(figures)],
        ['p95, 24 h', p95 === null ? NONE : html`${number(p95)} ms`],
        ['Pending', pendingText(figures)],
        ['Created (UTC)', minute(webhook.createdAt === undefined ? undefined : new Date(webhook.createdAt))],
        ['Format', webhook.format ?? 'signed JSON'],
        ...options(webhook),
        ['Id', html`<code>${webhook.id}</code>`],
      ])}
<p class="hint">The figures cover the attempts of the newest ${number(FIGURED_DELIVERIES)} deliveries.</p>
${actions(request, webhook)}
<h2>Deliveries</h2>
<div class="switches">${switches(request, 'status', 'Status', [
        ['', 'All'],
        ['pending', 'Pending'],
        ['delivered', 'Delivered'],
        ['failed', 'Failed'],
        ['cancelled', 'Cancelled'],
      ])}</div>
${deliveryTable(webhook.id, deliveries, request.nowMs)}
${pager(request, meta.next_cursor)}
${programExamples(request, {
  calls: [['these deliveries', call]],
  typescript: `for await (const delivery of client.deliveries.iterate(${quoted(webhook.id)})) console.log(delivery);`,
  python: `for delivery in client.deliveries.iterate(${quotedForPython(webhook.id)}):
    print(delivery)`,
  json: text,
})}`;
      return {
        title: shownUrl(webhook.url),
        above: WEBHOOKS_CRUMBS,
        body,
      };
    },
  });

  const editPage = async (request: ConsoleRequest, view: FormView): Promise<PageContent> => {
    const { data: webhook } = await request.api<Webhook>({ operationId: 'getWebhook', params: paramsOf(request) });
    const path = `${WEBHOOKS_PATH}/${webhook.id}`;
    const body = actionForm(
      request,
      `${path}/edit`,
      html`${view.withReasons(webhookFields(view, webhook))}
<div class="actions"><button type="submit" class="primary">Save</button><a class="button" href="${path}">Cancel</a></div>`,
      'form card webhook-fields',
    );
    return { title: 'Edit webhook', above: WEBHOOKS_CRUMBS, body };
  };
  router.page({ path: `${PATH}/edit`, section, scope, load: (request) => editPage(request, formView()) });
  router.action({
    path: `${PATH}/edit`,
    section,
    scope,
    async run(request) {
      const params = paramsOf(request);
      const { data: webhook } = await request.api<Webhook>({ operationId: 'getWebhook', params });
      await request.api({ operationId: 'updateWebhook', params, body: webhookChange(request.form, webhook) });
      return { result: 'The webhook is changed.', to: `${WEBHOOKS_PATH}/${webhook.id}` };
    },
    rejected: (request, error) => editPage(request, formView(withoutEmptyRows(request.form), atWebhookFields(error))),
  });

  const act = (name: string, run: (request: ActionRequest, to: string) => Promise<string | { page: PageContent }>) =>
    router.action({
      path: `${PATH}/${name}`,
      section,
      scope,
      async run(request) {
        const to = `${WEBHOOKS_PATH}/${paramsOf(request).webhook_id}`;
        const outcome = await run(request, to);
        return typeof outcome === 'string' ? { result: outcome, to } : outcome;
      },
    });
  const once = ({ form }: ActionRequest) => form.get('once') ?? '';

  act('test', async (request) => {
    const body = { eventType: request.form.get('eventType') ?? 'test' };
    await request.api({ operationId: 'testWebhook', params: paramsOf(request), body, once: once(request) });
    return 'A test event is on its way. Reload to see its result.';
  });
  act('status', async (request) => {
    const status = request.form.get('status') ?? '';
    await request.api({ operationId: 'updateWebhook', params: paramsOf(request), body: { status } });
    return status === 'paused'
      ? 'The webhook is paused. Its pending deliveries are cancelled.'
      : 'The webhook is active.';
  });
  act('rotate', async (request) => {
    const call = { operationId: 'rotateWebhookSecret', params: paramsOf(request), body: {}, once: once(request) };
    const { data, isReplay } = await request.api<Webhook & { secret: string }>(call);
    return { page: secretPage(request, data, { title: 'New secret', isReplay }) };
  });
  act('recover', async (request) => {
    const since = momentField(request.form, 'since');
    const { data } = await request.api<{ recovered: number }>({
      operationId: 'recoverDeliveries',
      params: paramsOf(request),
      body: { since: since?.toISOString() },
      once: once(request),
    });
    return data.recovered === 1 ? '1 event is sent again.' : `${data.recovered} events are sent again.`;
  });
  router.action({
    path: `${PATH}/delete`,
    section,
    scope,
    async run(request) {
      await request.api({ operationId: 'deleteWebhook', params: paramsOf(request) });
      return { result: 'The webhook is deleted. Its alerts use the default webhook.', to: WEBHOOKS_PATH };
    },
  });
}

function paramsOf({ params }: ConsoleRequest): { webhook_id: string } {
  return { webhook_id: params['webhook_id'] ?? '' };
}

function actions(request: ConsoleRequest, { id, status }: Webhook): Html {
  const path = `${WEBHOOKS_PATH}/${id}`;
  const isActive = status === 'active';
  return html`<div class="actions"><a class="button" href="${path}/edit">Edit</a>${actionForm(
    request,
    `${path}/test`,
    html`${choice({ label: 'Test event', name: 'eventType', value: 'test', options: EVENT_TYPES.map((each) => [each, each] as const) })}
<button type="submit">Send test event</button>`,
    'inline test-event',
  )}
${
  isActive
    ? actionButton(request, {
        action: `${path}/status`,
        label: 'Pause',
        confirm: 'oddswire cancels the pending deliveries. You can send the events of the pause again afterwards.',
        fields: html`<input type="hidden" name="status" value="paused">`,
      })
    : actionButton(request, {
        action: `${path}/status`,
        label: 'Resume',
        fields: html`<input type="hidden" name="status" value="active">`,
      })
}
${actionButton(request, {
  action: `${path}/rotate`,
  label: 'Rotate secret',
  confirm: 'oddswire makes a new secret. For 24 hours webhook-signature carries signatures of both secrets.',
})}
${
  isActive &&
  actionButton(request, {
    action: `${path}/recover`,
    label: 'Recover',
    confirm: 'oddswire sends every event since this time that no attempt delivered.',
    fields: html`<label for="field-since">Since (UTC)</label>
<input id="field-since" name="since" type="datetime-local" required value="${fieldMoment(new Date(request.nowMs - DAY_MS))}">`,
  })
}
${actionButton(request, {
  action: `${path}/delete`,
  label: 'Delete',
  isDangerous: true,
  confirm: 'oddswire sends nothing to this address any more. This cannot be undone.',
})}</div>`;
}

/** The options that the webhook has. */
function options({ description, ordered, orderBy, maxPerSecond, headerNames, filter }: Webhook): [string, HtmlValue][] {
  return [
    ...(description === undefined ? [] : ([['Description', html`<span class="long">${description}</span>`]] as const)),
    ...(ordered === undefined ? [] : ([['Order', `by ${orderBy}`]] as const)),
    ...(maxPerSecond === undefined ? [] : ([['Attempts per second', `at most ${maxPerSecond}`]] as const)),
    ...(headerNames === undefined ? [] : ([['Headers', html`<code>${headerNames.join(', ')}</code>`]] as const)),
    ...(filter === undefined ? [] : ([['Filter', filterWords(filter)]] as const)),
  ].map(([name, value]) => [name, value]);
}

function deliveryTable(webhookId: string, deliveries: readonly Delivery[], nowMs: number): Html {
  return table<Delivery>({
    caption: 'Deliveries, newest first',
    columns: [
      {
        label: 'Delivery',
        cell: ({ id }) => html`<a data-row href="${WEBHOOKS_PATH}/${webhookId}/deliveries/${id}">${shortId(id)}</a>`,
      },
      { label: 'Event', cell: ({ eventType }) => eventType },
      { label: 'State', cell: ({ status }) => badge(DELIVERY_TONES[status] ?? 'idle', status) },
      { label: 'Attempts', isNumeric: true, cell: ({ attempts }) => number(attempts) },
      { label: 'Last answer', cell: ({ lastStatusCode, lastError }) => lastError ?? String(lastStatusCode ?? '–') },
      {
        label: 'Next attempt',
        cell: ({ nextAttemptAt }) => ago(nextAttemptAt === undefined ? null : new Date(nextAttemptAt), nowMs),
      },
      { label: 'Created', cell: ({ createdAt }) => ago(new Date(createdAt), nowMs) },
    ],
    rows: deliveries,
    empty: 'No deliveries here. Send a test event, or wait until an alert fires.',
  });
}
