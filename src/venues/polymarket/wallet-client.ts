import type { VenueHttpSettings } from '../http/http.ts';
import { createVenueHttp } from '../http/http.ts';
import type { VenueObserver } from '../observer.ts';
import { POLYMARKET } from './client.ts';
import { pageSizeAt, readDataPage } from './data-page.ts';

/** The next page of a listing. Older releases also stored pages of version 1, which the venue no longer serves. */
export interface NextPage {
  version: 'v2';
  cursor: string;
}

export interface WalletAnswer {
  rows: unknown[];
  next?: NextPage;
}

interface WalletCall {
  nowMs: number;
  signal: AbortSignal;
}

/** The wallet routes of the Data API, version 2. Every call throws VenueError only. */
interface WalletClient {
  /** The activity of the wallet from `startSecond` on, oldest first. */
  listActivity(user: string, startSecond: number, next: NextPage | undefined, call: WalletCall): Promise<WalletAnswer>;
  /** The positions of a wallet that are not closed. */
  listPositions(user: string, next: NextPage | undefined, call: WalletCall): Promise<WalletAnswer>;
  close(): Promise<void>;
}

/**
 * Separate from the budget of the trade poll, so many wallets do not delay trades. Both budgets together are 10 requests per second:
 * `/v2/positions` has failed at 15.
 */
const REQUESTS_PER_SECOND = 4;
const PAGE_SIZE = 1_000;

export function createWalletClient(options: {
  url: string;
  observer?: VenueObserver;
  http?: VenueHttpSettings;
}): WalletClient {
  const http = createVenueHttp({
    venue: POLYMARKET,
    baseUrl: options.url,
    requestsPerSecond: REQUESTS_PER_SECOND,
    budget: 'wallets',
    ...options.http,
    ...(options.observer && { observer: options.observer }),
  });

  async function list(
    what: 'activity' | 'positions',
    filters: Record<string, string>,
    next: NextPage | undefined,
    { nowMs, signal }: WalletCall,
  ): Promise<WalletAnswer> {
    const place = next ? { cursor: next.cursor } : { limit: String(pageSizeAt(PAGE_SIZE, nowMs)) };
    const query = new URLSearchParams({ ...filters, ...place });
    const answer = await http.get({ route: `${what}_v2`, path: `/v2/${what}`, query, signal });
    const { rows, nextCursor } = readDataPage(POLYMARKET, answer, what);
    return nextCursor === undefined ? { rows } : { rows, next: { version: 'v2', cursor: nextCursor } };
  }

  return {
    listActivity(user, startSecond, next, call) {
      // A start of 0 or none gives three years only.
      const start = String(Math.max(1, startSecond));
      const filters = { user, start, sort_direction: 'ASC', exclude_deposits_withdrawals: 'false' };
      return list('activity', filters, next, call);
    },
    listPositions: (user, next, call) => list('positions', { user }, next, call),
    close: () => http.close(),
  };
}
