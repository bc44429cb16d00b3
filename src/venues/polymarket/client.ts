import { isHttpStatus, VenueError } from '../errors.ts';
import type { ObservedRows } from '../http/age.ts';
import type { AnswerReading } from '../http/answer-memory.ts';
import {
  type BatchRequest,
  createVenueHttp,
  type VenueAnswer,
  type VenueHttp,
  type VenueHttpSettings,
} from '../http/http.ts';
import { createMemberBatches, type MemberBatches } from '../http/member-batches.ts';
import type { BreakerState, VenueObserver } from '../observer.ts';
import { wholeConditionId } from './condition-ids.ts';
import { type DataPage, readDataPage } from './data-page.ts';

export const POLYMARKET = 'polymarket';

export interface PolymarketUrls {
  gamma: string;
  clob: string;
  data: string;
}

/** The listing of Gamma: by keyset, or the older one by offset where the keyset listing is absent. */
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
  /** How long the answer was in a cache, milliseconds; absent when it is fresh. */
  ageMs?: number;
}

interface LookUp {
  conditionIds: readonly string[];
  closed: boolean;
  /** At least the number of ids. Another value is another address for a cache. */
  limit: number;
}

/** The global feed, or the trades of one market. */
export interface TradesQuery {
  /** Condition id; absent asks for all markets. */
  market?: string;
  /** Rows of the first page, at most 1,000. A cursor contains the size of its own pages. */
  limit: number;
  /** The cursor of the previous page; absent for the newest page. */
  cursor?: string;
}

/** Polymarket's read endpoints ([routes](../../../docs/venues.md#polymarket)). Every call throws VenueError only. */
export interface PolymarketClient {
  listMarkets(query: MarketsQuery, signal: AbortSignal, batch?: BatchRequest): Promise<MarketsAnswer>;
  /** Markets with these condition ids, either closed or not; unknown ids are absent. An answer in several pages is read completely. */
  findMarkets(lookUp: LookUp, signal: AbortSignal, batch?: BatchRequest): Promise<MarketsAnswer>;
  /** Trades of takers in all markets or in one, newest first. */
  listTrades(query: TradesQuery, signal: AbortSignal): Promise<DataPage>;
  /** Where the results of at most 20 markets stand; markets without a question are absent. It does not retry. */
  listResolutions(conditionIds: readonly string[], signal: AbortSignal): Promise<unknown[]>;
  /** Unknown and closed tokens are absent from the answer. */
  listBooks(tokenIds: readonly string[], signal: AbortSignal, batch?: BatchRequest): Promise<ObservedRows>;
  /** The reading of the same answer. */
  readBooks<R extends AnswerReading>(
    tokenIds: readonly string[],
    signal: AbortSignal,
    batch: BatchRequest | undefined,
    reader: { read(rows: unknown[], observedAt: number): R; holds(reading: R, observedAt: number): boolean },
  ): Promise<{ reading: R; observedAt: number }>;
  /** The reading of the last trades. Tokens that never traded are absent, or have no side. */
  readLastTrades<R extends AnswerReading>(
    tokenIds: readonly string[],
    signal: AbortSignal,
    batch: BatchRequest | undefined,
    read: (rows: unknown[]) => R,
  ): Promise<{ reading: R; observedAt: number }>;
  /** The only row is the book. */
  getBook(tokenId: string, signal: AbortSignal, batch?: BatchRequest): Promise<ObservedRows>;
  /** The batches of one route of Gamma or of the CLOB. */
  members(host: 'gamma' | 'clob', route: string): MemberBatches;
  breakerStates(): Record<string, BreakerState>;
  close(): Promise<void>;
}

/**
 * Requests per second below the documented limits, which count by ten seconds: Gamma `/markets` 300, CLOB `/books` 500. Above them
 * Polymarket delays answers instead of refusing them. The polls of prices and books share the 40 of the CLOB: all of them may go to
 * `/books` and stay below its 50. The Data API has failed at 15 requests per second, below its documented limits. Its
 * clients together therefore send 10: 6 for trades and 4 for wallets.
 */
