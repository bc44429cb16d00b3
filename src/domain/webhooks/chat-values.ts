import {
  compareDecimals,
  type Decimal,
  divideDecimals,
  HUNDRED,
  LongNumber,
  multiplyDecimals,
  parseDecimal,
  subtractDecimals,
  ZERO,
} from '../values/decimal.ts';
import { span } from '../values/durations.ts';
import { printable } from '../values/text.ts';

/** The catalog's names for the market and the outcome of an event. */
export interface ChatFacts {
  title?: string;
  outcome?: string;
  /** The outcome that won. */
  winner?: string;
  /** Of a correction: the label of the winner before. */
  previousWinner?: string;
  /** The page of the market at its venue. */
  url?: string;
}

/** The data of an event. */
export type Data = Readonly<Record<string, unknown>>;
export type Field = [name: string, value: string | undefined];
/** The part of a message that depends on the type of the event. Fields without a value are not shown. */
export interface Content {
  title: string;
  fields: Field[];
}

/** Whether the event corrects a result that an earlier one reported. */
export function isCorrection(data: Data): boolean {
  return data['correction'] === true;
}

/** The state of a market, as alerts and broadcasts have it. */
export function statusFields(data: Data, { winner, previousWinner }: ChatFacts): Field[] {
  return [
    ['Status', textOf(data['status'])],
    ['Before', textOf(data['previousStatus'])],
    ['Winner', winner ?? textOf(data['winningOutcomeId'])],
    // A result without a winner.
    ['Result', data['resolution'] === 'void' ? 'void' : undefined],
    [
      'Winner before',
      isCorrection(data) ? (previousWinner ?? textOf(data['previousWinningOutcomeId']) ?? 'none') : undefined,
    ],
  ];
}

/** A change of the result of a market, as alerts and broadcasts have it. */
export function resolutionFields(data: Data): Field[] {
  return [
    ['Result', textOf(data['resolutionState'])],
    ['Before', textOf(data['previousResolutionState'])],
    ['Payouts', payoutWords(data) || undefined],
  ];
}

/** `proposed to resolved, 1 : 0`. */
export function resolutionFacts(data: Data): string {
  const before = word(data['previousResolutionState']);
  const reached = word(data['transition']) || word(data['resolutionState']);
  const change = before === '' ? reached : `${before} to ${reached}`;
  const payouts = payoutWords(data);
  return payouts === '' ? change : `${change}, ${payouts}`;
}

/** The payouts in the order of the outcomes. */
function payoutWords(data: Data): string {
  const payouts = Array.isArray(data['payouts']) ? (data['payouts'] as Data[]) : [];
  return payouts.map(({ payout }) => word(payout)).join(' : ');
}

/** `+0.02 (+3.3 %) from 0.6`. */
function moveOf(from: Decimal | undefined, to: Decimal | undefined): string | undefined {
  if (from === undefined || to === undefined) return undefined;
  const change = subtractDecimals(to, from);
  const percent = from === ZERO ? '' : ` (${signed(divideDecimals(multiplyDecimals(change, HUNDRED), from, 1))} %)`;
  return `${signed(change)}${percent} from ${from}`;
}

export function signed(value: Decimal | undefined): string {
  if (value === undefined) return '';
  return compareDecimals(value, ZERO) > 0 ? `+${value}` : value;
}

export function numberOf(value: unknown): Decimal | undefined {
  const number = value instanceof LongNumber ? value.text : value;
  return typeof value === 'number' || value instanceof LongNumber ? (parseDecimal(number) ?? undefined) : undefined;
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}

/** The ends of an address. */
export function shortened(address = ''): string {
  return address.length <= 16 ? address : `${address.slice(0, 6)}…${address.slice(-4)}`;
}

/** Words with spaces between them, without the absent ones. */
export function joined(...words: (string | undefined)[]): string {
  return words.filter(Boolean).join(' ');
}

export function counted(count: string, noun: string): string {
  return `${count} ${noun}${count === '1' ? '' : 's'}`;
}

/** A text of at most `limit` UTF-16 units in one line, without half a character at its end. */
export function cut(text: string, limit: number): string {
  const line = text.replace(/\s+/g, ' ').trim();
  if (line.length <= limit) return line;
  return `${line.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/* The facts of an event for a line on a terminal. They are empty without data, and cannot control the terminal. */

const MAX_NAME = 20;

/** The change of a market's state, with the result that a correction replaces. */
export function statusFacts(data: Data): string {
  const before = word(data['previousStatus']);
  const status = before === '' ? word(data['status']) : `${before} to ${word(data['status'])}`;
  return joined(status, data['correction'] === true ? correctedResult(data['winningOutcomeId']) : '');
}

function correctedResult(winner: unknown): string {
  return `correction: ${winner === undefined ? 'no winner' : name(winner)}`;
}

/** The facts of a trade: `buy 25 at 0.62`. A transfer has no size. */
export function tradeFacts(data: Data): string {
  const size = word(data['size']);
  return size === ''
    ? word(data['side'])
    : joined(word(data['side']) || 'trade', size, prefixed('at', word(data['price'])));
}

export function prefixed(preposition: string, text: string): string {
  return text === '' ? '' : `${preposition} ${text}`;
}

/** A short value of one of our enumerations, ids or numbers. */
export function word(value: unknown): string {
  if (value instanceof LongNumber) return value.text;
  return typeof value === 'string' || typeof value === 'number' ? printable(String(value)) : '';
}

export function name(value: unknown): string {
  const letters = [...word(value)];
  return letters.length <= MAX_NAME ? letters.join('') : `${letters.slice(0, MAX_NAME - 1).join('')}…`;
}

/** `<rule>: <observation>`. */
export function observed(rule: string, value: string): string {
  return value === '' ? rule : `${rule}: ${value}`;
}

/** A price reached its target; of a crossing the price before it is known. */
export function reachedContent({ subject, data }: { subject: string; data: Data }, verb: string): Content {
  const target = numberOf(data['targetPrice']);
  return {
    title: joined('Price alert:', subject, verb, target),
    fields: [priceOf(data), ['Target', target], moveField(data)],
  };
}

export function priceOf(data: Data): Field {
  return ['Price', numberOf(data['currentPrice'])];
}

export function moveField(data: Data): Field {
  return ['Move', moveOf(numberOf(data['fromPrice']), numberOf(data['currentPrice']))];
}

export function windowOf(data: Data): string | undefined {
  const seconds = data['windowSeconds'];
  return typeof seconds === 'number' ? `within ${span(seconds)}` : undefined;
}
