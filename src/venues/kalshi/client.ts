import { isHttpStatus, VenueError } from '../errors.ts';
import type { ObservedRows } from '../http/age.ts';
import type { AnswerReading } from '../http/answer-memory.ts';
import { type BatchRequest, createVenueHttp, type VenueHttp, type VenueHttpSettings } from '../http/http.ts';
import { createMemberBatches, type MemberBatches } from '../http/member-batches.ts';
import type { BreakerState, VenueObserver } from '../observer.ts';
import { type KalshiKey, signedHeaders } from './feed/key.ts';

export const KALSHI = 'kalshi';

/** Query parameters by name; undefined ones are not sent. */
export type Parameters = Readonly<Record<string, string | number | undefined>>;

export interface ListAnswer {
  rows: unknown[];
  nextCursor?: string;
}

interface CandlesticksOf {
  ticker: string;
  seriesTicker?: string;
}

/** Kalshi's read endpoints ([routes](../../../docs/venues.md#kalshi)). Every call throws VenueError only. */
export interface KalshiClient {
  /** `GET /events` with nested markets: a row is a market with its event. */
  listEvents(parameters: Parameters, signal: AbortSignal, batch?: BatchRequest): Promise<ListAnswer>;
  /** `GET /markets` without combinations: a row is a market that names its event by ticker only. */
  listMarkets(parameters: Parameters, signal: AbortSignal, batch?: BatchRequest): Promise<ListAnswer>;
  /** `GET /events` by ticker, without markets. The filter does not exist before June 2026: such an answer is about other events. */
  listEventsByTicker(eventTickers: readonly string[], signal: AbortSignal, batch?: BatchRequest): Promise<unknown[]>;
  /** `GET /series`: all, or the changes since `min_updated_ts`. */
  listSeries(parameters: Parameters, signal: AbortSignal): Promise<ListAnswer>;
  /** `GET /series/fee_changes`: all changes, past ones too. */
  listSeriesFeeChanges(signal: AbortSignal): Promise<unknown[]>;
  /** `GET /events/fee_changes`: the changes of events that lie ahead. */
  listEventFeeChanges(parameters: Parameters, signal: AbortSignal): Promise<ListAnswer>;
  /** The facts of an event; undefined when the venue does not know it (any more). */
  getEvent(eventTicker: string, signal: AbortSignal, batch?: BatchRequest): Promise<unknown>;
  /** `GET /markets` by ticker, at most 100. Unknown tickers and archived markets are absent. */
  listQuotes(tickers: readonly string[], signal: AbortSignal, batch?: BatchRequest): Promise<ObservedRows>;
  /** A page of `GET /markets` with the quotes of all markets that match, without combinations, as its reading. */
  readAllQuotes<R extends AnswerReading>(
    parameters: Parameters,
    signal: AbortSignal,
    batch: BatchRequest | undefined,
    read: (answer: ListAnswer) => R,
  ): Promise<{ reading: R; observedAt: number }>;
  /** The reading of rows `{ticker, orderbook_fp}`; at most 100 tickers, which `read` depends on too. */
  readBooks<R extends AnswerReading>(
    tickers: readonly string[],
    signal: AbortSignal,
    batch: BatchRequest | undefined,
    read: (rows: readonly unknown[]) => R,
  ): Promise<{ reading: R; observedAt: number }>;
  /** One such row. */
  getBook(ticker: string, signal: AbortSignal, batch?: BatchRequest): Promise<ObservedRows>;
  /** Trades of all markets, newest first. */
  listTrades(parameters: Parameters, signal: AbortSignal): Promise<ListAnswer>;
  /** The end of the live routes and the beginning of `GET /historical/*`, in the venue's form. */
  getCutoff(signal: AbortSignal): Promise<unknown>;
  /** Market objects that have left the live routes; at most 100 tickers. */
  listArchivedMarkets(tickers: readonly string[], signal: AbortSignal, batch?: BatchRequest): Promise<unknown[]>;
  /** Trades that have left the live routes, newest first. */
  listArchivedTrades(parameters: Parameters, signal: AbortSignal): Promise<ListAnswer>;
  /** Candles of a market, oldest first, both ends inclusive; without a series, from the archive. */
  listCandlesticks(of: CandlesticksOf, parameters: Parameters, signal: AbortSignal): Promise<unknown[]>;
  /** The batches of one route. */
  members(route: string): MemberBatches;
  breakerStates(): Record<string, BreakerState>;
  close(): Promise<void>;
}

