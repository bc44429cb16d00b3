import { numberField, optionalDecimal } from '../../src/domain/values/api-json.ts';
import { compareDecimals, decimal, ONE, ZERO } from '../../src/domain/values/decimal.ts';
import type { MarketPrices } from '../../src/store/series/price-reads.ts';
import type { PricesBody } from '../contract/price.ts';
import { epochSeconds } from '../http/respond.ts';

/**
 * A price snapshot (specification section 2.4): one item per outcome; `as_of` is the newest of their times. Undefined when no
 * outcome has a price yet.
 */
export function presentPrices({ marketId, outcomes }: MarketPrices): PricesBody | undefined {
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

/** The price of a share that pays 1 is its probability. A price outside 0..1 has no probability. */
function probability(price: string) {
  const value = decimal(price);
  return compareDecimals(value, ZERO) >= 0 && compareDecimals(value, ONE) <= 0 ? numberField(price) : undefined;
}
