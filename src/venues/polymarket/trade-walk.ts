import { z } from 'zod';
import type { FeedRow } from './parse-trade.ts';
import {
  type ListTrades,
  newestSecond,
  type Pager,
  readPage,
  readWindow,
  type Stretch,
  settle,
  truncation,
  type Window,
  withoutTime,
} from './trade-window.ts';

/**
 * The walk over the global trade feed: from the newest complete second down to the stored watermark less an overlap for
 * late rows, a page a call. The watermark moves once all down to the old one is read, or once a long rest of it is put
 * down as a gap: gaps are filled between walks, so that hours of history keep nobody from the newest trades. A crash in
 * between reads again.
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

type TradePosition = z.infer<typeof position>;
type Walk = NonNullable<TradePosition['walk']>;

/** A second without a newer one behind it counts as complete when it is this old. */
const SETTLED_SECONDS = 3;

export interface TradePage {
  /** Rows of complete seconds, newest first. */
  rows: FeedRow[];
  position: TradePosition;
  more: boolean;
  /** What could not be read, when something could not. */
  truncated?: string;
}

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

interface WalkPager extends Pager {
  settings: TradeWalkSettings;
}

async function beginWalk(at: TradePosition, floor: number, pager: WalkPager): Promise<TradePage> {
  const rows = readPage(await pager.list({ limit: pager.settings.pageSize, offset: 0 }), pager.nowMs);
  const newest = newestSecond(rows) ?? 0;
  const top = Math.floor(pager.nowMs / 1000) - newest >= SETTLED_SECONDS ? newest : newest - 1;
  if (top < floor) return { rows: withoutTime(rows), position: at, more: at.gaps.length > 0 };
  const page = afterWalk(at, { top, next: top, floor }, { rows, reach: 'page' }, pager.settings);
  return { ...page, rows: [...withoutTime(rows), ...page.rows] };
}

async function continueWalk(at: TradePosition, walk: Walk, pager: WalkPager): Promise<TradePage> {
  const window = await readWindow(walk, pager);
  if (window !== 'time_ignored') return afterWalk(at, walk, window, pager.settings);
  const page: TradePage = { rows: [], position: passed(at, walk), more: at.gaps.length > 0 };
  // Only late rows are out of reach when all that is left lies below the watermark.
  return walk.next <= at.watermark ? page : { ...page, truncated: unreachable(at.watermark, walk.next) };
}

async function fillGap(at: TradePosition, gap: Stretch, pager: WalkPager): Promise<TradePage> {
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

function unreachable(from: number, to: number): string {
  return `trades between ${from} and ${to} (epoch seconds): the venue ignores the end of a window`;
}
