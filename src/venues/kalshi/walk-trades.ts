import { z } from 'zod';
import { isHttpStatus } from '../errors.ts';
import { refuseUnreadable } from '../unreadable-page.ts';
import { KALSHI, type ListAnswer, type Parameters } from './client.ts';
import { type FeedRow, readFeed } from './parse-trade.ts';

/**
 * The walk over the global trade feed, newest first, one page per call, from the newest trade down to the stored watermark less an overlap
 * for late rows. Trades have ids, so a trade that is read twice is stored once. The watermark moves once everything down to the old one is
 * read. A long rest becomes a gap and moves the watermark too: gaps are filled between walks, so hours of history never delay the newest
 * trades. After a crash the walk repeats a part.
 */
export interface TradeWalkSettings {
  pageSize: number;
  overlapSeconds: number;
  initialLookbackSeconds: number;
  /** A longer rest of a walk becomes a gap. */
  longGapSeconds: number;
  /** Interval of reads of the newest trades while gaps exist. */
  headEveryMs: number;
}

const second = z.number().int();
/** Seconds still to be read, newest first: the common part of walks, gaps and a market's history. */
export const stretch = z.object({
  /** The end of the request of the cursor; absent when it began at the newest trade. */
  end: second.optional(),
  cursor: z.string().optional(),
  /** The oldest second that was read: the walk continues here without the cursor. */
  next: second,
  floor: second,
});
type Stretch = z.infer<typeof stretch>;

const position = z.object({
  v: z.literal(1),
  /** All seconds up to this one were read, except gaps. */
  watermark: second,
  /** The start of the latest walk, epoch milliseconds. */
  headAtMs: z.number(),
  /** The current walk: `top` becomes the watermark. */
  walk: stretch.extend({ top: second }).optional(),
  gaps: z.array(stretch),
  /** The latest walk went before a gap, so a page of the gap is next: slow walks must not delay it without end. */
  isGapNext: z.literal(true).exactOptional(),
});
type TradePosition = z.infer<typeof position>;

/** A row may be this much newer than the end of its window before the venue counts as ignoring the end. */
const END_SLACK_SECONDS = 2;

export interface TradePage {
  rows: FeedRow[];
  position: TradePosition;
  more: boolean;
  /** The unread part, if any. */
  truncated?: string;
}

type ListTrades = (parameters: Parameters) => Promise<ListAnswer>;

/** Reads the next page after `stored`. Throws the errors of `list`, and VenueError when a whole page is unreadable. */
export async function readTradePage(
  stored: unknown,
  nowMs: number,
  settings: TradeWalkSettings,
  list: ListTrades,
): Promise<TradePage> {
  const pager: Pager = { list, nowMs, settings };
  const parsed = position.safeParse(stored);
  const start = Math.floor(nowMs / 1000) - settings.initialLookbackSeconds;
  const at: TradePosition = parsed.success ? parsed.data : { v: 1, watermark: start, headAtMs: 0, gaps: [] };
  if (at.walk) return walkOn(at, at.walk, pager);
  const [gap, ...others] = at.gaps;
  const sinceHeadMs = nowMs - at.headAtMs;
  if (gap && (at.isGapNext || (sinceHeadMs >= 0 && sinceHeadMs < settings.headEveryMs))) {
    const { rows, left, truncated } = await readStretch(gap, pager);
    const gaps = left ? [left, ...others] : others;
    const { isGapNext: _, ...rest } = at;
    return { rows, position: { ...rest, gaps }, more: gaps.length > 0, ...(truncated !== undefined && { truncated }) };
  }
  const now = Math.floor(nowMs / 1000);
  const floor = parsed.success ? at.watermark - settings.overlapSeconds : at.watermark;
  const begun: TradePosition = { ...at, headAtMs: nowMs, ...(gap && { isGapNext: true }) };
  return walkOn(begun, { top: at.watermark, next: Math.max(now, floor), floor }, pager);
}

interface Pager extends StretchReader {
  settings: TradeWalkSettings;
}

type Walk = NonNullable<TradePosition['walk']>;