/** The limit of callers without a key is not documented. The lowest tier of keys allows twice this rate. */
export const REQUESTS_PER_SECOND = 10;
/** After the venue refused the key, requests go without it for this long: the public routes do not need one. */
const UNSIGNED_FOR_MS = 3_600_000;
const NO_COMBINATIONS = { mve_filter: 'exclude' };

interface ClientOptions {
  /** Everything before `/markets`: `https://external-api.kalshi.com/trade-api/v2`. */
  url: string;
  http?: VenueHttpSettings;
  observer?: VenueObserver;
  /** Signs the requests. */
  key?: KalshiKey;
}

export function createKalshiClient(options: ClientOptions): KalshiClient {
  const http = openHttp(options);
  const get = (route: string, path: string, parameters: Parameters, signal: AbortSignal, batch?: BatchRequest) =>
    http.getJson({ route, path, query: queryOf(parameters), signal, batch });

  return {
    async listEvents(parameters, signal, batch) {
      const json = await get('events', '/events', { with_nested_markets: 'true', ...parameters }, signal, batch);
      const { rows, ...rest } = readList(json, 'events');
      return { ...rest, rows: rows.flatMap(marketsOfEvent) };
    },
    async listMarkets(parameters, signal, batch) {
      const json = await get('markets', '/markets', { ...NO_COMBINATIONS, ...parameters }, signal, batch);
      return readList(json, 'markets');
    },
    async listEventsByTicker(eventTickers, signal, batch) {
      const parameters = { tickers: eventTickers.join(','), limit: eventTickers.length };
      return readList(await get('events_by_ticker', '/events', parameters, signal, batch), 'events').rows;
    },
    async listSeries(parameters, signal) {
      return readList(await get('series', '/series', parameters, signal), 'series');
    },
    async listSeriesFeeChanges(signal) {
      const json = await get('series_fee_changes', '/series/fee_changes', { show_historical: 'true' }, signal);
      return readList(json, 'series_fee_change_arr').rows;
    },
    async listEventFeeChanges(parameters, signal) {
      return readList(await get('event_fee_changes', '/events/fee_changes', parameters, signal), 'event_fee_changes');
    },
    async getEvent(eventTicker, signal, batch) {
      try {
        const json = await get('event', `/events/${encodeURIComponent(eventTicker)}`, {}, signal, batch);
        return (json as { event?: unknown } | null)?.event;
      } catch (error) {
        if (isHttpStatus(error, [404])) return undefined;
        throw error;
      }
    },
    async listQuotes(tickers, signal, batch) {
      // This route takes one comma list, and `/markets/orderbooks` takes a repeated parameter: each misreads the other form.
      const query = queryOf({ tickers: tickers.join(','), limit: tickers.length });
      const { json, observedAt } = await http.get({ route: 'quotes', path: '/markets', query, signal, batch });
      return { rows: readList(json, 'markets').rows, observedAt };
    },
    readAllQuotes(parameters, signal, batch, read) {
      const query = queryOf({ ...NO_COMBINATIONS, ...parameters });
      const request = { route: 'all_quotes', path: '/markets', query, signal, batch };
      return http.read(request, { read: (json) => read(readList(json, 'markets')) });
    },
    readBooks(tickers, signal, batch, read) {
      const query = new URLSearchParams(tickers.map((ticker): [string, string] => ['tickers', ticker]));
      const request = { route: 'books', path: '/markets/orderbooks', query, signal, batch };
      return http.read(request, { read: (json) => read(readList(json, 'orderbooks').rows) });
    },
    async getBook(ticker, signal, batch) {
      const path = `/markets/${encodeURIComponent(ticker)}/orderbook`;
      const { json, observedAt } = await http.get({ route: 'book', path, query: queryOf({ depth: 0 }), signal, batch });
      return { rows: [{ ...(json as object), ticker }], observedAt };
    },
    async listTrades(parameters, signal) {
      return readList(await get('trades', '/markets/trades', parameters, signal), 'trades');
    },
    getCutoff(signal) {
      return get('cutoff', '/historical/cutoff', {}, signal);
    },
    async listArchivedMarkets(tickers, signal, batch) {
      const parameters = { tickers: tickers.join(','), limit: tickers.length };
      return readList(await get('archived_markets', '/historical/markets', parameters, signal, batch), 'markets').rows;
    },
    async listArchivedTrades(parameters, signal) {
      return readList(await get('archived_trades', '/historical/trades', parameters, signal), 'trades');
    },
    async listCandlesticks({ ticker, seriesTicker }, parameters, signal) {
      const market = `/markets/${encodeURIComponent(ticker)}/candlesticks`;
      const [route, path] =
        seriesTicker === undefined
          ? ['archived_candlesticks', `/historical${market}`]
          : ['candlesticks', `/series/${encodeURIComponent(seriesTicker)}${market}`];
      return readList(await get(route, path, parameters, signal), 'candlesticks').rows;
    },
    members: (route) => createMemberBatches({ ...http, venue: KALSHI, route, observer: options.observer }),
    breakerStates: () => ({ [http.host]: http.breakerState() }),
    close: () => http.close(),
  };
}

