import { VERSION } from '../../../src/config/version.ts';
import { chatMessage, shownChatBody } from '../../../src/domain/chat/chat-request.ts';
import { type RequestFacts, readChatFacts, readRequestFacts } from '../../../src/store/deliveries/request-facts.ts';
import { ApiError } from '../../errors.ts';
import { copiedText } from './attempts.ts';
import { code, type Html, html, table } from './html.ts';
import type { PageDeps } from './page-deps.ts';
import { prettyJson } from './pretty-json.ts';

interface SentDelivery {
  id: string;
  eventId: string;
  eventType: string;
  /** The event, digit for digit. */
  body: string;
}

type Header = readonly [name: string, value: Html];

/** The headers and the body of the requests of a delivery. Secrets stay hidden: signatures, the values of own headers, the chat. `isCopied`: as in `copiedText`. */
export async function sentRequest(
  { db }: Pick<PageDeps, 'db'>,
  delivery: SentDelivery,
  { isCopied }: { isCopied: boolean },
): Promise<Html> {
  const facts = await readRequestFacts(db, delivery.id);
  if (!facts) throw new ApiError('not_found', 'the delivery does not exist, or retention has deleted it');
  const { format, skipped } = facts;
  if (format === null) {
    return html`${headerTable([...commonHeaders(facts), ...eventHeaders(delivery, facts)])}
${bodyOf('The signed JSON, with added line breaks. All digits are unchanged.', delivery.body, isCopied)}`;
  }
  const message = chatMessage(delivery.body, await readChatFacts(db, delivery.body), skipped.length);
  return html`${headerTable(commonHeaders(facts))}
${bodyOf(
  `The message for ${format}, with added line breaks, without a signature. An attempt names the market as the catalog does at its time.`,
  shownChatBody(format, message),
  isCopied,
)}<h3>Event</h3>${copiedText({ id: 'event', label: 'Event', text: prettyJson(delivery.body), isCopied })}`;
}

function bodyOf(hint: string, body: string, isCopied: boolean): Html {
  return html`<h3>Body</h3>${copiedText({ id: 'body', label: 'Body', text: prettyJson(body), isCopied, hint })}`;
}

function commonHeaders({ headerNames }: RequestFacts): Header[] {
  return [
    ...headerNames.map((name): Header => [name, html`set by the webhook; the value is secret`]),
    ['Content-Type', code('application/json')],
    ['User-Agent', code(`oddswire/${VERSION}`)],
  ];
}

/** The headers that identify an event. Signatures are made for each attempt and not stored. */
function eventHeaders({ id, eventId, eventType }: SentDelivery, { webhookId, skipped }: RequestFacts): Header[] {
  return [
    ['webhook-id', code(eventId)],
    ['X-Webhook-Id', code(webhookId)],
    ['X-Webhook-Event', code(eventType)],
    ['X-Webhook-Delivery', code(id)],
    ['X-Webhook-Attempt', html`the number of the attempt`],
    ...(skipped.length === 0 ? [] : [['X-Webhook-Skipped', code(skipped.join(','))] as const]),
    ['webhook-timestamp', html`the second of the attempt`],
    ['webhook-signature', html`made for each attempt with the secret (Standard Webhooks)`],
    ['X-Webhook-Signature', html`HMAC of the body with the secret`],
  ];
}

function headerTable(rows: readonly Header[]): Html {
  return table<Header>({
    caption: 'Request headers',
    columns: [
      { label: 'Header', cell: ([name]) => code(name) },
      { label: 'Value', cell: ([, value]) => html`<span class="long">${value}</span>` },
    ],
    rows,
    empty: '',
  });
}
