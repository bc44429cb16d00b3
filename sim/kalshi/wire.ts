import { hashHex } from '../random.ts';
import { formatScaled } from '../wire/decimal-text.ts';
import { tokenQuote } from '../wire/prices.ts';
import { isoMicros, isoSeconds } from '../wire/time-text.ts';
import type { EventSpec, MarketSpec } from '../world/catalog.ts';
import type { FeeChange } from '../world/fees.ts';
import { type Market, UNITS } from '../world/market.ts';
import { rulesOf } from '../world/resolution.ts';
import type { Trade } from '../world/trade-tape.ts';

/** The engine's markets in Kalshi's format: fixed-point text, bids only, one ticker for both outcomes. */

type Wire = Record<string, unknown>;

export const SERIES_TICKER = 'KXSIM';
const TRADE_DOMAIN = 71;
/** The time between the result of a market and its settlement. */
const SETTLEMENT_TIMER_SECONDS = 60;
const DAY = 86_400;
/** The venue's rules leave time after the planned end, for results that are late. */
const LATEST_EXPIRATION_DAYS = 7;
/** The venue's names of the two grids of the engine. They are labels: the grid itself is in `price_ranges`. */
const LEVEL_STRUCTURES = { 100: 'linear_cent', 1000: 'deci_cent' } as const;

export const SETTLEMENT_SOURCES = [{ name: 'The simulator', url: 'https://example.org' }];

export function tickerOf(spec: Pick<MarketSpec, 'id'>): string {
  return `${SERIES_TICKER}-${spec.id}`;
}

export function eventTickerOf(event: Pick<EventSpec, 'id'>): string {
  return `${SERIES_TICKER}EVENT-${event.id}`;
}

/** The value of the `status` field. */
export function statusOf(
  market: Market,
): 'initialized' | 'active' | 'inactive' | 'determined' | 'disputed' | 'amended' | 'finalized' {
  switch (market.phase) {
    case 'scheduled':
      return 'initialized';
    case 'open':
      return market.isHalted ? 'inactive' : 'active';
    case 'proposed':
      return market.amendSecond === undefined ? 'determined' : 'amended';
    case 'disputed':
      // An amendment ends the dispute here; other venues wait for the next proposal.
      return market.events.at(-1)?.kind === 'amended' ? 'amended' : 'disputed';
    case 'resolved':
      return 'finalized';
  }
}

/** The real or planned end of trading, epoch seconds. */
export function closeSecondOf({ spec, phase, stopSecond }: Market): number {
  return phase === 'open' ? spec.endSecond : (stopSecond ?? spec.endSecond);
}

/** The last change of the market apart from trading, epoch seconds. */
export function updatedSecondOf(market: Market): number {
  const { spec, haltSecond, rulesSecond, shownSecond } = market;
  return Math.max(haltSecond ?? spec.createdSecond, rulesSecond ?? 0, shownSecond ?? 0);
}

/** A market object. `shown` is the market with its quotes. Volumes are contracts: the sum of `count_fp` of its trades. */
export function marketObject(market: Market, shown: Market, second: number): Wire {
  const { spec, event } = market;
  const { bid, ask } = market.isTrading ? tokenQuote(shown, 0) : { bid: undefined, ask: undefined };
  const grid = spec.ticksPerUnit;
  const isKnown = market.phase !== 'open' && market.phase !== 'scheduled';
  const label = spec.groupItemTitle ?? spec.outcomes[0];
  const price = (ticks: number) => fixed(formatScaled(ticks, grid), 4);
  const sizeOf = (side: 'bid' | 'ask') => count(market.isTrading ? (shown.book.depth(side)[0]?.size ?? 0) : 0);
  const closeSecond = closeSecondOf(market);
  return {
    can_close_early: true,
    close_time: isoSeconds(closeSecond),
    created_time: isoMicros(spec.createdSecond, spec.no % 1_000_000),
    event_ticker: eventTickerOf(event),
    expiration_value: isKnown ? observedValue(market) : '',
    last_price_dollars: price(market.lastYesTicks ?? 0),
    latest_expiration_time: isoSeconds(Math.max(closeSecond, spec.endSecond) + LATEST_EXPIRATION_DAYS * DAY),
    market_type: market.split === undefined ? 'binary' : 'scalar',
    no_ask_dollars: price(grid - (bid ?? 0)),
    no_bid_dollars: price(grid - (ask ?? grid)),
    no_sub_title: label,
    notional_value_dollars: '1.0000',
    // Every fill opens a pair of contracts: the engine closes none.
    open_interest_fp: count(market.volumeMicroShares),
    open_time: isoSeconds(spec.createdSecond),
    ...previousDay(market, second, price),
    price_level_structure: LEVEL_STRUCTURES[grid],
    price_ranges: [{ start: '0.0000', end: '1.0000', step: price(1) }],
    result: isKnown ? resultOf(market) : '',
    rules_primary: rulesOf(
      market,
      `If the answer to "${spec.question}" is ${spec.outcomes[0]}, then the market resolves to Yes.`,
    ),
    rules_secondary: 'The resolution source is the simulator.',
    ...settlement(market),
    settlement_timer_seconds: SETTLEMENT_TIMER_SECONDS,
    status: statusOf(market),
    ticker: tickerOf(spec),
    // Siblings share a title: only their labels distinguish them.
    title: spec.groupItemTitle === undefined ? spec.question : event.title,
    updated_time: isoSeconds(updatedSecondOf(market)),
    volume_24h_fp: count(market.dayVolume(second).microShares),
    volume_fp: count(market.volumeMicroShares),
    yes_ask_dollars: price(ask ?? grid),
    yes_ask_size_fp: sizeOf('ask'),
    yes_bid_dollars: price(bid ?? 0),
    yes_bid_size_fp: sizeOf('bid'),
    yes_sub_title: label,
  };
}

