import { VenueError } from '../errors.ts';
import { createVenueHttp, type VenueHttp, type VenueHttpOptions } from '../http.ts';
import type { BreakerState, VenueObserver } from '../observer.ts';
import { type DataPage, readDataPage } from './data-page.ts';

export const POLYMARKET = 'polymarket';

export interface PolymarketUrls {
  gamma: string;
  clob: string;
  data: string;
}

/** Settings of the three hosts' clients that tests and operators may change. */
export type PolymarketHttpSettings = Partial<Omit<VenueHttpOptions, 'venue' | 'baseUrl' | 'observer'>>;

/** Which listing of Gamma is asked: the keyset one, or the older one by offset where that is all there is. */
export type Listing = 'keyset' | 'offset';

export interface MarketsQuery {
  listing: Listing;
  closed: boolean;
  /** Newest change first; else the listing's own stable order. */
  recentFirst: boolean;
  limit: number;
  cursor?: string;
  offset?: number;
}

export interface MarketsAnswer {
  rows: unknown[];
  nextCursor?: string;
}

/** The global feed, or the trades of one market. */
export interface TradesQuery {
  /** Condition id; absent asks for all markets. */
  market?: string;
  /** Rows of the first page, at most 1,000. A cursor carries the size of its own. */
  limit: number;
  /** Of the page before; absent asks for the newest. */
  cursor?: string;
}

/** Polymarket's read endpoints (venue documentation section 1). Every call throws VenueError only. */
export interface PolymarketClient {
  listMarkets(query: MarketsQuery, signal: AbortSignal): Promise<MarketsAnswer>;
  /**
   * Markets of these condition ids that are closed, or that are not; those it does not have are left out of the answer.
   */
  findMarkets(conditionIds: readonly string[], closed: boolean, signal: AbortSignal): Promise<unknown[]>;
  /** Taker prints of all markets or of one, newest first. */
  listTrades(query: TradesQuery, signal: AbortSignal): Promise<DataPage>;
  /** Unknown and closed tokens are left out of the answer. */
  listBooks(tokenIds: readonly string[], signal: AbortSignal): Promise<unknown[]>;
  /** Tokens that never traded are left out, or have no side. */
  listLastTrades(tokenIds: readonly string[], signal: AbortSignal): Promise<unknown[]>;
  getBook(tokenId: string, signal: AbortSignal): Promise<unknown>;
  breakerStates(): Record<string, BreakerState>;
  close(): Promise<void>;
}

/**
 * Requests a second that stay clear of the documented limits, which count by ten seconds: Gamma `/markets` 300,
 * CLOB `/books` 500. Over them Polymarket delays answers rather than refusing them. The Data API has failed at 15 requests a second
 * below its documented limits, so its clients together stay at 10: 6 for trades and 4 for wallets.
 */
export const PER_SECOND = { gamma: 20, clob: 40, data: 6 };

/**
 * The smallest size that a fill can have, in shares. The venue hides fills below its default of 0.01, and takes 0 for that default.
 */
const SMALLEST_FILL = '0.000001';

