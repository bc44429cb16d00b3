import { shownUrl } from '../../../../src/domain/values/parse-url.ts';
import {
  MAX_PENDING_COUNTED,
  readWebhookFigures,
  type WebhookFigures,
} from '../../../../src/store/deliveries/webhook-figures.ts';
import { type FormView, formView } from '../../kit/form-view.ts';
import { actionButton, actionForm, onceShown } from '../../kit/forms.ts';
import { badge, type Html, html, NONE, number, table } from '../../kit/html.ts';
import { PAGE_ROWS, pager } from '../../kit/lists.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import type { PageContent } from '../../kit/router.ts';
import type { Webhook } from '../answers.ts';
import { programExamples } from '../program.ts';
import type { ConsoleRequest, ConsoleRouter } from '../route.ts';
import { atWebhookFields, newWebhookBody, webhookFields, withoutEmptyRows } from './fields.ts';

export const WEBHOOKS_PATH = '/webhooks';
const NEW_PATH = `${WEBHOOKS_PATH}/new`;
export const WEBHOOKS_CRUMBS = html`<p class="crumbs"><a href="${WEBHOOKS_PATH}">Webhooks</a></p>`;

/** /webhooks: the account's webhooks with their figures, and the creation of one. */
export function webhooksPage(router: ConsoleRouter, deps: Pick<PageDeps, 'db'>): void {
  const [section, scope] = ['webhooks', 'webhooks'] as const;
  router.page({
    path: WEBHOOKS_PATH,
    section,
    scope,
    async load(request) {
      const query = { limit: PAGE_ROWS, cursor: request.query.get('cursor') ?? undefined };
      const call = { operationId: 'listWebhooks', query };
      const { data: webhooks, meta, text } = await request.api<Webhook[]>(call);
      const ids = webhooks.map(({ id }) => id);
      const figures = await readWebhookFigures(deps.db, request.session.caller.accountId, ids);
      const body = html`<p><a class="button" data-new-alert href="${NEW_PATH}">New webhook</a></p>
${webhookTable(webhooks, figures)}
${pager(request, meta.next_cursor)}
${programExamples(request, {
  calls: [['these webhooks', call]],
  typescript: 'for await (const webhook of client.webhooks.iterate()) console.log(webhook);',
  python: `for webhook in client.webhooks.iterate():
    print(webhook)`,
  json: withoutSecrets(text, webhooks),
})}`;
      return { title: 'Webhooks', body };
    },
  });

  router.page({ path: NEW_PATH, section, scope, load: async (request) => newPage(request, formView()) });

  router.action({
    path: WEBHOOKS_PATH,
    section,
    scope,
    async run(request) {
      const { data, isReplay } = await request.api<Webhook & { secret: string }>({
        operationId: 'createWebhook',
        body: newWebhookBody(request.form),
        once: request.form.get('once') ?? '',
      });
      return { page: secretPage(request, data, { title: 'New webhook', isReplay }) };
    },
    rejected: async (request, error) =>
      newPage(request, formView(withoutEmptyRows(request.form), atWebhookFields(error))),
  });
}

function newPage(request: ConsoleRequest, view: FormView): PageContent {
  return {
    title: 'New webhook',
    above: WEBHOOKS_CRUMBS,
    body: actionForm(
      request,
      WEBHOOKS_PATH,
      html`${view.withReasons(webhookFields(view))}<button type="submit" class="primary">Create webhook</button>`,
      'form card webhook-fields',
    ),
  };
}

/** The only page that shows a secret, at its creation. A reload shows the page without the secret. */
export function secretPage(
  request: ConsoleRequest,
  webhook: Webhook & { secret: string },
  { title, isReplay }: { title: string; isReplay: boolean },
): PageContent {
  const path = `${WEBHOOKS_PATH}/${webhook.id}`;
  return {
    title,
    body: html`<p class="lead">Address: ${shownUrl(webhook.url)}</p>
<div class="card">${
      isReplay ? html`<h2>The secret was shown once, at its creation.</h2>` : onceShown('secret', webhook.secret)
    }
<p class="hint">Your receiver checks the signature of each event with it. If you lose it, rotate it.</p></div>
<div class="actions under">${actionButton(request, { action: `${path}/test`, label: 'Send a test event' })}
<a class="button" href="${path}">Open the webhook</a></div>`,
  };
}

/** The answer with addresses as pages show them, because a part of an address may be a secret. */
function withoutSecrets(text: string, webhooks: readonly Webhook[]): string {
  return webhooks.reduce(
    (shown, { url }) => shown.replaceAll(JSON.stringify(url), JSON.stringify(shownUrl(url))),
    text,
  );
}

export function webhookState({ status, pauseReason }: Webhook): Html {
  if (status === 'active') return badge('good', 'active');
  return badge('warn', pauseReason === undefined ? 'paused' : `paused: ${pauseReason}`);
}

/** The share of successful attempts. */
function successRate(figures: WebhookFigures | undefined): Html {
  if (figures === undefined || figures.attempts === 0) return NONE;
  const { attempts, delivered } = figures;
  const share = Math.floor((delivered / attempts) * 1_000) / 10;
  const tone = share >= 99 ? 'good' : share >= 90 ? 'warn' : 'bad';
  return html`${badge(tone, `${share.toFixed(1)} %`)}`;
}

export function pendingText(figures: WebhookFigures | undefined): Html {
  if (figures === undefined) return NONE;
  const isMore = figures.pending > MAX_PENDING_COUNTED;
  return html`${number(Math.min(figures.pending, MAX_PENDING_COUNTED))}${isMore && ' or more'}`;
}

function webhookTable(webhooks: readonly Webhook[], figures: ReadonlyMap<string, WebhookFigures>): Html {
  return table<Webhook>({
    caption: 'Webhooks, newest first',
    columns: [
      {
        label: 'Address',
        cell: ({ id, url }) =>
          html`<a class="row-link long" data-row href="${WEBHOOKS_PATH}/${id}">${shownUrl(url)}</a>`,
      },
      { label: 'Events', cell: ({ events }) => events.join(', ') },
      { label: 'State', cell: webhookState },
      { label: 'Success, 24 h', isNumeric: true, cell: ({ id }) => successRate(figures.get(id)) },
      {
        label: 'p95',
        isNumeric: true,
        cell: ({ id }) => {
          const p95 = figures.get(id)?.p95Ms ?? null;
          return p95 === null ? NONE : html`${number(p95)} ms`;
        },
      },
      { label: 'Pending', isNumeric: true, cell: ({ id }) => pendingText(figures.get(id)) },
    ],
    rows: webhooks,
    empty: 'No webhooks yet. Create one: oddswire then sends every event of your alerts to it.',
  });
}
