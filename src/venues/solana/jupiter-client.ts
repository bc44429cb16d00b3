import { VenueError } from '../errors.ts';
import { type BatchRequest, createVenueHttp, type VenueAnswer } from '../http/http.ts';
import { createMemberBatches, type MemberBatches } from '../http/member-batches.ts';
import type { VenueObserver } from '../observer.ts';
import { SOLANA, type SolanaHttpSettings } from './hosts.ts';

/** Price entries by mint and their moment: see `VenueAnswer.observedAt`. */
interface ObservedPrices {
  entries: Readonly<Record<string, unknown>>;
  observedAt: number;
}

/** Jupiter's two reads ([limits](../../../docs/venues.md#solana)). Both calls throw VenueError only. */
interface JupiterClient {
  /** Price v3: entries by mint, at most 50; mints without a reliable price are absent. */
  getPrices(mints: readonly string[], signal: AbortSignal, batch?: BatchRequest): Promise<ObservedPrices>;
  /** Tokens v2: rows with `id` (the mint) and `symbol`. At most 100 mints. */
  searchTokens(mints: readonly string[], signal: AbortSignal, batch?: BatchRequest): Promise<unknown[]>;
  /** The batches of one route. */
  members(route: string): MemberBatches;
  close(): Promise<void>;
}

/**
 * 30 requests per minute without a key, 60 with a free one, both routes together and without a burst. `JUPITER_REQUESTS_PER_SECOND` sets
 * the rate of paid keys.
 */
const PER_SECOND = { keyless: 0.5, withKey: 1 };

export function createJupiterClient(options: {
  url: string;
  key?: string;
  requestsPerSecond?: number;
  http?: SolanaHttpSettings;
  observer?: VenueObserver;
}): JupiterClient {
  const http = createVenueHttp({
    venue: SOLANA,
    baseUrl: options.url,
    requestsPerSecond:
      options.requestsPerSecond ?? (options.key === undefined ? PER_SECOND.keyless : PER_SECOND.withKey),
    burst: 1,
    budget: 'jupiter',
    ...options.http,
    ...(options.key !== undefined && { headers: { 'x-api-key': options.key } }),
    ...(options.observer && { observer: options.observer }),
  });
  async function get(
    route: string,
    path: string,
    query: URLSearchParams,
    signal: AbortSignal,
    batch: BatchRequest | undefined,
  ): Promise<VenueAnswer> {
    try {
      return await http.get({ route, path, query, signal, batch });
    } catch (error) {
      const statusCode = error instanceof VenueError ? error.statusCode : undefined;
      if (statusCode !== 401) throw error;
      const why =
        options.key === undefined ? 'requires a key: set JUPITER_API_KEY' : 'refuses the key of JUPITER_API_KEY';
      throw new VenueError(SOLANA, 'http_status', `HTTP 401: Jupiter ${why}`, { retryable: false, statusCode });
    }
  }
  return {
    async getPrices(mints, signal, batch) {
      const query = new URLSearchParams({ ids: mints.join(',') });
      const { json, observedAt } = await get('token_prices', '/price/v3', query, signal, batch);
      if (json !== null && typeof json === 'object' && !Array.isArray(json)) {
        return { entries: json as Record<string, unknown>, observedAt };
      }
      throw new VenueError(SOLANA, 'invalid_payload', 'token prices: expected an object', { retryable: true });
    },
    async searchTokens(mints, signal, batch) {
      const query = new URLSearchParams({ query: mints.join(',') });
      const { json } = await get('token_search', '/tokens/v2/search', query, signal, batch);
      if (Array.isArray(json)) return json;
      throw new VenueError(SOLANA, 'invalid_payload', 'token search: expected a list', { retryable: true });
    },
    members: (route) => createMemberBatches({ ...http, venue: SOLANA, route, observer: options.observer }),
    close: () => http.close(),
  };
}
