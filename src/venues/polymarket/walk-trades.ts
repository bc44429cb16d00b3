import { z } from 'zod';
import { callEnd } from '../tape-page.ts';
import type { TradesQuery } from './client.ts';
import type { DataPage } from './data-page.ts';
import { pageSizeAt } from './data-page.ts';
import {
  newestSecond,
  type Pager,
  readPage,
  readStretch,
  type Stretch,
  type StretchRead,
  stretch,
  withoutTime,
} from './fetch-trades.ts';
import type { FeedRow } from './parse-trade.ts';

/**
 * The walk over the global trade feed, some pages per call: from the newest complete second down to the stored watermark less an overlap
 * for late rows. The watermark moves once everything down to the old one is read. A long rest becomes a gap and moves the watermark too:
 * gaps are filled between walks, so hours of history never delay the newest trades. After a crash the walk repeats a part.
 */
export interface TradeWalkSettings {
  /** The largest page; `pageSizeAt` gives each first page its own size. */
  pageSize: number;
  pagesPerCall: number;
  /** A call begins no further page after this long. */
  callMs?: number;
  overlapSeconds: number;
  initialLookbackSeconds: number;
  /** A longer rest of a walk becomes a gap. */
  longGapSeconds: number;
  /** Interval of reads of the newest trades while gaps exist; at least 1,000, so that each first page has an address of its own. */
  headEveryMs: number;
}

const second = z.number().int();
/**
 * A position of an older release has neither `since` nor cursors. An older process that reads a position of this release drops them and
 * continues by seconds.
 */
const position = z.object({
  v: z.literal(1),
  /** All seconds up to this one were read, except gaps. */
  watermark: second,
  /** The start of the latest walk, epoch milliseconds. */
  headAtMs: z.number(),
  /** The first second that no walk over version 1 of the Data API has read. */
  since: second.exactOptional(),
  /** The current walk: `top` becomes the watermark. */
  walk: stretch.extend({ top: second }).exactOptional(),
  gaps: z.array(stretch),
  /** The latest walk went before a gap, so a page of the gap is next: slow walks must not delay it without end. */
  isGapNext: z.literal(true).exactOptional(),
});

type TradePosition = z.infer<typeof position>;
type Walk = NonNullable<TradePosition['walk']>;

/** The newest second counts as complete at this age. */
const SETTLED_SECONDS = 3;

export interface TradePage {
  /** Rows of complete seconds, newest first. */
  rows: FeedRow[];
  position: TradePosition;
  more: boolean;
  /** The unread part, if any. */
  truncated?: string;
}

/** Reads the next pages after `stored`. Throws the errors of `list`, and VenueError when a whole page is unreadable. */
export async function readTradePage(
  stored: unknown,
  nowMs: number,
  settings: TradeWalkSettings,
  list: (query: TradesQuery) => Promise<DataPage>,
): Promise<TradePage> {
  const { at, floor } = openPosition(stored, nowMs, settings);
  const limit = pageSizeAt(settings.pageSize, nowMs);
  const pager: WalkPager = {
    list: (cursor) => list({ limit, ...(cursor !== undefined && { cursor }) }),
    nowMs,
    pagesPerCall: settings.pagesPerCall,
    isEnd: callEnd(settings.callMs),
    settings,
  };
  if (at.walk) return afterWalk(at, at.walk, await readStretch(at.walk, pager), pager);
  const [gap] = at.gaps;
  const sinceHeadMs = nowMs - at.headAtMs;
  if (gap && (at.isGapNext || (sinceHeadMs >= 0 && sinceHeadMs < settings.headEveryMs))) return fillGap(at, gap, pager);
  // The first page of this second was already requested: the CDN would repeat its answer.
  if (isSameSecond(at.headAtMs, nowMs)) return { rows: [], position: at, more: at.gaps.length > 0 };
  return beginWalk({ ...at, headAtMs: nowMs, ...(gap && { isGapNext: true }) }, floor, pager);
}

/**
 * The position and the end of the next walk. The two versions of the API write the digits of some prices in different ways, so one trade
 * would get two ids: a second that was read by version 1 is not read again.
 */
