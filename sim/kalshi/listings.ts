import { json, type Reply, wholeNumber } from '../server/reply.ts';
import type { EventSpec } from '../world/catalog.ts';
import type { Market } from '../world/market.ts';
import type { Directory } from './directory.ts';
import { badRequest, listOf, notFound, type PageRequest, pageOf, take } from './query.ts';
import { closeSecondOf, eventObject, eventTickerOf, SERIES_TICKER, statusOf, updatedSecondOf } from './wire.ts';

const FILTERS = ['unopened', 'open', 'paused', 'closed', 'settled'] as const;
type Filter = (typeof FILTERS)[number];
const EVENT_FILTERS: readonly Filter[] = ['unopened', 'open', 'closed', 'settled'];

const FILTER_OF_STATUS: Readonly<Record<ReturnType<typeof statusOf>, Filter>> = {
  initialized: 'unopened',
  active: 'open',
  inactive: 'paused',
  determined: 'closed',
  disputed: 'closed',
  finalized: 'settled',
};

/** `GET /markets`: the live ones. */
export function listMarkets(directory: Directory, query: URLSearchParams): Reply {
  const page = pageOf(query, 100, 1000);
  const status = query.get('status') || undefined;
  if (page === undefined) return badRequest('invalid limit or cursor');
  if (status !== undefined && !isFilter(status, FILTERS)) return badRequest('invalid status filter');
  const times = ['min_updated_ts', 'min_close_ts', 'max_close_ts', 'min_settled_ts'].map((name) =>
    wholeNumber(query.get(name)),
  );
  if (times.includes(null)) return badRequest('invalid timestamp');
  const [minUpdated = 0, minClose = 0, maxClose = Number.MAX_SAFE_INTEGER, minSettled = 0] = times as number[];
  const isNamed = namedBy(query);
  const matches = (market: Market) =>
    directory.tierOf(market) === 'live' &&
    isNamed(market) &&
    (status === undefined || FILTER_OF_STATUS[statusOf(market)] === status) &&
    updatedSecondOf(market) >= minUpdated &&
    closeSecondOf(market) >= minClose &&
    closeSecondOf(market) <= maxClose &&
    (minSettled === 0 || (market.closedSecond ?? 0) >= minSettled);
  return marketPage(directory, query, page, matches);
}

/** `GET /historical/markets`: those settled before the cutoff. */
export function listHistoricalMarkets(directory: Directory, query: URLSearchParams): Reply {
  const page = pageOf(query, 100, 1000);
  if (page === undefined) return badRequest('invalid limit or cursor');
  const isNamed = namedBy(query);
  const matches = (market: Market) => directory.tierOf(market) === 'historical' && isNamed(market);
  return marketPage(directory, query, page, matches);
}

function marketPage(
  directory: Directory,
  query: URLSearchParams,
  page: PageRequest,
  matches: (market: Market) => boolean,
): Reply {
  const { found, cursor } = take(candidates(directory, query), page, matches);
  return json({ cursor, markets: found.map((market) => directory.object(market)) });
}

/** In the order they came to be; named ones without a look at all the others. */
function candidates(directory: Directory, query: URLSearchParams): readonly Market[] {
  const tickers = listOf(query, 'tickers');
  if (tickers === undefined) return directory.world.markets;
  const named = [...tickers].map((ticker) => directory.find(ticker)).filter((market) => market !== undefined);
  return named.sort((a, b) => a.spec.no - b.spec.no);
}

/** The other filters that name markets, on both routes. */
function namedBy(query: URLSearchParams): (market: Market) => boolean {
  const eventTicker = query.get('event_ticker') || undefined;
  const series = query.get('series_ticker') || undefined;
  return (market) =>
    (eventTicker === undefined || eventTicker === eventTickerOf(market.event)) &&
    (series === undefined || series === SERIES_TICKER);
}

/** `GET /events`. Markets settled before the cutoff are never nested, their events stay. */
export function listEvents(directory: Directory, query: URLSearchParams): Reply {
  const page = pageOf(query, 200, 200);
  const status = query.get('status') || undefined;
  if (page === undefined) return badRequest('invalid limit or cursor');
  if (status !== undefined && !isFilter(status, EVENT_FILTERS)) return badRequest('invalid status filter');
  const series = query.get('series_ticker') || undefined;
  if (series !== undefined && series !== SERIES_TICKER) return json({ cursor: '', events: [], milestones: [] });
  const matches = (event: EventSpec) => {
    const filter = filterOfEvent(directory, event);
    return filter !== undefined && (status === undefined || filter === status);
  };
  const { found, cursor } = take(directory.world.events, page, matches);
  const isNested = query.get('with_nested_markets') === 'true';
  const events = found.map((event) => ({
    ...eventObject(event),
    ...(isNested && { markets: liveObjects(directory, event) }),
  }));
  return json({ cursor, events, milestones: [] });
}

export function oneEvent(directory: Directory, ticker: string): Reply {
  const event = directory.world.events.find((each) => eventTickerOf(each) === ticker);
  if (event === undefined || directory.marketsOf(event).length === 0) return notFound();
  return json({ event: eventObject(event), markets: liveObjects(directory, event) });
}

function liveObjects(directory: Directory, event: EventSpec): Record<string, unknown>[] {
  const live = directory.marketsOf(event).filter((market) => directory.tierOf(market) === 'live');
  return live.map((market) => directory.object(market));
}

/** An event is what the liveliest of its markets is; a paused market has its event open. */
function filterOfEvent(directory: Directory, event: EventSpec): Filter | undefined {
  const filters = directory.marketsOf(event).map((market) => FILTER_OF_STATUS[statusOf(market)]);
  if (filters.includes('paused')) return 'open';
  return (['open', 'unopened', 'closed', 'settled'] as const).find((filter) => filters.includes(filter));
}

function isFilter(text: string, filters: readonly Filter[]): text is Filter {
  return (filters as readonly string[]).includes(text);
}