/** The prices of a day ago; zero before the first trade. The engine keeps no old quotes: one tick on either side of the price replaces them. */
function previousDay(market: Market, second: number, price: (ticks: number) => string): Wire {
  const ticks = market.tradeCount === 0 ? undefined : market.volume.ticksBefore(second, DAY);
  return {
    previous_price_dollars: price(ticks ?? 0),
    previous_yes_ask_dollars: price(ticks === undefined ? 0 : ticks + 1),
    previous_yes_bid_dollars: price(ticks === undefined ? 0 : ticks - 1),
  };
}

function resultOf({ isVoid, split, winner }: Market): string {
  if (isVoid) return 'void';
  return split === undefined ? (winner === 0 ? 'yes' : 'no') : 'scalar';
}

/** The value that decided the market: an outcome, or a number. */
function observedValue({ spec, split, winner }: Market): string {
  if (split !== undefined) return formatScaled(split * 100, UNITS);
  return winner === undefined ? '' : spec.outcomes[winner];
}

/** A result that `result` does not name is stated with its announcement. */
function settlement({ closedSecond, split, payout }: Market): Wire {
  const isStated = payout !== undefined && (closedSecond !== undefined || split !== undefined);
  return {
    ...(closedSecond !== undefined && { settlement_ts: isoSeconds(closedSecond) }),
    ...(isStated && { settlement_value_dollars: fixed(formatScaled(payout, UNITS), 4) }),
  };
}

/** An event without its markets. Its category is deprecated: the series has one too. */
export function eventObject(event: EventSpec, hasCategory: boolean, fee?: FeeChange): Wire {
  return {
    ...(hasCategory && { category: 'Simulated' }),
    collateral_return_type: event.negRiskId === undefined ? '' : 'MECNET',
    event_ticker: eventTickerOf(event),
    ...(fee?.type && { fee_type_override: fee.type }),
    ...(fee?.multiplier != null && { fee_multiplier_override: fee.multiplier }),
    mutually_exclusive: event.negRiskId !== undefined,
    product_metadata: { competition: 'Simulator' },
    series_ticker: SERIES_TICKER,
    settlement_sources: SETTLEMENT_SOURCES,
    strike_period: '',
    sub_title: '',
    title: event.title,
  };
}

/** Two lists of bids, the best one last; null after trading ends. An ask of the engine is a bid of NO at one minus its price. */
export function bookObject(shown: Market): Wire {
  const grid = shown.spec.ticksPerUnit;
  const side = (of: 'bid' | 'ask', outcomeIndex: 0 | 1) =>
    shown.book
      .depth(of)
      .map(({ ticks, size }) => [fixed(formatScaled(shown.yesTicks(ticks, outcomeIndex), grid), 4), count(size)])
      .reverse();
  return shown.isTrading
    ? { yes_dollars: side('bid', 0), no_dollars: side('ask', 1) }
    : { yes_dollars: null, no_dollars: null };
}

/** One trade. A seller of NO takes the side of YES. */
export function tradeObject(trade: Trade, market: Market, seed: number): Wire {
  const grid = market.spec.ticksPerUnit;
  const { outcomeIndex, side } = trade.takerIntent;
  const taker = (side === 'BUY') === (outcomeIndex === 0) ? 'yes' : 'no';
  return {
    count_fp: count(trade.size),
    created_time: isoMicros(trade.second, trade.micros),
    is_block_trade: false,
    no_price_dollars: fixed(formatScaled(grid - trade.ticks, grid), 4),
    taker_book_side: taker === 'yes' ? 'bid' : 'ask',
    taker_outcome_side: taker,
    taker_side: taker,
    ticker: tickerOf(market.spec),
    trade_id: tradeIdOf(seed, trade),
    yes_price_dollars: fixed(formatScaled(trade.ticks, grid), 4),
  };
}

/** A random number without relation to the order of trades. */
export function tradeIdOf(seed: number, { index }: Pick<Trade, 'index'>): string {
  const hex = hashHex(4, seed, TRADE_DOMAIN, index);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
}

/** Contracts, from millionths of one. */
function count(micros: number): string {
  return fixed(formatScaled(micros, UNITS), 2);
}

/** Decimal text with at least `digits` digits after the point. */
export function fixed(text: string, digits: number): string {
  const [whole = '0', fraction = ''] = text.split('.');
  return `${whole}.${fraction.padEnd(digits, '0')}`;
}
