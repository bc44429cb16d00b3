import { shownUrl } from '../../../src/domain/values/parse-url.ts';
import type { SubscribableEvent } from '../../../src/domain/webhooks/event.ts';
import type { FormView } from '../kit/form-view.ts';
import { hidden } from '../kit/forms.ts';
import { type Html, html } from '../kit/html.ts';
import type { Webhook } from './answers.ts';
import type { ConsoleRequest } from './route.ts';

const PAGE = 100;
/** Of the webhooks of an account. */
const MAX_PAGES = 10;

/** All webhooks of the account, oldest first; undefined when the key must not read them. */
export async function readWebhooks(request: ConsoleRequest): Promise<Webhook[] | undefined> {
  if (!request.session.caller.scopes.includes('webhooks')) return undefined;
  const all: Webhook[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { data, meta } = await request.api<Webhook[]>({
      operationId: 'listWebhooks',
      query: { limit: PAGE, cursor },
    });
    all.push(...data);
    cursor = meta.next_cursor ?? undefined;
    if (cursor === undefined) break;
  }
  return all.reverse();
}

/** The active webhooks that list a type of events. */
export function listenersOf(webhooks: readonly Webhook[], type: SubscribableEvent): Webhook[] {
  return webhooks.filter(({ status, events }) => status === 'active' && events.includes(type));
}

/** The webhook that gets the events of alerts that name none: the oldest active one that lists them. */
function defaultWebhook(webhooks: readonly Webhook[]): Webhook | undefined {
  return listenersOf(webhooks, 'price_alert')[0];
}

const DEFAULT = 'the default webhook';

/** The choice of the webhook of an alert. The default one is named. */
export function webhookField(view: FormView, webhooks: readonly Webhook[] | undefined, value = ''): Html {
  if (webhooks === undefined) return html`${hidden({ webhookId: view.value('webhookId', value) })}`;
  const named = listenersOf(webhooks, 'price_alert').map(({ id, url }) => [id, shownUrl(url)] as const);
  const chosen = view.value('webhookId', value);
  const isListed = chosen === '' || named.some(([id]) => id === chosen);
  const standard = defaultWebhook(webhooks);
  return view.choice({
    label: 'Webhook',
    name: 'webhookId',
    value,
    options: [
      ['', standard === undefined ? 'none yet' : `${DEFAULT}: ${shownUrl(standard.url)}`],
      ...named,
      ...(isListed ? [] : [[chosen, chosen] as const]),
    ],
  });
}

/** The default webhook by its address; undefined when there is none. */
export function destinationName(webhooks: readonly Webhook[] | undefined): Html | undefined {
  if (webhooks === undefined) return html`${DEFAULT}`;
  const found = defaultWebhook(webhooks);
  return found && html`${DEFAULT}: <a href="/webhooks/${found.id}">${shownUrl(found.url)}</a>`;
}

/**
 * Where the events of an alert go, in words that continue "sends an event". `link` leads to the page of the webhook. Undefined when they
 * go nowhere.
 */
export function destinationOf(
  webhooks: readonly Webhook[] | undefined,
  webhookId: string | undefined,
): Html | undefined {
  if (webhooks === undefined) return html`${webhookId === undefined ? `to ${DEFAULT}` : `to the webhook ${webhookId}`}`;
  const found = webhookId === undefined ? defaultWebhook(webhooks) : webhooks.find(({ id }) => id === webhookId);
  if (found === undefined) return webhookId === undefined ? undefined : html`to the webhook ${webhookId}`;
  const { id, url, status, events, filter } = found;
  const address = html`<a href="/webhooks/${id}">${shownUrl(url)}</a>`;
  const isDeaf = status !== 'active' || !events.includes('price_alert');
  return html`to ${webhookId === undefined && html`${DEFAULT}, `}${address}${
    isDeaf &&
    html`, which is ${status === 'active' ? html`without <code>price_alert</code>` : 'paused'}: the event waits for a recovery`
  }${filter !== undefined && !isDeaf && ', when its filter lets it pass'}`;
}
