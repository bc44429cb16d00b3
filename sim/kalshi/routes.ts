import { json, jsonText, type Reply, type SimRequest, wholeNumber } from '../server/reply.ts';
import { isoSeconds } from '../wire/time-text.ts';
import type { Market } from '../world/market.ts';
import type { Trade } from '../world/trade-tape.ts';
import type { World } from '../world/world.ts';
import { batchCandlesticks, historicalCandlesticks, liveCandlesticks } from './candlesticks.ts';
import { combinationAfter, combinationBook, combinationPrint } from './combinations.ts';
import { Directory, type KalshiSettings, type Tier } from './directory.ts';
import {
  listCombinationEvents,
  listEventFeeChanges,
  listEvents,
  listHistoricalMarkets,
  listMarkets,
  listSeries,
  listSeriesFeeChanges,
  oneEvent,
  oneSeries,
} from './listings.ts';
import { badRequest, cursorOf, notFound, pageOf } from './query.ts';
import { bookObject, tradeIdOf, tradeObject } from './wire.ts';

const PREFIX = '/trade-api/v2';
const MAX_BOOKS = 100;

/** The routes of Kalshi's trade API v2 that the service reads, over the same engine as the other hosts. */
export function kalshiRoutes(world: World, settings: KalshiSettings): (request: SimRequest) => Reply {
  const directory = new Directory(world, settings);
  return ({ method, path, query, tapeEnd }) => {
    if (method !== 'GET' || !path.startsWith(`${PREFIX}/`)) return notFound();
    const [kind, ...rest] = path
      .slice(PREFIX.length + 1)
      .split('/')
      .map(decodeURIComponent);
    const unknown = unknownParameter(kind, rest, query);
    if (unknown !== undefined) return badRequest(`unknown parameter: ${unknown}`);
    switch (kind) {
      case 'events':
        return events(directory, rest, query);
      case 'markets':
        return markets(directory, rest, query, tapeEnd);
      case 'series':
        return series(directory, rest, query);
      case 'historical':
        return historical(directory, rest, query, tapeEnd);
      default:
        return notFound();
    }
  };
}

type Parts = readonly string[];

function events(directory: Directory, [ticker, ...rest]: Parts, query: URLSearchParams): Reply {
  if (rest.length > 0) return notFound();
  if (ticker === undefined) return listEvents(directory, query);
  if (ticker === 'multivariate') return listCombinationEvents(directory, query);
  if (ticker === 'fee_changes') return listEventFeeChanges(directory, query);
  return oneEvent(directory, ticker);
}

function markets(directory: Directory, [id, part, ...rest]: Parts, query: URLSearchParams, tapeEnd?: number): Reply {
  if (rest.length > 0) return notFound();
  if (id === undefined) return listMarkets(directory, query);
  if (id === 'trades' && part === undefined) return listTrades(directory, query, 'live', tapeEnd);
  if (id === 'orderbooks' && part === undefined) return listBooks(directory, query);
  if (id === 'candlesticks' && part === undefined) return batchCandlesticks(directory, query);
  const combination = directory.findCombination(id);
  if (combination !== undefined) {
    if (part === undefined) return jsonText(`{"market":${directory.combinationText(combination)}}`);
    return part === 'orderbook' ? json({ orderbook_fp: combinationBook() }) : notFound();
  }
  const market = directory.findOn('live', id);
  if (market === undefined) return notFound();
  if (part === undefined) return jsonText(`{"market":${directory.text(market)}}`);
  return part === 'orderbook' ? json({ orderbook_fp: bookOf(directory, market) }) : notFound();
}

function series(directory: Directory, parts: Parts, query: URLSearchParams): Reply {
  const [name, kind, ticker, part, ...rest] = parts;
  if (name === undefined) return listSeries(directory, query);
  if (kind === undefined)
    return name === 'fee_changes' ? listSeriesFeeChanges(directory, query) : oneSeries(directory, name);
  if (kind !== 'markets' || ticker === undefined || part !== 'candlesticks') return notFound();
  return rest.length > 0 ? notFound() : liveCandlesticks(directory, name, ticker, query);
}

