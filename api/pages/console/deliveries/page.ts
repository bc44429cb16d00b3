import { DELIVERY_STATUSES, EVENT_TYPES } from '../../../../src/domain/webhooks/event.ts';
import { type OwnSubject, readOwnSubjects } from '../../../../src/store/deliveries/subjects.ts';
import { type SubjectLinks, subjectText } from '../../kit/event-subject.ts';
import { anyOf, chosen, fieldMoment, momentField, textField } from '../../kit/filters.ts';
import { choice, field, filterForm } from '../../kit/forms.ts';
import { ago, type Html, type HtmlValue, html, NONE, number, table } from '../../kit/html.ts';
import { BY_AGE, PAGE_ROWS, pager, switches } from '../../kit/lists.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import { deliveryState, endpointName, shortId } from '../../kit/shown-values.ts';
import type { Delivery, Webhook } from '../answers.ts';
import { programExamples } from '../program.ts';
import type { ConsoleRequest, ConsoleRouter } from '../route.ts';
import { marketPath } from '../values.ts';

export const DELIVERIES_PATH = '/deliveries';
/** The limit of a list of the API, and of the webhooks that a list of deliveries covers. */
const MAX_WEBHOOKS = 200;

/** /deliveries: the deliveries of all webhooks of the account, newest first, with filters. */
export function deliveriesPage(router: ConsoleRouter, deps: Pick<PageDeps, 'db'>): void {
  router.page({
    path: DELIVERIES_PATH,
    section: 'deliveries',
    scope: 'webhooks',
    async load(request) {
      const { query } = request;
      const webhookId = textField(query, 'webhook');
      const eventType = chosen(query, 'type', EVENT_TYPES);
      const eventId = textField(query, 'event');
      const since = momentField(query, 'since');
      const status = chosen(query, 'status', DELIVERY_STATUSES);
      const { data: webhooks } = await request.api<Webhook[]>({
        operationId: 'listWebhooks',
        query: { limit: MAX_WEBHOOKS },
      });
      const filter = { status, webhookId, eventType, eventId, since: since?.toISOString() };
      const call = {
        operationId: 'listAccountDeliveries',
        query: { ...filter, limit: PAGE_ROWS, cursor: query.get('cursor') ?? undefined },
      };
      const { data: deliveries, meta, text } = await request.api<AccountDelivery[]>(call);
      const subjects = await subjectsOf(
        deps,
        request,
        deliveries.map(({ id }) => id),
      );
      const hasFilter = Object.values(filter).some((value) => value !== undefined);
      const isShort = deliveries.length < PAGE_ROWS && (meta.next_cursor ?? null) !== null;
      const names = webhookNames(webhooks);
      const isListed = webhookId === undefined || names.has(webhookId);
      const body = html`<div class="switches">${switches(request, 'status', 'State', [
        ['', 'All'],
        ['pending', 'Pending'],
        ['delivered', 'Delivered'],
        ['failed', 'Failed'],
        ['cancelled', 'Cancelled'],
      ])}</div>
${filterForm(
  DELIVERIES_PATH,
  html`${choice({
    label: 'Webhook',
    name: 'webhook',
    value: webhookId ?? '',
    options: [['', 'any'], ...names, ...(isListed ? [] : [[webhookId, webhookId] as const])],
  })}
${choice({ label: 'Event type', name: 'type', value: eventType ?? '', options: anyOf(EVENT_TYPES) })}
${field({ label: 'Event', name: 'event', value: eventId ?? '', hint: 'id of the event' })}
${field({ label: 'Since (UTC)', name: 'since', type: 'datetime-local', value: since === undefined ? '' : fieldMoment(since) })}
${status !== undefined && html`<input type="hidden" name="status" value="${status}">`}`,
)}
${deliveryTable({
  deliveries,
  subjects,
  nowMs: request.nowMs,
  webhookOf: names,
  empty: isShort
    ? 'No delivery among the searched ones matches. Older pages may have some.'
    : hasFilter
      ? 'No delivery matches these filters.'
      : 'No deliveries yet. Create a webhook and send a test event, or wait until an alert fires.',
})}
${isShort && deliveries.length > 0 && html`<p class="hint">The search of this page ended at its limit. Older pages may have more.</p>`}
${pager(request, meta.next_cursor, BY_AGE)}
${programExamples(request, {
  calls: [['these deliveries', call]],
  typescript: 'for await (const delivery of client.deliveries.iterateAll()) console.log(delivery);',
  python: `for delivery in client.deliveries.iterate_all():
    print(delivery)`,
  json: text,
})}`;
      return { title: 'Deliveries', body };
    },
  });
}

