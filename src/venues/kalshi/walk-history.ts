import { z } from 'zod';
import { isHttpStatus } from '../errors.ts';
import type { HistoryRequest } from '../port.ts';
import { type StretchRead, stretch } from '../tape-walk.ts';
import { reachedAt, type WalkBackStep } from '../walk-back.ts';
import type { ListAnswer, Parameters } from './client.ts';
import type { FeedRow } from './parse-trade.ts';
import { outcomeIdsOf } from './tickers.ts';
import { readStretch } from './walk-trades.ts';

/**
 * The walk back over one market's trades, one page per call: down the live route as far as it goes, then down the archive for trades older
 * than the venue's cutoff. The archive begins at the oldest trade of the live route and not at the cutoff, which moves during a walk:
 * trades on both routes are read twice and stored once.
 */
const position = z.object({
  v: z.literal(1),
  route: z.enum(['live', 'archive']),
  left: stretch,
  /** Successive pages that did not reach further back. */
  idlePages: z.number().int(),
});
type HistoryPosition = z.infer<typeof position>;

interface HistoryRoutes {
  /** Trades of the market. */
  list(route: HistoryPosition['route'], parameters: Parameters): Promise<ListAnswer>;
  /** Trades before this epoch second are in the archive only; undefined without an archive. */
  cutoffSecond(): Promise<number | undefined>;
  /** Whether trades before this epoch second can exist. */
  hasBegunBefore(second: number): Promise<boolean>;
}

export type HistoryStep = WalkBackStep<FeedRow, HistoryPosition>;

/** The cutoff may have moved since it was read; it never moved by weeks. */
const CUTOFF_MARGIN_SECONDS = 7 * 86_400;
/** More pages in one second than this mean that the venue's pages repeat. */
const MAX_IDLE_PAGES = 20;

/** Reads the next page after `stored`. Throws the errors of the routes, and VenueError when a whole page is unreadable. */
export async function readHistoryPage(
  request: HistoryRequest,
  stored: unknown,
  nowMs: number,
  settings: { pageSize: number },
  routes: HistoryRoutes,
): Promise<HistoryStep> {
  const range = rangeOf(request);
  if (request.fromMs >= request.toMs) return { rows: [], position: null, reachedMs: request.fromMs, more: false };
  const parsed = position.safeParse(stored);
  const at: HistoryPosition = parsed.success
    ? parsed.data
    : { v: 1, route: 'live', left: { end: range.end, next: range.end, floor: range.floor }, idlePages: 0 };
  let page: StretchRead<FeedRow>;
  try {
    const list = (parameters: Parameters) => routes.list(at.route, parameters);
    page = await readStretch(at.left, { list, nowMs, settings });
  } catch (error) {
    // An archive that is absent or requires a key must not make the walk fail permanently while the cutoff is known.
    if (at.route !== 'archive' || !isHttpStatus(error, [401, 403, 404])) throw error;
    return withoutArchive(request, at, routes);
  }
  return follow(request, at, page, routes);
}

async function follow(
  request: HistoryRequest,
  at: HistoryPosition,
  page: StretchRead<FeedRow>,
  routes: HistoryRoutes,
): Promise<HistoryStep> {
  const rows = rowsInRange(request, page.rows);
  const { left } = page;
  const isForeign = page.rows.some(({ trade }) => trade && trade.outcomeId !== outcomeIdsOf(request.marketId).yes);
  const idlePages = left && left.next >= at.left.next ? at.idlePages + 1 : 0;
  const why = isForeign
    ? 'the venue ignores the market of the request'
    : (page.truncated ?? (idlePages > MAX_IDLE_PAGES ? 'the pages of the venue repeat' : undefined));
  if (why !== undefined) {
    const reachedMs = reachedAbove(request, at.left.next);
    return { rows, position: null, reachedMs, more: false, truncated: unread(request, reachedMs, why) };
  }
  if (left)
    return { rows, position: { ...at, left, idlePages }, reachedMs: reachedAbove(request, left.next), more: true };
  const oldest = Math.min(at.left.next, page.rows.at(-1)?.second ?? at.left.next);
  const { floor } = at.left;
  if (at.route === 'live' && oldest > floor) {
    let cutoff: number | undefined;
    try {
      cutoff = await routes.cutoffSecond();
    } catch (error) {
      // The next call asks again behind these rows, which are stored by then.
      if (oldest >= at.left.next) throw error;
      const rest: HistoryPosition = { ...at, left: startAt(oldest, floor), idlePages: 0 };
      return { rows, position: rest, reachedMs: reachedAbove(request, oldest), more: true };
    }
    if (cutoff !== undefined && rangeOf(request).from < cutoff + CUTOFF_MARGIN_SECONDS) {
      const archive: HistoryPosition = { v: 1, route: 'archive', left: startAt(oldest, floor), idlePages: 0 };
      return { rows, position: archive, reachedMs: reachedAbove(request, oldest), more: true };
    }
  }
  return { rows, position: null, reachedMs: request.fromMs, more: false };
}

/** Down from this second, inclusive. */
function startAt(second: number, floor: number): HistoryPosition['left'] {
  return { end: second + 1, next: second, floor };
}

async function withoutArchive(
  request: HistoryRequest,
  at: HistoryPosition,
  routes: HistoryRoutes,
): Promise<HistoryStep> {
  const cutoff = await routes.cutoffSecond();
  const isMissing = cutoff !== undefined && rangeOf(request).from < cutoff && (await routes.hasBegunBefore(cutoff));
  const end = { rows: [], position: null, more: false };
  if (!isMissing) return { ...end, reachedMs: request.fromMs };
  const reachedMs = reachedAbove(request, at.left.next);
  return { ...end, reachedMs, truncated: unread(request, reachedMs, 'the archive of the venue is not available') };
}

/** In whole seconds, like the venue's filters; one more second below, in case the lower end is exclusive. */
function rangeOf({ fromMs, toMs }: HistoryRequest): { from: number; end: number; floor: number } {
  const from = Math.floor(fromMs / 1000);
  return { from, end: Math.ceil(toMs / 1000), floor: Math.max(0, from - 1) };
}

/** The second `next` may be read only in part. */
function reachedAbove(request: HistoryRequest, next: number): number {
  return reachedAt(request, (next + 1) * 1000);
}

function rowsInRange(request: HistoryRequest, rows: readonly FeedRow[]): FeedRow[] {
  const { yes } = outcomeIdsOf(request.marketId);
  const { from, end } = rangeOf(request);
  return rows.filter(({ trade, second = from }) => {
    if (trade === undefined) return second >= from && second < end;
    return trade.outcomeId === yes && trade.tsMs >= request.fromMs && trade.tsMs < request.toMs;
  });
}

function unread({ fromMs }: HistoryRequest, reachedMs: number, why: string): string {
  return `trades from ${Math.floor(fromMs / 1000)} to ${Math.floor(reachedMs / 1000)} (epoch seconds): ${why}`;
}
