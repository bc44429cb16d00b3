import { DELIVERY_STATUSES, EVENT_TYPES } from '../../../../src/domain/webhooks/event.ts';
import { anyOf, chosen, fieldMoment, momentField, textField } from '../../kit/filters.ts';
import { choice, field, filterForm } from '../../kit/forms.ts';
import { html } from '../../kit/html.ts';
import { BY_AGE, PAGE_ROWS, pager, switches } from '../../kit/lists.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import type { Webhook } from '../answers.ts';
import { programExamples } from '../program.ts';
import type { ConsoleRouter } from '../route.ts';
import { type AccountDelivery, deliveryTable, subjectsOf, webhookNames } from './list.ts';

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
