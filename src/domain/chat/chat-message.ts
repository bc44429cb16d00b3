import { findEvent } from '../events/events.ts';
import { parseExactJson } from '../values/exact-json.ts';
import { parseUrl } from '../values/parse-url.ts';
import {
  type ChatFacts,
  type Content,
  counted,
  cut,
  type Data,
  type Field,
  numberOf,
  shortened,
  textOf,
} from '../webhooks/chat-values.ts';

/** A message in plain text, within the limits of every service. */
export interface ChatMessage {
  title: string;
  /** At most MAX_FIELDS lines; neither part is empty. */
  fields: readonly { name: string; value: string }[];
  link?: string;
  eventId: string;
  /** ISO 8601. */
  timestamp: string;
}

const MAX_TITLE = 150;
const MAX_FIELDS = 10;
const MAX_FIELD_NAME = 64;
const MAX_FIELD_VALUE = 256;
const MAX_LINK = 2_048;

/** The message for an event; `skipped` is the number of events of its key that were skipped before it. */
export function chatMessage(body: string, facts: ChatFacts, skipped = 0): ChatMessage {
  const event = parseExactJson(body).value as { id: string; type: string; timestamp: string; data: Data };
  const { data } = event;
  const { title, fields } = findEvent(event.type)?.chat(data, facts) ?? otherContent(event.type, data, facts);
  const token = facts.outcome ?? textOf(data['tokenSymbol']) ?? shortened(textOf(data['tokenMint']));
  const isOutcome = facts.outcome !== undefined || data['marketId'] !== undefined;
  const lines = [
    ['Market', facts.title ?? textOf(data['title'])],
    [isOutcome ? 'Outcome' : 'Token', token],
    ...fields,
    ['Skipped before', skipped > 0 ? counted(String(skipped), 'event') : undefined],
  ].map(([name = '', value = '']) => ({ name: cut(name, MAX_FIELD_NAME), value: cut(value, MAX_FIELD_VALUE) }));
  const link = [facts.url, textOf(data['url'])].find(isLink);
  return {
    title: cut(title, MAX_TITLE),
    fields: lines.filter(({ name, value }) => name !== '' && value !== '').slice(0, MAX_FIELDS),
    ...(link !== undefined && { link }),
    eventId: event.id,
    timestamp: event.timestamp,
  };
}

/** Any other type or condition: its name and its plain fields. */
function otherContent(type: string, data: Data, facts: ChatFacts): Content {
  const words = type.replaceAll('_', ' ');
  const name = words.charAt(0).toUpperCase() + words.slice(1);
  return {
    title: facts.title === undefined ? name : `${name}: ${facts.title}`,
    fields: Object.entries(data).map(([key, value]): Field => [key, textOf(value) ?? numberOf(value)]),
  };
}

function isLink(url: string | undefined): url is string {
  return url !== undefined && url.length <= MAX_LINK && /^https?:\/\//.test(url) && parseUrl(url) !== null;
}
