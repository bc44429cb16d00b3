import { DAY_MS } from '../../../../src/domain/values/durations.ts';
import { shownUrl } from '../../../../src/domain/values/parse-url.ts';
import { EVENT_TYPES } from '../../../../src/domain/webhooks/event.ts';
import { findSubscription } from '../../../../src/store/deliveries/subscriptions.ts';
import { readWebhookFigures, readWebhookHours } from '../../../../src/store/deliveries/webhook-figures.ts';
import { fieldMoment, momentField } from '../../kit/filters.ts';
import { type FormView, formView } from '../../kit/form-view.ts';
import { actionButton, actionForm, choice } from '../../kit/forms.ts';
import { lastDay } from '../../kit/hour-charts.ts';
import { facts, type Html, type HtmlValue, html } from '../../kit/html.ts';
import { switches } from '../../kit/lists.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import type { PageContent } from '../../kit/router.ts';
import type { Webhook } from '../answers.ts';
import { type AccountDelivery, DELIVERIES_PATH, deliveryTable, subjectsOf } from '../deliveries/page.ts';
import { programExamples, quoted, quotedForPython, tab } from '../program.ts';
import type { ActionRequest, ConsoleRequest, ConsoleRouter } from '../route.ts';
import { minute } from '../values.ts';
import { atWebhookFields, filterWords, webhookChange, webhookFields, withoutEmptyRows } from './fields.ts';
import { pendingText, secretPage, WEBHOOKS_CRUMBS, WEBHOOKS_PATH, webhookState } from './page.ts';
import { LANGUAGES, type Language, receiverSnippet } from './receiver-snippets.ts';

const PATH = `${WEBHOOKS_PATH}/:webhook_id`;

/** The deliveries on the page of a webhook. */
const NEWEST = 10;

/** /webhooks/{id}: one webhook with its figures, newest deliveries, actions and receiver. */
export function webhookPage(router: ConsoleRouter, deps: Pick<PageDeps, 'db'>): void {
  const [section, scope] = ['webhooks', 'webhooks'] as const;
  router.page({
    path: PATH,
    section,
    scope,
    async load(request) {
      const params = paramsOf(request);
      const { data: webhook } = await request.api<Webhook>({ operationId: 'getWebhook', params });
      const { accountId } = request.session.caller;
      const call = { operationId: 'listAccountDeliveries', query: { webhookId: webhook.id, limit: NEWEST } };
      const { data: deliveries, text } = await request.api<AccountDelivery[]>(call);
      const subjects = await subjectsOf(
        deps,
        request,
        deliveries.map(({ id }) => id),
      );
      const figures = (await readWebhookFigures(deps.db, accountId, [webhook.id])).get(webhook.id);
      const subscription = await findSubscription(deps.db, accountId, webhook.id);
      const hours = subscription && (await readWebhookHours(deps.db, subscription.pk));
      const body = html`${facts([
        ['State', webhookState(webhook)],
        ['Events', webhook.events.join(', ')],
        ['Pending', pendingText(figures)],
        ['Created (UTC)', minute(webhook.createdAt === undefined ? undefined : new Date(webhook.createdAt))],
        ['Format', webhook.format ?? 'signed JSON'],
        ...options(webhook),
        ['Id', html`<code>${webhook.id}</code>`],
      ])}
${actions(request, webhook)}
<h2>Last 24 hours</h2>
${hours && lastDay(hours, request.nowMs)}
<h2>Newest deliveries</h2>
${deliveryTable({
  deliveries,
  subjects,
  nowMs: request.nowMs,
  empty: 'No deliveries yet. Send a test event, or wait until an alert fires.',
})}
<p class="more-links"><a href="${deliveriesOf(webhook.id)}">All deliveries of this webhook</a>
<a href="${deliveriesOf(webhook.id)}&amp;status=failed">failed</a>
<a href="${deliveriesOf(webhook.id)}&amp;status=pending">pending</a></p>
${receiverSection(request, webhook)}
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

function deliveriesOf(webhookId: string): Html {
  return html`${DELIVERIES_PATH}?webhook=${webhookId}`;
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

const LABELS: Readonly<Record<Language, string>> = { typescript: 'TypeScript', python: 'Python', go: 'Go' };
const NEEDS: Readonly<Record<Language, string>> = {
  typescript: 'npm install @oddswire/client',
  python: 'pip install oddswire',
  go: 'Only the standard library.',
};

/** A whole receiver for a webhook in each language. The secret comes from the environment of the receiver. */
function receiverSection(
  request: Pick<ConsoleRequest, 'query' | 'path'>,
  { events, ordered, format }: Pick<Webhook, 'events' | 'ordered' | 'format'>,
): Html {
  const head = html`<h2 id="receiver-title">Receiver</h2>`;
  if (format !== undefined) {
    return html`${head}<p class="empty">oddswire sends messages to ${format}, without a signature. A receiver of your own needs a webhook without a format.</p>`;
  }
  const signature = request.query.get('signature') === 'body' ? 'body' : 'standard';
  const options = { signature, events, isOrdered: ordered === true } as const;
  return html`<section class="program" aria-labelledby="receiver-title">${head}
<p class="lead">A complete receiver for this webhook. It reads the secret from <code>WEBHOOK_SECRET</code> and listens on <code>PORT</code>,
behind a proxy with TLS.</p>
<div class="switches">${switches(request, 'signature', 'Signature', [
    ['standard', 'Standard Webhooks'],
    ['body', 'X-Webhook-Signature'],
  ])}</div>
<p class="hint">${
    signature === 'standard'
      ? 'Checks webhook-signature: it also prevents a replay, and accepts both secrets after a rotation.'
      : 'Checks X-Webhook-Signature: it signs the body only, so it does not prevent a replay, and uses the new secret at once after a rotation.'
  }</p>
${LANGUAGES.map((language, index) =>
  tab(`receiver-${language}`, LABELS[language], receiverSnippet(language, options), {
    isOpen: index === 0,
    group: 'receiver',
    name: `Receiver in ${LABELS[language]}`,
    hint: NEEDS[language],
  }),
)}</section>`;
}
