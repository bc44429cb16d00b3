import { decimal } from '../../src/domain/decimal.ts';
import type { TradeRecord } from '../../src/domain/market.ts';

/** A trade with everything filled in; name what matters. */
export function aTrade(over: Partial<TradeRecord> & { tsMs: number }): TradeRecord {
  return {
    tradeId: `t${over.tsMs}`,
    outcomeId: 'outcome-1',
    price: decimal('0.5'),
    size: decimal('10'),
    side: 'buy',
    ...over,
  };
}
