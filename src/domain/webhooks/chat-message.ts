import { compareDecimals, type Decimal, parseDecimal, subtractDecimals, ZERO } from '../values/decimal.ts';
import { LongNumber, parseExactJson } from '../values/exact-json.ts';

/** The formats of requests. `json` is the body of the event with signatures; the others are messages of chat services. */
export const CHAT_FORMATS = ['discord', 'slack', 'telegram'] as const;
export type ChatFormat = (typeof CHAT_FORMATS)[number];
export const WEBHOOK_FORMATS = ['json', ...CHAT_FORMATS] as const;
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number];

/** The catalog's names for the market and the outcome of an event. */
export interface ChatFacts {
  title?: string;
  outcome?: string;
  /** The page of the market at its venue. */
  url?: string;
}

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

type Data = Readonly<Record<string, unknown>>;

/** The message for an event; `skipped` is the number of events of its key that were skipped before it. */
export function chatMessage(body: string, facts: ChatFacts, skipped = 0): ChatMessage {
  const event = parseExactJson(body).value as { id: string; type: string; timestamp: string; data: Data };
  const { title, fields } = CONTENT[event.type]?.(event.data, facts) ?? otherContent(event.type, event.data, facts);
  const lines = [
    ['Market', facts.title],
    ['Outcome', facts.outcome ?? textOf(event.data['tokenSymbol'])],
    ...fields,
    ['Skipped before', skipped > 0 ? `${skipped} events` : undefined],
  ].map(([name = '', value = '']) => ({ name: cut(name, MAX_FIELD_NAME), value: cut(value, MAX_FIELD_VALUE) }));
  return {
    title: cut(title, MAX_TITLE),
    fields: lines.filter(({ name, value }) => name !== '' && value !== '').slice(0, MAX_FIELDS),
    ...(isLink(facts.url) && { link: facts.url }),
    eventId: event.id,
    timestamp: event.timestamp,
  };
}

type Field = [name: string, value: string | undefined];
type Content = { title: string; fields: Field[] };

const CONTENT: Readonly<Record<string, (data: Data, facts: ChatFacts) => Content>> = {
  price_alert(data, facts) {
    const [target, current] = [numberOf(data['targetPrice']), numberOf(data['currentPrice'])];
    const name = facts.title ?? textOf(data['tokenSymbol']) ?? '';
    const reached = [textOf(data['condition'])?.replaceAll('_', ' '), target].filter(Boolean).join(' ');
    return {
      title: `Price alert: ${facts.outcome ?? textOf(data['tokenSymbol']) ?? name} ${reached}`,
      fields: [
        ['Price', current],
        ['Target', target],
        ['Move', moveOf(numberOf(data['previousPrice']) ?? target, current)],
      ],
    };
  },
  transaction(data) {
    const wallet = shortened(textOf(data['wallet']));
    const transfers = Array.isArray(data['transfers']) ? (data['transfers'] as Data[]) : [];
    return {
      title: `Wallet ${wallet}: ${textOf(data['side']) ?? textOf(data['type']) ?? 'transaction'}`,
      fields: [
        ['Size', numberOf(data['size'])],
        ['Price', numberOf(data['price'])],
        ['Value', numberOf(data['value'])],
        [
          'Transfers',
          transfers
            .slice(0, 4)
            .map(
              (each) =>
                `${signed(numberOf(each['change']))} ${textOf(each['tokenSymbol']) ?? shortened(textOf(each['tokenMint']))}`,
            )
            .join(', '),
        ],
      ],
    };
  },
  balance_change(data) {
    const [before, after] = [numberOf(data['previousBalance']), numberOf(data['currentBalance'])];
    return {
      title: `Wallet ${shortened(textOf(data['wallet']))}: balance changed`,
      fields: [
        ['Balance', after],
        ['Move', before === undefined ? undefined : `${signed(numberOf(data['change']))} from ${before}`],
      ],
    };
  },
  market_status(data, facts) {
    const name = facts.title ?? textOf(data['title']) ?? 'Market';
    return {
      title: `${name}: ${textOf(data['status']) ?? 'changed'}`,
      fields: [
        ['Status', textOf(data['status'])],
        ['Before', textOf(data['previousStatus'])],
        ['Winner', textOf(data['resolution']) ?? textOf(data['winningOutcomeId'])],
      ],
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
    const outcome = facts.outcome ?? textOf(data['tokenSymbol']) ?? '';
    const value = [numberOf(data['notional']), textOf(data['currency'])].filter(Boolean).join(' ');
    return {
      title: `Trade: ${textOf(data['side']) ?? ''} ${outcome} at ${numberOf(data['price']) ?? ''}`,
      fields: [
        ['Size', numberOf(data['size'])],
        ['Price', numberOf(data['price'])],
        ['Value', value],
      ],
    };
  },
  feed_gap(data) {
    return {
      title: `Feed of ${textOf(data['venue']) ?? 'a venue'}: ${textOf(data['to']) === undefined ? 'gap' : 'gap ended'}`,
      fields: [
        ['Cause', textOf(data['cause'])],
        ['Affected', `${textOf(data['affected']) ?? ''} of ${numberOf(data['markets']) ?? ''} markets`],
        ['From', textOf(data['from'])],
        ['To', textOf(data['to'])],
      ],
    };
  },
  test: () => ({ title: 'Test message of oddswire', fields: [['Result', 'This webhook works.']] }),
};

/** Any other type: its name and its plain fields. */
function otherContent(type: string, data: Data, facts: ChatFacts): Content {
  const words = type.replaceAll('_', ' ');
  const name = words.charAt(0).toUpperCase() + words.slice(1);
  return {
    title: facts.title === undefined ? name : `${name}: ${facts.title}`,
    fields: Object.entries(data).map(([key, value]): Field => [key, textOf(value) ?? numberOf(value)]),
  };
}

/** `+0.02 (+3.3 %) from 0.6`. */
function moveOf(from: Decimal | undefined, to: Decimal | undefined): string | undefined {
  if (from === undefined || to === undefined) return undefined;
  const change = subtractDecimals(to, from);
  const percent =
    Number(from) === 0
      ? ''
      : ` (${signed(parseDecimal(((Number(change) / Number(from)) * 100).toFixed(1)) ?? undefined)} %)`;
  return `${signed(change)}${percent} from ${from}`;
}

function signed(value: Decimal | undefined): string {
  if (value === undefined) return '';
  return compareDecimals(value, ZERO) > 0 ? `+${value}` : value;
}

function numberOf(value: unknown): Decimal | undefined {
  const number = value instanceof LongNumber ? value.text : value;
  return typeof value === 'number' || value instanceof LongNumber ? (parseDecimal(number) ?? undefined) : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}

/** The ends of an address. */
function shortened(address = ''): string {
  return address.length <= 16 ? address : `${address.slice(0, 6)}…${address.slice(-4)}`;
}

/** A text of at most `limit` UTF-16 units in one line, without half a character at its end. */
export function cut(text: string, limit: number): string {
  const line = text.replace(/\s+/g, ' ').trim();
  if (line.length <= limit) return line;
  return `${line.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

function isLink(url: string | undefined): url is string {
  return url !== undefined && url.length <= MAX_LINK && /^https?:\/\//.test(url) && URL.canParse(url);
}
