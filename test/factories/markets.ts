import { decimal } from '../../src/domain/decimal.ts';
import type { MarketRecord } from '../../src/domain/market.ts';

/** A market as an adapter yields it, open and with two outcomes; name what matters. */
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
