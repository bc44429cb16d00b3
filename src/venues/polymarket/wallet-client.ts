import { VenueError } from '../errors.ts';
import { createVenueHttp } from '../http.ts';
import type { VenueObserver } from '../observer.ts';
import { isHttpStatus, POLYMARKET, type PolymarketHttpSettings } from './client.ts';

/** The two versions of the Data API; their rows differ in names only. */
const VERSIONS = ['v2', 'v1'] as const;
type Version = (typeof VERSIONS)[number];

/** Where a listing goes on: a page belongs to the version that began it. */
export interface NextPage {
  version: Version;
  /** Of v2. */
  cursor?: string;
  /** Of v1. */
  offset?: number;
}

export interface WalletAnswer {
  rows: unknown[];
  next?: NextPage;
}

/** What the Data API tells of one wallet (venue documentation section 1.8). Every call throws VenueError only. */
interface WalletClient {
  /** Everything the wallet did from `startSecond` on, oldest first. */
  listActivity(
    user: string,
    startSecond: number,
    next: NextPage | undefined,
    signal: AbortSignal,
  ): Promise<WalletAnswer>;
  /** Everything the wallet holds, dust included. */
  listPositions(user: string, next: NextPage | undefined, signal: AbortSignal): Promise<WalletAnswer>;
  close(): Promise<void>;
}

/**
 * Below the narrowest limit, 150 in ten seconds on `/positions`. Apart from the budget of the trade poll, which has a limit of
 * its own on this host: many wallets must not hold up the tape.
 */
const REQUESTS_PER_SECOND = 12;
const PAGE_SIZE = { v2: 1_000, v1: 500 };
/** The most that v1's documentation promises. */
const MAX_OFFSET = 10_000;
/** How long v1 is asked once v2 had refused. */
const FALLBACK_MS = 10 * 60_000;
/** A host that does not know the route, or not what we ask of it. */
const REFUSALS = [400, 404, 405, 410, 422, 501];

/** The Data API's wallet routes: version 2 where the host has it, else version 1. */
export function createWalletClient(options: {
  url: string;
  observer?: VenueObserver;
  http?: PolymarketHttpSettings;
}): WalletClient {
  const http = createVenueHttp({
    venue: POLYMARKET,
    baseUrl: options.url,
    requestsPerSecond: REQUESTS_PER_SECOND,
    ...options.http,
    ...(options.observer && { observer: options.observer }),
  });
  let v1UntilMs = 0;

  async function list(
    what: 'activity' | 'positions',
    parameters: Readonly<Record<Version, Record<string, string>>>,
    next: NextPage | undefined,
    signal: AbortSignal,
  ): Promise<WalletAnswer> {
    const version = next?.version ?? (performance.now() < v1UntilMs ? 'v1' : 'v2');
    try {
      return await ask(version, next);
    } catch (error) {
      if (next !== undefined || version === 'v1' || !isHttpStatus(error, REFUSALS)) throw error;
      const answer = await ask('v1', undefined);
      v1UntilMs = performance.now() + FALLBACK_MS;
      return answer;
    }

    async function ask(asked: Version, from: NextPage | undefined): Promise<WalletAnswer> {
      const query = new URLSearchParams({ ...parameters[asked], limit: String(PAGE_SIZE[asked]) });
      if (from?.cursor !== undefined) query.set('cursor', from.cursor);
      if (from?.offset !== undefined) query.set('offset', String(from.offset));
      const path = asked === 'v2' ? `/v2/${what}` : `/${what}`;
      const json = await http.getJson({ route: `${what}_${asked}`, path, query, signal });
      return asked === 'v2' ? readV2(json, what) : readV1(json, what, from?.offset ?? 0);
    }
  }

  return {
    listActivity(user, startSecond, next, signal) {
      const start = String(startSecond);
      const v2 = { user, start, sort_direction: 'ASC', exclude_deposits_withdrawals: 'false' };
      return list('activity', { v2, v1: { user, start, sortBy: 'TIMESTAMP', sortDirection: 'ASC' } }, next, signal);
    },
    // v1 hides positions below one share unless it is told not to.
    listPositions: (user, next, signal) =>
      list('positions', { v2: { user }, v1: { user, sizeThreshold: '0' } }, next, signal),
    close: () => http.close(),
  };
}

function readV2(json: unknown, what: string): WalletAnswer {
  if (Array.isArray(json)) return { rows: json };
  const { data, pagination } = (json ?? {}) as { data?: unknown; pagination?: { next_cursor?: unknown } | null };
  if (!Array.isArray(data)) throw notAList(what);
  // A short page is not the last one; only a missing cursor says so.
  const cursor = pagination?.next_cursor;
  return typeof cursor === 'string' && cursor !== '' ? { rows: data, next: { version: 'v2', cursor } } : { rows: data };
}

function readV1(json: unknown, what: string, offset: number): WalletAnswer {
  if (!Array.isArray(json)) throw notAList(what);
  // The page size that counts may be smaller than the one asked for: only an empty page is surely the end.
  if (json.length === 0) return { rows: [] };
  const nextOffset = offset + json.length;
  if (nextOffset > MAX_OFFSET) {
    throw new VenueError(POLYMARKET, 'invalid_payload', `${what}: more than can be paged`, { retryable: false });
  }
  return { rows: json, next: { version: 'v1', offset: nextOffset } };
}

function notAList(what: string): VenueError {
  return new VenueError(POLYMARKET, 'invalid_payload', `${what}: expected a list`, { retryable: true });
}
