import { json, type Reply, wholeNumber } from '../server/reply.ts';
import { formatScaled } from '../wire/decimal-text.ts';
import { type Market, UNITS } from '../world/market.ts';
import type { Trade } from '../world/trade-tape.ts';
import type { Directory, Tier } from './directory.ts';
import { easternMidnightFrom } from './eastern-days.ts';
import { badRequest, listOf, notFound } from './query.ts';
import { fixed, SERIES_TICKER } from './wire.ts';

const MINUTE = 60;
const PERIOD_MINUTES = [1, 60, 1440];
const DAY_MINUTES = 1440;
/** The day of the autumn clock change. */
const LONGEST_DAY_SECONDS = 25 * 3600;
/** The venue's limits of its batch route. */
const MAX_CANDLES = 10_000;
const MAX_BATCH = 100;

interface Window {
  readonly startSecond: number;
  readonly endSecond: number;
  readonly periodMinutes: number;
}

/** `GET /series/{series}/markets/{ticker}/candlesticks`. */
export function liveCandlesticks(directory: Directory, series: string, ticker: string, query: URLSearchParams): Reply {
  return series === SERIES_TICKER ? candlesticks(directory, 'live', ticker, query) : notFound();
}

/**
 * `GET /markets/candlesticks` of at most 100 markets and, together, 10,000 candles; markets that the venue does not know are absent. The
 * simulator refuses `include_latest_before_start`, which adds a made-up candle that the service does not read.
 */
export function batchCandlesticks(directory: Directory, query: URLSearchParams): Reply {
  const tickers = listOf(query, 'market_tickers');
  if (tickers === undefined || tickers.size > MAX_BATCH) return badRequest('invalid market_tickers');
  const window = windowOf(query);
  if (typeof window === 'string') return badRequest(window);
  const found = [...tickers].flatMap((ticker) => {
    const market = directory.findOn('live', ticker);
    return market === undefined ? [] : [{ market, ticker, periods: periodsIn(window, market, directory) }];
  });
  const candles = found.reduce((sum, { periods }) => sum + periods.length, 0);
  if (candles > MAX_CANDLES) return badRequest(`max candlesticks: ${MAX_CANDLES}`);
  const markets = found.map(({ market, ticker, periods }) => ({
    market_ticker: ticker,
    candlesticks: foldMarket(directory, market, periods).map((each) => liveWire(each, market)),
  }));
  return json({ markets });
}

/** `GET /historical/markets/{ticker}/candlesticks`: the same with other field names. */
export function historicalCandlesticks(directory: Directory, ticker: string, query: URLSearchParams): Reply {
  return candlesticks(directory, 'historical', ticker, query);
}

function candlesticks(directory: Directory, tier: Tier, ticker: string, query: URLSearchParams): Reply {
  const market = directory.findOn(tier, ticker);
  if (market === undefined) return notFound();
  const window = windowOf(query);
  if (typeof window === 'string') return badRequest(window);
  const periods = periodsIn(window, market, directory);
  if (periods.length > MAX_CANDLES) return badRequest(`max candlesticks: ${MAX_CANDLES}`);
  const write = tier === 'live' ? liveWire : historicalWire;
  return json({ ticker, candlesticks: foldMarket(directory, market, periods).map((each) => write(each, market)) });
}

function periodsIn(window: Window, { spec, stopSecond }: Market, { world: { second } }: Directory): Period[] {
  return periodsOf(window, spec.createdSecond, Math.min(second, stopSecond ?? second));
}

function foldMarket({ world }: Directory, { spec }: Market, periods: readonly Period[]): Candle[] {
  return foldPeriods([...world.tape.newestFirst(spec.no)].reverse(), periods);
}

function windowOf(query: URLSearchParams): Window | string {
  const startSecond = wholeNumber(query.get('start_ts'));
  const endSecond = wholeNumber(query.get('end_ts'));
  const periodMinutes = wholeNumber(query.get('period_interval'));
  if (typeof startSecond !== 'number' || typeof endSecond !== 'number') return 'start_ts and end_ts are required';
  if (startSecond > endSecond) return 'start_ts must be before end_ts';
  if (typeof periodMinutes !== 'number' || !PERIOD_MINUTES.includes(periodMinutes)) {
    return 'period_interval must be one of 1, 60, 1440';
  }
  return { startSecond, endSecond, periodMinutes };
}

/** `[beginSecond, endSecond)`: a trade in the second in which a period ends comes a fraction after it. */
interface Period {
  readonly beginSecond: number;
  readonly endSecond: number;
}