function historical(
  directory: Directory,
  [kind, ticker, part, ...rest]: Parts,
  query: URLSearchParams,
  tapeEnd?: number,
): Reply {
  if (rest.length > 0) return notFound();
  if (ticker === undefined) {
    if (kind === 'cutoff') return cutoff(directory);
    if (kind === 'trades') return listTrades(directory, query, 'historical', tapeEnd);
    return kind === 'markets' ? listHistoricalMarkets(directory, query) : notFound();
  }
  if (kind !== 'markets') return notFound();
  if (part === 'candlesticks') return historicalCandlesticks(directory, ticker, query);
  const market = part === undefined ? directory.findOn('historical', ticker) : undefined;
  return market === undefined ? notFound() : jsonText(`{"market":${directory.text(market)}}`);
}

/** The parameter is repeated for each ticker. `A,B` is one unknown ticker with an empty book, as on the venue. */
function listBooks(directory: Directory, query: URLSearchParams): Reply {
  const tickers = query.getAll('tickers');
  if (tickers.length === 0 || tickers.length > MAX_BOOKS) return badRequest('invalid tickers');
  const orderbooks = tickers.map((ticker) => {
    if (directory.findCombination(ticker) !== undefined) return { ticker, orderbook_fp: combinationBook() };
    const market = directory.findOn('live', ticker);
    const book = market === undefined ? { yes_dollars: [], no_dollars: [] } : bookOf(directory, market);
    return { ticker, orderbook_fp: book };
  });
  return json({ orderbooks });
}

function bookOf(directory: Directory, market: Market): Record<string, unknown> {
  return bookObject(directory.shown(market));
}

const PAGE = ['limit', 'cursor'];
const TRADES = [...PAGE, 'ticker', 'min_ts', 'max_ts', 'is_block_trade'];
const ARCHIVED_MARKETS = [...PAGE, 'tickers', 'event_ticker', 'series_ticker', 'mve_filter'];
const CANDLESTICKS = ['start_ts', 'end_ts', 'period_interval', 'include_latest_before_start'];

/** The documented parameters of each route; `*` replaces the ids of a path. */
const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  events: [
    ...PAGE,
    ...[
      'status',
      'series_ticker',
      'tickers',
      'with_nested_markets',
      'with_milestones',
      'min_close_ts',
      'min_updated_ts',
    ],
  ],
  'events/*': ['with_nested_markets'],
  'events/multivariate': [...PAGE, 'series_ticker', 'collection_ticker', 'with_nested_markets'],
  'events/fee_changes': [...PAGE, 'event_ticker'],
  markets: [
    ...ARCHIVED_MARKETS,
    ...['status', 'min_created_ts', 'max_created_ts', 'min_updated_ts', 'min_close_ts', 'max_close_ts'],
    ...['min_settled_ts', 'max_settled_ts'],
  ],
  'markets/trades': TRADES,
  'markets/orderbooks': ['tickers'],
  'markets/candlesticks': ['market_tickers', 'start_ts', 'end_ts', 'period_interval'],
  'markets/*': [],
  'markets/*/orderbook': ['depth'],
  series: ['category', 'tags', 'include_product_metadata', 'include_volume', 'min_updated_ts'],
  'series/*': ['include_volume'],
  'series/fee_changes': ['series_ticker', 'show_historical'],
  'series/*/markets/*/candlesticks': CANDLESTICKS,
  'historical/cutoff': [],
  'historical/markets': ARCHIVED_MARKETS,
  'historical/markets/*': [],
  'historical/markets/*/candlesticks': CANDLESTICKS,
  'historical/trades': TRADES,
};

/** The first undocumented parameter of a request. The venue would ignore it, so a client's mistake would stay unnoticed. */
function unknownParameter(
  kind: string | undefined,
  rest: readonly string[],
  query: URLSearchParams,
): string | undefined {
  const parts = [kind ?? '', ...rest];
  const exact = PARAMETERS[parts.join('/')];
  const allowed = exact ?? PARAMETERS[withoutIds(parts)];
  return allowed && [...query.keys()].find((name) => !allowed.includes(name));
}

function withoutIds([kind = '', ...rest]: readonly string[]): string {
  const isId = (at: number) => (kind === 'historical' ? at % 2 === 1 : at % 2 === 0);
  return [kind, ...rest.map((part, at) => (isId(at) ? '*' : part))].join('/');
}

