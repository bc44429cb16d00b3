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
import type { ChatFormat } from './chat-url.ts';

/** The request of a message: its URL and its JSON body. */
interface ChatRequest {
  url: string;
  body: string;
}

/** Discord: Execute Webhook, an embed with at most 256 characters of title, 25 fields of 256 and 1,024, 6,000 in all. */
const DISCORD_TITLE = 256;
/** Slack: a header block. Section fields have at most 2,000 characters, ten of them in a block. */
const SLACK_TITLE = 150;
/** Slack: one text of a block. */
const SLACK_TEXT = 3_000;

/** The request that sends a message to the URL of a chat webhook. */
export function chatRequest(format: ChatFormat, url: string, message: ChatMessage): ChatRequest {
  return BUILDERS[format](url, message);
}

/** The chat of Telegram is a part of the address, which is a secret. */
const HIDDEN_URL = 'https://hidden.invalid/?chat_id=***';

/** The body of a message for a page. */
export function shownChatBody(format: ChatFormat, message: ChatMessage): string {
  return chatRequest(format, HIDDEN_URL, message).body;
}

const BUILDERS: Readonly<Record<ChatFormat, (url: string, message: ChatMessage) => ChatRequest>> = {
  discord(url, { title, fields, link, eventId, timestamp }) {
    const embed = {
      title: fitted(title, DISCORD_TITLE, escapeMarkdown),
      ...(link !== undefined && { url: link }),
      fields: fields.map(({ name, value }) => ({
        name: escapeMarkdown(name),
        value: escapeMarkdown(value),
        inline: value.length <= 32,
      })),
      timestamp,
      footer: { text: `oddswire ${eventId}` },
    };
    // No text of a market can notify people.
    return { url, body: JSON.stringify({ embeds: [embed], allowed_mentions: { parse: [] } }) };
  },

  slack(url, { title, fields, link, eventId }) {
    const lines = fields.map(({ name, value }) => slackText(`*${escapeEntities(name)}*\n${escapeEntities(value)}`));
    const source = `oddswire ${escapeEntities(eventId)}`;
    const linked = link === undefined ? source : `<${slackUrl(link)}|Open> · ${source}`;
    const blocks = [
      { type: 'header', text: { type: 'plain_text', text: fitted(title, SLACK_TITLE, escapeEntities), emoji: false } },
      ...(lines.length > 0 ? [{ type: 'section', fields: lines }] : []),
      // Escapes can make a link too long.
      { type: 'context', elements: [slackText(linked.length > SLACK_TEXT ? source : linked)] },
    ];
    const text = [title, ...fields.map(({ name, value }) => `${name}: ${value}`)].map(escapeEntities).join('\n');
    return { url, body: JSON.stringify({ text, blocks, unfurl_links: false, unfurl_media: false }) };
  },

  /** Telegram: sendMessage, at most 4,096 characters after its entities. The chat is a parameter of the webhook's URL. */
  telegram(url, { title, fields, link, eventId }) {
    const target = new URL(url);
    const thread = Number(target.searchParams.get('message_thread_id'));
    const chatId = target.searchParams.get('chat_id') ?? '';
    target.search = '';
    const text = [
      `<b>${escapeTelegram(title)}</b>`,
      ...fields.map(({ name, value }) => `${escapeTelegram(name)}: ${escapeTelegram(value)}`),
      ...(link === undefined ? [] : [`<a href="${escapeEntities(link).replaceAll('"', '&quot;')}">Open</a>`]),
      `<i>oddswire ${escapeEntities(eventId)}</i>`,
    ].join('\n');
    const body = {
      chat_id: chatId,
      ...(Number.isInteger(thread) && thread > 0 && { message_thread_id: thread }),
      text,
      parse_mode: 'HTML',
      link_preview_options: { is_disabled: true },
    };
    return { url: target.href, body: JSON.stringify(body) };
  },
};

/** The longest beginning of a text whose escaped form has at most `limit` characters. */
function fitted(text: string, limit: number, escaped: (text: string) => string): string {
  let length = Math.min(text.length, limit);
  while (escaped(cut(text, length)).length > limit) length -= 1;
  return escaped(cut(text, length));
}

function escapeMarkdown(text: string): string {
  return text.replace(/[\\*_~`|>#[\]()@<-]/g, '\\$&');
}

/** Slack and Telegram reserve the same three characters. */
function escapeEntities(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Without `verbatim`, Slack makes mentions and links of plain names in a text. */
function slackText(text: string) {
  return { type: 'mrkdwn', text, verbatim: true };
}

/** Telegram makes a mention of each `@name` in a text, which notifies a member of the chat. A word joiner (U+2060) prevents it. */
function escapeTelegram(text: string): string {
  return escapeEntities(text).replaceAll('@', '@\u2060');
}

function slackUrl(link: string): string {
  return escapeEntities(new URL(link).href.replaceAll('|', '%7C'));
}

/** Seconds of the wait that a service asks for in the JSON of a 429; undefined without one. */
export function askedWaitSeconds(excerpt: Uint8Array): number | undefined {
  let answer: unknown;
  try {
    answer = JSON.parse(Buffer.from(excerpt).toString('utf8'));
  } catch {
    // Slack answers in plain text, and states the wait in the header.
    return undefined;
  }
  const { retry_after: discord, parameters } = (answer ?? {}) as { retry_after?: unknown; parameters?: unknown };
  const telegram = (parameters as { retry_after?: unknown } | undefined)?.retry_after;
  const seconds = discord ?? telegram;
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined;
}

/** A message in plain text, within the limits of every service. */
interface ChatMessage {
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
