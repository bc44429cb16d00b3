import { z } from 'zod';
import { VenueError } from '../errors.ts';
import { POLYMARKET, type TradesQuery } from './client.ts';
import { type FeedRow, readFeed } from './parse-trade.ts';

/**
 * The walk over the global trade feed, which knows no ids and moves while it is read. It goes by time: from the newest
 * complete second down to the stored watermark less an overlap for late rows, a page a call. A page's oldest second may be
 * cut by the page's end, so it is left to the next page, which covers it whole; that is what lets equal rows be counted.
 * The watermark moves once all down to the old one is read, or once a long rest of it is put down as a gap: gaps are filled
 * between walks, so that hours of history keep nobody from the newest trades. A crash in between reads again.
 */
export interface TradeWalkSettings {
  pageSize: number;
  overlapSeconds: number;
  initialLookbackSeconds: number;
  /** A walk with more than this left to read becomes a gap. */
  longGapSeconds: number;
  /** While there are gaps, the newest trades are read this often. */
  headEveryMs: number;
}

const second = z.number().int();
const position = z.object({
  v: z.literal(1),
  /** All seconds up to this one were read, gaps apart. */
  watermark: second,
  /** When the latest walk began, epoch milliseconds. */
  headAtMs: z.number(),
  /** Under way: `top` becomes the watermark, `next` is the newest second not read yet, `floor` the last one to read. */
  walk: z.object({ top: second, next: second, floor: second }).optional(),
  gaps: z.array(z.object({ next: second, floor: second })),
});

export type TradePosition = z.infer<typeof position>;
type Walk = NonNullable<TradePosition['walk']>;
/** Seconds still to be read, newest first: what walks and gaps have in common. */
type Stretch = TradePosition['gaps'][number];

/** A second without a newer one behind it counts as complete when it is this old. */
const SETTLED_SECONDS = 3;
/** The most that its documentation promises. */
const MAX_OFFSET = 10_000;
/** Where the venue's paging is known to end at the latest, by empty pages, repeated ones or refusals. */
const PAGING_ROWS = 3_000;
/** So many rows, all refused, are no bad records but a changed format: going on would skip them for good. */
const SYSTEMIC_ROWS = 20;

export interface TradePage {
  /** Rows of complete seconds, newest first. */
  rows: FeedRow[];
  position: TradePosition;
  more: boolean;
  /** What could not be read, when something could not. */
  truncated?: string;
}

export type ListTrades = (query: TradesQuery) => Promise<unknown[]>;

/** Reads the next page after `stored`. Throws what `list` throws, and VenueError when a whole page is unreadable. */
export async function readTradePage(
  stored: unknown,
  nowMs: number,
  settings: TradeWalkSettings,
  list: ListTrades,
): Promise<TradePage> {
  const parsed = position.safeParse(stored);
  const start = Math.floor(nowMs / 1000) - settings.initialLookbackSeconds;
  const at: TradePosition = parsed.success ? parsed.data : { v: 1, watermark: start, headAtMs: 0, gaps: [] };
  const pager = { list, nowMs, settings };
  if (at.walk) return continueWalk(at, at.walk, pager);
  const [gap] = at.gaps;
  const sinceHeadMs = nowMs - at.headAtMs;
  if (gap && sinceHeadMs >= 0 && sinceHeadMs < settings.headEveryMs) return fillGap(at, gap, pager);
  const floor = parsed.success ? at.watermark - settings.overlapSeconds : at.watermark;
  return beginWalk({ ...at, headAtMs: nowMs }, floor, pager);
}

interface Pager {
  list: ListTrades;
  nowMs: number;
  settings: TradeWalkSettings;
}

async function beginWalk(at: TradePosition, floor: number, pager: Pager): Promise<TradePage> {
  const rows = readPage(await pager.list({ limit: pager.settings.pageSize, offset: 0 }), pager.nowMs);
  const newest = newestSecond(rows) ?? 0;
  const top = Math.floor(pager.nowMs / 1000) - newest >= SETTLED_SECONDS ? newest : newest - 1;
  if (top < floor) return { rows: withoutTime(rows), position: at, more: at.gaps.length > 0 };
  const page = afterWalk(at, { top, next: top, floor }, { rows, reach: 'page' }, pager.settings);
  return { ...page, rows: [...withoutTime(rows), ...page.rows] };
}

