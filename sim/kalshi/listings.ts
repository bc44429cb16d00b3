import { json, jsonText, type Reply, wholeNumber } from '../server/reply.ts';
import { isoMicros, isoSeconds } from '../wire/time-text.ts';
import type { EventSpec } from '../world/catalog.ts';
import type { Market } from '../world/market.ts';
import type { CloseWindow } from './closings.ts';
import { COLLECTION, SERIES as COMBINATION_SERIES, type Combination, combinationEvent } from './combinations.ts';
import type { Directory } from './directory.ts';
import { badRequest, type Listed, listed, listOf, notFound, type PageRequest, pageOf, take } from './query.ts';
import {
  closeSecondOf,
  eventObject,
  eventTickerOf,
  SERIES_TICKER,
  SETTLEMENT_SOURCES,
  statusOf,
  updatedSecondOf,
} from './wire.ts';

const FILTERS = ['unopened', 'open', 'paused', 'closed', 'settled'] as const;
type Filter = (typeof FILTERS)[number];
const EVENT_FILTERS: readonly Filter[] = ['unopened', 'open', 'closed', 'settled'];

const FILTER_OF_STATUS: Readonly<Record<ReturnType<typeof statusOf>, Filter>> = {
  initialized: 'unopened',
  active: 'open',
  inactive: 'paused',
  determined: 'closed',
  disputed: 'closed',
  amended: 'closed',
  finalized: 'settled',
};

/** `GET /markets`: the live markets. */
export function listMarkets(directory: Directory, query: URLSearchParams): Reply {
  const page = pageOf(query, 100, 1000);
  const status = query.get('status') || undefined;
  if (page === undefined) return badRequest('invalid limit or cursor');
  if (status !== undefined && !isFilter(status, FILTERS)) return badRequest('invalid status filter');
  const times = TIME_FILTERS.map((name) => wholeNumber(query.get(name)));
  if (times.includes(null)) return badRequest('invalid timestamp');
  const conflict = conflictIn(query);
  if (conflict !== undefined) return badRequest(conflict);
  const [minUpdated = 0, minClose = 0, maxClose = Number.MAX_SAFE_INTEGER, minSettled = 0, ...created] =
    times as number[];
  const [createdAfter = 0, createdBefore = Number.MAX_SAFE_INTEGER] = created;
  const isNamed = namedBy(query);
  const matches = (market: Market) =>
    directory.tierOf(market) === 'live' &&
    isNamed(market) &&
    (status === undefined || FILTER_OF_STATUS[statusOf(market)] === status) &&
    updatedSecondOf(market) >= minUpdated &&
    closeSecondOf(market) >= minClose &&
    closeSecondOf(market) <= maxClose &&
    market.spec.createdSecond > createdAfter &&
    market.spec.createdSecond < createdBefore &&
    (minSettled === 0 || (market.closedSecond ?? 0) >= minSettled);
  // Combinations are open and never settle within a run; filters by time or event do not match them.
  const isPlain = ![...TIME_FILTERS, 'event_ticker', 'series_ticker'].some((name) => query.get(name));
  const hasCombinations = isPlain && (status === undefined || status === 'open');
  const isWindow = Boolean(query.get('min_close_ts') || query.get('max_close_ts')) && !query.get('tickers');
  const window = isWindow ? { minSecond: minClose, maxSecond: maxClose } : undefined;
  return marketPage(directory, query, page, matches, { hasCombinations, window });
}

const TIME_FILTERS = [
  ...['min_updated_ts', 'min_close_ts', 'max_close_ts', 'min_settled_ts'],
  ...['min_created_ts', 'max_created_ts'],
] as const;