/** A delivery in the list of the account. */
export interface AccountDelivery extends Delivery {
  webhookId: string;
  alertId?: string;
  lastDurationMs?: number;
}

const LINKS: SubjectLinks = {
  market: ({ venue, marketId }) => marketPath({ venue, market_id: marketId }),
  webhook: (id) => `/webhooks/${encodeURIComponent(id)}`,
};

function deliveryPath({ webhookId, id }: Pick<AccountDelivery, 'webhookId' | 'id'>): string {
  return `/webhooks/${encodeURIComponent(webhookId)}/deliveries/${encodeURIComponent(id)}`;
}

/** The subjects of deliveries by their ids. Every key that may see a delivery gets the names of its market and its alert. */
export function subjectsOf(
  { db }: Pick<PageDeps, 'db'>,
  { session }: Pick<ConsoleRequest, 'session'>,
  ids: readonly string[],
): Promise<Map<string, OwnSubject>> {
  return readOwnSubjects(db, session.caller.accountId, ids);
}

/** An event in words, linked to its market or webhook. */
export function subjectWords(subject: OwnSubject | undefined): Html {
  return subject === undefined ? NONE : subjectText(subject.eventType, subject, LINKS);
}

/** The alert of an event by its name, linked while it exists. */
export function alertWords(subject: OwnSubject | undefined): Html {
  const { alert, alertId } = subject ?? {};
  if (alert) return html`<a href="/alerts/${alert.id}">${alert.name ?? shortId(alert.id)}</a>`;
  return alertId === undefined ? NONE : html`${shortId(alertId)} <span class="muted">deleted</span>`;
}

/** The deliveries of a page. `webhookOf`: the names of webhooks; absent on the page of one webhook. */
export function deliveryTable(options: {
  deliveries: readonly AccountDelivery[];
  subjects: ReadonlyMap<string, OwnSubject>;
  nowMs: number;
  empty: HtmlValue;
  webhookOf?: ReadonlyMap<string, string>;
}): Html {
  const { deliveries, subjects, nowMs, empty, webhookOf } = options;
  return table<AccountDelivery>({
    caption: 'Deliveries, newest first',
    columns: [
      {
        label: 'Event',
        cell: (delivery) =>
          html`<span class="subject">${subjectWords(subjects.get(delivery.id))}</span>
<span class="under-cell"><a data-row href="${deliveryPath(delivery)}">${shortId(delivery.id)}</a> <span class="muted">${delivery.eventType}</span></span>`,
      },
      { label: 'Alert', cell: ({ id }) => alertWords(subjects.get(id)) },
      ...(webhookOf === undefined
        ? []
        : [
            {
              label: 'Webhook',
              cell: ({ webhookId }: AccountDelivery) =>
                html`<a class="host" href="/webhooks/${webhookId}">${webhookOf.get(webhookId) ?? shortId(webhookId)}</a>`,
            },
          ]),
      {
        label: 'State',
        cell: (delivery) => {
          const failure = lastFailure(delivery);
          return html`${deliveryState(delivery)}${failure !== undefined && html` <span class="under-cell muted">${failure}</span>`}`;
        },
      },
      { label: 'Attempts', isNumeric: true, cell: ({ attempts }) => number(attempts) },
      {
        label: 'Duration',
        isNumeric: true,
        cell: ({ lastDurationMs }) => (lastDurationMs === undefined ? NONE : html`${number(lastDurationMs)} ms`),
      },
      {
        label: 'Next attempt',
        cell: ({ nextAttemptAt }) => {
          if (nextAttemptAt === undefined) return NONE;
          const next = new Date(nextAttemptAt);
          return next.getTime() <= nowMs ? 'due now' : ago(next, nowMs);
        },
      },
      { label: 'Created', cell: ({ createdAt }) => ago(new Date(createdAt), nowMs) },
    ],
    rows: deliveries,
    empty,
  });
}

/** The names of webhooks for lists, by their ids: the description, else host and path. */
export function webhookNames(webhooks: readonly Webhook[]): Map<string, string> {
  return new Map(webhooks.map(({ id, url, description }) => [id, description ?? endpointName(url)]));
}

/** The state of a delivery in a list: its last failure in a few words. */
function lastFailure({ status, lastError, lastStatusCode }: Delivery): string | undefined {
  if (lastError === undefined || status === 'delivered') return undefined;
  return lastError === 'http_status' ? `answered ${lastStatusCode ?? ''}` : lastError.replaceAll('_', ' ');
}
