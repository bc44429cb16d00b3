import { z } from 'zod';
import { VenueError } from '../errors.ts';
import type { TapeKnowledge, TapePage } from '../port.ts';
import { isOverlapDue } from '../tape-walk.ts';
import { type BetsQuery, MANIFOLD } from './client.ts';
import { betTimeMs } from './parse-trade.ts';

/**
 * The walk over the global bet feed, oldest first, by time rather than by bet id. `after=<id>` means that bet's time, exclusively, so bets
 * of the same millisecond (one multiple-choice bet makes many) would be lost. Each page begins at the last one's newest millisecond,
 * inclusive. Bets that were stamped before others and stored after them are below the newest known bet: when they are due to be looked
 * for, a walk begins an overlap before the watermark. If its first page does not reach the known bets, its other pages are read between
 * the newest bets, some after each. The watermark moves at its end. Bets keep their ids, so reading one again changes nothing.
 */
export interface BetWalkSettings {
  pageSize: number;
  overlapMs: number;
  /** Pages of the overlap after each read of the newest bets: a bound of the cost of a tick at any rate of bets. */
  overlapReads: number;
  initialLookbackMs: number;
}

const ms = z.number().int();
const position = z.object({
  v: z.literal(1),
  /** All bets up to this millisecond were read, and the overlap behind it. */
  watermark: ms,
  /** The millisecond at which the first walk continues, inclusive. */
  next: ms.optional(),
  /** Absent until the first walk has ended. Releases without it begin an overlap before the watermark. */
  tip: z
    .object({
      /** All bets up to this millisecond were read. Above the watermark, the overlap was not read since. */
      ms,
      /** The millisecond at which a walk over the newest bets continues, inclusive. */
      next: ms.optional(),
      /** When the newest bets were read, epoch milliseconds: the position changes with each page. */
      atMs: z.number(),
      /** The start of the latest walk through the overlap, epoch milliseconds. */
      overlapAtMs: z.number(),
      isOverlapDue: z.literal(true).optional(),
      /** The unread part of that walk. */
      overlap: z.object({ next: ms, until: ms }).optional(),
      /** Its pages since the newest bets were read. */
      reads: z.number().int(),
    })
    .optional(),
});
type BetPosition = z.infer<typeof position>;
type Tip = NonNullable<BetPosition['tip']>;

interface BetPage extends Pick<TapePage, 'caughtUpMs'> {
  /** Raw bets. */
  rows: unknown[];
  position: BetPosition;
  /** Rejections of bets up to here were reported when they were first read. */
  reportedMs: number;
  more: boolean;
  /** The unread part, if any. */
  truncated?: string;
}

type ListBets = (query: BetsQuery) => Promise<unknown[]>;