/** The periods that end in the window, both ends inclusive, and begin while the market trades. */
function periodsOf({ startSecond, endSecond, periodMinutes }: Window, from: number, until: number): Period[] {
  const step = periodMinutes * MINUTE;
  const isDaily = periodMinutes === DAY_MINUTES;
  const align = (second: number) => (isDaily ? easternMidnightFrom(second) : Math.ceil(second / step) * step);
  const periods: Period[] = [];
  for (let end = align(Math.max(startSecond, from + 1)); end <= endSecond; end = align(end + 1)) {
    const beginSecond = isDaily ? easternMidnightFrom(end - LONGEST_DAY_SECONDS) : end - step;
    if (beginSecond > until || periods.length > MAX_CANDLES) break;
    periods.push({ beginSecond, endSecond: end });
  }
  return periods;
}

interface Candle {
  readonly endSecond: number;
  /** In ticks of YES; undefined without a trade. */
  readonly price: { open: number; high: number; low: number; close: number; mean: number } | undefined;
  /** The last price before the period. */
  readonly previous: number | undefined;
  /** Millionths of a contract, in the period and since the beginning. */
  readonly size: number;
  readonly openInterest: number;
}

/** `trades` oldest first. */
function foldPeriods(trades: readonly Trade[], periods: readonly Period[]): Candle[] {
  let at = 0;
  let previous: number | undefined;
  let openInterest = 0;
  const takeUntil = (second: number): Trade[] => {
    const from = at;
    while ((trades[at]?.second ?? second) < second) at += 1;
    const taken = trades.slice(from, at);
    openInterest += sizeOf(taken);
    return taken;
  };
  return periods.map(({ beginSecond, endSecond }) => {
    previous = takeUntil(beginSecond).at(-1)?.ticks ?? previous;
    const taken = takeUntil(endSecond);
    const candle = { endSecond, price: priceOf(taken), previous, size: sizeOf(taken), openInterest };
    previous = candle.price?.close ?? previous;
    return candle;
  });
}

function sizeOf(trades: readonly Trade[]): number {
  return trades.reduce((sum, trade) => sum + trade.size, 0);
}

function priceOf(trades: readonly Trade[]): Candle['price'] {
  const ticks = trades.map((trade) => trade.ticks);
  const [open] = ticks;
  const close = ticks.at(-1);
  if (open === undefined || close === undefined) return undefined;
  const mean = trades.reduce((sum, trade) => sum + trade.ticks * trade.size, 0) / sizeOf(trades);
  return { open, high: Math.max(...ticks), low: Math.min(...ticks), close, mean };
}

type Fields = Record<string, string | null>;

/** The fields of a price; the live route appends a suffix to the names. */
function fieldsOf(values: Record<string, number | undefined>, suffix: string, { spec }: Market): Fields {
  const text = (ticks: number) => (ticks / spec.ticksPerUnit).toFixed(4);
  const known = Object.entries(values).filter((entry): entry is [string, number] => entry[1] !== undefined);
  return Object.fromEntries(known.map(([name, ticks]) => [`${name}${suffix}`, text(ticks)]));
}

/** The simulator keeps no old quotes: one tick on either side of the traded prices replaces them. */
function quotesOf({ price, previous }: Candle, away: number, none: number, grid: number) {
  const quote = (ticks: number | undefined) => (ticks === undefined ? none : Math.min(grid, Math.max(0, ticks + away)));
  const { open, high, low, close } = price ?? { open: previous, high: previous, low: previous, close: previous };
  return { open: quote(open), high: quote(high), low: quote(low), close: quote(close) };
}

function liveWire(candle: Candle, market: Market): Record<string, unknown> {
  const grid = market.spec.ticksPerUnit;
  return {
    end_period_ts: candle.endSecond,
    open_interest_fp: contracts(candle.openInterest),
    price: fieldsOf({ ...candle.price, previous: candle.previous }, '_dollars', market),
    volume_fp: contracts(candle.size),
    yes_ask: fieldsOf(quotesOf(candle, 1, grid, grid), '_dollars', market),
    yes_bid: fieldsOf(quotesOf(candle, -1, 0, grid), '_dollars', market),
  };
}

/** Absent values are null here and absent on the live route. */
const NO_PRICE: Fields = { open: null, high: null, low: null, close: null, mean: null, previous: null };

function historicalWire(candle: Candle, market: Market): Record<string, unknown> {
  const grid = market.spec.ticksPerUnit;
  return {
    end_period_ts: candle.endSecond,
    open_interest: contracts(candle.openInterest),
    price: { ...NO_PRICE, ...fieldsOf({ ...candle.price, previous: candle.previous }, '', market) },
    volume: contracts(candle.size),
    yes_ask: fieldsOf(quotesOf(candle, 1, grid, grid), '', market),
    yes_bid: fieldsOf(quotesOf(candle, -1, 0, grid), '', market),
  };
}

function contracts(size: number): string {
  return fixed(formatScaled(size, UNITS), 2);
}
