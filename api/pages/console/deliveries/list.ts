import { type OwnSubject, readOwnSubjects } from '../../../../src/store/deliveries/subjects.ts';
import { type SubjectLinks, subjectText } from '../../kit/event-subject.ts';
import { ago, type Html, type HtmlValue, html, NONE, number, table } from '../../kit/html.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import { deliveryState, endpointName, shortId } from '../../kit/shown-values.ts';
import type { Delivery, Webhook } from '../answers.ts';
import type { ConsoleRequest } from '../route.ts';
import { marketPath } from '../values.ts';
import { lastFailure } from './verdict.ts';

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