/** The conflict of filters of `/markets` that the venue refuses together; undefined for none. */
function conflictIn(query: URLSearchParams): string | undefined {
  const has = (name: string) => Boolean(query.get(name));
  const status = query.get('status');
  const isClose = has('min_close_ts') || has('max_close_ts');
  const isCreated = has('min_created_ts') || has('max_created_ts');
  if ([has('min_updated_ts'), isClose, isCreated, has('min_settled_ts')].filter(Boolean).length > 1) {
    return 'timestamp filters are mutually exclusive';
  }
  if (isCreated && status && !['unopened', 'open'].includes(status)) {
    return 'created timestamps go with status unopened or open';
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
  return marketPage(directory, query, page, matches, { hasCombinations: false });
}

function marketPage(
  directory: Directory,
  query: URLSearchParams,
  page: PageRequest,
  matches: (market: Market) => boolean,
  { hasCombinations, window }: { hasCombinations: boolean; window?: CloseWindow | undefined },
): Reply {
  const filter = query.get('mve_filter') || undefined;
  if (filter !== undefined && filter !== 'exclude' && filter !== 'only') return badRequest('invalid mve_filter');
  const rows =
    window === undefined || filter === 'only' ? inOrderOfCreation() : inOrderOfClose(directory, window, page.after);
  const { found, cursor } = take(rows, page.limit, (each) => 'legs' in each || matches(each));
  const texts = found.map((each) => ('legs' in each ? directory.combinationText(each) : directory.text(each)));
  return jsonText(`{"cursor":${JSON.stringify(cursor)},"markets":[${texts.join(',')}]}`);

  function inOrderOfCreation(): Iterable<Listed<Market | Combination>> {
    const tickers = listOf(query, 'tickers');
    const combinations = directory.combinations.filter((each) => tickers?.has(each.ticker) ?? true);
    const markets: readonly (Market | Combination)[] = filter === 'only' ? [] : candidates(directory, tickers);
    return listed(hasCombinations && filter !== 'exclude' ? [...markets, ...combinations] : markets, page.after);
  }
}

function* inOrderOfClose(
  directory: Directory,
  window: CloseWindow,
  fromNo: number | undefined,
): Generator<Listed<Market>> {
  for (const row of directory.closings.between(window, fromNo)) yield { no: row.spec.no, row };
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
    if (tickers !== undefined && !tickers.has(eventTickerOf(event))) return false;
    const filters = filtersOfEvent(directory, event);
    return status === undefined ? filters.size > 0 : filters.has(status);
  };
  const { found, cursor } = take(listed(directory.world.events, page.after), page.limit, matches);
  const isNested = query.get('with_nested_markets') === 'true';
  const events = found.map((event) => {
    const facts = JSON.stringify(eventObject(event, hasEventCategory, feeOf(directory, event)));
    return isNested ? `${facts.slice(0, -1)},"markets":${liveTexts(directory, event)}}` : facts;
  });
  return jsonText(`{"cursor":${JSON.stringify(cursor)},"events":[${events.join(',')}],"milestones":[]}`);
}

/** `GET /events/multivariate`: the events of combinations. */
export function listCombinationEvents(directory: Directory, query: URLSearchParams): Reply {
  const page = pageOf(query, 100, 200);
  if (page === undefined) return badRequest('invalid limit or cursor');
  const [series, collection] = [query.get('series_ticker') || undefined, query.get('collection_ticker') || undefined];
  if (series !== undefined && collection !== undefined) return badRequest('series_ticker excludes collection_ticker');
  const isAsked = (series ?? COMBINATION_SERIES) === COMBINATION_SERIES && (collection ?? COLLECTION) === COLLECTION;
  const { found, cursor } = take(listed(directory.combinations, page.after), page.limit, () => isAsked);
  const isNested = query.get('with_nested_markets') === 'true';
  const events = found.map((each) => {
    const facts = JSON.stringify(combinationEvent(each));
    return isNested ? `${facts.slice(0, -1)},"markets":[${directory.combinationText(each)}]}` : facts;
  });
  return jsonText(`{"cursor":${JSON.stringify(cursor)},"events":[${events.join(',')}]}`);
}

export function oneEvent(directory: Directory, ticker: string): Reply {
  const event = directory.world.events.find((each) => eventTickerOf(each) === ticker);
  if (event === undefined || directory.marketsOf(event).length === 0) return notFound();
  const facts = JSON.stringify(eventObject(event, directory.settings.hasEventCategory, feeOf(directory, event)));
  return jsonText(`{"event":${facts},"markets":${liveTexts(directory, event)}}`);
}

/** What replaces the fee of the series for an event. */
function feeOf({ world }: Directory, event: EventSpec) {
  return world.fees.inEffect(world.second, event.no);
}

function liveTexts(directory: Directory, event: EventSpec): string {
  const live = directory.marketsOf(event).filter((market) => directory.tierOf(market) === 'live');
  return `[${live.map((market) => directory.text(market)).join(',')}]`;
}

