import { type NamedOutcome, nameOutcomes } from '../../../src/store/catalog/outcome-names.ts';
import type { ApiDeps } from '../../deps.ts';
import { ago, badge, facts, type Html, html, longText, NONE, type Tone, table } from '../../ops/html.ts';
import { shortId } from '../../ops/pages/shown-values.ts';
import type { Alert } from '../answers.ts';
import type { ConsoleRequest, ConsoleRouter } from '../console-route.ts';
import { consoleButton } from '../forms.ts';
import { pages, tabs } from '../paging.ts';
import { programExamples, quoted } from '../program.ts';
import { marketPath, minute, percent, price } from '../values.ts';
import { distance } from './alert-form.ts';

const PATH = '/alerts';
const PER_PAGE = 50;
const TONES: Readonly<Record<string, Tone>> = { active: 'good', triggered: 'idle', expired: 'idle' };

type AlertsDeps = Pick<ApiDeps, 'db'>;

/** /alerts: the account's alerts and past firings, and their creation and deletion. */
export function alertPages(router: ConsoleRouter, deps: AlertsDeps): void {
  const [section, scope] = ['alerts', 'alerts'] as const;
  router.page({
    path: PATH,
    section,
    scope,
    async load(request) {
      const status = request.query.get('status') ?? 'active';
      const query = { status, limit: PER_PAGE, cursor: request.query.get('cursor') ?? undefined };
      const call = { operationId: 'listAlerts', query };
      const { data: alerts, meta, text } = await request.api<Alert[]>(call);
      const names = await namesOf(deps, alerts);
      const body = html`<div class="switches">${tabs(request, 'status', 'Status', [
        ['active', 'Active'],
        ['triggered', 'Fired'],
        ['expired', 'Expired'],
      ])}</div>
${alertTable(alerts, names, status, request.nowMs)}
${pages(request, meta.next_cursor)}
${programExamples(request, {
  calls: [['these alerts', call]],
  typescript: `for await (const alert of client.alerts.iterate({ status: ${quoted(status)} })) console.log(alert);`,
  json: text,
})}`;
      return { title: 'Alerts', body };
    },
  });

  router.action({
    path: PATH,
    section,
    scope,
    async run({ api, form }) {
      const webhookId = form.get('webhookId') || undefined;
      const { data } = await api<Alert>({
        operationId: 'createAlert',
        body: {
          tokenMint: form.get('tokenMint') ?? '',
          condition: form.get('condition') ?? '',
          price: numberOf(form.get('price')),
          ...(webhookId !== undefined && { webhookId }),
        },
        once: form.get('once') ?? '',
      });
      const back = form.get('back') ?? '';
      const result = `The alert is set: it fires once, at ${percent(data.price)} or ${data.condition}.`;
      return { result, to: /^\/markets\/[^/]+\/[^/]+$/.test(back) ? back : `${PATH}/${data.id}` };
    },
  });

  router.page({
    path: `${PATH}/:alert_id`,
    section,
    scope,
    async load(request) {
      const call = { operationId: 'getAlert', params: { alert_id: request.params['alert_id'] ?? '' } };
      const { data: alert, text } = await request.api<Alert>(call);
      const name = (await namesOf(deps, [alert])).get(alert.tokenMint);
      const body = html`${alertFacts(request, alert, name)}
<div class="actions">${consoleButton(request, {
        action: `${PATH}/${alert.id}/delete`,
        label: 'Delete alert',
        isDangerous: true,
        confirm: 'The alert is removed. An event that it made stays.',
      })}</div>
${programExamples(request, {
  calls: [['this alert', call]],
  typescript: `const alert = await client.alerts.get({ alert_id: ${quoted(alert.id)} });`,
  json: text,
})}`;
      const above = html`<p class="crumbs"><a href="${PATH}">Alerts</a></p>`;
      return { title: `At ${percent(alert.price)} or ${alert.condition}`, above, body };
    },
  });

  router.action({
    path: `${PATH}/:alert_id/delete`,
    section,
    scope,
    async run({ api, params }) {
      await api({ operationId: 'deleteAlert', params: { alert_id: params['alert_id'] ?? '' } });
      return { result: 'The alert is deleted.', to: PATH };
    },
  });
}

