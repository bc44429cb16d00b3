import { type ApiJson, numberField, optionalDecimal } from '../../src/domain/api-json.ts';
import { compareDecimals, decimal, ONE, ZERO } from '../../src/domain/decimal.ts';
import type { OutcomePrice } from '../../src/store/market-reads.ts';
import { epochSeconds } from '../respond.ts';

/**
 * A price snapshot (spec section 2.4): one item per outcome, `as_of` the newest of them. Undefined when no outcome has a
 * price yet.
 */
export function presentPrices(marketId: string, outcomes: readonly OutcomePrice[]): ApiJson | undefined {
  const times = outcomes.flatMap(({ asOf }) => (asOf === null ? [] : [asOf.getTime()]));
  if (times.length === 0) return undefined;
  return {
    market_id: marketId,
    as_of: epochSeconds(new Date(Math.max(...times))),
    outcomes: outcomes.map(({ outcomeId, price, bid, ask }) => ({
      outcome_id: outcomeId,
      price: optionalDecimal(price),
      probability: price === null ? undefined : probability(price),
      best_bid: optionalDecimal(bid),
      best_ask: optionalDecimal(ask),
    })),
  };
}

/** What a share pays 1 on costs is its probability; a price outside 0..1 is none. */
function probability(price: string) {
  const value = decimal(price);
  return compareDecimals(value, ZERO) >= 0 && compareDecimals(value, ONE) <= 0 ? numberField(price) : undefined;
}