export function createPolymarketClient(options: {
  urls: PolymarketUrls;
  http?: PolymarketHttpSettings;
  observer?: VenueObserver;
}): PolymarketClient {
  const open = (baseUrl: string, requestsPerSecond: number): VenueHttp =>
    createVenueHttp({
      venue: POLYMARKET,
      baseUrl,
      requestsPerSecond,
      ...options.http,
      ...(options.observer && { observer: options.observer }),
    });
  const gamma = open(options.urls.gamma, PER_SECOND.gamma);
  const clob = open(options.urls.clob, PER_SECOND.clob);
  const data = open(options.urls.data, PER_SECOND.data);

  return {
    async listMarkets(query, signal) {
      const request = { query: marketsParameters(query), signal };
      if (query.listing === 'keyset') {
        return readKeyset(await gamma.getJson({ route: 'markets_keyset', path: '/markets/keyset', ...request }));
      }
      return { rows: readArray(await gamma.getJson({ route: 'markets', path: '/markets', ...request }), 'markets') };
    },
    async findMarkets(conditionIds, closed, signal) {
      // Named by itself: the listing's own page size is 20.
      const query = new URLSearchParams({ limit: String(conditionIds.length), closed: String(closed) });
      for (const conditionId of conditionIds) query.append('condition_ids', conditionId);
      try {
        const json = await gamma.getJson({ route: 'markets_by_id', path: '/markets', query, signal });
        return readArray(json, 'markets');
      } catch (error) {
        if (!isHttpStatus(error, [404, 405, 410])) throw error;
        const json = await gamma.getJson({ route: 'markets_by_id', path: '/markets/keyset', query, signal });
        return readKeyset(json).rows;
      }
    },
    async listTrades({ market, limit, cursor }, signal) {
      // A cursor holds the place only: with other filters the walk would go on in another list.
      const parameters = new URLSearchParams({
        taker_only: 'true',
        filter_type: 'TOKENS',
        filter_amount: SMALLEST_FILL,
        ...(market !== undefined && { condition: market }),
        ...(cursor === undefined ? { limit: String(limit) } : { cursor }),
      });
      const route = market === undefined ? 'trades' : 'market_trades';
      const answer = await data.get({ route, path: '/v2/trades', query: parameters, signal });
      return readDataPage(POLYMARKET, answer, 'trades');
    },
    async listBooks(tokenIds, signal) {
      return readArray(
        await clob.postJson({ route: 'books', path: '/books', body: tokens(tokenIds), signal }),
        'books',
      );
    },
    async listLastTrades(tokenIds, signal) {
      const request = { route: 'last_trades', path: '/last-trades-prices', body: tokens(tokenIds), signal };
      return readArray(await clob.postJson(request), 'last trades');
    },
    getBook(tokenId, signal) {
      return clob.getJson({ route: 'book', path: '/book', query: new URLSearchParams({ token_id: tokenId }), signal });
    },
    breakerStates: () => Object.fromEntries([gamma, clob, data].map((http) => [http.host, http.breakerState()])),
    async close() {
      await Promise.all([gamma.close(), clob.close(), data.close()]);
    },
  };
}

function tokens(tokenIds: readonly string[]): { token_id: string }[] {
  return tokenIds.map((tokenId) => ({ token_id: tokenId }));
}

function marketsParameters(query: MarketsQuery): URLSearchParams {
  const parameters = new URLSearchParams({ limit: String(query.limit), closed: String(query.closed) });
  if (query.recentFirst) {
    parameters.set('order', 'updatedAt');
    parameters.set('ascending', 'false');
  } else if (query.listing === 'offset') {
    // Pages by offset need an order that does not move; the keyset listing brings its own.
    parameters.set('order', 'id');
    parameters.set('ascending', 'true');
  }
  // Only `after_cursor` is heard: `cursor` is ignored and gives the first page for ever.
  if (query.cursor !== undefined) parameters.set('after_cursor', query.cursor);
  if (query.offset) parameters.set('offset', String(query.offset));
  return parameters;
}

function readKeyset(json: unknown): MarketsAnswer {
  if (Array.isArray(json)) return { rows: json };
  const { markets, next_cursor } = (json ?? {}) as { markets?: unknown; next_cursor?: unknown };
  const rows = readArray(markets, 'markets');
  if (next_cursor === undefined || next_cursor === null || next_cursor === '') return { rows };
  // Taken for the end, a cursor that cannot be read would end a walk that says it saw everything.
  if (typeof next_cursor !== 'string') {
    throw new VenueError(POLYMARKET, 'invalid_payload', 'next_cursor: expected a text', { retryable: true });
  }
  return { rows, nextCursor: next_cursor };
}

function readArray(json: unknown, what: string): unknown[] {
  if (Array.isArray(json)) return json;
  throw new VenueError(POLYMARKET, 'invalid_payload', `${what}: expected a list`, { retryable: true });
}

export function isHttpStatus(error: unknown, statusCodes: readonly number[]): boolean {
  return error instanceof VenueError && error.code === 'http_status' && statusCodes.includes(error.statusCode ?? 0);
}
