import { json, jsonText, type Reply, type SimRequest } from '../server/reply.ts';
import type { Market } from '../world/market.ts';
import type { World } from '../world/world.ts';
import { batchCandlesticks, historicalCandlesticks, liveCandlesticks } from './candlesticks.ts';
import { combinationBook } from './combinations.ts';
import { Directory, type KalshiSettings } from './directory.ts';
import { listCombinationEvents, listEvents, listHistoricalMarkets, listMarkets, oneEvent } from './listings.ts';
import { badRequest, notFound } from './query.ts';
import { listEventFeeChanges, listSeries, listSeriesFeeChanges, oneSeries } from './series.ts';
import { cutoff, listTrades } from './trades.ts';
import { bookObject } from './wire.ts';

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
