import { z } from 'zod';
import { VenueError } from '../errors.ts';
import { type BetsQuery, MANIFOLD } from './client.ts';
import { betTimeMs } from './parse-trade.ts';

/**
 * The walk over the global bet feed, oldest first, by time rather than by bet id. `after=<id>` means that bet's time, exclusively, so bets
 * of the same millisecond (one multiple-choice bet makes many) would be lost. Each page begins at the last one's newest millisecond,
 * inclusive. A new walk begins an overlap before the watermark, for bets that were stamped before others and stored after them. Bets keep
 * their ids, so reading one again changes nothing.
 */
export interface BetWalkSettings {
  pageSize: number;
  overlapMs: number;
  initialLookbackMs: number;
}

const ms = z.number().int();
const position = z.object({
  v: z.literal(1),
  /** All bets up to this millisecond were read, except late ones. */
  watermark: ms,
  /** The millisecond at which the current walk continues, inclusive. */
  next: ms.optional(),
});
type BetPosition = z.infer<typeof position>;

interface BetPage {
  /** Raw bets. */
  rows: unknown[];
  position: BetPosition;
  /** Rejections of bets up to here were reported when they were first read. */
  reportedMs: number;
  more: boolean;
  /** The unread part, if any. */
  truncated?: string;
}

/** Reads the next page after `stored`. Throws the errors of `list`, and VenueError when the feed is not sorted. */
export async function readBetPage(
  stored: unknown,
  nowMs: number,
  settings: BetWalkSettings,
  list: (query: BetsQuery) => Promise<unknown[]>,
): Promise<BetPage> {
  const parsed = position.safeParse(stored);
  const start = nowMs - settings.initialLookbackMs;
  const at: BetPosition = parsed.success ? parsed.data : { v: 1, watermark: start, next: start };
  const from = at.next ?? at.watermark - settings.overlapMs;
  const rows = await list({ order: 'asc', afterMs: from - 1, limit: settings.pageSize });
  const times = rows.map((row) => betTimeMs(row, nowMs)).filter((time) => time !== undefined);
  const isFull = rows.length >= settings.pageSize;
  if (isFull && times.some((time, index) => time < (times[index - 1] ?? 0))) {
    throw new VenueError(MANIFOLD, 'invalid_payload', 'the bets are not sorted oldest first', { retryable: true });
  }
  const newest = Math.max(at.watermark, ...times);
  const page = { rows, reportedMs: at.watermark };
  // A short page is the end of the feed, or a cap below the limit: in both cases the next walk continues from here.
  if (!isFull) return { ...page, position: { v: 1, watermark: newest }, more: false };
  const last = times.at(-1) ?? from;
  if (last > from) return { ...page, position: { v: 1, watermark: newest, next: last }, more: true };
  if (times.some((time) => time < from)) {
    // The next walk continues from here. A walk that went on would read this page again and again.
    const why = `bets after millisecond ${from}: the venue repeats a page`;
    return { ...page, position: { v: 1, watermark: newest }, more: false, truncated: why };
  }
  const truncated = `bets of millisecond ${from}: more than ${rows.length} of them`;
  return { ...page, position: { v: 1, watermark: Math.max(newest, from), next: from + 1 }, more: true, truncated };
}
