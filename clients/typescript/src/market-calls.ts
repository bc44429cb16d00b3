import type { DecimalType } from './decimals.ts';
import { eachItem, type PageOptions } from './paging.ts';
import type { operations } from './schema.ts';
import type { CallOptions, Transport } from './transport.ts';

type QueryOf<Id extends keyof operations> = NonNullable<operations[Id]['parameters']['query']>;
/** A query that also accepts `Date` for epoch seconds. */
type WithDates<Query> = {
  [Key in keyof Query]: Key extends 'start' | 'end' | 'as_of' | 'since' ? Query[Key] | Date : Query[Key];
};
interface OfVenue {
  /** The name of a venue, or `all` (default). */
  venue?: string;
}
interface OfMarket extends OfVenue {
  market_id: string;
}

type ListQuery = OfVenue & QueryOf<'listMarkets'>;
type EventListQuery = OfVenue & QueryOf<'listEvents'>;
type EventQuery = OfVenue & { event_id: string } & QueryOf<'getEvent'>;
type TradeQuery = OfMarket & WithDates<QueryOf<'listTrades'>>;
type ArchiveQuery = QueryOf<'listArchiveFiles'>;
type ResolutionListQuery = OfVenue & WithDates<QueryOf<'listResolutions'>>;
type CoverageQuery = OfVenue & WithDates<QueryOf<'listCoverage'>>;
/** The parameters of an iterator: a list without its cursor. */
type Walked<Query> = Omit<Query, 'limit' | 'cursor'>;

const EVERY_VENUE = 'all';

