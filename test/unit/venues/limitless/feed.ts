import type { EventsPage, PageQuery } from '../../../../src/venues/limitless/client.ts';

export const NOW_MS = Date.UTC(2026, 10, 1);

/** A print as the venue sends it, so many milliseconds before `NOW_MS`. */
export function event(agoMs: number, fields: object = {}) {
  return {
    createdAt: new Date(NOW_MS - agoMs).toISOString(),
    tokenId: '10',
    price: 0.5,
    matchedSize: '1000000',
    side: 0,
    txHash: '0xAB',
    makerAmount: '500000',
    takerAmount: '500000',
    profile: { account: '0xCD' },
    ...fields,
  };
}

/** Pages of a feed, newest first, as the venue cuts them. */
export function pageOf(newestFirst: readonly unknown[], { page, limit }: PageQuery, ageMs = 0): EventsPage {
  const start = (page - 1) * limit;
  return { rows: newestFirst.slice(start, start + limit), total: newestFirst.length, ageMs, observedAt: 0 };
}
