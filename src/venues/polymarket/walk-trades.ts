import type { TapeKnowledge } from '../port.ts';
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
import type { TradesQuery } from './client.ts';
import { type DataPage, pageSizeAt } from './data-page.ts';
import { type FeedPage, newestSecond, type Pager, readPage, readStretch, withoutTime } from './fetch-trades.ts';
import type { FeedRow } from './parse-trade.ts';

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
