import { SUBSCRIBABLE_EVENTS } from '../../../src/domain/webhooks/event.ts';
import { ago, badge, html, table } from '../kit/html.ts';
import { PAGE_ROWS, pager } from '../kit/lists.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { shortId } from '../kit/shown-values.ts';
import type { AccountEvent } from './answers.ts';
import { DELIVERIES_PATH } from './deliveries/page.ts';
import { type Name, namesOf } from './named-outcomes.ts';
import { programExamples } from './program.ts';
import type { ConsoleRouter } from './route.ts';
import { marketPath } from './values.ts';

/** The fields that distinguish events, with their labels, for the page and its script. */
const FIELDS: readonly (readonly [name: string, label: string])[] = [
  ['title', ''],
  ['tokenSymbol', ''],
  ['condition', ''],
  ['targetPrice', 'target'],
  ['currentPrice', 'price'],
  ['status', ''],
  ['side', ''],
  ['size', 'size'],
  ['price', 'price'],
  ['change', 'change'],
  ['cause', 'cause'],
  ['webhookId', 'webhook'],
  ['wallet', 'wallet'],
  ['transactionId', 'transaction'],
];
/** A longer text without spaces is an id. */
const MAX_ID = 24;

/** /live: the account's events as they are made. */
export function livePage(router: ConsoleRouter, deps: Pick<PageDeps, 'db'>): void {
  router.data({
    path: '/console/data/outcome.json',
    scope: 'webhooks',
    async load(request) {
      const token = request.query.get('token') ?? '';
      const name = (await namesOf(deps, request, [token])).get(token);
      return name === undefined ? {} : { title: name.title, path: pathOf(name) };
    },
  });

  router.page({
    path: '/live',
    section: 'live',
    scope: 'webhooks',
    async load(request) {
      const query = { limit: PAGE_ROWS, cursor: request.query.get('cursor') ?? undefined };
      const isNewest = query.cursor === undefined;
      const call = { operationId: 'listAccountEvents', query };
      const { data: events, meta, text } = await request.api<AccountEvent[]>(call);
      const tokenOf = ({ payload }: AccountEvent) => payload.data?.['tokenMint'];
      const names = await namesOf(
        deps,
        request,
        events.map(tokenOf).filter((token) => typeof token === 'string'),
      );
      const body = html`<p class="lead">Every event of the account, with or without a webhook, newest first.</p>
<div class="state-line"><p class="muted" data-count></p>
<p class="live" data-live>${
        isNewest
          ? html`As of ${new Date(request.nowMs).toISOString().slice(11, 19)} UTC; reload to update`
          : 'Older events. The first page follows new ones.'
      }</p></div>
<ol class="arrivals" id="arrivals" aria-label="New events" aria-live="polite" data-types="${SUBSCRIBABLE_EVENTS.join(' ')}"
 data-fields="${JSON.stringify(FIELDS)}"></ol>
<div id="events">${table<AccountEvent>({
        caption: 'Events, newest first',
        columns: [
          { label: 'Event', cell: ({ id }) => html`<span data-event="${id}">${shortId(id)}</span>` },
          { label: 'Type', cell: ({ type }) => type },
          {
            label: 'What',
            cell: (event) => {
              const name = names.get(String(tokenOf(event)));
              return html`${name && html`<a class="row-link" href="${pathOf(name)}">${name.title}</a>`}<span class="${name && 'where'} long">${summary(event.payload.data)}</span>`;
            },
          },
          {
            label: 'Delivery',
            cell: ({ id, undelivered, deliveries }) => {
              if (deliveries === 0) return badge('warn', 'no webhook');
              const count = deliveries === 1 ? '1 delivery' : `${deliveries} deliveries`;
              return html`${undelivered ? badge('warn', 'undelivered') : badge('good', 'sent')} <a href="${DELIVERIES_PATH}?event=${id}">${count}</a>`;
            },
          },
          { label: 'Created', cell: ({ createdAt }) => ago(new Date(createdAt), request.nowMs) },
        ],
        rows: events,
        empty: 'No events yet. An alert that fires makes the first one.',
      })}</div>
${pager(request, meta.next_cursor)}
${programExamples(request, {
  calls: [
    ['the stored events', call],
    ['new events, live', { operationId: 'streamAccountEvents' }],
  ],
  typescript: 'for await (const event of client.eventStream()) console.log(event);',
  python: `with client.event_stream() as events:
    for event in events:
        print(event)`,
  json: text,
})}`;
      return { title: 'Live', body, scripts: isNewest ? ['tail.js'] : [] };
    },
  });
}

function pathOf({ venue, marketId, outcomeId }: Name): string {
  return `${marketPath({ venue, market_id: marketId })}?${new URLSearchParams({ outcome: outcomeId }).toString()}`;
}

function summary(data: AccountEvent['payload']['data'] = {}): string {
  return FIELDS.flatMap(([name, label]) =>
    data[name] === undefined ? [] : [`${label} ${short(String(data[name]))}`.trim()],
  ).join(' · ');
}

function short(text: string): string {
  return text.length <= MAX_ID || text.includes(' ') ? text : `${text.slice(0, 8)}…${text.slice(-6)}`;
}
