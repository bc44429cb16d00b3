import { z } from 'zod';
import { isHttpStatus } from '../errors.ts';
import type { HistoryRequest } from '../port.ts';
import { callEnd } from '../tape-walk.ts';
import { reachedAt, type WalkBackStep } from '../walk-back.ts';
import type { EventsPage, PageQuery } from './client.ts';
import { readStretch, type StretchRead, stretch } from './fetch-trades.ts';
import { eventsSizeAt } from './listing.ts';
import { SLUG, slugOfOutcomeId } from './outcome-ids.ts';
import type { FeedRow } from './parse-trade.ts';

const position = z.object({ v: z.literal(1), left: stretch });

type HistoryStep = WalkBackStep<FeedRow, z.infer<typeof position>>;

/**
 * The walk back over one market's feed, some pages a call, by the pages of the live walk: a trade that both read has one id. The venue
 * filters by no time, so the walk first skips the rows newer than the range. Throws the errors of `list`, and VenueError when a whole page
 * is unreadable.
 */
export async function readHistoryPage(
  request: HistoryRequest,
  stored: unknown,
  nowMs: number,
  settings: { pageSize: number; pagesPerCall: number; callMs?: number },
  list: (query: PageQuery) => Promise<EventsPage>,
): Promise<HistoryStep> {
  const { marketId, outcomeIds, fromMs, toMs } = request;
  const done: HistoryStep = { rows: [], position: null, reachedMs: fromMs, more: false };
  if (fromMs >= toMs || !SLUG.test(marketId)) return done;
  // Markets without tokens are pools, which have no feed of this form.
  if (outcomeIds.some((id) => slugOfOutcomeId(id) === marketId)) return done;
  const parsed = position.safeParse(stored);
  const limit = eventsSizeAt(settings.pageSize, nowMs);
  const range = { floorMs: fromMs, nextMs: toMs - 1 };
  const from = parsed.success && parsed.data.left.floorMs === fromMs ? parsed.data.left : range;
  let read: StretchRead;
  try {
    const { pagesPerCall, callMs } = settings;
    read = await readStretch(from, { list, nowMs, limit, pagesPerCall, isEnd: callEnd(callMs) });
  } catch (error) {
    if (!isHttpStatus(error, [400, 404])) throw error;
    return { ...done, reachedMs: reachedAbove(request, from.nextMs), truncated: `${marketId}: the venue has no feed` };
  }
  const { rows, left, truncated } = read;
  const page = { rows, ...(truncated !== undefined && { truncated }) };
  if (left === undefined) return { ...done, ...page };
  return { ...page, position: { v: 1, left }, reachedMs: reachedAbove(request, left.nextMs), more: true };
}

/** The millisecond `nextMs` is still to be read. */
function reachedAbove(request: HistoryRequest, nextMs = request.toMs - 1): number {
  return reachedAt(request, nextMs + 1);
}
