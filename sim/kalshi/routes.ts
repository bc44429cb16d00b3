import { json, type Reply, type SimRequest, wholeNumber } from '../server/reply.ts';
import type { EventSpec } from '../world/catalog.ts';
import type { Market } from '../world/market.ts';
import { visibleMarket } from '../world/quiet-market.ts';
import type { World } from '../world/world.ts';
import {
  bookObject,
  closeSecondOf,
  eventObject,
  eventTickerOf,
  marketObject,
  SERIES_TICKER,
  statusOf,
  tickerOf,
  tradeObject,
  updatedSecondOf,
} from './wire.ts';

const PREFIX = '/trade-api/v2';
const MAX_BOOKS = 100;
const FILTERS = ['unopened', 'open', 'paused', 'closed', 'settled'] as const;
type Filter = (typeof FILTERS)[number];
const EVENT_FILTERS: readonly Filter[] = ['unopened', 'open', 'closed', 'settled'];

/** The routes of Kalshi's trade API v2 that the service reads, over the same engine as the other hosts. */
export function kalshiRoutes(world: World): (request: SimRequest) => Reply {
  return (request) => {
    const { method, path } = request;
    if (method !== 'GET' || !path.startsWith(`${PREFIX}/`)) return notFound();
    const [kind, id, part, ...rest] = path
      .slice(PREFIX.length + 1)
      .split('/')
      .map(decodeURIComponent);
    if (rest.length > 0) return notFound();
    if (kind === 'events') return id === undefined ? listEvents(world, request) : oneEvent(world, id);
    if (kind !== 'markets') return notFound();
    if (id === undefined) return listMarkets(world, request);
    if (id === 'trades') return listTrades(world, request);
    if (id === 'orderbooks') return listBooks(world, request);
    const market = findMarket(world, id);
    if (market === undefined) return notFound();
    if (part === undefined) return json({ market: objectOf(world, market) });
    return part === 'orderbook' ? json({ orderbook_fp: bookObject(shownOf(world, market)) }) : notFound();
  };
}

function listMarkets(world: World, { query }: SimRequest): Reply {
  const page = pageOf(query, 100, 1000);
  const status = query.get('status') || undefined;
  if (page === undefined) return badRequest('invalid limit or cursor');
  if (status !== undefined && !isFilter(status, FILTERS)) return badRequest('invalid status filter');
  const tickers = query.get('tickers');
  const wanted = tickers === null ? undefined : new Set(tickers.split(','));
  const times = ['min_updated_ts', 'min_close_ts', 'max_close_ts', 'min_settled_ts'].map((name) =>
    wholeNumber(query.get(name)),
  );
  if (times.includes(null)) return badRequest('invalid timestamp');
  const [minUpdated = 0, minClose = 0, maxClose = Number.MAX_SAFE_INTEGER, minSettled = 0] = times as number[];
  const matches = (market: Market) =>
    market.phase !== 'scheduled' &&
    (wanted === undefined || wanted.has(tickerOf(market.spec))) &&
    (status === undefined || filterOf(market) === status) &&
    updatedSecondOf(market) >= minUpdated &&
    closeSecondOf(market) >= minClose &&
    closeSecondOf(market) <= maxClose &&
    (minSettled === 0 || (market.closedSecond ?? 0) >= minSettled);
  const { found, cursor } = take(world.markets, page, matches);
  return json({ cursor, markets: found.map((market) => objectOf(world, market)) });
}

function listEvents(world: World, { query }: SimRequest): Reply {
  const page = pageOf(query, 200, 200);
  const status = query.get('status') || undefined;
  if (page === undefined) return badRequest('invalid limit or cursor');
  if (status !== undefined && !isFilter(status, EVENT_FILTERS)) return badRequest('invalid status filter');
  const matches = (event: EventSpec) => {
    const filter = filterOfEvent(world, event);
    return filter !== undefined && (status === undefined || filter === status);
  };
  const { found, cursor } = take(world.events, page, matches);
  const isNested = query.get('with_nested_markets') === 'true';
  const events = found.map((event) => {
    const markets = isNested ? { markets: marketsOf(world, event).map((market) => objectOf(world, market)) } : {};
    return { ...eventObject(event), ...markets };
  });
  return json({ cursor, events, milestones: [] });
}

function oneEvent(world: World, ticker: string): Reply {
  const event = world.events.find((each) => eventTickerOf(each) === ticker);
  const markets = event === undefined ? [] : marketsOf(world, event);
  if (event === undefined || markets.length === 0) return notFound();
  return json({ event: eventObject(event), markets: markets.map((market) => objectOf(world, market)) });
}