export const PER_SECOND = { gamma: 20, clob: 40, data: 6 };

/** Of the CLOB: a price sweep with eight requests in flight leaves as many to books that clients wait for. */
const CLOB_CONNECTIONS = 16;

/** The smallest possible size of a fill, in shares. The venue hides fills below its default of 0.01 and reads 0 as that default. */
const SMALLEST_FILL = '0.000001';

export function createPolymarketClient(options: {
  urls: PolymarketUrls;
  http?: VenueHttpSettings;
  observer?: VenueObserver;
}): PolymarketClient {
  const open = (budget: string, baseUrl: string, requestsPerSecond: number, connections?: number): VenueHttp =>
    createVenueHttp({
      venue: POLYMARKET,
      baseUrl,
      requestsPerSecond,
      budget,
      ...(connections !== undefined && { connections }),
      ...options.http,
      ...(options.observer && { observer: options.observer }),
    });
  const gamma = open('gamma', options.urls.gamma, PER_SECOND.gamma);
  const clob = open('clob', options.urls.clob, PER_SECOND.clob, CLOB_CONNECTIONS);
  const data = open('trades', options.urls.data, PER_SECOND.data);

  return {
    async listMarkets(query, signal, batch) {
      const request = { query: marketsParameters(query), signal, batch };
      if (query.listing === 'keyset') {
        return readKeyset(await gamma.get({ route: 'markets_keyset', path: '/markets/keyset', ...request }));
      }
      return readPlain(await gamma.get({ route: 'markets', path: '/markets', ...request }));
    },
    findMarkets: (lookUp, signal, batch) => lookUpMarkets(gamma, lookUp, { signal, batch }),
    async listTrades({ market, limit, cursor }, signal) {
      // A cursor contains the place only: with other filters the walk would continue in another list.
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
    async listResolutions(conditionIds, signal) {
      const query = new URLSearchParams({ condition: conditionIds.map(wholeConditionId).join(',') });
      // As a part of a batch, it has one attempt, and its failure does not open the breaker of the trades.
      const request = { route: 'resolutions', path: '/v2/resolutions', query, signal, batch: { isPart: true } };
      const { json } = await data.get(request);
      return readArray((json as { data?: unknown } | null)?.data, 'resolutions');
    },
    async listBooks(tokenIds, signal, batch) {
      const request = { route: 'books', path: '/books', body: tokens(tokenIds), signal, batch };
      const { json, observedAt } = await clob.post(request);
      return { rows: readArray(json, 'books'), observedAt };
    },
    readBooks(tokenIds, signal, batch, { read, holds }) {
      const request = { route: 'books', path: '/books', body: tokens(tokenIds), signal, batch };
      return clob.read(request, { read: (json, observedAt) => read(readArray(json, 'books'), observedAt), holds });
    },
    readLastTrades(tokenIds, signal, batch, read) {
      const request = { route: 'last_trades', path: '/last-trades-prices', body: tokens(tokenIds), signal, batch };
      return clob.read(request, { read: (json) => read(readArray(json, 'last trades')) });
    },
    async getBook(tokenId, signal, batch) {
      const query = new URLSearchParams({ token_id: tokenId });
      const { json, observedAt } = await clob.get({ route: 'book', path: '/book', query, signal, batch });
      return { rows: [json], observedAt };
    },
    members: (host, route) =>
      createMemberBatches({ ...{ gamma, clob }[host], venue: POLYMARKET, route, observer: options.observer }),
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
  const parameters = gammaParameters(query);
  if (query.recentFirst) {
    parameters.set('order', 'updatedAt');
    parameters.set('ascending', 'false');
  } else if (query.listing === 'offset') {
    // Pages by offset need a stable order; the keyset listing has its own.
    parameters.set('order', 'id');
    parameters.set('ascending', 'true');
  }
  // The venue ignores `cursor` and then repeats the first page endlessly; it reads `after_cursor` only.
  if (query.cursor !== undefined) parameters.set('after_cursor', query.cursor);
  if (query.offset) parameters.set('offset', String(query.offset));
  return parameters;
}

/** Without `include_tag` the markets have no tags. */
function gammaParameters({ limit, closed }: { limit: number; closed: boolean }): URLSearchParams {
  return new URLSearchParams({ limit: String(limit), closed: String(closed), include_tag: 'true' });
}

interface LookUpCall {
  signal: AbortSignal;
  batch: BatchRequest | undefined;
}

/**
 * By the keyset listing; by the older, deprecated one where the keyset listing refuses the look-up or ignores its ids.
 * @throws VenueError of the keyset listing when the older one is gone
 */
async function lookUpMarkets(gamma: VenueHttp, lookUp: LookUp, call: LookUpCall): Promise<MarketsAnswer> {
  const query = gammaParameters(lookUp);
  for (const conditionId of lookUp.conditionIds) query.append('condition_ids', conditionId);
  let unfiltered: MarketsAnswer | undefined;
  let refusal: unknown;
  try {
    const answer = await readWholeLookUp(gamma, query, lookUp.conditionIds.length, call);
    if (isOnlyAbout(lookUp.conditionIds, answer.rows)) return answer;
    unfiltered = answer;
  } catch (error) {
    if (!isHttpStatus(error, [400, 404, 405, 410, 422])) throw error;
    refusal = error;
  }
  try {
    return readPlain(await gamma.get({ route: 'markets_by_id', path: '/markets', query, ...call }));
  } catch (error) {
    if (!isHttpStatus(error, [404, 405, 410])) throw error;
    if (unfiltered) return unfiltered;
    throw refusal;
  }
}

/** All pages of a look-up by the keyset listing. It clamps the limit without notice; only `next_cursor` shows that. */
async function readWholeLookUp(
  gamma: VenueHttp,
  query: URLSearchParams,
  most: number,
  call: LookUpCall,
): Promise<MarketsAnswer> {
  const rows: unknown[] = [];
  let ageMs = 0;
  let cursor: string | undefined;
  do {
    const page = new URLSearchParams(query);
    if (cursor !== undefined) page.set('after_cursor', cursor);
    const answer = readKeyset(
      await gamma.get({ route: 'markets_by_id', path: '/markets/keyset', query: page, ...call }),
    );
    rows.push(...answer.rows);
    ageMs = Math.max(ageMs, answer.ageMs ?? 0);
    cursor = answer.rows.length > 0 ? answer.nextCursor : undefined;
  } while (cursor !== undefined && rows.length < most);
  return aged(rows, ageMs);
}

/** Whether every row with a condition id has one of these. */
function isOnlyAbout(conditionIds: readonly string[], rows: readonly unknown[]): boolean {
  const asked = new Set(conditionIds.map(wholeConditionId));
  return rows.every((row) => {
    const { conditionId } = (row ?? {}) as { conditionId?: unknown };
    return typeof conditionId !== 'string' || asked.has(wholeConditionId(conditionId));
  });
}

function readKeyset({ json, cachedMs: ageMs }: VenueAnswer): MarketsAnswer {
  if (Array.isArray(json)) return aged(json, ageMs);
  const { markets, next_cursor } = (json ?? {}) as { markets?: unknown; next_cursor?: unknown };
  const answer = aged(readArray(markets, 'markets'), ageMs);
  if (next_cursor === undefined || next_cursor === null || next_cursor === '') return answer;
  // If an unreadable cursor counted as the end, the walk would wrongly count as complete.
  if (typeof next_cursor !== 'string') {
    throw new VenueError(POLYMARKET, 'invalid_payload', 'next_cursor: expected a text', { retryable: true });
  }
  return { ...answer, nextCursor: next_cursor };
}

function readPlain({ json, cachedMs: ageMs }: VenueAnswer): MarketsAnswer {
  return aged(readArray(json, 'markets'), ageMs);
}

function aged(rows: unknown[], ageMs: number): MarketsAnswer {
  return ageMs > 0 ? { rows, ageMs } : { rows };
}

function readArray(json: unknown, what: string): unknown[] {
  if (Array.isArray(json)) return json;
  throw new VenueError(POLYMARKET, 'invalid_payload', `${what}: expected a list`, { retryable: true });
}
