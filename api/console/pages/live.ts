import { SUBSCRIBABLE_EVENTS } from '../../../src/domain/webhooks/event.ts';
import { ago, badge, html, table } from '../../ops/html.ts';
import { shortId } from '../../ops/pages/shown-values.ts';
import type { AccountEvent } from '../answers.ts';
import type { ConsoleRouter } from '../console-route.ts';
import { pages } from '../paging.ts';
import { programExamples } from '../program.ts';

const PER_PAGE = 50;
/** The fields that distinguish events, which the page and its script show. */
const FIELDS = [
  'title',
  'tokenSymbol',
  'condition',
  'targetPrice',
  'currentPrice',
  'status',
  'side',
  'size',
  'price',
  'cause',
  'webhookId',
  'wallet',
  'transactionId',
] as const;

/** /live: the account's events as they are made. */
export function livePage(router: ConsoleRouter): void {
  router.page({
    path: '/live',
    section: 'live',
    scope: 'webhooks',
    async load(request) {
      const query = { limit: PER_PAGE, cursor: request.query.get('cursor') ?? undefined };
      const call = { operationId: 'listAccountEvents', query };
      const { data: events, meta, text } = await request.api<AccountEvent[]>(call);
      const body = html`<p class="lead">Every event of the account, with or without a webhook, newest first.</p>
<div class="state-line"><p class="muted" data-count></p>
<p class="live" data-live>As of ${new Date(request.nowMs).toISOString().slice(11, 19)} UTC; reload to update</p></div>
<ol class="arrivals" id="arrivals" aria-label="New events" aria-live="polite" data-types="${SUBSCRIBABLE_EVENTS.join(' ')}"
 data-fields="${FIELDS.join(' ')}"></ol>
${table<AccountEvent>({
  caption: 'Events, newest first',
  columns: [
    { label: 'Event', cell: ({ id }) => shortId(id) },
    { label: 'Type', cell: ({ type }) => type },
    { label: 'What', cell: ({ payload }) => html`<span class="long">${summary(payload.data)}</span>` },
    {
      label: 'Delivery',
      cell: ({ undelivered, deliveries }) =>
        undelivered ? badge('warn', deliveries === 0 ? 'no webhook' : 'undelivered') : badge('good', 'sent'),
    },
    { label: 'Created', cell: ({ createdAt }) => ago(new Date(createdAt), request.nowMs) },
  ],
  rows: events,
  empty: 'No events yet. An alert that fires makes the first one.',
})}
${pages(request, meta.next_cursor)}
${programExamples(request, {
  calls: [
    ['the stored events', call],
    ['new events, live', { operationId: 'streamAccountEvents' }],
  ],
  typescript: 'for await (const event of client.eventStream()) console.log(event);',
  json: text,
})}`;
      return { title: 'Live', body, scripts: ['tail.js'] };
    },
  });
}

function summary(data: AccountEvent['payload']['data'] = {}): string {
  return FIELDS.flatMap((name) => (data[name] === undefined ? [] : [`${name} ${String(data[name])}`])).join(' · ');
}
