import { VenueError } from '../errors.ts';
import type { TapeKnowledge } from '../port.ts';
import { refuseUnreadable, rejectedOf } from '../rejection.ts';
import {
  callEnd,
  newTape,
  type Stretch,
  type StretchRead,
  type TapePosition,
  type TapeSettings,
  type TapeStep,
  tapePosition,
  walkTape,
} from '../tape-walk.ts';
import { POLYMARKET, type TradesQuery } from './client.ts';
import { type DataPage, pageSizeAt } from './data-page.ts';
import { type FeedRow, readFeed } from './parse-trade.ts';

/** `headEveryMs` is at least 1,000, so that each first page has an address of its own. */
export interface TradeWalkSettings extends TapeSettings {
  /** The largest page; `pageSizeAt` gives each first page its own size. */
  pageSize: number;
  pagesPerCall: number;
  /** A call begins no further page after this long. */
  callMs?: number;
}

/** The newest second counts as complete at this age. */
const SETTLED_SECONDS = 3;

/**
 * Reads the next pages of the global feed after `stored`, complete seconds newest first. Throws the errors of `list`, and VenueError when a
 * whole page is unreadable.
 */
export async function readTradePage(
  stored: unknown,
  nowMs: number,
  settings: TradeWalkSettings,
  list: (query: TradesQuery) => Promise<DataPage>,
  { isContinued = false }: TapeKnowledge = {},
): Promise<TapeStep<FeedRow>> {
  const at = openPosition(stored, nowMs, settings);
  const limit = pageSizeAt(settings.pageSize, nowMs);
  const pager: Pager = {
    list: (cursor) => list({ limit, ...(cursor !== undefined && { cursor }) }),
    nowMs,
    pagesPerCall: settings.pagesPerCall,
    isEnd: callEnd(settings.callMs),
  };
  const read = async (from: Stretch, first?: FeedPage): Promise<StretchRead<FeedRow>> => {
    const { rows, timeless, isFeedEnd, ...rest } = await readStretch(from, pager, first);
    const truncated = rest.truncated ?? (isFeedEnd && unservedText(from, nowMs));
    return { ...rest, rows: [...timeless, ...rows], ...(truncated && { truncated }) };
  };
  return walkTape(at, {
    settings,
    nowMs,
    isContinued,
    read,
    async begin(head) {
      // The first page of this second was already requested: the CDN would repeat its answer.
      if (Math.floor(at.headAtMs / 1000) === Math.floor(nowMs / 1000)) return undefined;
      // Seconds are complete, so the known one is not read again.
      const floor = Math.max(head.isFull ? head.floor : head.known + 1, at.since);
      const first = await readPage(undefined, pager, floor);
      // A page from the CDN is an older view of the feed: whether its newest second is complete depends on its own time.
      const newest = newestSecond(first.rows) ?? 0;
      const isSettled = Math.floor((nowMs - first.ageMs) / 1000) - newest >= SETTLED_SECONDS;
      const top = isSettled ? newest : newest - 1;
      if (top < floor) return { read: { rows: withoutTime(first.rows) } };
      const walk = { top, next: top, floor };
      return { walk, read: await read(walk, first) };
    },
  });
}

/**
 * The position to continue from. The two versions of the API write the digits of some prices in different ways, so one trade would get two
 * ids: a second that was read by version 1 is not read again. A position of an older release has neither `since` nor cursors. An older
 * process that reads a position of this release drops them and continues by seconds.
 */
function openPosition(stored: unknown, nowMs: number, settings: TapeSettings): TapePosition & { since: number } {
  const parsed = tapePosition.safeParse(stored);
  const at = parsed.success ? parsed.data : newTape(nowMs, settings);
  if (!parsed.success) return { ...at, since: at.watermark };
  if (at.since !== undefined) return { ...at, since: at.since };
  const { walk, watermark } = at;
  const since = (walk?.top ?? watermark) + 1;
  return { ...at, since, ...(walk && { walk: { ...walk, floor: watermark + 1 } }) };
}

/** The global feed serves this calendar month and the one before. */
function unservedText({ floor }: Stretch, nowMs: number): string | undefined {
  const now = new Date(nowMs);
  const from = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1) / 1000;
  if (floor >= from) return undefined;
  return `trades from ${floor} to ${from} (epoch seconds): the feed of the venue begins later`;
}

/** One page of the feed; without a cursor, the newest. */
type ListTrades = (cursor: string | undefined) => Promise<DataPage>;

interface FeedPage {
  rows: FeedRow[];
  nextCursor?: string;
  ageMs: number;
}

interface Pager {
  list: ListTrades;
  nowMs: number;
  /** Pages of one call, at least LEAST_PAGES. */
  pagesPerCall: number;
  /** Whether the call begins no further page. */
  isEnd(): boolean;
}

/** Rows of complete seconds of a stretch, newest first. */
interface SecondsRead extends StretchRead<FeedRow> {
  /** Rows without a usable time, each once. */
  timeless: FeedRow[];
  /** The feed ended above the floor. */
  isFeedEnd?: true;
}

