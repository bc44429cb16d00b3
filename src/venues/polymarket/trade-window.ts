import { VenueError } from '../errors.ts';
import { POLYMARKET, type TradesQuery } from './client.ts';
import { type FeedRow, readFeed } from './parse-trade.ts';

/**
 * Windows of a trade feed that knows no ids and moves while it is read: what the walk over the global feed and the walk
 * back over one market share. They go down by time. A page's oldest second may be cut by the page's end, so it is left
 * to the next window, which covers it whole; that is what lets equal rows be counted.
 */
export interface Stretch {
  /** The newest second not read yet. */
  next: number;
  /** The last second to read. */
  floor: number;
}

export type ListTrades = (query: TradesQuery) => Promise<unknown[]>;

export interface Pager {
  list: ListTrades;
  nowMs: number;
  settings: { pageSize: number };
}

/** The most that its documentation promises. */
const MAX_OFFSET = 10_000;
/** Where the venue's paging is known to end at the latest, by empty pages, repeated ones or refusals. */
const PAGING_ROWS = 3_000;
/** So many rows, all refused, are no bad records but a changed format: going on would skip them for good. */
const SYSTEMIC_ROWS = 20;

export interface Window {
  /** Newest first, none newer than asked for. */
  rows: FeedRow[];
  /** Rows without a usable time: every window that covers their place holds them. */
  timeless?: FeedRow[];
  /**
   * Down to a `page`'s end, which may cut the oldest second; to a `second` of which no more is to be had; to the feed's
   * `end`.
   */
  reach: 'page' | 'second' | 'end';
  truncated?: string;
  /** It was cut with rows in it that nobody asked for. */
  isCrowded?: boolean;
}

/**
 * All rows at or below `next` that one page holds, or as many pages as it takes to have one second whole. The window
 * asks for a second more than it needs, since nothing says whether `end` is inclusive, and is filtered here. Where the
 * rows of that second keep those wanted out of reach, `end` is inclusive, and the window can end at `next` itself.
 */
export async function readWindow({ next }: Stretch, pager: Pager): Promise<Window | 'time_ignored'> {
  const window = await readUpTo(next + 1, next, pager);
  if (window === 'time_ignored' || !window.isCrowded) return window;
  const below = await readUpTo(next, next, pager);
  return below === 'time_ignored' ? window : below;
}

/** What a window tells of rows that are out of reach, if anything. */
export function truncation(window: Window): { truncated?: string } {
  return window.truncated === undefined ? {} : { truncated: window.truncated };
}

async function readUpTo(end: number, next: number, pager: Pager): Promise<Window | 'time_ignored'> {
  const query = { limit: pager.settings.pageSize, end };
  const rows: FeedRow[] = [];
  const answers: unknown[][] = [];
  const readAgain = () => pager.list({ ...query, offset: 0 });
  const cut = (why: string): Window => ({
    rows: upTo(rows, next),
    timeless: withoutTime(rows),
    reach: 'second',
    truncated: `trades of second ${next}: ${why}`,
    isCrowded: (newestSecond(rows) ?? 0) > next,
  });
  for (let offset = 0; offset <= MAX_OFFSET; ) {
    const answer = await listWindow({ ...query, offset }, pager.list);
    if (answer === undefined) return offset === 0 ? 'time_ignored' : cut('the venue refuses the offset');
    const page = readPage(answer, pager.nowMs);
    if ((newestSecond(page) ?? 0) > end) return 'time_ignored';
    // An offset beyond the venue's cap repeats the page before: counting those rows again would invent trades.
    if (isSame(answer, answers.at(-1))) {
      await assertUnmoved(answers[0], readAgain);
      return cut('the venue repeats a page');
    }
    rows.push(...page);
    const isEnd = answer.length === 0;
    const last = lastSecond(rows);
    if (isEnd || (last !== undefined && last < next)) {
      if (answers.length > 0) await assertUnmoved(answers[0], readAgain);
      // A second that goes on for so many rows has met the end of the venue's paging and not of its feed.
      if (isEnd && offset >= PAGING_ROWS) return cut('the venue pages no further');
      return { rows: upTo(rows, next), timeless: withoutTime(rows), reach: isEnd ? 'end' : 'page' };
    }
    answers.push(answer);
    offset += answer.length;
  }
  return cut('too many rows');
}

function isSame(answer: unknown[], previous: unknown[] | undefined): boolean {
  return previous !== undefined && answer.length > 0 && JSON.stringify(answer) === JSON.stringify(previous);
}

/**
 * Pages by offset fit together only when nothing was inserted meanwhile; a row that slid to the next page would count
 * twice.
 */
async function assertUnmoved(first: unknown[] | undefined, readAgain: () => Promise<unknown[]>): Promise<void> {
  if (JSON.stringify(await readAgain()) === JSON.stringify(first)) return;
  throw new VenueError(POLYMARKET, 'invalid_payload', 'the trade feed moved while it was paged', { retryable: true });
}

/** Undefined when the venue refuses the request itself: it does not know `end`, or not an offset this far. */
async function listWindow(query: TradesQuery, list: ListTrades): Promise<unknown[] | undefined> {
  try {
    return await list(query);
  } catch (error) {
    if (error instanceof VenueError && (error.statusCode === 400 || error.statusCode === 422)) return undefined;
    throw error;
  }
}

/** Takes the complete seconds out of a window and says what is left of the stretch, if anything. */
export function settle(stretch: Stretch, window: Window): { rows: FeedRow[]; left?: Stretch } {
  const { next, floor } = stretch;
  const rows = upTo(window.rows, next);
  const last = lastSecond(rows);
  const isThrough = window.reach === 'end' || (last !== undefined && last < floor);
  // A second that fills a whole page gives nothing yet: it is asked for again, by its own window.
  const cutFrom = window.reach === 'page' ? (last ?? next) + 1 : (last ?? next);
  const from = isThrough ? floor : cutFrom;
  const taken = rows.filter((row) => row.second !== undefined && row.second >= from);
  const left = { next: Math.min(next, from - 1), floor };
  return isThrough || left.next < floor ? { rows: taken } : { rows: taken, left };
}

/** The rows of one answer. Throws VenueError when all of many are unreadable. */
export function readPage(answer: readonly unknown[], nowMs: number): FeedRow[] {
  const rows = readFeed(answer, nowMs);
  const [first] = rows;
  if (first?.rejected && rows.length >= SYSTEMIC_ROWS && rows.every((row) => row.rejected)) {
    const { reason, detail } = first.rejected;
    const message = `no trade of ${rows.length} is readable: ${reason}, ${detail}`;
    throw new VenueError(POLYMARKET, 'invalid_payload', message, { retryable: true });
  }
  return rows;
}

function upTo(rows: readonly FeedRow[], second: number): FeedRow[] {
  return rows.filter((row) => row.second !== undefined && row.second <= second);
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
 * How far down a newest-first page reaches: by its last row and not by its oldest, so that one row out of order does
 * not make a gap look closed.
 */
function lastSecond(rows: readonly FeedRow[]): number | undefined {
  return rows.findLast((row) => row.second !== undefined)?.second;
}
