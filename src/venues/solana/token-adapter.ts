import type { PriceRecord } from '../../domain/markets/market.ts';
import { VENUES } from '../../domain/markets/venue.ts';
import { isPublicKey } from '../../domain/values/base58.ts';
import { VenueError } from '../errors.ts';
import { observedAtMs } from '../http/age.ts';
import { type BatchRequest, createVenueHttp, type VenueAnswer } from '../http/http.ts';
import { createMemberBatches, type MemberBatches, rejectMembers, unreadOf } from '../http/member-batches.ts';
import type { VenueObserver } from '../observer.ts';
import { refuseUnreadable } from '../rejection.ts';
import { createReport } from '../report.ts';
import type { TokenAdapter } from '../token-port.ts';
import { SOLANA, type SolanaHttpSettings } from './hosts.ts';
import { parseTokenPrices } from './parse-token-prices.ts';
import { parseTokenSymbols } from './parse-token-symbols.ts';
import { createSeenSlots } from './seen-slots.ts';

/** The limits of one Price v3 request and of one Tokens v2 search, mints. */
const MAX_PRICES = 50;
const MAX_SYMBOLS = 100;

/** Token prices and symbols from Jupiter. A price has the time of the answer; Jupiter gives only the slot of the last swap. */
export function createSolanaTokens(options: {
  jupiter: string;
  jupiterKey?: string;
  jupiterPerSecond?: number;
  http?: SolanaHttpSettings;
  observer?: VenueObserver;
}): TokenAdapter {
  const { jupiter, jupiterKey, jupiterPerSecond, http, observer } = options;
  const client = createJupiterClient({
    url: jupiter,
    ...(jupiterKey !== undefined && { key: jupiterKey }),
    ...(jupiterPerSecond !== undefined && { requestsPerSecond: jupiterPerSecond }),
    ...(http && { http }),
    ...(observer && { observer }),
  });
  const slots = createSeenSlots();
  const report = createReport(SOLANA, observer);
  const prices = client.members('token_prices');
  const searches = client.members('token_search');
  return {
    venue: SOLANA,
    currency: VENUES.solana.currency,
    isMint: isPublicKey,
    maxMintsPerFetch: MAX_PRICES,

    async fetchTokenPrices(mints, context) {
      const wanted = [...new Set(mints)].filter(isPublicKey);
      if (wanted.length === 0) return { records: [], rejected: [] };
      const asked = await prices.ask(wanted, (each, request) => client.getPrices(each, context.signal, request), {
        size: MAX_PRICES,
      });
      const nowMs = context.now();
      const parts = asked.answers.map(({ members, answer }) => {
        const { quotes, rejected } = parseTokenPrices(answer.entries, members);
        const asOfMs = observedAtMs(answer, nowMs);
        return { quotes: quotes.map((quote) => ({ ...quote, asOfMs })), rejected };
      });
      const quotes = parts.flatMap((part) => part.quotes);
      const rejected = parts.flatMap((part) => part.rejected);
      refuseUnreadable(SOLANA, 'price', quotes.length + rejected.length, rejected);
      const records = quotes
        .filter(({ mint, slot }) => slot === undefined || slots.isCurrent(mint, slot, nowMs))
        .map(({ mint, price, asOfMs }): PriceRecord => ({ outcomeId: mint, asOfMs, price }));
      const skipped = Array(quotes.length - records.length).fill('stale_slot');
      rejected.push(...rejectMembers('prices', asked.refused, nowMs));
      const batch = report.counted('prices', quotes.length + rejected.length, { records, rejected, skipped });
      return { ...batch, ...unreadOf(asked) };
    },

    async fetchTokenSymbols(mints, context) {
      const wanted = [...new Set(mints)].filter(isPublicKey);
      const symbols = new Map<string, string>();
      const asked = await searches.ask(wanted, (part, request) => client.searchTokens(part, context.signal, request), {
        size: MAX_SYMBOLS,
      });
      if (asked.fault) throw asked.fault;
      for (const { members, answer } of asked.answers) {
        for (const [mint, symbol] of parseTokenSymbols(answer, members)) symbols.set(mint, symbol);
      }
      return symbols;
    },

    close: () => client.close(),
  };
}

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

function createJupiterClient(options: {
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
