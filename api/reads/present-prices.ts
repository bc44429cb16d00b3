import { optionalDecimal } from '../../src/domain/values/api-json.ts';
import { probabilityOf } from '../../src/domain/wire/fields.ts';
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
      probability: price === null ? undefined : probabilityOf(price),
      best_bid: optionalDecimal(bid),
      best_ask: optionalDecimal(ask),
    })),
  };
}