/** The last page of a call is the first one of the next call. */
const LEAST_PAGES = 2;
/** A block has some hundred fills. A second with this many pages is a fault of the venue. */
const MAX_PAGES = 60;

/** Reads one page; of rows before `floor`, epoch seconds, only the time. Throws VenueError when all of many rows are unreadable. */
async function readPage(cursor: string | undefined, { list, nowMs }: Pager, floor?: number): Promise<FeedPage> {
  const { rows: raw, ...page } = await list(cursor);
  if (page.nextCursor !== undefined && page.nextCursor === cursor) {
    throw new VenueError(POLYMARKET, 'invalid_payload', 'trades: the cursor leads to its own page', {
      retryable: true,
    });
  }
  const rows = readFeed(raw, nowMs, floor);
  refuseUnreadable(POLYMARKET, 'trade', rows.length, rejectedOf(rows));
  return { ...page, rows };
}

/**
 * Reads the next pages of a stretch of a feed without ids, for the walk over the global feed and the walk back over one market. A page
 * follows the previous one by cursor, newest first by second, and new rows do not move it. Equal rows are counted within their second, so a
 * second is taken only when one call read it completely; the page on which it begins is read again for that. The cursor of a stretch is that
 * of a page at or above the first row of `next`. `first` is the page of its cursor, if the caller has it already.
 */
export async function readStretch(stretch: Stretch, pager: Pager, first?: FeedPage): Promise<SecondsRead> {
  const { next, floor } = stretch;
  let { cursor } = stretch;
  let page = first ?? (await openPage(cursor, pager, floor));
  if (page === undefined) return { rows: [], timeless: [], left: { next, floor } };
  const pages: { cursor: string | undefined; rows: FeedRow[] }[] = [];
  const rows: FeedRow[] = [];
  for (;;) {
    pages.push({ cursor, rows: page.rows });
    rows.push(...page.rows);
    const { nextCursor } = page;
    const last = lastSecond(rows);
    if (nextCursor === undefined || (last !== undefined && last < floor)) {
      const read = { rows: between(rows, floor, next), timeless: withoutTime(rows) };
      return last === undefined || last >= floor ? { ...read, isFeedEnd: true } : read;
    }
    const isCallEnd = pages.length >= pager.pagesPerCall || (pages.length >= LEAST_PAGES && pager.isEnd());
    if (isCallEnd && last !== next) {
      if (last === undefined || last > next) {
        return { rows: [], timeless: withoutTime(rows), left: { next, floor, cursor: nextCursor } };
      }
      return cutAt(last, stretch, pages);
    }
    if (pages.length >= MAX_PAGES) {
      const left = { next: next - 1, floor, cursor: nextCursor };
      const truncated = `trades of second ${next}: more than ${rows.length} rows`;
      const read = { rows: between(rows, next, next), timeless: withoutTime(rows), truncated };
      return left.next < floor ? read : { ...read, left };
    }
    cursor = nextCursor;
    page = await readPage(cursor, pager, floor);
  }
}

/** All complete seconds; the rest begins with the page that contains the first row of the cut second. */
function cutAt(
  second: number,
  { next, floor }: Stretch,
  pages: readonly { cursor: string | undefined; rows: FeedRow[] }[],
): SecondsRead {
  const isRest = (row: FeedRow) => row.second !== undefined && row.second <= second;
  const index = pages.findIndex((page) => page.rows.some(isRest));
  const cursor = pages[index]?.cursor;
  return {
    rows: between(
      pages.flatMap((page) => page.rows),
      second + 1,
      next,
    ),
    timeless: withoutTime(pages.slice(0, index).flatMap((page) => page.rows)),
    left: { next: second, floor, ...(cursor !== undefined && { cursor }) },
  };
}

/** The page of a stored cursor; undefined when the venue no longer knows the cursor: the walk then continues from the newest page. */
async function openPage(cursor: string | undefined, pager: Pager, floor: number): Promise<FeedPage | undefined> {
  try {
    return await readPage(cursor, pager, floor);
  } catch (error) {
    const isRefused = error instanceof VenueError && (error.statusCode === 400 || error.statusCode === 422);
    if (cursor !== undefined && isRefused) return undefined;
    throw error;
  }
}

function between(rows: readonly FeedRow[], floor: number, next: number): FeedRow[] {
  return rows.filter(({ second }) => second !== undefined && second >= floor && second <= next);
}

/** Rows whose time cannot be read. */
function withoutTime(rows: readonly FeedRow[]): FeedRow[] {
  return rows.filter((row) => row.second === undefined);
}

function newestSecond(rows: readonly FeedRow[]): number | undefined {
  const seconds = rows.map((row) => row.second).filter((second) => second !== undefined);
  return seconds.length === 0 ? undefined : Math.max(...seconds);
}

/**
 * The lowest second of newest-first pages. The last row counts and not the oldest: one row out of order must not make a gap look closed.
 */
function lastSecond(rows: readonly FeedRow[]): number | undefined {
  return rows.findLast((row) => row.second !== undefined)?.second;
}