function openHttp({
  url,
  http,
  observer,
  key,
}: ClientOptions): Pick<
  VenueHttp,
  'get' | 'getJson' | 'read' | 'host' | 'breakerState' | 'isFailing' | 'blame' | 'close'
> {
  let unsignedUntilMs = Number.NEGATIVE_INFINITY;
  const isSigned = () => key !== undefined && performance.now() >= unsignedUntilMs;
  const opened = createVenueHttp({
    venue: KALSHI,
    baseUrl: url,
    requestsPerSecond: REQUESTS_PER_SECOND,
    ...http,
    ...(observer && { observer }),
    headersOf: (path) => (key !== undefined && isSigned() ? signedHeaders(key, Date.now(), path) : {}),
  });
  async function withoutRefusedKey<A>(ask: () => Promise<A>): Promise<A> {
    const wasSigned = isSigned();
    try {
      return await ask();
    } catch (error) {
      if (!wasSigned || !isHttpStatus(error, [401])) throw error;
      // Of several requests that the venue refuses at once, the first ends the use of the key.
      if (isSigned()) {
        unsignedUntilMs = performance.now() + UNSIGNED_FOR_MS;
        observer?.onKeyRefused?.({ venue: KALSHI, host: opened.host, statusCode: 401 });
      }
      return ask();
    }
  }
  const get: VenueHttp['get'] = (request) => withoutRefusedKey(() => opened.get(request));
  const read: VenueHttp['read'] = (request, reader) => withoutRefusedKey(() => opened.read(request, reader));
  return { ...opened, get, read, getJson: async (request) => (await get(request)).json };
}

function queryOf(parameters: Parameters): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, String(value));
  return query;
}

/** A list ends with a cursor of '' or null, or without one. */
function readList(json: unknown, field: string): ListAnswer {
  const rows = (json as Record<string, unknown> | null)?.[field];
  const cursor = (json as { cursor?: unknown } | null)?.cursor;
  if (!Array.isArray(rows)) {
    throw new VenueError(KALSHI, 'invalid_payload', `${field}: expected a list`, { retryable: true });
  }
  if (cursor === undefined || cursor === null || cursor === '') return { rows };
  // If an unreadable cursor counted as the end, the walk would wrongly count as complete.
  if (typeof cursor !== 'string') {
    throw new VenueError(KALSHI, 'invalid_payload', 'cursor: expected a text', { retryable: true });
  }
  return { rows, nextCursor: cursor };
}

/**
 * The markets of a nested event, each with the event. A row that is not an event, or has no list of markets, stays a row: the parser
 * rejects and counts it.
 */
function marketsOfEvent(event: unknown): unknown[] {
  if (event === null || typeof event !== 'object' || Array.isArray(event)) return [event];
  const { markets, ...facts } = event as { markets?: unknown };
  if (!Array.isArray(markets)) return [event];
  return markets.map((market: unknown) => withEvent(market, facts));
}

/** A market row with the facts of its event; other values stay as they are. */
export function withEvent(market: unknown, event: unknown): unknown {
  const isObject = market !== null && typeof market === 'object' && !Array.isArray(market);
  return isObject && event !== undefined ? { ...market, event } : market;
}