/** The event of a paused market counts as open: events have no filter for pauses. */
function filtersOfEvent(directory: Directory, event: EventSpec): Set<Filter> {
  const filters = directory.marketsOf(event).map((market) => FILTER_OF_STATUS[statusOf(market)]);
  return new Set(filters.map((filter) => (filter === 'paused' ? 'open' : filter)));
}

function isFilter(text: string, filters: readonly Filter[]): text is Filter {
  return (filters as readonly string[]).includes(text);
}

type Wire = Record<string, unknown>;

/** The series of all engine markets, and others in the shapes of the venue. */
const SERIES = [
  {
    ticker: SERIES_TICKER,
    title: 'Simulated questions',
    category: 'Simulated',
    categories: ['Simulated', 'Exercises'],
    tags: ['Simulation'],
  },
  {
    ticker: 'KXSIMUNTAGGED',
    title: 'A series without tags',
    category: 'Climate and Weather',
    categories: ['Climate and Weather'],
    tags: null,
  },
  {
    ticker: 'KXSIMTWOTAGS',
    title: 'A series with two tags',
    category: 'Sports',
    categories: ['Sports'],
    tags: ['Baseball', 'Tennis'],
  },
] as const;

/** `GET /series`: all in one answer, without a cursor. */
export function listSeries(directory: Directory, query: URLSearchParams): Reply {
  const since = wholeNumber(query.get('min_updated_ts'));
  if (since === null) return badRequest('invalid min_updated_ts');
  const category = query.get('category') || undefined;
  const tag = query.get('tags') || undefined;
  const found = SERIES.filter(
    (each) =>
      (category === undefined || each.categories.some((own) => own === category)) &&
      (tag === undefined || each.tags?.some((own) => own === tag)) &&
      (since === undefined || updatedSecond(directory) > since),
  );
  return json({ series: found.map((each) => seriesObject(each, directory)) });
}

/** `GET /series/fee_changes`: the changes that lie ahead, or all of them. */
export function listSeriesFeeChanges({ world }: Directory, query: URLSearchParams): Reply {
  const ticker = query.get('series_ticker') || SERIES_TICKER;
  const { fees, second } = world;
  const found = query.get('show_historical') === 'true' ? fees.ofSeries() : fees.announced(second, 'series');
  const changes = ticker === SERIES_TICKER ? found : [];
  return json({
    series_fee_change_arr: changes.map(({ id, second, type, multiplier }) => ({
      id: String(id),
      series_ticker: SERIES_TICKER,
      fee_type: type,
      fee_multiplier: multiplier,
      scheduled_ts: isoSeconds(second),
    })),
  });
}

/** `GET /events/fee_changes`: the same for events, which replace the values of their series. */
export function listEventFeeChanges(directory: Directory, query: URLSearchParams): Reply {
  const { world } = directory;
  const asked = query.get('event_ticker') || undefined;
  const changes = world.fees.announced(world.second, 'events').flatMap(({ id, second, eventNo, type, multiplier }) => {
    const event = world.markets.find((market) => market.event.no === eventNo)?.event;
    const ticker = event === undefined ? undefined : eventTickerOf(event);
    if (ticker === undefined || (asked !== undefined && asked !== ticker)) return [];
    return [
      {
        id: String(id),
        event_ticker: ticker,
        series_ticker: SERIES_TICKER,
        fee_type_override: type,
        fee_multiplier_override: multiplier,
        scheduled_ts: isoSeconds(second),
      },
    ];
  });
  return json({ cursor: '', event_fee_changes: changes });
}

/** `GET /series/{ticker}`. */
export function oneSeries(directory: Directory, ticker: string): Reply {
  const found = SERIES.find((each) => each.ticker === ticker);
  return found === undefined ? notFound() : json({ series: seriesObject(found, directory) });
}

function seriesObject(series: (typeof SERIES)[number], directory: Directory): Wire {
  const fee = directory.world.fees.inEffect(directory.world.second);
  return {
    additional_prohibitions: null,
    contract_terms_url: 'https://example.org/terms.pdf',
    contract_url: 'https://example.org/contract.pdf',
    fee_multiplier: fee?.multiplier,
    fee_type: fee?.type,
    frequency: 'custom',
    last_updated_ts: isoMicros(updatedSecond(directory), 0),
    settlement_sources: SETTLEMENT_SOURCES,
    ...series,
  };
}

function updatedSecond({ world }: Directory): number {
  const changed = world.fees.inEffect(world.second)?.second ?? 0;
  return Math.max(world.options.nowSecond - world.options.historySeconds, changed);
}