async function walkOn(at: TradePosition, walk: Walk, pager: Pager): Promise<TradePage> {
  const read = await readStretch(walk, pager);
  const { left, truncated } = read;
  // Rejected and skipped rows below the watermark were reported when they were first read.
  const isStored = (row: FeedRow) => !row.rejected && row.skipped === undefined;
  const rows = read.rows.filter((row) => isStored(row) || (row.second ?? Number.POSITIVE_INFINITY) > at.watermark);
  // A trade ahead of this clock must not move the watermark past later trades.
  const now = Math.floor(pager.nowMs / 1000);
  const top = Math.max(walk.top, ...read.rows.map((row) => Math.min(row.second ?? 0, now)));
  const page = { rows, ...(truncated !== undefined && { truncated }) };
  if (!left) return { ...page, position: passed(at, top), more: at.gaps.length > 0 };
  if (left.next - left.floor <= pager.settings.longGapSeconds) {
    return { ...page, position: { ...at, walk: { ...left, top } }, more: true };
  }
  return { ...page, position: { ...passed(at, top), gaps: [...at.gaps, left] }, more: true };
}

/** A lagging replica of the venue may show an older feed than before: the watermark never falls. */
function passed(at: TradePosition, top: number): TradePosition {
  const { walk: _, ...rest } = at;
  return { ...rest, watermark: Math.max(at.watermark, top) };
}

/** The inputs of a page read. */
interface StretchReader {
  list: ListTrades;
  nowMs: number;
  settings: { pageSize: number };
}

export interface StretchPage {
  rows: FeedRow[];
  /** Undefined when everything was read, or the rest is unreadable. */
  left?: Stretch;
  truncated?: string;
}

/** One page of a stretch, and its rest. A refused or repeated cursor is replaced by times. */
export async function readStretch(from: Stretch, pager: StretchReader): Promise<StretchPage> {
  const answer = await listStretch(from, pager);
  if (answer === undefined) return withoutCursor(from, 'the venue refuses its cursor');
  const rows = readPage(answer.rows, pager.nowMs);
  const seconds = rows.map((row) => row.second).filter((each) => each !== undefined);
  const isOutside = from.end !== undefined && seconds.some((each) => each > (from.end ?? 0) + END_SLACK_SECONDS);
  if (isOutside) return { rows, truncated: unread(from, 'the venue ignores the end of a window') };
  // The last row counts and not the oldest: one row out of order must not make a gap look closed.
  const next = Math.min(from.next, seconds.at(-1) ?? from.next);
  const isThrough = answer.nextCursor === undefined || rows.length === 0 || next < from.floor;
  if (isThrough) return { rows };
  if (answer.nextCursor === from.cursor) {
    const rest = withoutCursor({ ...from, next }, 'the venue repeats its cursor');
    return { ...rest, rows };
  }
  return { rows, left: stretchOf({ ...from, cursor: answer.nextCursor, next }) };
}

function listStretch(from: Stretch, pager: StretchReader): Promise<ListAnswer | undefined> {
  const { floor: min_ts, end: max_ts, cursor } = from;
  const page = pager.list({ limit: pager.settings.pageSize, min_ts, max_ts, cursor });
  if (cursor === undefined) return page;
  return page.catch((error: unknown) => {
    if (isHttpStatus(error, [400, 422])) return undefined;
    throw error;
  });
}

/** The rest of a stretch by time alone, while that makes progress: a second with more rows than a page makes none. */
function withoutCursor({ end, next, floor }: Stretch, why: string): StretchPage {
  const isFurther = end === undefined || next + 1 < end;
  return isFurther
    ? { rows: [], left: { end: next + 1, next, floor } }
    : { rows: [], truncated: unread({ next, floor }, why) };
}

/** Without the keys that a walk has and a gap does not have. */
function stretchOf({ end, cursor, next, floor }: Stretch): Stretch {
  return { next, floor, ...(end !== undefined && { end }), ...(cursor !== undefined && { cursor }) };
}

function unread({ next, floor }: Stretch, why: string): string {
  return `trades between ${floor} and ${next} (epoch seconds): ${why}`;
}

function readPage(answer: readonly unknown[], nowMs: number): FeedRow[] {
  const rows = readFeed(answer, nowMs);
  refuseUnreadable(KALSHI, rows);
  return rows;
}
