import { VenueError } from '../errors.ts';
import { createVenueHttp } from '../http.ts';
import type { VenueObserver } from '../observer.ts';
import { SOLANA, type SolanaHttpSettings } from './hosts.ts';

/** Price entries by mint, with the moment they are of: see `VenueAnswer.observedAt`. */
interface ObservedPrices {
  entries: Readonly<Record<string, unknown>>;
  observedAt: number;
}

/** Jupiter's two reads (venue documentation section 6a). Both calls throw VenueError only. */
interface JupiterClient {
  /** Price v3: entries by mint, those without a reliable price left out. At most 50 mints. */
  getPrices(mints: readonly string[], signal: AbortSignal): Promise<ObservedPrices>;
  /** Tokens v2: rows with `id` (the mint) and `symbol`. At most 100 mints. */
  searchTokens(mints: readonly string[], signal: AbortSignal): Promise<unknown[]>;
  close(): Promise<void>;
}

/** The free tier: 60 requests a minute, both routes together. */
const PER_SECOND = 1;
const BURST = 2;

export function createJupiterClient(options: {
  url: string;
  key?: string;
  http?: SolanaHttpSettings;
  observer?: VenueObserver;
}): JupiterClient {
  const http = createVenueHttp({
    venue: SOLANA,
    baseUrl: options.url,
    requestsPerSecond: PER_SECOND,
    burst: BURST,
    ...options.http,
    ...(options.key !== undefined && { headers: { 'x-api-key': options.key } }),
    ...(options.observer && { observer: options.observer }),
  });
  return {
    async getPrices(mints, signal) {
      const query = new URLSearchParams({ ids: mints.join(',') });
      const { json, observedAt } = await http.get({ route: 'token_prices', path: '/price/v3', query, signal });
      if (json !== null && typeof json === 'object' && !Array.isArray(json)) {
        return { entries: json as Record<string, unknown>, observedAt };
      }
      throw new VenueError(SOLANA, 'invalid_payload', 'token prices: expected an object', { retryable: true });
    },
    async searchTokens(mints, signal) {
      const query = new URLSearchParams({ query: mints.join(',') });
      const json = await http.getJson({ route: 'token_search', path: '/tokens/v2/search', query, signal });
      if (Array.isArray(json)) return json;
      throw new VenueError(SOLANA, 'invalid_payload', 'token search: expected a list', { retryable: true });
    },
    close: () => http.close(),
  };
}