/** The names of the alerts' outcomes by id; tokens without a market have none. */
async function namesOf({ db }: AlertsDeps, alerts: readonly Alert[]): Promise<ReadonlyMap<string, NamedOutcome>> {
  const ids = [...new Set(alerts.map(({ tokenMint }) => tokenMint))];
  const named = ids.length === 0 ? [] : await nameOutcomes(db, ids);
  return new Map(named.map((outcome) => [outcome.outcomeId, outcome]));
}

function subject(alert: Alert, name: NamedOutcome | undefined): Html {
  if (name === undefined) return html`token ${shortId(alert.tokenMint)}`;
  const path = marketPath({ venue: name.venue, market_id: name.marketId });
  const query = new URLSearchParams({ outcome: name.outcomeId }).toString();
  return html`<a class="row-link" href="${path}?${query}">${name.title}</a>
<span class="where">${name.siblingLabel !== null && html`${name.siblingLabel} · `}${name.label}</span>`;
}

function alertTable(
  alerts: readonly Alert[],
  names: ReadonlyMap<string, NamedOutcome>,
  status: string,
  nowMs: number,
): Html {
  const target = (alert: Alert) => (names.has(alert.tokenMint) ? (percent(alert.price) ?? '') : price(alert.price));
  const isActive = status === 'active';
  return table<Alert>({
    caption: 'Alerts, newest first',
    columns: [
      { label: 'Market', cell: (alert) => subject(alert, names.get(alert.tokenMint)) },
      {
        label: 'Fires',
        cell: (alert) => html`<a data-row href="${PATH}/${alert.id}">at ${target(alert)} or ${alert.condition}</a>`,
      },
      ...(isActive
        ? [
            {
              label: 'Now',
              isNumeric: true,
              cell: ({ tokenMint }: Alert) => percent(names.get(tokenMint)?.price) ?? NONE,
            },
            {
              label: 'Distance',
              isNumeric: true,
              cell: (alert: Alert) => distance(alert.price, names.get(alert.tokenMint)?.price),
            },
          ]
        : [
            {
              label: status === 'triggered' ? 'Fired' : 'Expired',
              cell: ({ triggeredAt, expiredAt }: Alert) => ago(dateOf(triggeredAt ?? expiredAt), nowMs),
            },
            { label: 'Event', cell: ({ eventId }: Alert) => (eventId === undefined ? NONE : shortId(eventId)) },
          ]),
      { label: 'Created', cell: ({ createdAt }) => ago(dateOf(createdAt), nowMs) },
    ],
    rows: alerts,
    empty: html`No alerts here. <a href="/markets">Open a market</a> and click a price.`,
  });
}

function alertFacts({ nowMs, session }: ConsoleRequest, alert: Alert, name: NamedOutcome | undefined): Html {
  const { webhookId } = alert;
  const hasWebhooks = session.caller.scopes.includes('webhooks');
  return facts([
    ['Market', subject(alert, name)],
    ['State', badge(TONES[alert.status] ?? 'idle', alert.status)],
    [`Target (${alert.currency})`, price(alert.price)],
    ['Price now', name ? (percent(name.price) ?? NONE) : NONE],
    ['Distance', distance(alert.price, name?.price)],
    [
      'Webhook',
      webhookId === undefined
        ? 'the default webhook'
        : hasWebhooks
          ? html`<a href="/webhooks/${webhookId}">${shortId(webhookId)}</a>`
          : shortId(webhookId),
    ],
    ['Created (UTC)', html`${minute(dateOf(alert.createdAt))} (${ago(dateOf(alert.createdAt), nowMs)})`],
    ['Fired (UTC)', minute(dateOf(alert.triggeredAt))],
    ['Event', alert.eventId === undefined ? NONE : longText(alert.eventId)],
    ['Id', html`<code>${alert.id}</code>`],
  ]);
}

function dateOf(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}

/** The number of a field; null, which the API rejects with a message, for other text. */
function numberOf(text: string | null): number | null {
  const given = (text ?? '').trim().replace(',', '.');
  return given === '' || !Number.isFinite(Number(given)) ? null : Number(given);
}
