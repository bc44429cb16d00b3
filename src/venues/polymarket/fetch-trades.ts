import { VenueError } from '../errors.ts';
import { refuseUnreadable, rejectedOf } from '../rejection.ts';
import type { Stretch, StretchRead } from '../tape-walk.ts';
import { POLYMARKET } from './client.ts';
import type { DataPage } from './data-page.ts';
import { type FeedRow, readFeed } from './parse-trade.ts';

/** One page of the feed; without a cursor, the newest. */
type ListTrades = (cursor: string | undefined) => Promise<DataPage>;

export interface FeedPage {
  rows: FeedRow[];
  nextCursor?: string;
  ageMs: number;
}

export interface Pager {
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
export async function readPage(cursor: string | undefined, { list, nowMs }: Pager, floor?: number): Promise<FeedPage> {
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
export function withoutTime(rows: readonly FeedRow[]): FeedRow[] {
  return rows.filter((row) => row.second === undefined);
}

export function newestSecond(rows: readonly FeedRow[]): number | undefined {
  const seconds = rows.map((row) => row.second).filter((second) => second !== undefined);
  return seconds.length === 0 ? undefined : Math.max(...seconds);
}

/**
 * The lowest second of newest-first pages. The last row counts and not the oldest: one row out of order must not make a gap look closed.
 */
function lastSecond(rows: readonly FeedRow[]): number | undefined {
  return rows.findLast((row) => row.second !== undefined)?.second;
}
