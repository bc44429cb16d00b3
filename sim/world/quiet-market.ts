import { RandomStream } from '../random.ts';
import { requote } from '../traders/maker.ts';
import { Market } from './market.ts';

const QUIET_DOMAIN = 41;

/**
 * The market to show: itself when it has traders, else a temporary copy with opening quotes that depend on the seed alone,
 * so that a catalog of 100,000 markets needs no books.
 */
export function visibleMarket(market: Market, seed: number): Market {
  if (market.spec.hasTraders) return market;
  const copy = new Market(market.spec, market.event);
  copy.phase = market.phase;
  copy.winner = market.winner;
  copy.closedSecond = market.closedSecond;
  copy.stopSecond = market.stopSecond;
  copy.isHalted = market.isHalted;
  copy.withdrawn = market.withdrawn;
  copy.fundamental = market.fundamental;
  requote(copy, new RandomStream(seed, QUIET_DOMAIN, market.spec.no), (order) => {
    copy.order(order, market.spec.createdSecond);
  });
  return copy;
}