function openPosition(
  stored: unknown,
  nowMs: number,
  settings: TradeWalkSettings,
): { at: TradePosition; floor: number } {
  const parsed = position.safeParse(stored);
  if (!parsed.success) {
    const start = Math.floor(nowMs / 1000) - settings.initialLookbackSeconds;
    return { at: { v: 1, watermark: start, headAtMs: 0, since: start, gaps: [] }, floor: start };
  }
  const at = parsed.data;
  const since = at.since ?? (at.walk?.top ?? at.watermark) + 1;
  const walk = at.walk && { ...at.walk, floor: at.since === undefined ? at.watermark + 1 : at.walk.floor };
  const floor = Math.max(at.watermark - settings.overlapSeconds, since);
  return { at: { ...at, since, ...(walk && { walk }) }, floor };
}

interface WalkPager extends Pager {
  settings: TradeWalkSettings;
}

/**
 * A page from the CDN is an older view of the feed: its rows are sound, and the completeness of its newest second depends on its own time.
 */
async function beginWalk(at: TradePosition, floor: number, pager: WalkPager): Promise<TradePage> {
  const first = await readPage(undefined, pager);
  const newest = newestSecond(first.rows) ?? 0;
  const isSettled = Math.floor((pager.nowMs - first.ageMs) / 1000) - newest >= SETTLED_SECONDS;
  const top = isSettled ? newest : newest - 1;
  if (top < floor) return { rows: withoutTime(first.rows), position: at, more: at.gaps.length > 0 };
  const walk = { top, next: top, floor };
  return afterWalk(at, walk, await readStretch(walk, pager, first), pager);
}

async function fillGap(at: TradePosition, gap: Stretch, pager: WalkPager): Promise<TradePage> {
  const [, ...others] = at.gaps;
  const { isGapNext: _, ...rest } = at;
  const { rows, timeless, left, ...read } = await readStretch(gap, pager);
  const gaps = left ? [left, ...others] : others;
  const truncated = read.truncated ?? unservedText(gap, read, pager.nowMs);
  return {
    rows: [...timeless, ...rows],
    position: { ...rest, gaps },
    more: gaps.length > 0,
    ...(truncated !== undefined && { truncated }),
  };
}

/** The page and the position after a call. Rejected and skipped rows below the watermark were counted when they were first read. */
function afterWalk(at: TradePosition, walk: Walk, read: StretchRead, { settings, nowMs }: WalkPager): TradePage {
  const { left, timeless } = read;
  const rows = read.rows.filter((row) => row.trade !== undefined || (row.second ?? 0) > at.watermark);
  const truncated = read.truncated ?? unservedText(walk, read, nowMs);
  const page = { rows: [...timeless, ...rows], ...(truncated !== undefined && { truncated }) };
  if (!left) return { ...page, position: passed(at, walk), more: at.gaps.length > 0 };
  if (left.next - left.floor <= settings.longGapSeconds) {
    return { ...page, position: { ...at, walk: { ...left, top: walk.top } }, more: true };
  }
  return { ...page, position: { ...passed(at, walk), gaps: [...at.gaps, left] }, more: true };
}

/** A lagging replica of the venue may show an older feed than before: the watermark never falls. */
function passed(at: TradePosition, walk: Walk): TradePosition {
  const { walk: _, ...rest } = at;
  return { ...rest, watermark: Math.max(at.watermark, walk.top) };
}

/** The global feed serves this calendar month and the one before. */
function unservedText({ floor }: Stretch, { isFeedEnd }: Pick<StretchRead, 'isFeedEnd'>, nowMs: number) {
  const now = new Date(nowMs);
  const from = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1) / 1000;
  if (!isFeedEnd || floor >= from) return undefined;
  return `trades from ${floor} to ${from} (epoch seconds): the feed of the venue begins later`;
}

function isSameSecond(oneMs: number, otherMs: number): boolean {
  return Math.floor(oneMs / 1000) === Math.floor(otherMs / 1000);
}
