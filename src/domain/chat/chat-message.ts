import { findCondition } from '../alerts/conditions.ts';
import { parseExactJson } from '../values/exact-json.ts';
import { parseUrl } from '../values/parse-url.ts';
import {
  type ChatFacts,
  type Content,
  counted,
  cut,
  type Data,
  type Field,
  isCorrection,
  joined,
  numberOf,
  shortened,
  signed,
  statusFields,
  textOf,
} from '../webhooks/chat-values.ts';

/** The formats of requests. `json` is the body of the event with signatures; the others are messages of chat services. */
export const CHAT_FORMATS = ['discord', 'slack', 'telegram'] as const;
export type ChatFormat = (typeof CHAT_FORMATS)[number];
export const WEBHOOK_FORMATS = ['json', ...CHAT_FORMATS] as const;
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number];

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

export const MAX_TITLE = 150;
export const MAX_FIELDS = 10;
export const MAX_FIELD_NAME = 64;
export const MAX_FIELD_VALUE = 256;
const MAX_LINK = 2_048;
const MAX_TRANSFERS = 4;
/** A long label must not hide the value behind it in a title. */
const MAX_SUBJECT = 60;

/** The message for an event; `skipped` is the number of events of its key that were skipped before it. */
export function chatMessage(body: string, facts: ChatFacts, skipped = 0): ChatMessage {
  const event = parseExactJson(body).value as { id: string; type: string; timestamp: string; data: Data };
  const { data } = event;
  const { title, fields } = CONTENT[event.type]?.(data, facts) ?? otherContent(event.type, data, facts);
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

const CONTENT: Readonly<Record<string, (data: Data, facts: ChatFacts) => Content | undefined>> = {
  price_alert: alertContent,
  transaction(data) {
    const transfers = Array.isArray(data['transfers']) ? (data['transfers'] as Data[]) : [];
    const shown = transfers.slice(0, MAX_TRANSFERS).map((each) => {
      return `${signed(numberOf(each['change']))} ${textOf(each['tokenSymbol']) ?? shortened(textOf(each['tokenMint']))}`;
    });
    if (transfers.length > shown.length) shown.push(`${transfers.length - shown.length} more`);
    return {
      title: `Wallet ${shortened(textOf(data['wallet']))}: ${textOf(data['side']) ?? textOf(data['type']) ?? 'transaction'}`,
      fields: [
        ['Venue', textOf(data['venue'])],
        ['Status', textOf(data['status'])],
        ['Size', numberOf(data['size'])],
        ['Price', numberOf(data['price'])],
        ['Value', numberOf(data['value'])],
        ['Transfers', shown.join(', ')],
      ],
    };
  },
  balance_change(data) {
    const [before, after] = [numberOf(data['previousBalance']), numberOf(data['currentBalance'])];
    return {
      title: `Wallet ${shortened(textOf(data['wallet']))}: balance changed`,
      fields: [
        ['Venue', textOf(data['venue'])],
        ['Balance', after],
        ['Move', before === undefined ? undefined : `${signed(numberOf(data['change']))} from ${before}`],
      ],
    };
  },
  market_status(data, facts) {
    const name = facts.title ?? textOf(data['title']) ?? 'Market';
    return {
      title: `${isCorrection(data) ? 'Correction: ' : ''}${name}: ${textOf(data['status']) ?? 'changed'}`,
      fields: statusFields(data, facts),
    };
  },
  new_market: (data, facts) => ({
    title: `New market: ${facts.title ?? textOf(data['title']) ?? ''}`,
    fields: [
      ['Venue', textOf(data['venue'])],
      ['Category', textOf(data['category'])],
      ['Status', textOf(data['status'])],
      ['Closes', textOf(data['closeAt'])],
    ],
  }),
  trade(data, facts) {
    const outcome = facts.outcome ?? textOf(data['tokenSymbol']);
    return {
      title: joined('Trade:', textOf(data['side']), outcome, 'at', numberOf(data['price'])),
      fields: [
        ['Size', numberOf(data['size'])],
        ['Price', numberOf(data['price'])],
        ['Value', joined(numberOf(data['notional']), textOf(data['currency']))],
      ],
    };
  },
  feed_gap(data) {
    const markets = numberOf(data['markets']);
    return {
      title: `Feed of ${textOf(data['venue']) ?? 'a venue'}: ${textOf(data['to']) === undefined ? 'gap' : 'gap ended'}`,
      fields: [
        ['Cause', textOf(data['cause'])],
        ['Affected', joined(textOf(data['affected']), 'of', markets && counted(markets, 'market'))],
        ['From', textOf(data['from'])],
        ['To', textOf(data['to'])],
      ],
    };
  },
  webhook_failing: (data) => ({ title: 'A webhook fails', fields: troubleFields(data) }),
  webhook_paused: (data) => ({
    title: 'A webhook is paused',
    fields: [['Reason', textOf(data['reason'])], ...troubleFields(data)],
  }),
  alert_expired(data, facts) {
    const condition = textOf(data['condition'])?.replaceAll('_', ' ');
    const subject = textOf(data['name']) ?? facts.outcome ?? facts.title;
    return {
      title: `Alert expired: ${joined(subject, condition)}`,
      fields: [
        ['Alert', textOf(data['name']) ?? textOf(data['alertId'])],
        ['Condition', condition],
        ['Expired', textOf(data['expiresAt'])],
      ],
    };
  },
  test: () => ({ title: 'Test message of oddswire', fields: [['Result', 'This webhook works.']] }),
};

/** The content of a `price_alert`; undefined for an unknown condition. */
function alertContent(data: Data, facts: ChatFacts): Content | undefined {
  const name = facts.title ?? textOf(data['title']) ?? '';
  const subject = cut(facts.outcome ?? textOf(data['tokenSymbol']) ?? name, MAX_SUBJECT);
  const content = findCondition(textOf(data['condition']))?.chat({ subject, name, data, facts });
  return content && { ...content, fields: [['Alert', textOf(data['name'])], ...content.fields] };
}

function troubleFields(data: Data): Field[] {
  return [
    ['Webhook', textOf(data['webhookId'])],
    ['Failing since', textOf(data['failingSince'])],
    ['Last error', joined(textOf(data['lastError'])?.replaceAll('_', ' '), numberOf(data['lastStatusCode']))],
  ];
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
