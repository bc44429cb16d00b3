import { json, type Reply, wholeNumber } from '../server/reply.ts';
import type { EventSpec } from '../world/catalog.ts';
import type { Market } from '../world/market.ts';
import type { Combination } from './combinations.ts';
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

/** `GET /markets`: the live markets. */
export function listMarkets(directory: Directory, query: URLSearchParams): Reply {
  const page = pageOf(query, 100, 1000);
  const status = query.get('status') || undefined;
  if (page === undefined) return badRequest('invalid limit or cursor');
  if (status !== undefined && !isFilter(status, FILTERS)) return badRequest('invalid status filter');
  const times = ['min_updated_ts', 'min_close_ts', 'max_close_ts', 'min_settled_ts'].map((name) =>
    wholeNumber(query.get(name)),
  );
  if (times.includes(null)) return badRequest('invalid timestamp');
  const conflict = conflictIn(query);
  if (conflict !== undefined) return badRequest(conflict);
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
  // Combinations are open and never settle within a run; filters by time or event do not match them.
  const isPlain = ![...TIME_FILTERS, 'event_ticker', 'series_ticker'].some((name) => query.get(name));
  const hasCombinations = isPlain && (status === undefined || status === 'open');
  return marketPage(directory, query, page, matches, hasCombinations);
}

const TIME_FILTERS = ['min_updated_ts', 'min_close_ts', 'max_close_ts', 'min_settled_ts'];

/** The conflict of filters of `/markets` that the venue refuses together; undefined for none. */
function conflictIn(query: URLSearchParams): string | undefined {
  const has = (name: string) => Boolean(query.get(name));
  const status = query.get('status');
  const isClose = has('min_close_ts') || has('max_close_ts');
  if ([has('min_updated_ts'), isClose, has('min_settled_ts')].filter(Boolean).length > 1) {
    return 'timestamp filters are mutually exclusive';
  }
  if (isClose && status && status !== 'closed') return 'close timestamps go with status closed';
  if (has('min_settled_ts') && status && status !== 'settled') return 'min_settled_ts goes with status settled';
  const isAlone = query.get('mve_filter') === 'exclude' && !status && !has('tickers') && !has('event_ticker');
  return has('min_updated_ts') && !isAlone ? 'min_updated_ts goes with mve_filter=exclude alone' : undefined;
}

/** `GET /historical/markets`: the markets that settled before the cutoff. */
export function listHistoricalMarkets(directory: Directory, query: URLSearchParams): Reply {
  const page = pageOf(query, 100, 1000);
  if (page === undefined) return badRequest('invalid limit or cursor');
  const isNamed = namedBy(query);
  const matches = (market: Market) => directory.tierOf(market) === 'historical' && isNamed(market);
  return marketPage(directory, query, page, matches, false);
}

function marketPage(
  directory: Directory,
  query: URLSearchParams,
  page: PageRequest,
  matches: (market: Market) => boolean,
  hasCombinations: boolean,
): Reply {
  const filter = query.get('mve_filter') || undefined;
  if (filter !== undefined && filter !== 'exclude' && filter !== 'only') return badRequest('invalid mve_filter');
  const tickers = listOf(query, 'tickers');
  const combinations = directory.combinations.filter((each) => tickers?.has(each.ticker) ?? true);
  const rows: (Market | Combination)[] = filter === 'only' ? [] : candidates(directory, tickers);
  const all = hasCombinations && filter !== 'exclude' ? [...rows, ...combinations] : rows;
  const { found, cursor } = take(all, page, (each) => 'legs' in each || matches(each));
  const object = (each: Market | Combination) =>
    'legs' in each ? directory.combinationObject(each) : directory.object(each);
  return json({ cursor, markets: found.map(object) });
}

/** In order of creation; named markets are found without a scan. */
function candidates(directory: Directory, tickers: ReadonlySet<string> | undefined): Market[] {
  if (tickers === undefined) return directory.world.markets;
  const named = [...tickers].map((ticker) => directory.find(ticker)).filter((market) => market !== undefined);
  return named.sort((a, b) => a.spec.no - b.spec.no);
}

/** The other filters that select markets, on both routes. */
function namedBy(query: URLSearchParams): (market: Market) => boolean {
  const eventTicker = query.get('event_ticker') || undefined;
  const series = query.get('series_ticker') || undefined;
  return (market) =>
    (eventTicker === undefined || eventTicker === eventTickerOf(market.event)) &&
    (series === undefined || series === SERIES_TICKER);
}

/**
 * `GET /events`: an event has each status of its markets. Markets that settled before the cutoff are never nested, but their events stay.
 * Events of combinations are on another route.
 */
export function listEvents(directory: Directory, query: URLSearchParams): Reply {
  const page = pageOf(query, 200, 200);
  const status = query.get('status') || undefined;
  if (page === undefined) return badRequest('invalid limit or cursor');
  if (status !== undefined && !isFilter(status, EVENT_FILTERS)) return badRequest('invalid status filter');
  const series = query.get('series_ticker') || undefined;
  if (series !== undefined && series !== SERIES_TICKER) return json({ cursor: '', events: [], milestones: [] });
  const { eventTickers, hasEventCategory } = directory.settings;
  const asked = listOf(query, 'tickers');
  if (asked !== undefined && eventTickers === 'refused') return badRequest('unknown parameter: tickers');
  const tickers = eventTickers === 'served' ? asked : undefined;
  const matches = (event: EventSpec) => {
    const filters = filtersOfEvent(directory, event);
    const isNamed = tickers?.has(eventTickerOf(event)) ?? true;
    return isNamed && filters.size > 0 && (status === undefined || filters.has(status));
  };
  const { found, cursor } = take(directory.world.events, page, matches);
  const isNested = query.get('with_nested_markets') === 'true';
  const events = found.map((event) => ({
    ...eventObject(event, hasEventCategory),
    ...(isNested && { markets: liveObjects(directory, event) }),
  }));
  return json({ cursor, events, milestones: [] });
}

export function oneEvent(directory: Directory, ticker: string): Reply {
  const event = directory.world.events.find((each) => eventTickerOf(each) === ticker);
  if (event === undefined || directory.marketsOf(event).length === 0) return notFound();
  const facts = eventObject(event, directory.settings.hasEventCategory);
  return json({ event: facts, markets: liveObjects(directory, event) });
}

function liveObjects(directory: Directory, event: EventSpec): Record<string, unknown>[] {
  const live = directory.marketsOf(event).filter((market) => directory.tierOf(market) === 'live');
  return live.map((market) => directory.object(market));
}

/** The event of a paused market counts as open: events have no filter for pauses. */
function filtersOfEvent(directory: Directory, event: EventSpec): Set<Filter> {
  const filters = directory.marketsOf(event).map((market) => FILTER_OF_STATUS[statusOf(market)]);
  return new Set(filters.map((filter) => (filter === 'paused' ? 'open' : filter)));
}

function isFilter(text: string, filters: readonly Filter[]): text is Filter {
  return (filters as readonly string[]).includes(text);
}
