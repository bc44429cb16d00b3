import { createHash } from 'node:crypto';
import { formatScaled, formatThreeDecimals } from '../wire/decimal-text.ts';
import { outcomePrices } from '../wire/prices.ts';
import { isoSeconds } from '../wire/time-text.ts';
import { questionIdOf, wholeConditionId } from '../world/identity.ts';
import { type Market, UNITS } from '../world/market.ts';
import { ICON } from './gamma-event.ts';
import type { Wire } from './gamma-market.ts';

/**
 * One outcome's book: all values are text, time in milliseconds, the best price last on both sides. Both books of a market have the same
 * `last_trade_price`, that of the first outcome, as in the recordings. The hash is the venue's: SHA-1 of the book with an empty hash.
 */
export function clobBook(market: Market, outcomeIndex: 0 | 1): Wire {
  const { spec } = market;
  const grid = spec.ticksPerUnit;
  const side = (of: 'bid' | 'ask'): Wire[] => {
    const source = outcomeIndex === 0 ? of : of === 'bid' ? 'ask' : 'bid';
    const levels = market.book.depth(source).map((level) => ({
      price: formatScaled(market.yesTicks(level.ticks, outcomeIndex), grid),
      size: formatScaled(level.size, UNITS),
    }));
    return levels.reverse();
  };
  const last = market.lastYesTicks;
  const book = {
    market: wholeConditionId(spec.conditionId),
    asset_id: spec.tokenIds[outcomeIndex],
    timestamp: String(market.changedAtMs),
    hash: '',
    bids: side('bid'),
    asks: side('ask'),
    min_order_size: '5',
    tick_size: formatScaled(1, grid),
    neg_risk: market.event.negRiskId !== undefined,
    last_trade_price: last === undefined ? '0.500' : formatThreeDecimals(last, grid),
  };
  return { ...book, hash: createHash('sha1').update(JSON.stringify(book)).digest('hex') };
}

/** The CLOB's own market object, which names the winner explicitly. */
export function clobMarket(market: Market, seed: number): Wire {
  const { spec, event } = market;
  const prices = outcomePrices(market);
  const isNegRisk = event.negRiskId !== undefined;
  const isResolved = market.phase === 'resolved';
  return {
    enable_order_book: !isResolved,
    active: true,
    closed: isResolved,
    archived: false,
    accepting_orders: market.isTrading,
    accepting_order_timestamp: isoSeconds(spec.createdSecond),
    minimum_order_size: 5,
    minimum_tick_size: 1 / spec.ticksPerUnit,
    condition_id: wholeConditionId(spec.conditionId),
    question_id: questionIdOf(seed, spec.no),
    question: spec.question,
    description: spec.question,
    market_slug: spec.slug,
    end_date_iso: isoSeconds(spec.endSecond),
    game_start_time: null,
    seconds_delay: 0,
    fpmm: '',
    maker_base_fee: 0,
    taker_base_fee: 0,
    notifications_enabled: true,
    neg_risk: isNegRisk,
    neg_risk_market_id: event.negRiskId ?? '',
    neg_risk_request_id: isNegRisk ? questionIdOf(seed + 1, spec.no) : '',
    icon: ICON,
    image: ICON,
    rewards: { rates: null, min_size: 50, max_spread: 4.5 },
    is_50_50_outcome: market.split === UNITS / 2,
    tokens: spec.tokenIds.map((tokenId, index) => ({
      token_id: tokenId,
      outcome: spec.outcomes[index],
      price: Number(prices?.[index] ?? '0.5'),
      winner: isResolved && market.winner === index,
    })),
    tags: ['Simulated', 'All'],
  };
}