/** Reads of market data. They return `{data, meta}`. */
export function marketCalls<D extends DecimalType>({ http, open, send }: Transport<D>) {
  const listMarkets = ({ venue = EVERY_VENUE, ...query }: ListQuery = {}, options?: CallOptions) =>
    send('read', options, (attempt) =>
      http.GET('/v1/{venue}/markets', { ...attempt, params: { path: { venue }, query } }),
    );
  const listEvents = ({ venue = EVERY_VENUE, ...query }: EventListQuery = {}, options?: CallOptions) =>
    send('read', options, (attempt) =>
      http.GET('/v1/{venue}/events', { ...attempt, params: { path: { venue }, query } }),
    );
  const getEvent = ({ venue = EVERY_VENUE, event_id, ...query }: EventQuery, options?: CallOptions) =>
    send('read', options, (attempt) =>
      http.GET('/v1/{venue}/events/{event_id}', { ...attempt, params: { path: { venue, event_id }, query } }),
    );
  const listTrades = ({ venue = EVERY_VENUE, market_id, ...query }: TradeQuery, options?: CallOptions) =>
    send('read', options, (attempt) =>
      http.GET('/v1/{venue}/markets/{market_id}/trades', {
        ...attempt,
        params: { path: { venue, market_id }, query: inSeconds(query) },
      }),
    );
  const listResolutions = ({ venue = EVERY_VENUE, ...query }: ResolutionListQuery = {}, options?: CallOptions) =>
    send('read', options, (attempt) =>
      http.GET('/v1/{venue}/resolutions', { ...attempt, params: { path: { venue }, query: inSeconds(query) } }),
    );
  const listCoverage = ({ venue = EVERY_VENUE, ...query }: CoverageQuery = {}, options?: CallOptions) =>
    send('read', options, (attempt) =>
      http.GET('/v1/{venue}/coverage', { ...attempt, params: { path: { venue }, query: inSeconds(query) } }),
    );

  const listArchiveFiles = (query: ArchiveQuery = {}, options?: CallOptions) =>
    send('read', options, (attempt) => http.GET('/v1/archive', { ...attempt, params: { query } }));

  return {
    archive: {
      /** One page of files and empty days, by kind, venue and day. */
      list: listArchiveFiles,
      /** All files and empty days of the list, page by page. */
      iterate: (query: Walked<ArchiveQuery> = {}, options: CallOptions & PageOptions = {}) =>
        eachItem(options.signal, (cursor) => listArchiveFiles({ ...query, ...place(options, cursor) }, options)),
      /**
       * The answer with the bytes of a file, unread. With `start` and the sha256 of the file the bytes behind that place: status 206; 200 is
       * the whole file. Compare the sha256 of all bytes with the list. There is no time limit and no retry.
       */
      download: (
        { file, start = 0, sha256 }: { file: string; start?: number; sha256?: string },
        { signal = new AbortController().signal }: Pick<CallOptions, 'signal'> = {},
      ) =>
        open('/v1/archive/{archive_file}', {
          values: { archive_file: file },
          query: new URLSearchParams(),
          headers: {
            ...(start > 0 && { Range: `bytes=${start}-` }),
            ...(start > 0 && sha256 !== undefined && { 'If-Range': `"${sha256}"` }),
          },
          signal,
        }),
    },
    venues: {
      /** The enabled venues and the health of their polls. */
      list: (options?: CallOptions) => send('read', options, (attempt) => http.GET('/v1/venues', attempt)),
    },
    markets: {
      /** One page of markets, newest first; with `q` the best match first. */
      list: listMarkets,
      /** All markets of the list, page by page. */
      iterate: (query: Walked<ListQuery> = {}, options: CallOptions & PageOptions = {}) =>
        eachItem(options.signal, (cursor) => listMarkets({ ...query, ...place(options, cursor) }, options)),
      /** One market; with `as_of` its state known at that moment. */
      get: (
        { venue = EVERY_VENUE, market_id, ...query }: OfMarket & WithDates<QueryOf<'getMarket'>>,
        options?: CallOptions,
      ) =>
        send('read', options, (attempt) =>
          http.GET('/v1/{venue}/markets/{market_id}', {
            ...attempt,
            params: { path: { venue, market_id }, query: inSeconds(query) },
          }),
        ),
      /** The rules of a market and their versions; with `from` and `to` the difference of two versions in words. */
      rules: (
        { venue = EVERY_VENUE, market_id, ...query }: OfMarket & WithDates<QueryOf<'getMarketRules'>>,
        options?: CallOptions,
      ) =>
        send('read', options, (attempt) =>
          http.GET('/v1/{venue}/markets/{market_id}/rules', {
            ...attempt,
            params: { path: { venue, market_id }, query: inSeconds(query) },
          }),
        ),
      /** The prices of a market's outcomes; with `as_of` the prices known at that moment. */
      prices: (
        { venue = EVERY_VENUE, market_id, ...query }: OfMarket & WithDates<QueryOf<'getPrices'>>,
        options?: CallOptions,
      ) =>
        send('read', options, (attempt) =>
          http.GET('/v1/{venue}/markets/{market_id}/prices', {
            ...attempt,
            params: { path: { venue, market_id }, query: inSeconds(query) },
          }),
        ),
      /** The prices of up to 100 markets, in the order of `market_ids`. `meta.missing` lists markets without prices. */
      manyPrices: (
        {
          venue = EVERY_VENUE,
          market_ids,
          ...query
        }: OfVenue & { market_ids: readonly string[] } & WithDates<Omit<QueryOf<'getManyPrices'>, 'market_ids'>>,
        options?: CallOptions,
      ) =>
        send('read', options, (attempt) =>
          http.GET('/v1/{venue}/prices', {
            ...attempt,
            params: { path: { venue }, query: { ...inSeconds(query), market_ids: market_ids.join(',') } },
          }),
        ),
      /** The book of one outcome, by default the first; with `as_of` the book known at that moment. */
      orderbook: (
        { venue = EVERY_VENUE, market_id, ...query }: OfMarket & WithDates<QueryOf<'getOrderbook'>>,
        options?: CallOptions,
      ) =>
        send('read', options, (attempt) =>
          http.GET('/v1/{venue}/markets/{market_id}/orderbook', {
            ...attempt,
            params: { path: { venue, market_id }, query: inSeconds(query) },
          }),
        ),
      /** The fee of a market and its announced changes; with `as_of` the fee that applied and was known at that moment. */
      fees: (
        { venue = EVERY_VENUE, market_id, ...query }: OfMarket & WithDates<QueryOf<'getMarketFees'>>,
        options?: CallOptions,
      ) =>
        send('read', options, (attempt) =>
          http.GET('/v1/{venue}/markets/{market_id}/fees', {
            ...attempt,
            params: { path: { venue, market_id }, query: inSeconds(query) },
          }),
        ),
      /** What an order costs or pays on one outcome, by default the first. Name `size` or `notional`. */
      executable: (
        { venue = EVERY_VENUE, market_id, ...query }: OfMarket & WithDates<QueryOf<'getExecutable'>>,
        options?: CallOptions,
      ) =>
        send('read', options, (attempt) =>
          http.GET('/v1/{venue}/markets/{market_id}/executable', {
            ...attempt,
            params: { path: { venue, market_id }, query: inSeconds(query) },
          }),
        ),
      /** The same order on up to 100 outcomes, in the order of `outcome_ids`. `meta.missing` lists outcomes without a book. */
      manyExecutable: (
        {
          venue = EVERY_VENUE,
          outcome_ids,
          ...query
        }: OfVenue & { outcome_ids: readonly string[] } & WithDates<Omit<QueryOf<'getManyExecutable'>, 'outcome_ids'>>,
        options?: CallOptions,
      ) =>
        send('read', options, (attempt) =>
          http.GET('/v1/{venue}/executable', {
            ...attempt,
            params: { path: { venue }, query: { ...inSeconds(query), outcome_ids: outcome_ids.join(',') } },
          }),
        ),
      /** A purchase of one outcome and a sale of another. It says nothing about whether the markets mean the same. */
      compare: (query: WithDates<QueryOf<'compareOutcomes'>>, options?: CallOptions) =>
        send('read', options, (attempt) =>
          http.GET('/v1/compare', { ...attempt, params: { query: inSeconds(query) } }),
        ),
      /** The result of a market, and the timeline of how it came about. */
      resolution: ({ venue = EVERY_VENUE, market_id }: OfMarket, options?: CallOptions) =>
        send('read', options, (attempt) =>
          http.GET('/v1/{venue}/markets/{market_id}/resolution', {
            ...attempt,
            params: { path: { venue, market_id } },
          }),
        ),
    },
    resolutions: {
      /** One page of changes of results, in the order of the journal. `meta.resume_cursor` continues behind it, also later. */
      list: listResolutions,
      /** All changes of results that are stored, page by page. */
      iterate: ({ since, ...query }: Walked<ResolutionListQuery> = {}, options: CallOptions & PageOptions = {}) =>
        eachItem(options.signal, (cursor) =>
          listResolutions(
            // Only the first page has no cursor, which stands for `since` on the others.
            { ...query, ...(cursor === undefined && since !== undefined && { since }), ...place(options, cursor) },
            options,
          ),
        ),
    },
    coverage: {
      /** One page of hours, oldest first: whether the stored data of a venue or a market is complete. */
      list: listCoverage,
      /** All hours of the range, page by page. */
      iterate: (query: Walked<CoverageQuery> = {}, options: CallOptions & PageOptions = {}) =>
        eachItem(options.signal, (cursor) => listCoverage({ ...query, ...place(options, cursor) }, options)),
    },
    events: {
      /** One page of events, newest first. */
      list: listEvents,
      /** All events of the list, page by page. */
      iterate: (query: Walked<EventListQuery> = {}, options: CallOptions & PageOptions = {}) =>
        eachItem(options.signal, (cursor) => listEvents({ ...query, ...place(options, cursor) }, options)),
      /** One event with a page of its markets. `markets.iterate({ event_id })` returns all of them. */
      get: getEvent,
    },
    candles: {
      /** OHLCV of one outcome, oldest first, at most 5,000 buckets. */
      list: (
        { venue = EVERY_VENUE, market_id, ...query }: OfMarket & WithDates<QueryOf<'listCandles'>>,
        options?: CallOptions,
      ) =>
        send('read', options, (attempt) =>
          http.GET('/v1/{venue}/markets/{market_id}/candles', {
            ...attempt,
            params: { path: { venue, market_id }, query: inSeconds(query) },
          }),
        ),
    },
    volume: {
      /** Volume per window, of the market or of one outcome. */
      list: (
        { venue = EVERY_VENUE, market_id, ...query }: OfMarket & WithDates<QueryOf<'listVolume'>>,
        options?: CallOptions,
      ) =>
        send('read', options, (attempt) =>
          http.GET('/v1/{venue}/markets/{market_id}/volume', {
            ...attempt,
            params: { path: { venue, market_id }, query: inSeconds(query) },
          }),
        ),
    },
    snapshots: {
      /** Prices at each boundary; gaps repeat the previous values. */
      list: (
        { venue = EVERY_VENUE, market_id, ...query }: OfMarket & WithDates<QueryOf<'listSnapshots'>>,
        options?: CallOptions,
      ) =>
        send('read', options, (attempt) =>
          http.GET('/v1/{venue}/markets/{market_id}/snapshots', {
            ...attempt,
            params: { path: { venue, market_id }, query: inSeconds(query) },
          }),
        ),
    },
    trades: {
      /** One page of trades, newest first. `meta.history` states how far back trades are stored. */
      list: listTrades,
      /** All trades of the list, page by page. */
      iterate: (query: Walked<TradeQuery>, options: CallOptions & PageOptions = {}) =>
        eachItem(options.signal, (cursor) => listTrades({ ...query, ...place(options, cursor) }, options)),
    },
  };
}

/** The position of an iterator as query parameters. */
export function place({ pageSize }: PageOptions, cursor: string | undefined): { limit?: number; cursor?: string } {
  return { ...(pageSize !== undefined && { limit: pageSize }), ...(cursor !== undefined && { cursor }) };
}

function inSeconds<Query extends object>(query: WithDates<Query>): Query {
  const entries = Object.entries(query).map(([name, value]) => [
    name,
    value instanceof Date ? Math.floor(value.getTime() / 1_000) : value,
  ]);
  return Object.fromEntries(entries) as Query;
}
