import { isHttpStatus } from '../errors.ts';
import type { TapeKnowledge } from '../port.ts';
import { refuseUnreadable, rejectedOf } from '../rejection.ts';
import {
  newTape,
  type Stretch,
  type StretchRead,
  type TapeSettings,
  type TapeStep,
  tapePosition,
  walkTape,
} from '../tape-walk.ts';
import { KALSHI, type ListAnswer, type Parameters } from './client.ts';
import { type FeedRow, readFeed } from './parse-trade.ts';

export interface TradeWalkSettings extends TapeSettings {
  pageSize: number;
}

/** A row may be this much newer than the end of its window before the venue counts as ignoring the end. */
const END_SLACK_SECONDS = 2;

type ListTrades = (parameters: Parameters) => Promise<ListAnswer>;

/**
 * Reads the next page of the global feed after `stored`. Trades have ids, so a trade that is read twice is stored once. Throws the errors
 * of `list`, and VenueError when a whole page is unreadable.
 */
export async function readTradePage(
  stored: unknown,
  nowMs: number,
  settings: TradeWalkSettings,
  list: ListTrades,
  { isContinued = false, isStored }: TapeKnowledge = {},
): Promise<TapeStep<FeedRow>> {
  const parsed = tapePosition.safeParse(stored);
  const at = parsed.success ? parsed.data : newTape(nowMs, settings);
  const read = (from: Stretch) => readStretch(from, { list, nowMs, settings, isStored });
  return walkTape(at, {
    settings,
    nowMs,
    isContinued,
    read,
    async begin({ known, floor }) {
      const walk = { top: known, next: Math.max(Math.floor(nowMs / 1000), floor), floor };
      return { walk, read: await read(walk) };
    },
  });
}

/** The inputs of a page read. */
interface StretchReader {
  list: ListTrades;
  nowMs: number;
  settings: { pageSize: number };
  isStored?: TapeKnowledge['isStored'];
}

/** One page of a stretch, and its rest. A refused or repeated cursor is replaced by times. */
export async function readStretch(from: Stretch, pager: StretchReader): Promise<StretchRead<FeedRow>> {
  const answer = await listStretch(from, pager);
  if (answer === undefined) return withoutCursor(from, 'the venue refuses its cursor');
  const rows = readPage(answer.rows, pager);
  const seconds = rows.map((row) => row.second).filter((each) => each !== undefined);
  const isOutside = from.end !== undefined && seconds.some((each) => each > (from.end ?? 0) + END_SLACK_SECONDS);
  if (isOutside) return { rows, truncated: unread(from, 'the venue ignores the end of a window') };
  // The last row counts and not the oldest: one row out of order must not make a gap look closed.
  const next = Math.min(from.next, seconds.at(-1) ?? from.next);
  const { nextCursor: cursor } = answer;
  if (cursor === undefined || rows.length === 0 || next < from.floor) return { rows };
  if (cursor === from.cursor) {
    const rest = withoutCursor({ ...from, next }, 'the venue repeats its cursor');
    return { ...rest, rows };
  }
  return { rows, left: stretchOf({ ...from, cursor, next }) };
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
function withoutCursor({ end, next, floor }: Stretch, why: string): StretchRead<FeedRow> {
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

function readPage(answer: readonly unknown[], { nowMs, isStored }: StretchReader): FeedRow[] {
  let rows = readFeed(answer, nowMs, isStored);
  // A changed format shows in known rows too: without them, a few bad rows would pass as single faults.
  const isSuspect = rows.some(({ rejected }) => rejected) && rows.every(({ rejected, isKnown }) => rejected || isKnown);
  if (isSuspect) rows = readFeed(answer, nowMs);
  refuseUnreadable(KALSHI, 'trade', rows.length, rejectedOf(rows));
  return rows;
}