/**
 * `GET /markets/trades` and `GET /historical/trades`, newest first, trades of one microsecond by falling id. The cutoff divides the trades
 * between the two routes. `min_ts` and `max_ts` are seconds, both inclusive. Trades from `tapeEnd` on are hidden.
 */
function listTrades(directory: Directory, query: URLSearchParams, tier: Tier, tapeEnd = Infinity): Reply {
  const { world, settings } = directory;
  const page = pageOf(query, 100, 1000);
  const minSecond = wholeNumber(query.get('min_ts'));
  const maxSecond = wholeNumber(query.get('max_ts'));
  if (page === undefined || minSecond === null || maxSecond === null) return badRequest('invalid parameters');
  const ticker = query.get('ticker') || undefined;
  const combination = ticker === undefined ? undefined : directory.findCombination(ticker);
  const only = ticker === undefined ? undefined : directory.find(ticker)?.spec.no;
  if (ticker !== undefined && only === undefined && combination === undefined) return json({ cursor: '', trades: [] });
  const first = tier === 'live' ? Math.max(minSecond ?? 0, settings.cutoffSecond) : (minSecond ?? 0);
  const last = tier === 'live' ? maxSecond : Math.min(maxSecond ?? Number.MAX_SAFE_INTEGER, settings.cutoffSecond - 1);
  const trades: Record<string, unknown>[] = [];
  const lastRow = page.after === undefined ? Infinity : page.after / 2;
  for (const { trade, row } of byTimeAndId(world.tape.newestFirst(only), world.options.seed, lastRow)) {
    if (trade.index >= tapeEnd || row > lastRow) continue;
    if (last !== undefined && trade.second > last) continue;
    // Newest first: no later row is in the range.
    if (trade.second < first) break;
    const market = world.markets[trade.marketNo];
    if (market === undefined) continue;
    const fill = tradeObject(trade, market, world.options.seed);
    const printed = only === undefined ? combinationAfter(trade, directory.combinations) : undefined;
    const isAsked = printed !== undefined && (combination ?? printed) === printed;
    const rows = [
      { at: 2 * row + 1, object: isAsked && combinationPrint(printed, fill, trade, world.options.seed) },
      { at: 2 * row, object: combination === undefined && fill },
    ];
    for (const { at, object } of rows) {
      if (object === false || (page.after !== undefined && at >= page.after)) continue;
      trades.push(object);
      if (trades.length === page.limit) return json({ cursor: cursorOf(at), trades });
    }
  }
  return json({ cursor: '', trades });
}

interface ListedTrade {
  readonly trade: Trade;
  /** Falls along the list; the fills of one order swap their running numbers. */
  readonly row: number;
}

/**
 * `newestFirst` with the fills of each order by falling id: the fills of an order are adjacent on the tape. It skips orders whose rows are
 * all beyond `lastRow`.
 */
function* byTimeAndId(newestFirst: Iterable<Trade>, seed: number, lastRow: number): Generator<ListedTrade> {
  let fills: Trade[] = [];
  for (const trade of newestFirst) {
    if (fills[0] !== undefined && fills[0].orderNo !== trade.orderNo) {
      yield* byId(fills, seed, lastRow);
      fills = [];
    }
    fills.push(trade);
  }
  yield* byId(fills, seed, lastRow);
}

function byId(fills: readonly Trade[], seed: number, lastRow: number): ListedTrade[] {
  const oldest = fills.at(-1);
  if (oldest === undefined || oldest.index > lastRow) return [];
  if (fills.length === 1) return [{ trade: oldest, row: oldest.index }];
  const ids = new Map(fills.map((trade) => [trade, tradeIdOf(seed, trade)]));
  const idOf = (trade: Trade) => ids.get(trade) ?? '';
  return fills
    .toSorted((a, b) => (idOf(a) < idOf(b) ? 1 : -1))
    .map((trade, at) => ({ trade, row: fills[at]?.index ?? trade.index }));
}

/** `GET /historical/cutoff`. */
function cutoff({ settings }: Directory): Reply {
  const at = isoSeconds(settings.cutoffSecond);
  return json({
    market_settled_ts: at,
    trades_created_ts: at,
    orders_updated_ts: at,
    market_positions_last_updated_ts: at,
  });
}
