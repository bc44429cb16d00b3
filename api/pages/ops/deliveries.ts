import { shownUrl } from '../../../src/domain/values/parse-url.ts';
import { EVENT_TYPES } from '../../../src/domain/webhooks/event.ts';
import { retryDeliveries } from '../../../src/store/deliveries/recovery.ts';
import {
  countDeliveries,
  countRetryable,
  DELIVERY_STATES,
  type DeliveryCount,
  type DeliverySearch,
  type DeliveryState,
  type FoundDelivery,
  listRetryable,
  MAX_BULK_RETRIES,
  MAX_MATCHING_WEBHOOKS,
  type RetryableRange,
  searchDeliveries,
} from '../../../src/store/deliveries/search.ts';
import { invalidRequest } from '../../errors.ts';
import { subjectText } from '../kit/event-subject.ts';
import { anyOf, chosen, fieldMoment, momentField, textField } from '../kit/filters.ts';
import { actionButton, choice, field, filterForm, hidden } from '../kit/forms.ts';
import { ago, code, type Html, html, longText, NONE, number, table, time } from '../kit/html.ts';
import { BY_AGE, PAGE_ROWS, pager, tabs } from '../kit/lists.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { deliveryState, endpointName, shortId } from '../kit/shown-values.ts';
import type { OpsRequest, OpsRouter } from './actions.ts';
import { OPS_LINKS } from './links.ts';
import type { Problems } from './problems/read.ts';

export const DELIVERIES_PATH = '/ops/deliveries';
const RETRY_PATH = '/ops/deliveries/retry-all';

type DeliveriesDeps = Pick<PageDeps, 'db' | 'cursors' | 'producer'> & { problems: Pick<Problems, 'head'> };

/** /ops/deliveries: the deliveries of all accounts, newest first, and the retry of all that match. */
export function deliveriesPage(router: OpsRouter, deps: DeliveriesDeps): void {
  router.page({
    path: DELIVERIES_PATH,
    section: 'deliveries',
    async load(request) {
      const { query, nowMs } = request;
      const filter = readFilter(query);
      const scope = JSON.stringify([DELIVERIES_PATH, filter]);
      const cursor = query.get('cursor');
      const [after] = cursor === null ? [] : deps.cursors.decode(scope, cursor);
      const found = await searchDeliveries(deps.db, filter, PAGE_ROWS, after === undefined ? undefined : BigInt(after));
      const [counts, retryable] = await Promise.all([
        countDeliveries(deps.db, filter),
        request.session.mayAct ? countRetryable(deps.db, filter) : null,
      ]);
      const body = html`${await deps.problems.head(['deliveries', 'webhooks'], request.nowMs, 'Nothing is wrong: deliveries are on time, and no webhook fails.')}${stateTabs(query, filter, counts)}
${filters(filter)}
${retryable !== null && retryAll(request, filter, retryable)}
${
  found.outcome === 'too_many_webhooks'
    ? html`<p class="problem" role="alert">More than ${number(MAX_MATCHING_WEBHOOKS)} webhooks match. Enter more of the address, or an account.</p>`
    : html`${deliveryTable(found.deliveries, nowMs)}
${
  found.searchedSince !== undefined &&
  html`<p class="hint">The search covers deliveries since ${time(found.searchedSince)} UTC. Older pages may hold more.</p>`
}
${pager({ path: DELIVERIES_PATH, query }, found.next === undefined ? undefined : deps.cursors.encode(scope, [String(found.next)]), BY_AGE)}`
}`;
      return { title: 'Deliveries', body };
    },
  });

  router.action({
    path: RETRY_PATH,
    section: 'deliveries',
    action: 'delivery.retry_all',
    target: ({ form }) => fieldsOf(readFilter(form)).toString(),
    async run({ form }) {
      const filter = readFilter(form);
      const bySubscription = await listRetryable(deps.db, filter, readRange(form));
      let retried = 0;
      // One transaction per webhook, so that one action holds no lock for long. A repetition continues after a crash.
      for (const [subscriptionPk, pks] of bySubscription) {
        retried += await deps.db.transaction((tx) => retryDeliveries(tx, subscriptionPk, pks));
        deps.producer.wakeDeliveries([subscriptionPk]);
      }
      const count = retried === 1 ? '1 delivery is' : `${retried.toLocaleString('en-US')} deliveries are`;
      return { result: `${count} due again.`, to: `${DELIVERIES_PATH}?${fieldsOf(filter).toString()}` };
    },
  });
}

