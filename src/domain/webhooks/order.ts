import { createHash } from 'node:crypto';

/** The common property of the events of one key. */
export const ORDER_BY = ['market', 'alert', 'wallet'] as const;
export type OrderBy = (typeof ORDER_BY)[number];

/** The fields of `data` that make the key. All must be present. */
const FIELDS: Readonly<Record<OrderBy, readonly string[]>> = {
  market: ['venue', 'marketId'],
  alert: ['alertId'],
  wallet: ['venue', 'wallet'],
};

/**
 * The key of an event, 32 characters of any event body: events with the same key arrive in order. Null when the event lacks a field of
 * the key. A hash, because ids of venues are longer than an index allows.
 */
function orderKey(orderBy: OrderBy, event: { readonly data?: unknown }): string | null {
  const data = event.data as Readonly<Record<string, unknown>> | undefined;
  const parts = FIELDS[orderBy].map((field) => data?.[field]);
  if (parts.some((part) => typeof part !== 'string')) return null;
  return createHash('sha256')
    .update(JSON.stringify([orderBy, ...parts]))
    .digest('base64url')
    .slice(0, 32);
}

/** As `orderKey`, of the text of a body; null without order. */
export function orderKeyOf({
  orderBy,
  body,
}: {
  readonly orderBy: OrderBy | null;
  readonly body: string;
}): string | null {
  return orderBy === null ? null : orderKey(orderBy, JSON.parse(body));
}
