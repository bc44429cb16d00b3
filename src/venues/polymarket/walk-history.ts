import { z } from 'zod';
import type { HistoryRequest } from '../port.ts';
import { callEnd, type Stretch } from '../tape-walk.ts';
import { reachedAt, type WalkBackStep } from '../walk-back.ts';
import type { TradesQuery } from './client.ts';
import { isConditionId, wholeConditionId } from './condition-ids.ts';
import { type DataPage, pageSizeAt } from './data-page.ts';
import type { FeedRow } from './parse-trade.ts';
import { readStretch } from './walk-trades.ts';

/**
 * The newest unread second, and the cursor of a page at or above its first row. The rest is in the request, so a position never outlives
 * its range. A position of an older release has no cursor: the walk skips down from the newest page.
 */
const position = z.object({ v: z.literal(1), next: z.number().int(), cursor: z.string().exactOptional() });

/** The feed of one market serves three years. */
const SERVED_SECONDS = 3 * 365 * 86_400;
/** A feed that ends this near to its limit counts as cut there; a feed that ends later ends with its market's first trade. */
const NEAR_LIMIT_SECONDS = 30 * 86_400;

type HistoryStep = WalkBackStep<FeedRow, z.infer<typeof position>>;

/**
 * The walk back over one market's trades, some pages per call, by the pages of the live walk: a trade that both walks read has one id. The
 * venue has no filter for the end of a range, so the walk first skips newer rows. Each call reaches further back or skips further down, so
 * the walk ends. Throws the errors of `list`, and VenueError when a whole page is unreadable.
 */
export async function readHistoryPage(
  request: HistoryRequest,
  stored: unknown,
  nowMs: number,
  settings: { pageSize: number; pagesPerCall: number; callMs?: number },
  list: (query: TradesQuery) => Promise<DataPage>,
): Promise<HistoryStep> {
  const open = openStretch(request, stored);
  const { floor, next } = open;
  const done: HistoryStep = { rows: [], position: null, reachedMs: request.fromMs, more: false };
  if (next < floor || !isConditionId(request.marketId)) return done;
  const market = wholeConditionId(request.marketId);
  const limit = pageSizeAt(settings.pageSize, nowMs);
  let isIgnored = false;
  const read = await readStretch(open, {
    async list(cursor) {
      const page = await list({ market, limit, ...(cursor !== undefined && { cursor }) });
      isIgnored ||= page.rows.some((row) => isForeign(row, market));
      return page;
    },
    nowMs,
    pagesPerCall: settings.pagesPerCall,
    isEnd: callEnd(settings.callMs),
  });
  if (isIgnored) {
    const truncated = `trades from ${floor} to ${next} (epoch seconds): the venue ignores the market of the request`;
    return { ...done, reachedMs: reachedAbove(request, next), truncated };
  }
  const servedFrom = read.isFeedEnd ? servedFromOf(floor, read.rows, nowMs) : undefined;
  const unserved =
    servedFrom !== undefined && `trades from ${floor} to ${servedFrom} (epoch seconds): the venue serves three years`;
  const truncated = read.truncated ?? unserved;
  const page = { rows: [...read.rows, ...read.timeless], ...(truncated && { truncated }) };
  if (servedFrom !== undefined) return { ...done, ...page, reachedMs: reachedAt(request, servedFrom * 1000) };
  if (!read.left) return { ...done, ...page };
  const { floor: _, ...left } = read.left;
  return { ...page, position: { v: 1, ...left }, reachedMs: reachedAbove(request, left.next), more: true };
}

/** The second at which the feed was cut; undefined for a feed that ends with its market's first trade. */
function servedFromOf(floor: number, newestFirst: readonly FeedRow[], nowMs: number): number | undefined {
  const servedFrom = Math.floor(nowMs / 1000) - SERVED_SECONDS;
  const oldest = newestFirst.at(-1)?.second ?? Number.POSITIVE_INFINITY;
  return floor >= servedFrom || oldest > servedFrom + NEAR_LIMIT_SECONDS ? undefined : servedFrom;
}

/** The unread seconds of the range; a position of another range begins at the end of this one. */
function openStretch({ fromMs, toMs }: HistoryRequest, stored: unknown): Stretch {
  const parsed = position.safeParse(stored);
  const newest = Math.ceil(toMs / 1000) - 1;
  const floor = Math.ceil(fromMs / 1000);
  if (!parsed.success || parsed.data.next > newest) return { floor, next: newest };
  const { v: _, ...rest } = parsed.data;
  return { floor, ...rest };
}

/** Everything above the second `next` was read. */
function reachedAbove(request: HistoryRequest, next: number): number {
  return reachedAt(request, (next + 1) * 1000);
}

function isForeign(row: unknown, market: string): boolean {
  const id = (row as { condition_id?: unknown } | null)?.condition_id;
  return typeof id === 'string' && id !== '' && wholeConditionId(id) !== market;
}
