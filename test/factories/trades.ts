import type { TradeRecord } from '../../src/domain/markets/market.ts';
import { decimal } from '../../src/domain/values/decimal.ts';

/** A complete trade; name the fields that matter. */
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
