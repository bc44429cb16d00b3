import { LongNumber } from '../values/exact-json.ts';
import { printable } from '../values/text.ts';
import { counted, type Data, joined, numberOf, signed } from './chat-values.ts';
import type { EventType } from './event.ts';

/** An event for a line on a terminal. A part without a fact is empty; no part can control the terminal. */
export interface EventText {
  /** The outcome, token or wallet, shortened. */
  readonly subject: string;
  readonly facts: string;
  /** The venue and the market, shortened. */
  readonly market: string;
}

const MAX_NAME = 20;

/**
 * The facts of an event in words. The body of an event is foreign data: an absent field leaves no trace. Data of `parseExactJson` keep all
 * digits.
 */
export function eventText(type: string, data: Data): EventText {
  const { subject = '', facts = '' } = TEXTS[type as EventType]?.(data) ?? {};
  return {
    subject,
    facts,
    market: data['marketId'] === undefined ? '' : joined(word(data['venue']), name(data['marketId'])),
  };
}

const TEXTS: Readonly<Record<EventType, (data: Data) => Partial<EventText>>> = {
  price_alert: (data) => ({ subject: name(data['tokenSymbol']), facts: alertFacts(data) }),
  transaction: (data) => ({
    subject: joined(word(data['venue']), name(data['wallet'])),
    facts: joined(name(data['type']), tradeFacts(data)),
  }),
  balance_change: (data) => ({
    subject: joined(word(data['venue']), name(data['wallet']), name(data['tokenSymbol'] ?? data['tokenMint'])),
    facts: joined(signed(numberOf(data['change'])), prefixed('to', word(data['currentBalance']))),
  }),
  alert_expired: (data) => ({
    facts: joined(word(data['condition']), name(data['name'] ?? data['tokenMint'] ?? data['alertId'])),
  }),
  webhook_failing: (data) => ({ facts: joined(word(data['lastError']), word(data['webhookId'])) }),
  webhook_paused: (data) => ({ facts: joined(word(data['reason']), word(data['webhookId'])) }),
  market_status: (data) => ({
    facts: joined(statusFacts(data), data['resolution'] === undefined ? '' : `(${name(data['resolution'])})`),
  }),
  new_market: (data) => ({ facts: word(data['status']) }),
  trade: (data) => ({ subject: name(data['tokenSymbol']), facts: tradeFacts(data) }),
  feed_gap: (data) => ({
    subject: word(data['venue']),
    facts: `${[word(data['cause']), gapSize(word(data['markets']))].filter(Boolean).join(', ')}, ${data['to'] === undefined ? 'lasts' : 'ended'}`,
  }),
  test: (data) => ({ facts: word(data['webhookId']) }),
};

/** `<condition> <threshold>: <observation>`. */
function alertFacts(data: Data): string {
  const condition = word(data['condition']);
  const price = word(data['currentPrice']);
  const before = word(data['fromPrice']);
  const value = word(data['value']);
  switch (condition) {
    case 'status':
    case 'new_market':
      return joined(condition, statusFacts(data));
    case 'change': {
      const unit = data['unit'] === 'percent' ? '%' : '';
      return observed(joined(condition, word(data['change']), unit), before === '' ? price : `${before} to ${price}`);
    }
    case 'spread':
      return observed(joined(condition, word(data['targetPrice'])), value);
    case 'trade':
      return observed(joined(condition, word(data['notional'])), joined(value, prefixed('at', price)));
    case 'volume': {
      const times = word(data['times']);
      return observed(joined(condition, times === '' ? word(data['notional']) : `${times} times`), value);
    }
    default:
      return observed(joined(condition, word(data['targetPrice'])), price);
  }
}

function observed(rule: string, value: string): string {
  return value === '' ? rule : `${rule}: ${value}`;
}

function statusFacts(data: Data): string {
  const before = word(data['previousStatus']);
  const status = before === '' ? word(data['status']) : `${before} to ${word(data['status'])}`;
  return joined(status, data['correction'] === true ? correctedResult(data['winningOutcomeId']) : '');
}

/** The result that replaces a reported one. */
function correctedResult(winner: unknown): string {
  return `correction: ${winner === undefined ? 'no winner' : name(winner)}`;
}

function gapSize(markets: string): string {
  return markets === '' ? '' : counted(markets, 'market');
}

/** The facts of a trade: `buy 25 at 0.62`. A transfer has no size. */
function tradeFacts(data: Data): string {
  const size = word(data['size']);
  return size === ''
    ? word(data['side'])
    : joined(word(data['side']) || 'trade', size, prefixed('at', word(data['price'])));
}

function prefixed(preposition: string, text: string): string {
  return text === '' ? '' : `${preposition} ${text}`;
}

/** A short value of one of our enumerations, ids or numbers. */
function word(value: unknown): string {
  if (value instanceof LongNumber) return value.text;
  return typeof value === 'string' || typeof value === 'number' ? printable(String(value)) : '';
}

function name(value: unknown): string {
  const letters = [...word(value)];
  return letters.length <= MAX_NAME ? letters.join('') : `${letters.slice(0, MAX_NAME - 1).join('')}…`;
}
