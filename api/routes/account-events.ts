import { z } from 'zod';
import { JsonText } from '../../src/domain/values/api-json.ts';
import { type AccountEvent, listAccountEvents } from '../../src/store/deliveries/account-events.ts';
import {
  type AccountEventBody,
  accountEvent,
  accountEventExample,
  accountEventQuery,
} from '../contract/events/account-event.ts';
import { accountRoute, type Route, WEBHOOKS_GROUP } from '../http/route.ts';
import type { ReadDeps } from '../reads/read-deps.ts';
import { accountList } from './account-list.ts';

/** /v1/events: the events of the account, also those that no webhook got. */
export function accountEventRoutes(deps: ReadDeps): Route[] {
  return [
    accountRoute(
      {
        method: 'get',
        path: '/v1/events',
        operationId: 'listAccountEvents',
        summary: 'List the events of the account, newest first',
        description:
          'Includes events without a delivery, of which `recover` makes one. Excludes test events. With a filter, a page may have ' +
          'fewer items than `limit` although more follow: continue until `next_cursor` is null.',
        tag: 'deliveries',
        group: WEBHOOKS_GROUP,
        query: accountEventQuery,
        answer: { description: 'Events.', data: z.array(accountEvent), example: [accountEventExample], isPaged: true },
        errors: ['invalid_cursor'],
      },
      (request) => {
        const { type, undelivered } = request.query;
        return accountList(request, deps, ['account events', type, undelivered], async (limit, after) => {
          const filter = { ...(type !== undefined && { type }), ...(undelivered !== undefined && { undelivered }) };
          const { events, next } = await listAccountEvents(deps.db, request.caller.accountId, filter, limit, after);
          return { items: events.map(presentEvent), next };
        });
      },
    ),
  ];
}

function presentEvent(event: AccountEvent): AccountEventBody {
  return {
    id: event.id,
    type: event.type,
    createdAt: event.createdAt.toISOString(),
    webhookId: event.webhookId ?? undefined,
    deliveries: event.deliveries,
    undelivered: event.isUndelivered,
    payload: new JsonText(event.body),
  };
}
