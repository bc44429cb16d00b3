import { DAY_MS } from '../../../src/domain/values/durations.ts';
import { shownUrl } from '../../../src/domain/values/parse-url.ts';
import {
  type ListedWebhook,
  listWebhooks,
  MAX_PENDING_EACH,
  MEASURED_EACH,
  WEBHOOK_STATES,
  type WebhookFilter,
  type WebhookState,
} from '../../../src/store/ops/webhooks.ts';
import { chosen, textField } from '../kit/filters.ts';
import { field, filterForm } from '../kit/forms.ts';
import { ago, badge, code, duration, type Html, html, longText, NONE, number, type Tone, table } from '../kit/html.ts';
import { PAGE_ROWS, pager, tabs } from '../kit/lists.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { endpointName, percent } from '../kit/shown-values.ts';
import type { OpsRouter } from './actions.ts';
import type { Problems } from './problems/read.ts';

const PATH = '/ops/webhooks';

const SHOWN: Readonly<Record<WebhookState, { label: string; tab: string; tone: Tone }>> = {
  failing: { label: 'failing', tab: 'Failing', tone: 'bad' },
  stopped: { label: 'stopped', tab: 'Stopped', tone: 'bad' },
  partly: { label: 'fails in part', tab: 'Failing in part', tone: 'warn' },
  paused: { label: 'paused', tab: 'Paused', tone: 'idle' },
  active: { label: 'active', tab: 'Active', tone: 'good' },
};

/** /ops/webhooks: the webhooks of all accounts, worst first. */
export function webhooksPage(
  router: OpsRouter,
  deps: Pick<PageDeps, 'db' | 'cursors'> & { problems: Pick<Problems, 'head'> },
): void {
  router.page({
    path: PATH,
    section: 'webhooks',
    async load({ query, nowMs }) {
      const filter = readFilter(query);
      const scope = JSON.stringify([PATH, filter]);
      const cursor = query.get('cursor');
      const [offset = '0'] = cursor === null ? [] : deps.cursors.decode(scope, cursor);
      const period = { sinceMs: nowMs - DAY_MS, limit: PAGE_ROWS, offset: Number(offset) };
      const { webhooks, next } = await listWebhooks(deps.db, filter, period);
      const body = html`${await deps.problems.head(['webhooks'], nowMs, 'Nothing is wrong: no webhook fails.')}
<p class="lead">The webhooks of all accounts, worst first: failing ones, those that oddswire stopped, those that fail in part, then the others.</p>
${tabs(
  { path: PATH, query },
  {
    name: 'state',
    label: 'State',
    current: filter.state ?? '',
    items: [{ value: '', label: 'All' }, ...WEBHOOK_STATES.map((value) => ({ value, label: SHOWN[value].tab }))],
  },
)}
${filterForm(
  PATH,
  html`${field({ label: 'Webhook', name: 'webhook', type: 'search', value: filter.webhook ?? '', hint: 'id, or part of the address' })}
${field({ label: 'Account', name: 'account', value: filter.account ?? '', hint: 'name or number' })}
${filter.state !== undefined && html`<input type="hidden" name="state" value="${filter.state}">`}`,
)}
${webhookTable(webhooks, nowMs)}
<p class="hint">Success and p95 cover the last 24 hours, at most the newest ${number(MEASURED_EACH)} deliveries of a webhook.</p>
${pager({ path: PATH, query }, next === undefined ? undefined : deps.cursors.encode(scope, [String(next)]), { first: 'Worst', next: 'More' })}`;
      return { title: 'Webhooks', body };
    },
  });
}

function readFilter(query: URLSearchParams): WebhookFilter {
  const state = chosen(query, 'state', WEBHOOK_STATES);
  const account = textField(query, 'account');
  const webhook = textField(query, 'webhook');
  return {
    ...(state !== undefined && { state }),
    ...(account !== undefined && { account }),
    ...(webhook !== undefined && { webhook }),
  };
}

function webhookTable(webhooks: readonly ListedWebhook[], nowMs: number): Html {
  return table<ListedWebhook>({
    caption: 'Webhooks, worst first',
    columns: [
      {
        label: 'Webhook',
        cell: ({ id, url }) =>
          html`<a class="long" href="${PATH}/${id}" title="${shownUrl(url)}">${endpointName(url)}</a>`,
      },
      { label: 'State', cell: (each) => stateCell(each, nowMs) },
      {
        label: 'Success',
        cell: ({ delivered, finished }) =>
          finished === 0
            ? NONE
            : html`<span class="num" title="${delivered} of ${finished}">${percent(delivered, finished)}</span>`,
        isNumeric: true,
      },
      { label: 'p95', cell: ({ p95Ms }) => (p95Ms === null ? NONE : html`${number(p95Ms)} ms`), isNumeric: true },
      {
        label: 'Pending',
        cell: ({ id, pending }) =>
          pending === 0
            ? '0'
            : html`<a href="/ops/deliveries?webhook=${id}&amp;status=pending">${number(pending)}${pending >= MAX_PENDING_EACH && '+'}</a>`,
        isNumeric: true,
      },
      {
        label: 'Failed',
        cell: ({ id, failed }) =>
          failed === 0 ? '0' : html`<a href="/ops/deliveries?webhook=${id}&amp;status=failed">${number(failed)}</a>`,
        isNumeric: true,
      },
      { label: 'Last error', cell: lastError },
      { label: 'Last success', cell: ({ lastDeliveredAt }) => ago(lastDeliveredAt, nowMs) },
      {
        label: 'Account',
        cell: ({ accountId, accountName }) =>
          html`<a class="long" href="/ops/accounts/${accountId}">${accountName}</a>`,
      },
    ],
    rows: webhooks,
    empty: 'No webhook matches these filters.',
  });
}

function stateCell({ state, failingSince, pauseReason }: ListedWebhook, nowMs: number): Html {
  const { label, tone } = SHOWN[state];
  return html`${badge(tone, label)}${state === 'failing' && html` <span class="muted" title="${failingSince?.toISOString()}">for ${duration(nowMs - (failingSince?.getTime() ?? nowMs))}</span>`}${
    state === 'stopped' && html` <span class="muted">${longText(pauseReason)}</span>`
  }`;
}

function lastError({ lastStatusCode, lastError: error }: ListedWebhook): Html {
  if (lastStatusCode === null && error === null) return NONE;
  return html`${lastStatusCode !== null && html`<span class="num">${lastStatusCode}</span> `}${error !== null && code(error)}`;
}
