import { span } from '../values/durations.ts';
import { type Content, type Data, type Field, joined, moveOf, numberOf } from '../webhooks/chat-values.ts';
import type { ChatAlert } from './condition.ts';

/** A price reached its target; of a crossing the price before it is known. */
export function reachedContent({ subject, data }: ChatAlert, verb: string): Content {
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