/** Reads the next page after `stored`. Throws the errors of `list`, and VenueError when the feed is not sorted. */
export async function readBetPage(
  stored: unknown,
  nowMs: number,
  settings: BetWalkSettings,
  list: ListBets,
  { isContinued = false }: Pick<TapeKnowledge, 'isContinued'> = {},
): Promise<BetPage> {
  const parsed = position.safeParse(stored);
  const start = nowMs - settings.initialLookbackMs;
  const at: BetPosition = parsed.success ? parsed.data : { v: 1, watermark: start, next: start };
  const { watermark } = at;
  const read = (from: number) => readFrom(from, nowMs, settings, list);
  if (at.next !== undefined) {
    const { newestMs, next, ...page } = await read(at.next);
    const newest = Math.max(watermark, newestMs);
    const isEnd = next === undefined;
    const after = { v: 1 as const, watermark: newest, ...(!isEnd && { next }) };
    return { ...page, reportedMs: watermark, position: after, more: !isEnd, ...(isEnd && { caughtUpMs: nowMs }) };
  }
  // A position of another release has no tip, and requests the overlap.
  const tip: Tip = {
    ...(at.tip ?? { ms: watermark, atMs: 0, overlapAtMs: 0, reads: 0 }),
    ...(!isContinued && { isOverlapDue: true }),
  };
  const isHeadNext = tip.next !== undefined;
  const { overlap } = tip;
  if (!isHeadNext && overlap !== undefined && tip.reads < settings.overlapReads) {
    const { newestMs, next, ...page } = await read(overlap.next);
    const reached = next ?? endOf(overlap.next, newestMs, overlap.until);
    const moved = { overlap: { ...overlap, next: reached }, reads: tip.reads + 1 };
    const after = { ...tip, ...moved, ms: Math.max(tip.ms, newestMs) };
    return { ...page, reportedMs: tip.ms, ...afterTip(watermark, after, settings) };
  }
  const isFull = !isHeadNext && !overlap && (tip.isOverlapDue || isOverlapDue(tip.overlapAtMs, nowMs));
  const from = isFull ? watermark - settings.overlapMs : (tip.next ?? tip.ms);
  const { newestMs, next, ...page } = await read(from);
  const { next: _, isOverlapDue: isStillDue, ...kept } = tip;
  const head = { ...kept, ms: Math.max(tip.ms, newestMs), atMs: nowMs, reads: 0 };
  if (!isFull) {
    const after = { ...head, ...(isStillDue && { isOverlapDue: isStillDue }), ...(next !== undefined && { next }) };
    return { ...page, reportedMs: tip.ms, ...afterTip(watermark, after, settings) };
  }
  const reached = next ?? endOf(from, newestMs, tip.ms);
  const isEnd = next === undefined && reached >= tip.ms;
  const after = {
    ...head,
    overlapAtMs: nowMs,
    overlap: isEnd ? { next: head.ms, until: head.ms } : { next: reached, until: tip.ms },
    // The newest bets go before the rest of the overlap.
    ...(!isEnd && { next: Math.max(reached, tip.ms) }),
  };
  return { ...page, reportedMs: tip.ms, ...afterTip(watermark, after, settings) };
}

/** Where the overlap continues after a short page: at its end, unless a cap of the venue, or an old copy, cut the page before that. */
function endOf(from: number, newestMs: number, until: number): number {
  return newestMs > from && newestMs < until ? newestMs : until;
}

/** The position after a page. A walk through the overlap ends when it has reached the bets that were known at its start. */
function afterTip(
  watermark: number,
  tip: Tip,
  { overlapReads }: BetWalkSettings,
): Pick<BetPage, 'position' | 'more' | 'caughtUpMs'> {
  const { overlap, ...rest } = tip;
  const isHeadEnd = tip.next === undefined;
  if (overlap === undefined || !isHeadEnd || overlap.next < overlap.until) {
    const more = !isHeadEnd || (overlap !== undefined && tip.reads < overlapReads);
    return { position: { v: 1, watermark, tip }, more };
  }
  const position: BetPosition = { v: 1, watermark: Math.max(watermark, overlap.until), tip: rest };
  return { position, more: false, caughtUpMs: tip.overlapAtMs };
}

interface BetsRead {
  rows: unknown[];
  newestMs: number;
  /** The millisecond at which the next page begins; absent at the end of the feed. */
  next?: number;
  truncated?: string;
}

/** One page from a millisecond on, inclusive. */
async function readFrom(from: number, nowMs: number, { pageSize }: BetWalkSettings, list: ListBets): Promise<BetsRead> {
  const rows = await list({ order: 'asc', afterMs: from - 1, limit: pageSize });
  const times = rows.map((row) => betTimeMs(row, nowMs)).filter((time) => time !== undefined);
  const isFull = rows.length >= pageSize;
  if (isFull && times.some((time, index) => time < (times[index - 1] ?? 0))) {
    throw new VenueError(MANIFOLD, 'invalid_payload', 'the bets are not sorted oldest first', { retryable: true });
  }
  const page = { rows, newestMs: Math.max(0, ...times) };
  // A short page is the end of the feed, or a cap below the limit: in both cases the next walk continues from here.
  if (!isFull) return page;
  const last = times.at(-1) ?? from;
  if (last > from) return { ...page, next: last };
  if (times.some((time) => time < from)) {
    // The next walk continues from here. A walk that went on would read this page again and again.
    return { ...page, truncated: `bets after millisecond ${from}: the venue repeats a page` };
  }
  const truncated = `bets of millisecond ${from}: more than ${rows.length} of them`;
  return { ...page, newestMs: Math.max(page.newestMs, from), next: from + 1, truncated };
}
