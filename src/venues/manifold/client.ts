import { VenueError } from '../errors.ts';
import type { AnswerReading } from '../http/answer-memory.ts';
import { type BatchRequest, createVenueHttp, type VenueHttpSettings } from '../http/http.ts';
import { createMemberBatches, type MemberBatches } from '../http/member-batches.ts';
import type { BreakerState, VenueObserver } from '../observer.ts';

export const MANIFOLD = 'manifold';

/** Settings of the host's client that tests and operators may change. */
export interface MarketsQuery {
  /** `created-time` stays stable during a walk; `updated-time` lists the latest change first. */
  sort: 'created-time' | 'updated-time';
  limit: number;
  /** Only markets strictly below this one in the order; a contract id. */
  before?: string;
}

export interface BetsQuery {
  order: 'asc' | 'desc';
  /** Only bets on this market. */
  contractId?: string;
  /** Epoch milliseconds, both exclusive. */
  afterMs: number;
  beforeMs?: number;
  limit: number;
}

/** Manifold's v0 read endpoints ([routes](../../../docs/venues.md#manifold)). Every call throws VenueError only. */
export interface ManifoldClient {
  /** `LiteMarket`s, newest first in the requested order. */
  listMarkets(query: MarketsQuery, signal: AbortSignal, batch?: BatchRequest): Promise<unknown[]>;
  /** A `FullMarket`: a `LiteMarket` with answers and description. */
  getMarket(contractId: string, signal: AbortSignal, batch?: BatchRequest): Promise<unknown>;
  /** Bets of one market, or of all public markets. */
  listBets(query: BetsQuery, signal: AbortSignal): Promise<unknown[]>;
  /** The reading of probabilities by contract id, at most 100; unknown contracts are absent. */
  readProbs<R extends AnswerReading>(
    contractIds: readonly string[],
    signal: AbortSignal,
    batch: BatchRequest | undefined,
    read: (probs: Record<string, unknown>) => R,
  ): Promise<{ reading: R; observedAt: number }>;
  /** The batches of one route. */
  members(route: string): MemberBatches;
  breakerState(): BreakerState;
  close(): Promise<void>;
}

/** The documented limit is 500 requests per minute and address: 4 + 8 x 60 stays below it in any minute. */
export const PER_SECOND = 8;
const BURST = 4;

/**
 * `url` contains the version path, as in `https://api.manifold.markets/v0`. The old host answers with a 308. The client does not follow
 * redirects, so the call fails as `http_status` 308 instead of sending requests to a host that is not configured.
 */
export function createManifoldClient(options: {
  url: string;
  http?: VenueHttpSettings;
  observer?: VenueObserver;
}): ManifoldClient {
  const http = createVenueHttp({
    venue: MANIFOLD,
    baseUrl: options.url,
    requestsPerSecond: PER_SECOND,
    burst: BURST,
    ...options.http,
    ...(options.observer && { observer: options.observer }),
  });
  return {
    async listMarkets({ sort, limit, before }, signal, batch) {
      const query = new URLSearchParams({ limit: String(limit), sort, order: 'desc' });
      if (before !== undefined) query.set('before', before);
      return readArray(await http.getJson({ route: 'markets', path: '/markets', query, signal, batch }), 'markets');
    },
    getMarket(contractId, signal, batch) {
      return http.getJson({ route: 'market', path: `/market/${encodeURIComponent(contractId)}`, signal, batch });
    },
    async listBets({ order, contractId, afterMs, beforeMs, limit }, signal) {
      const query = new URLSearchParams({ limit: String(limit), afterTime: String(afterMs), order });
      if (beforeMs !== undefined) query.set('beforeTime', String(beforeMs));
      if (contractId !== undefined) query.set('contractId', contractId);
      return readArray(await http.getJson({ route: 'bets', path: '/bets', query, signal }), 'bets');
    },
    readProbs(contractIds, signal, batch, read) {
      const query = new URLSearchParams();
      for (const id of contractIds) query.append('ids', id);
      const request = { route: 'market_probs', path: '/market-probs', query, signal, batch };
      return http.read(request, { read: (json) => read(readObject(json)) });
    },
    members: (route) => createMemberBatches({ ...http, venue: MANIFOLD, route, observer: options.observer }),
    breakerState: () => http.breakerState(),
    close: () => http.close(),
  };
}

function readArray(json: unknown, what: string): unknown[] {
  if (Array.isArray(json)) return json;
  throw new VenueError(MANIFOLD, 'invalid_payload', `${what}: expected a list`, { retryable: true });
}

function readObject(json: unknown): Record<string, unknown> {
  if (json !== null && typeof json === 'object' && !Array.isArray(json)) return json as Record<string, unknown>;
  throw new VenueError(MANIFOLD, 'invalid_payload', 'probabilities: expected an object', { retryable: true });
}