async function continueWalk(at: TradePosition, walk: Walk, pager: Pager): Promise<TradePage> {
  const window = await readWindow(walk, pager);
  if (window !== 'time_ignored') return afterWalk(at, walk, window, pager.settings);
  const page: TradePage = { rows: [], position: passed(at, walk), more: at.gaps.length > 0 };
  // Only late rows are out of reach when all that is left lies below the watermark.
  return walk.next <= at.watermark ? page : { ...page, truncated: unreachable(at.watermark, walk.next) };
}

async function fillGap(at: TradePosition, gap: Stretch, pager: Pager): Promise<TradePage> {
  const [, ...others] = at.gaps;
  const window = await readWindow(gap, pager);
  if (window === 'time_ignored') {
    const truncated = unreachable(gap.floor, gap.next);
    return { rows: [], position: { ...at, gaps: others }, more: others.length > 0, truncated };
  }
  const { rows, left } = settle(gap, window);
  const gaps = left ? [left, ...others] : others;
  return { rows, position: { ...at, gaps }, more: gaps.length > 0, ...truncation(window) };
}

/** Where the walk stands after a window; refused rows below the watermark were reported when they were first read. */
function afterWalk(at: TradePosition, walk: Walk, window: Window, settings: TradeWalkSettings): TradePage {
  const settled = settle(walk, window);
  const { left } = settled;
  const rows = settled.rows.filter((row) => !row.rejected || (row.second ?? 0) > at.watermark);
  const page = { rows, ...truncation(window) };
  if (!left) return { ...page, position: passed(at, walk), more: at.gaps.length > 0 };
  if (left.next - left.floor <= settings.longGapSeconds) {
    return { ...page, position: { ...at, walk: { ...left, top: walk.top } }, more: true };
  }
  return { ...page, position: { ...passed(at, walk), gaps: [...at.gaps, left] }, more: true };
}

/** A lagging replica of the venue may show an older feed than before, hence the maximum. */
function passed(at: TradePosition, walk: Walk): TradePosition {
  const { walk: _, ...rest } = at;
  return { ...rest, watermark: Math.max(at.watermark, walk.top) };
}

function truncation(window: Window): { truncated?: string } {
  return window.truncated === undefined ? {} : { truncated: window.truncated };
}

function unreachable(from: number, to: number): string {
  return `trades between ${from} and ${to} (epoch seconds): the venue ignores the end of a window`;
}

interface Window {
  /** Newest first, none newer than asked for. */
  rows: FeedRow[];
  /** Down to a `page`'s end, which may cut the oldest second; to a `second` of which no more is to be had; to the feed's `end`. */
  reach: 'page' | 'second' | 'end';
  truncated?: string;
}

/**
 * All rows at or below `next` that one page holds, or as many pages as it takes to have one second whole. The window asks
 * for a second more than it needs, since nothing says whether `end` is inclusive, and is filtered here.
 */
async function readWindow({ next }: Stretch, pager: Pager): Promise<Window | 'time_ignored'> {
  const end = next + 1;
  const query = { limit: pager.settings.pageSize, end };
  const rows: FeedRow[] = [];
  const answers: unknown[][] = [];
  const readAgain = () => pager.list({ ...query, offset: 0 });
  const cut = (why: string): Window => ({
    rows: upTo(rows, next),
    reach: 'second',
    truncated: `trades of second ${next}: ${why}`,
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
      return { rows: upTo(rows, next), reach: isEnd ? 'end' : 'page' };
    }
    answers.push(answer);
    offset += answer.length;
  }
  return cut('too many rows');
}

function isSame(answer: unknown[], previous: unknown[] | undefined): boolean {
  return previous !== undefined && answer.length > 0 && JSON.stringify(answer) === JSON.stringify(previous);
}

/** Pages by offset fit together only when nothing was inserted meanwhile; a row that slid to the next page would count twice. */
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
function settle(stretch: Stretch, window: Window): { rows: FeedRow[]; left?: Stretch } {
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

function readPage(answer: readonly unknown[], nowMs: number): FeedRow[] {
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

function withoutTime(rows: readonly FeedRow[]): FeedRow[] {
  return rows.filter((row) => row.second === undefined);
}

function newestSecond(rows: readonly FeedRow[]): number | undefined {
  const seconds = rows.map((row) => row.second).filter((second) => second !== undefined);
  return seconds.length === 0 ? undefined : Math.max(...seconds);
}

/**
 * How far down a newest-first page reaches: by its last row and not by its oldest, so that one row out of order does not make
 * a gap look closed.
 */
function lastSecond(rows: readonly FeedRow[]): number | undefined {
  return rows.findLast((row) => row.second !== undefined)?.second;
}
