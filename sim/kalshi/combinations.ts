import { hashHex, hashWord } from '../random.ts';
import { isoMicros, isoSeconds } from '../wire/time-text.ts';
import type { Trade } from '../world/trade-tape.ts';
import type { World } from '../world/world.ts';
import { SETTLEMENT_SOURCES, tickerOf } from './wire.ts';

type Wire = Record<string, unknown>;

/** A market that pays when both of its legs come true. The venue lists it and shows its trades like any other market. */
export interface Combination {
  readonly ticker: string;
  readonly legs: readonly [string, string];
}

/** The series and the collection of all combinations. */
export const SERIES = 'KXMVESIM';
export const COLLECTION = `${SERIES}-R`;
const TICKER_DOMAIN = 72;
const TRADE_DOMAIN = 73;
/** Fills of the engine per trade of a combination. */
const FILLS_PER_PRINT = 3;
const OPEN_DAYS = 30;
const DAY = 86_400;

/** At most `count` combinations, each of two neighbouring markets. */
export function combinationsOf(world: World, count: number): Combination[] {
  return world.markets.slice(0, count).flatMap((market, no) => {
    const other = world.markets[no + 1];
    if (other === undefined) return [];
    const id = hashHex(3, world.options.seed, TICKER_DOMAIN, no).toUpperCase();
    const ticker = `${SERIES}-S${id.slice(0, 13)}-${id.slice(13)}`;
    return [{ ticker, legs: [tickerOf(market.spec), tickerOf(other.spec)] }];
  });
}

/** A market object of the usual shape, with its collection and its legs. */
export function combinationObject({ ticker, legs }: Combination, nowSecond: number): Wire {
  return {
    can_close_early: true,
    close_time: isoSeconds(nowSecond + OPEN_DAYS * DAY),
    created_time: isoMicros(nowSecond, 0),
    event_ticker: combinationEventTicker(ticker),
    expiration_value: '',
    last_price_dollars: '0.1880',
    latest_expiration_time: isoSeconds(nowSecond + OPEN_DAYS * DAY),
    market_type: 'binary',
    mve_collection_ticker: COLLECTION,
    mve_selected_legs: legs.map((leg) => ({
      event_ticker: leg.slice(0, leg.lastIndexOf('-')),
      market_ticker: leg,
      side: 'yes',
    })),
    no_ask_dollars: '1.0000',
    no_bid_dollars: '0.8120',
    no_sub_title: legs.map((leg) => `yes ${leg}`).join(','),
    notional_value_dollars: '1.0000',
    open_interest_fp: '369.00',
    open_time: isoSeconds(nowSecond),
    previous_price_dollars: '0.0000',
    previous_yes_ask_dollars: '0.0000',
    previous_yes_bid_dollars: '0.0000',
    price_level_structure: 'deci_cent',
    price_ranges: [{ start: '0.0000', end: '1.0000', step: '0.0010' }],
    result: '',
    rules_primary: 'The market resolves to Yes when all of its legs do.',
    rules_secondary: '',
    settlement_timer_seconds: 5,
    status: 'active',
    strike_type: 'custom',
    ticker,
    title: legs.map((leg) => `yes ${leg}`).join(','),
    updated_time: isoSeconds(nowSecond),
    volume_24h_fp: '0.00',
    volume_fp: '369.00',
    yes_ask_dollars: '0.1880',
    yes_ask_size_fp: '369.00',
    yes_bid_dollars: '0.0000',
    yes_bid_size_fp: '0.00',
    yes_sub_title: legs.map((leg) => `yes ${leg}`).join(','),
  };
}

/** The event of a combination, which holds that one market. */
export function combinationEvent({ ticker }: Combination): Wire {
  return {
    available_on_brokers: false,
    category: 'Simulated',
    collateral_return_type: '',
    event_ticker: combinationEventTicker(ticker),
    mutually_exclusive: false,
    series_ticker: SERIES,
    settlement_sources: SETTLEMENT_SOURCES,
    strike_period: '',
    sub_title: 'MVE',
    title: 'Combo',
  };
}

function combinationEventTicker(ticker: string): string {
  return ticker.slice(0, ticker.lastIndexOf('-'));
}

/** Makers quote combinations on request: the book has one side at most. */
export function combinationBook(): Wire {
  return { no_dollars: [['0.8120', '369.00']], yes_dollars: [] };
}

/** The combination that trades right after this fill; undefined after most fills. */
export function combinationAfter(trade: Trade, combinations: readonly Combination[]): Combination | undefined {
  return trade.index % FILLS_PER_PRINT === 0
    ? combinations[(trade.index / FILLS_PER_PRINT) % combinations.length]
    : undefined;
}

/** The trade of a combination at the instant of the fill. Only the ticker distinguishes it from other trades. */
export function combinationPrint({ ticker }: Combination, fill: Wire, { index }: Trade, seed: number): Wire {
  const cents = 1 + (hashWord(seed, TRADE_DOMAIN, index) % 98);
  return {
    count_fp: '2.00',
    created_time: fill['created_time'],
    is_block_trade: false,
    no_price_dollars: ((100 - cents) / 100).toFixed(4),
    taker_book_side: 'bid',
    taker_outcome_side: 'yes',
    taker_side: 'yes',
    ticker,
    trade_id: hashHex(4, seed, TRADE_DOMAIN, index).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    yes_price_dollars: (cents / 100).toFixed(4),
  };
}
