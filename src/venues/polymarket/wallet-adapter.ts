import { z } from 'zod';
import { VenueError } from '../errors.ts';
import { createVenueHttp, type VenueHttpSettings } from '../http/http.ts';
import type { VenueObserver } from '../observer.ts';
import { createReport } from '../report.ts';
import type { WalletAdapter } from '../wallet-port.ts';
import { POLYMARKET } from './client.ts';
import { pageSizeAt, readDataPage } from './data-page.ts';
import { parseActivity, secondOf } from './wallet-activity.ts';
import { parsePositions } from './wallet-positions.ts';

interface PolymarketWalletOptions {
  /** The address of the Data API. */
  url: string;
  observer?: VenueObserver;
  http?: VenueHttpSettings;
  activity?: Partial<ActivityWalkSettings>;
}

const ACTIVITY_SETTINGS: ActivityWalkSettings = { overlapSeconds: 300, maxPagesPerRead: 10 };

const nextPage = z.object({ version: z.literal('v2'), cursor: z.string() });

/** Wallets of Polymarket: activity and positions of the public Data API. Position formats are private to this folder. */
export function createPolymarketWallets(options: PolymarketWalletOptions): WalletAdapter {
  const client = createWalletClient(options);
  const report = createReport(POLYMARKET, options.observer);
  const settings = { ...ACTIVITY_SETTINGS, ...options.activity };
  return {
    venue: POLYMARKET,

    async pollActivity({ address, sinceMs }, position, context) {
      const nowMs = context.now();
      const { rows, truncated, ...page } = await readActivity(position, { sinceMs, nowMs, settings }, (start, next) =>
        client.listActivity(address, start, next, { nowMs, signal: context.signal }),
      );
      report.truncated('wallets', truncated);
      return { ...report.counted('wallets', rows.length, parseActivity(rows, nowMs)), ...page };
    },

    async pollBalances(address, position, context) {
      const from = nextPage.safeParse(position);
      const next = from.success ? from.data : undefined;
      const answer = await client.listPositions(address, next, { nowMs: context.now(), signal: context.signal });
      return {
        ...parsePositions(answer.rows),
        position: answer.next ?? null,
        more: answer.next !== undefined,
      };
    },

    close: () => client.close(),
  };
}

/**
 * The walk over a wallet's activity: oldest first, from the newest second seen less an overlap for late rows. New rows are appended, so
 * pages do not shift during the walk. The last second of a page may be cut: the next read begins with it and reads it completely, so equal
 * rows of a transaction can be counted.
 */
interface ActivityWalkSettings {
  /** Late rows within this time are found. */
  overlapSeconds: number;
  /** Pages of one read when a page ends in the second in which it begins. */
  maxPagesPerRead: number;
}

const second = z.number().int();
const position = z.object({
  v: z.literal(1),
  /** Everything up to this second was read. */
  watermark: second,
  /** The first unread second of the current walk. */
  next: second.optional(),
});
type ActivityPosition = z.infer<typeof position>;

interface ActivityRead {
  /** Rows of complete seconds, except perhaps the last second, which is read again. */
  rows: unknown[];
  position: ActivityPosition;
  more: boolean;
  /** The unread part, if any. */
  truncated?: string;
}

/** Reads the next pages after `stored`. Throws the errors of `list`, and VenueError when the order of the rows prevents progress. */
async function readActivity(
  stored: unknown,
  { sinceMs, nowMs, settings }: { sinceMs: number; nowMs: number; settings: ActivityWalkSettings },
  list: (startSecond: number, next: NextPage | undefined) => Promise<WalletAnswer>,
): Promise<ActivityRead> {
  const parsed = position.safeParse(stored);
  const at: ActivityPosition = parsed.success ? parsed.data : { v: 1, watermark: Math.floor(sinceMs / 1000) };
  const from = at.next ?? at.watermark - settings.overlapSeconds;
  const rows: unknown[] = [];
  let next: NextPage | undefined;
  for (let pages = 1; ; pages += 1) {
    // One second earlier, in case the venue's start is exclusive.
    const answer = await list(from - 1, next);
    rows.push(...answer.rows);
    next = answer.next;
    const seconds = rows.map((row) => secondOf(row, nowMs)).filter((each) => each !== undefined);
    const newest = Math.min(Math.max(at.watermark, ...seconds), Math.floor(nowMs / 1000));
    if (next === undefined) return { rows, position: { v: 1, watermark: newest }, more: false };
    const last = seconds.at(-1) ?? from;
    const isOldestFirst = seconds.every((each, index) => index === 0 || each >= (seconds[index - 1] ?? each));
    if (isOldestFirst && last > from) return { rows, position: { ...at, next: last }, more: true };
    if (pages < settings.maxPagesPerRead) continue;
    if (!isOldestFirst) {
      const message = 'the order of the activity is wrong, and it does not fit in one read';
      throw new VenueError(POLYMARKET, 'invalid_payload', message, { retryable: true });
    }
    const truncated = `more than ${rows.length} rows of a wallet in the second ${last}`;
    return { rows, position: { ...at, next: Math.max(last, from) + 1 }, more: true, truncated };
  }
}

/** The next page of a listing. Older releases also stored pages of version 1, which the venue no longer serves. */
interface NextPage {
  version: 'v2';
  cursor: string;
}

interface WalletAnswer {
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

function createWalletClient(options: {
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
