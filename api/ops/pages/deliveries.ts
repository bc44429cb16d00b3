import { DELIVERY_STATUSES, EVENT_TYPES } from '../../../src/domain/webhooks/event.ts';
import {
  listOpsDeliveries,
  MAX_MATCHING_WEBHOOKS,
  type OpsDelivery,
  type OpsDeliveryFilter,
} from '../../../src/store/ops/deliveries.ts';
import type { ApiDeps } from '../../deps.ts';
import { choice, field, filterForm } from '../forms.ts';
import { ago, badge, code, type Html, html, longText, NONE, number, pager, table, time } from '../html.ts';
import type { OpsRouter } from '../ops-route.ts';
import { anyOf, chosen, fieldMoment, momentField, textField } from './filters.ts';
import { DELIVERY_TONES, endpointName, shortId, shownUrl } from './shown-values.ts';

export const DELIVERIES_PATH = '/ops/deliveries';
const PAGE_SIZE = 50;

/** /ops/deliveries: the deliveries of all accounts, newest first. */
export function deliveriesPage(router: OpsRouter, deps: Pick<ApiDeps, 'db' | 'cursors'>): void {
  router.page({
    path: DELIVERIES_PATH,
    section: 'deliveries',
    async load({ query, nowMs }) {
      const filter = readFilter(query);
      const scope = JSON.stringify([DELIVERIES_PATH, filter]);
      const cursor = query.get('cursor');
      const [after] = cursor === null ? [] : deps.cursors.decode(scope, cursor);
      const found = await listOpsDeliveries(
        deps.db,
        filter,
        PAGE_SIZE,
        after === undefined ? undefined : BigInt(after),
      );
      const body = html`<p class="lead">The deliveries of all events to webhooks, newest first.</p>
${filters(filter)}
${
  found.outcome === 'too_many_webhooks'
    ? html`<p class="problem" role="alert">More than ${number(MAX_MATCHING_WEBHOOKS)} webhooks match. Enter more of the address, or an account.</p>`
    : html`${deliveryTable(found.deliveries, nowMs)}
${
  found.searchedSince !== undefined &&
  html`<p class="hint">The search covers deliveries since ${time(found.searchedSince)} UTC. Older pages may hold more.</p>`
}
${pager(DELIVERIES_PATH, query, found.next === undefined ? undefined : deps.cursors.encode(scope, [String(found.next)]))}`
}`;
      return { title: 'Deliveries', body };
    },
  });
}

function readFilter(query: URLSearchParams): OpsDeliveryFilter {
  const status = chosen(query, 'status', DELIVERY_STATUSES);
  const eventType = chosen(query, 'type', EVENT_TYPES);
  const account = textField(query, 'account');
  const webhook = textField(query, 'webhook');
  const errorCode = textField(query, 'error');
  const eventId = textField(query, 'event');
  const since = momentField(query, 'since');
  return {
    ...(status !== undefined && { status }),
    ...(eventType !== undefined && { eventType }),
    ...(account !== undefined && { account }),
    ...(webhook !== undefined && { webhook }),
    ...(errorCode !== undefined && { errorCode }),
    ...(eventId !== undefined && { eventId }),
    ...(since !== undefined && { since }),
  };
}

function filters(filter: OpsDeliveryFilter): Html {
  const { status = '', eventType = '', account = '', webhook = '', errorCode = '', eventId = '', since } = filter;
  return filterForm(
    DELIVERIES_PATH,
    html`${choice({ label: 'Status', name: 'status', value: status, options: anyOf(DELIVERY_STATUSES) })}
${choice({ label: 'Event type', name: 'type', value: eventType, options: anyOf(EVENT_TYPES) })}
${field({ label: 'Webhook', name: 'webhook', value: webhook, hint: 'id, or part of the address' })}
${field({ label: 'Account', name: 'account', value: account, hint: 'name or number' })}
${field({ label: 'Last error', name: 'error', value: errorCode, hint: 'for example timeout' })}
${field({ label: 'Event', name: 'event', value: eventId, hint: 'id of the event' })}
${field({ label: 'Since (UTC)', name: 'since', type: 'datetime-local', value: since === undefined ? '' : fieldMoment(since) })}`,
  );
}

function deliveryTable(deliveries: readonly OpsDelivery[], nowMs: number): Html {
  return table<OpsDelivery>({
    caption: 'Deliveries, newest first',
    columns: [
      { label: 'Delivery', cell: ({ id }) => html`<a href="${DELIVERIES_PATH}/${id}">${shortId(id)}</a>` },
      { label: 'Status', cell: ({ status }) => badge(DELIVERY_TONES[status] ?? 'idle', status) },
      {
        label: 'Event',
        cell: ({ eventType, isTest }) => html`${eventType}${isTest && eventType !== 'test' && ' (test)'}`,
      },
      { label: 'Attempts', cell: ({ attempts }) => number(attempts), isNumeric: true },
      { label: 'Last answer', cell: lastAnswer },
      {
        label: 'Webhook',
        cell: ({ webhookId, url }) =>
          html`<a class="host" href="/ops/webhooks/${webhookId}" title="${shownUrl(url)}">${endpointName(url)}</a>`,
      },
      { label: 'Account', cell: ({ accountName }) => longText(accountName) },
      { label: 'Created', cell: ({ createdAt }) => ago(createdAt, nowMs) },
      {
        label: 'Next attempt',
        cell: ({ status, nextAttemptAt }) => (status === 'pending' ? ago(nextAttemptAt, nowMs) : NONE),
      },
    ],
    rows: deliveries,
    empty: 'No delivery matches these filters.',
  });
}

function lastAnswer({ lastStatusCode, lastError }: OpsDelivery): Html {
  if (lastStatusCode === null && lastError === null) return NONE;
  return html`${lastStatusCode !== null && html`<span class="num">${lastStatusCode}</span> `}${lastError !== null && code(lastError)}`;
}