function readFilter(query: URLSearchParams): DeliverySearch {
  const status = chosen(query, 'status', DELIVERY_STATES);
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

/** The query of a filter. */
function fieldsOf({ status, eventType, account, webhook, errorCode, eventId, since }: DeliverySearch): URLSearchParams {
  return new URLSearchParams({
    ...(status !== undefined && { status }),
    ...(eventType !== undefined && { type: eventType }),
    ...(account !== undefined && { account }),
    ...(webhook !== undefined && { webhook }),
    ...(errorCode !== undefined && { error: errorCode }),
    ...(eventId !== undefined && { event: eventId }),
    ...(since !== undefined && { since: since.toISOString() }),
  });
}

const TAB_LABELS: Readonly<Record<DeliveryState, string>> = {
  pending: 'Pending',
  retrying: 'Retrying',
  delivered: 'Delivered',
  failed: 'Failed',
  cancelled: 'Cancelled',
};

function stateTabs(
  query: URLSearchParams,
  filter: DeliverySearch,
  counts: Partial<Record<DeliveryState | 'all', DeliveryCount>>,
): Html {
  const item = (value: DeliveryState | '', label: string) => {
    const count = counts[value || 'all'];
    return { value, label, ...(count && { count }) };
  };
  const items = [item('', 'All'), ...DELIVERY_STATES.map((state) => item(state, TAB_LABELS[state]))];
  return tabs(
    { path: DELIVERIES_PATH, query },
    { name: 'status', label: 'State', current: filter.status ?? '', items },
  );
}

function filters(filter: DeliverySearch): Html {
  const { status, eventType = '', account = '', webhook = '', errorCode = '', eventId = '', since } = filter;
  return filterForm(
    DELIVERIES_PATH,
    html`${choice({ label: 'Event type', name: 'type', value: eventType, options: anyOf(EVENT_TYPES) })}
${field({ label: 'Webhook', name: 'webhook', value: webhook, hint: 'id, or part of the address' })}
${field({ label: 'Account', name: 'account', value: account, hint: 'name or number' })}
${field({ label: 'Last error', name: 'error', value: errorCode, hint: 'for example timeout' })}
${field({ label: 'Event', name: 'event', value: eventId, hint: 'id of the event' })}
${field({ label: 'Since (UTC)', name: 'since', type: 'datetime-local', value: since === undefined ? '' : fieldMoment(since) })}
${status !== undefined && html`<input type="hidden" name="status" value="${status}">`}`,
  );
}

/** A button that retries all deliveries that match, with their number in its confirmation. */
function retryAll(request: OpsRequest, filter: DeliverySearch, range: RetryableRange): Html {
  const { deliveries, oldest, newest } = range;
  const count = deliveries.toLocaleString('en-US');
  const many = deliveries === 1 ? '1 delivery' : `${count} deliveries`;
  const isBound = deliveries >= MAX_BULK_RETRIES;
  return html`<div class="bulk">${actionButton(request, {
    action: RETRY_PATH,
    label: deliveries === 1 ? 'Retry 1 delivery' : `Retry ${isBound ? 'the newest' : 'all'} ${count}`,
    submitLabel: `Retry ${many}`,
    confirm: `This makes ${many} with the state “${filter.status}” due again: one attempt each, at once or at its turn in an ordered webhook. Deliveries of paused webhooks are not among them.`,
    fields: hidden({
      ...Object.fromEntries(fieldsOf(filter)),
      count: String(deliveries),
      oldest: String(oldest),
      newest: String(newest),
    }),
  })}</div>`;
}

/** @throws ApiError `invalid_request` */
function readRange(form: URLSearchParams): RetryableRange {
  const read = (name: string): bigint => {
    const text = form.get(name) ?? '';
    if (!/^\d{1,18}$/.test(text)) throw invalidRequest([{ path: name, message: 'must be a whole number' }]);
    return BigInt(text);
  };
  return { deliveries: Number(read('count')), oldest: read('oldest'), newest: read('newest') };
}

function deliveryTable(deliveries: readonly FoundDelivery[], nowMs: number): Html {
  return table<FoundDelivery>({
    caption: 'Deliveries, newest first',
    columns: [
      {
        label: 'Subject',
        cell: ({ id, subject, eventType, isTest }) =>
          html`<span class="subject">${subjectText(eventType, subject, OPS_LINKS)}${isTest && eventType !== 'test' && ' (test)'}</span> <span class="under-cell"><a href="${DELIVERIES_PATH}/${id}">${shortId(id)}</a> <span class="muted">${eventType}</span></span>`,
      },
      {
        label: 'State',
        cell: (delivery) =>
          html`${deliveryState(delivery)}${
            delivery.status === 'pending' &&
            html` <span class="under-cell muted">next ${ago(delivery.nextAttemptAt, nowMs)}</span>`
          }`,
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
    ],
    rows: deliveries,
    empty: 'No delivery matches these filters.',
  });
}

function lastAnswer({ lastStatusCode, lastError }: FoundDelivery): Html {
  if (lastStatusCode === null && lastError === null) return NONE;
  return html`${lastStatusCode !== null && html`<span class="num">${lastStatusCode}</span> `}${lastError !== null && code(lastError)}`;
}
