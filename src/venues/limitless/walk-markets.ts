import { z } from 'zod';
import type { MarketPage } from '../port.ts';
import type { ListedPage, PageQuery } from './client.ts';
import { listingSizeAt, textOf } from './listing.ts';

/**
 * The walk over the listing as a state machine without I/O. Each walk is a sweep: the venue lists the markets without a result and no
 * others, newest first. Pages shift while markets come and go, so a walk may miss a market that is there, and the store then asks for it
 * by its slug.
 */
export interface MarketWalkSettings {
  pageSize: number;
  /** How often the sweep covers closed markets too: each that waits for its result costs a request. */
  closedEveryMs: number;
}

const position = z.object({
  v: z.literal(1),
  walk: z
    .object({
      startedAtMs: z.number(),
      page: z.number().int(),
      limit: z.number().int(),
      firstSlug: z.string().exactOptional(),
      /** When the oldest page was made that a cache answered with. */
      madeMs: z.number().exactOptional(),
    })
    .exactOptional(),
  /** The end of the latest sweep that covered closed markets. */
  closedAtMs: z.number().exactOptional(),
});
type MarketPosition = z.infer<typeof position>;
type Walk = NonNullable<MarketPosition['walk']>;

/** Ten times the catalog of 2026. */
const MAX_PAGES = 500;

/** Where a stored position stands, beginning a walk when none is in flight. Anything unreadable begins anew. */
export function openWalk(
  stored: unknown,
  nowMs: number,
  { pageSize }: MarketWalkSettings,
): MarketPosition & { walk: Walk } {
  const parsed = position.safeParse(stored);
  const at: MarketPosition = parsed.success ? parsed.data : { v: 1 };
  return { ...at, walk: at.walk ?? { startedAtMs: nowMs, page: 1, limit: listingSizeAt(pageSize, nowMs) } };
}

export function nextQuery({ walk: { page, limit } }: { walk: Walk }): PageQuery {
  return { page, limit };
}

interface Advance {
  position: MarketPosition;
  more: boolean;
  sweep: NonNullable<MarketPage['sweep']>;
  /** Why the walk ended before its time, when it did. */
  cutShort?: string;
}

/** The position after a page. */
export function advance(
  at: MarketPosition & { walk: Walk },
  answer: ListedPage,
  nowMs: number,
  settings: MarketWalkSettings,
): Advance {
  const { walk, ...rest } = at;
  const madeMs = answer.ageMs > 0 ? Math.min(nowMs - answer.ageMs, walk.madeMs ?? nowMs) : walk.madeMs;
  const made = madeMs === undefined ? {} : { madeMs };
  const sweep = {
    startedAtMs: walk.startedAtMs,
    ended: false,
    ...(madeMs !== undefined && madeMs < walk.startedAtMs && { madeSinceMs: madeMs }),
  };
  const cutShort = reasonToStop(walk, answer);
  if (cutShort !== undefined) return { position: rest, more: false, sweep, cutShort };
  if (!answer.isEmpty) {
    const firstSlug = textOf(answer.rows[0], 'slug');
    const { firstSlug: _, ...same } = walk;
    const next = { ...same, ...made, page: walk.page + 1, ...(firstSlug !== undefined && { firstSlug }) };
    return { position: { ...rest, walk: next }, more: true, sweep };
  }
  const includesClosed = nowMs - (at.closedAtMs ?? Number.NEGATIVE_INFINITY) >= settings.closedEveryMs;
  return {
    position: includesClosed ? { ...rest, closedAtMs: nowMs } : rest,
    more: false,
    sweep: { ...sweep, ended: true, ...(includesClosed && { includesClosed }) },
  };
}

/** Why the listing cannot be walked to its end. */
export function reasonToStop(
  { page, firstSlug }: { page: number; firstSlug?: string },
  answer: ListedPage,
): string | undefined {
  if (answer.isEmpty) return page === 1 ? 'the venue lists nothing' : undefined;
  if (firstSlug !== undefined && textOf(answer.rows[0], 'slug') === firstSlug) return 'the venue repeats a page';
  return page >= MAX_PAGES ? `more than ${MAX_PAGES} pages` : undefined;
}
