import type { MarketRecord } from '../../src/domain/markets/market.ts';
import { decimal } from '../../src/domain/values/decimal.ts';

/** A market as an adapter yields it, open and with two outcomes; name the fields that matter. */
export function aMarketRecord(over: Partial<MarketRecord> & { marketId: string }): MarketRecord {
  return {
    title: 'Will it rain?',
    description: 'In Paris, tomorrow.',
    tags: ['weather'],
    status: 'open',
    outcomes: [
      { outcomeId: `${over.marketId}:yes`, label: 'Yes' },
      { outcomeId: `${over.marketId}:no`, label: 'No' },
    ],
    createdAtMs: Date.UTC(2026, 0, 1),
    volume: decimal('1000.5'),
    volume24h: decimal('10'),
    liquidity: decimal('5'),
    hasBook: true,
    ...over,
  };
}

/** Markets `from` to `from + count - 1` of an endless catalog. Even ones have two outcomes, odd ones three. */
export function aCatalogPage(from: number, count: number): MarketRecord[] {
  return Array.from({ length: count }, (_, index) => {
    const n = from + index;
    const marketId = `m${n.toString().padStart(8, '0')}`;
    const labels = n % 2 === 0 ? ['Yes', 'No'] : ['Up', 'Down', 'Neither'];
    return aMarketRecord({
      marketId,
      eventId: `e${Math.floor(n / 4)}`,
      title: `Will candidate ${n} win the election in district ${n % 435}?`,
      description: `Resolves by the official count of district ${n % 435}. `.repeat(8),
      outcomes: labels.map((label) => ({ outcomeId: `${marketId}:${label}`, label })),
      volume: decimal(String(n)),
    });
  });
}
