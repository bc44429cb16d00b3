import { z } from 'zod';
import { VenueError } from '../errors.ts';
import type { HistoryRequest } from '../port.ts';
import type { WalkBackStep } from '../walk-back.ts';
import { type BetsQuery, MANIFOLD } from './client.ts';
import { betTimeMs } from './parse-trade.ts';

/**
 * The walk back over one market's bets, newest first, one page per call. It pages by time like the live walk, because a bet id as cursor
 * means its time, exclusively. Each page begins at the last one's oldest millisecond, inclusive.
 */
const position = z.object({
  v: z.literal(1),
  /** The millisecond at which the walk continues, inclusive. */
  next: z.number().int(),
  /** The parts that could not be read so far. */
  truncated: z.string().optional(),
});
type HistoryPosition = z.infer<typeof position>;

/** Its rows are raw bets. */
type HistoryStep = WalkBackStep<unknown, HistoryPosition>;

/** The venue caps no page below this: fewer rows are the end, even where it returns less than the limit. */
const SHORTEST_CAP = 100;

/** Reads the next page after `stored`. Throws the errors of `list`, and VenueError when the bets are not sorted. */
export async function readHistoryPage(
  request: HistoryRequest,
  stored: unknown,
  nowMs: number,
  settings: { pageSize: number },
  list: (query: BetsQuery) => Promise<unknown[]>,
): Promise<HistoryStep> {
  const { marketId: contractId, fromMs, toMs } = request;
  const done = { position: null, more: false, reachedMs: fromMs };
  if (fromMs >= toMs) return { ...done, rows: [] };
  const parsed = position.safeParse(stored);
  const at: HistoryPosition = parsed.success ? parsed.data : { v: 1, next: toMs - 1 };
  const limit = settings.pageSize;
  const answer = await list({
    order: 'desc',
    contractId,
    afterMs: Math.max(0, fromMs - 1),
    beforeMs: at.next + 1,
    limit,
  });
  const times = answer.map((row) => betTimeMs(row, nowMs)).filter((time) => time !== undefined);
  const rows = answer.filter((row) => {
    const time = betTimeMs(row, nowMs);
    const isForeign = typeof contractIdOf(row) === 'string' && contractIdOf(row) !== contractId;
    return !isForeign && (time === undefined || (time >= fromMs && time < toMs));
  });
  const ignored = ignoredFilter(answer, times, request, at);
  if (ignored !== undefined) {
    const truncated = unread(fromMs, at.next, `the venue ignores ${ignored}`);
    return { ...done, rows, reachedMs: at.next + 1, truncated };
  }
  if (times.some((time, index) => time > (times[index - 1] ?? Number.POSITIVE_INFINITY))) {
    throw new VenueError(MANIFOLD, 'invalid_payload', 'the bets are not sorted newest first', { retryable: true });
  }
  const kept = at.truncated === undefined ? {} : { truncated: at.truncated };
  const last = times.at(-1) ?? fromMs;
  if (answer.length < Math.min(limit, SHORTEST_CAP) || last < fromMs) return { ...done, ...kept, rows };
  if (last < at.next) return { rows, ...kept, position: { ...at, next: last }, reachedMs: last + 1, more: true };
  if (answer.length < limit) return { ...done, ...kept, rows };
  // A full page within one millisecond: the rest of that millisecond cannot be requested.
  const truncated = at.truncated ?? unread(at.next, at.next, `more than ${answer.length} in one millisecond`);
  const isOver = at.next <= fromMs;
  if (isOver) return { ...done, rows, truncated };
  return { rows, truncated, position: { v: 1, next: at.next - 1, truncated }, reachedMs: at.next, more: true };
}

function ignoredFilter(
  answer: readonly unknown[],
  times: readonly number[],
  { marketId }: HistoryRequest,
  { next }: HistoryPosition,
): string | undefined {
  if (times.some((time) => time > next)) return 'the end of a window';
  const isForeign = answer.some((row) => typeof contractIdOf(row) === 'string' && contractIdOf(row) !== marketId);
  return isForeign ? 'the market of the request' : undefined;
}

function contractIdOf(row: unknown): unknown {
  return row !== null && typeof row === 'object' ? (row as { contractId?: unknown }).contractId : undefined;
}

function unread(fromMs: number, toMs: number, why: string): string {
  return `bets from ${fromMs} to ${toMs} (epoch milliseconds): ${why}`;
}
