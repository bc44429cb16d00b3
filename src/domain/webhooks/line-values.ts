import { LongNumber } from '../values/exact-json.ts';
import { printable } from '../values/text.ts';
import { type Data, joined } from './chat-values.ts';

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
