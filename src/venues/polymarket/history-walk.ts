import { z } from 'zod';
import type { HistoryRequest } from '../port.ts';
import type { FeedRow } from './parse-trade.ts';
import { type ListTrades, readWindow, type Stretch, settle, truncation } from './trade-window.ts';

/** The one form of the ids that `GET /trades` and Gamma know markets by. */
const CONDITION_ID = /^0x[0-9a-f]{64}$/i;

export function isConditionId(id: string): boolean {
  return CONDITION_ID.test(id);
}

/** The newest second that was not read yet. The rest is in the request, so that a position never outlives its range. */
const position = z.object({ v: z.literal(1), next: z.number().int() });

export interface HistoryStep {
  /** Rows of complete seconds inside the request's range, newest first; refused ones without a time come last. */
  rows: FeedRow[];
  position: z.infer<typeof position> | null;
  /** Epoch milliseconds: everything from here to the end of the range was read. Falls from page to page. */
  reachedMs: number;
  more: boolean;
  /** What the venue would not give. The walk goes on below it where it can. */
  truncated?: string;
}

/**
 * The walk back over one market's trades, a page a call, by the windows of the live walk: a trade that both read has
 * one id. Where the venue pages no further, the next window ends below the oldest complete second. Each page is at
 * least a second further back than the one before, so the walk ends. Throws what `list` throws, and VenueError when a
 * whole page is unreadable.
 */
export async function readHistoryPage(
  request: HistoryRequest,
  stored: unknown,
  nowMs: number,
  settings: { pageSize: number },
  list: ListTrades,
): Promise<HistoryStep> {
  const { floor, next } = openStretch(request, stored);
  const done: HistoryStep = { rows: [], position: null, reachedMs: request.fromMs, more: false };
  if (next < floor || !isConditionId(request.marketId)) return done;
  const stop = (why: string): HistoryStep => ({
    ...done,
    reachedMs: reachedAt(request, next),
    truncated: `trades from ${floor} to ${next} (epoch seconds): ${why}`,
  });
  const ofMarket: ListTrades = (query) => list({ ...query, market: request.marketId, ...startOf(floor) });
  const window = await readWindow({ next, floor }, { list: ofMarket, nowMs, settings });
  if (window === 'time_ignored') return stop('the venue ignores or refuses the window');
  if (window.rows.some((row) => isForeign(row, request.marketId))) {
    return stop('the venue ignores which market is asked for');
  }
  const { rows, left } = settle({ next, floor }, window);
  const page = { rows: [...rows, ...(window.timeless ?? [])], ...truncation(window) };
  if (!left) return { ...done, ...page };
  return { ...page, position: { v: 1, next: left.next }, reachedMs: reachedAt(request, left.next), more: true };
}

/** The whole seconds of the range that are left; a position that is not its own begins at the end of the range. */
function openStretch({ fromMs, toMs }: HistoryRequest, stored: unknown): Stretch {
  const parsed = position.safeParse(stored);
  const newest = Math.ceil(toMs / 1000) - 1;
  return {
    floor: Math.ceil(fromMs / 1000),
    next: parsed.success ? Math.min(parsed.data.next, newest) : newest,
  };
}

/**
 * One second below what is wanted, since nothing says whether `start` is inclusive; none where nobody was trading yet.
 */
function startOf(floor: number): { start?: number } {
  return floor > 1 ? { start: floor - 1 } : {};
}

/** With everything above the second `next` read. */
function reachedAt({ fromMs, toMs }: HistoryRequest, next: number): number {
  return Math.min(toMs, Math.max(fromMs, (next + 1) * 1000));
}

function isForeign(row: FeedRow, marketId: string): boolean {
  return row.marketId !== undefined && row.marketId.toLowerCase() !== marketId.toLowerCase();
}