/** The parameter comes again for each ticker; `A,B` is one strange ticker, and as on the venue its book is empty. */
function listBooks(world: World, { query }: SimRequest): Reply {
  const tickers = query.getAll('tickers');
  if (tickers.length === 0 || tickers.length > MAX_BOOKS) return badRequest('invalid tickers');
  const orderbooks = tickers.map((ticker) => {
    const market = findMarket(world, ticker);
    const book = market === undefined ? { yes_dollars: [], no_dollars: [] } : bookObject(shownOf(world, market));
    return { ticker, orderbook_fp: book };
  });
  return json({ orderbooks });
}

function listTrades(world: World, { query }: SimRequest): Reply {
  const page = pageOf(query, 100, 1000);
  const minSecond = wholeNumber(query.get('min_ts'));
  const maxSecond = wholeNumber(query.get('max_ts'));
  if (page === undefined || minSecond === null || maxSecond === null) return badRequest('invalid parameters');
  const ticker = query.get('ticker');
  const only = ticker === null ? undefined : findMarket(world, ticker)?.spec.no;
  if (ticker !== null && only === undefined) return json({ cursor: '', trades: [] });
  const trades: Record<string, unknown>[] = [];
  for (const trade of world.tape.newestFirst(only)) {
    if (page.after !== undefined && trade.index >= page.after) continue;
    if (maxSecond !== undefined && trade.second > maxSecond) continue;
    // Newest first: nothing behind this row can be in the range.
    if (minSecond !== undefined && trade.second < minSecond) break;
    const market = world.markets[trade.marketNo];
    if (market === undefined) continue;
    trades.push(tradeObject(trade, market, world.options.seed));
    if (trades.length === page.limit) return json({ cursor: cursorOf(trade.index), trades });
  }
  return json({ cursor: '', trades });
}

function objectOf(world: World, market: Market): Record<string, unknown> {
  return marketObject(market, shownOf(world, market));
}

function shownOf(world: World, market: Market): Market {
  return visibleMarket(market, world.options.seed);
}

function marketsOf(world: World, event: EventSpec): Market[] {
  return event.marketNos.flatMap((no) => {
    const market = world.markets[no];
    return market === undefined || market.phase === 'scheduled' ? [] : [market];
  });
}

function findMarket(world: World, ticker: string): Market | undefined {
  const id = ticker.startsWith(`${SERIES_TICKER}-`) ? ticker.slice(SERIES_TICKER.length + 1) : undefined;
  const market = id === undefined ? undefined : world.markets.find(({ spec }) => spec.id === id);
  return market?.phase === 'scheduled' ? undefined : market;
}

/** The word that the `status` filter has for a market's state; it is not the word of the field. */
function filterOf(market: Market): Filter {
  const status = statusOf(market);
  if (status === 'initialized') return 'unopened';
  if (status === 'active') return 'open';
  return status === 'finalized' ? 'settled' : 'closed';
}

function filterOfEvent(world: World, event: EventSpec): Filter | undefined {
  const filters = marketsOf(world, event).map(filterOf);
  return (['open', 'closed', 'settled'] as const).find((filter) => filters.includes(filter));
}

function isFilter(text: string, filters: readonly Filter[]): text is Filter {
  return (filters as readonly string[]).includes(text);
}

interface PageRequest {
  readonly limit: number;
  /** The running number that the cursor stands for. */
  readonly after: number | undefined;
}

function pageOf(query: URLSearchParams, standard: number, most: number): PageRequest | undefined {
  const limit = wholeNumber(query.get('limit'));
  const cursor = query.get('cursor') || undefined;
  const after = cursor === undefined ? undefined : wholeNumber(Buffer.from(cursor, 'base64url').toString());
  if (limit === null || limit === 0 || after === null || (cursor !== undefined && after === undefined))
    return undefined;
  return { limit: Math.min(limit ?? standard, most), after };
}

function cursorOf(no: number): string {
  return Buffer.from(String(no)).toString('base64url');
}

/** The next so many that match, in the order they came to be. */
function take<T extends Market | EventSpec>(
  all: readonly T[],
  page: PageRequest,
  matches: (each: T) => boolean,
): { found: T[]; cursor: string } {
  const found: T[] = [];
  for (let at = page.after ?? 0; at < all.length; at += 1) {
    const each = all[at];
    if (each === undefined || !matches(each)) continue;
    if (found.length === page.limit) return { found, cursor: cursorOf(at) };
    found.push(each);
  }
  return { found, cursor: '' };
}

function badRequest(details: string): Reply {
  return json({ error: { code: 'bad_request', message: 'bad request', details } }, 400);
}

function notFound(): Reply {
  return json({ error: { code: 'not_found', message: 'not found' } }, 404);
}
