import { z } from 'zod';
import type { MarketsQuery } from './client.ts';
import { VENUE_ID } from './outcome-ids.ts';
import { contractIdOf, isMultipleChoice, isRead } from './parse-market.ts';

/**
 * The walk over the catalog as a state machine without I/O. A full walk lists all markets by creation, an order that stays stable during
 * the walk. Walks between full ones list by latest change, down to the last change seen. Listings have no answers, so the multiple-choice
 * markets of a page stay in `pending` until their own pages are read; then the listing continues. New markets are pending too: only their
 * own pages have the description and all topics.
 */
export interface MarketWalkSettings {
  pageSize: number;
  fullWalkEveryMs: number;
  /** The very first walk reads no answers of markets that resolved before this long ago: they are history. */
  answersOfResolvedMs: number;
  /** Bound of a walk by latest change: the next full walk reads the missed markets. */
  maxRecentPages: number;
  /** Markets whose own pages are read in one call. */
  answersPerCall: number;
}

const walkState = z.object({
  kind: z.enum(['full', 'recent']),
  page: z.number().int(),
  before: z.string().optional(),
  /** Ids that the next page repeats. */
  seen: z.array(z.string()),
  firstId: z.string().optional(),
  /** The mark gets this value at the end of the walk. */
  nextMark: z.number(),
  /** Multiple-choice markets need their answers read when they changed since then, or when they are unresolved. */
  answers: z.object({ sinceMs: z.number(), unresolved: z.boolean() }),
  /** Each market created since then is read once from its own page, for the fields that listings do not have. */
  newSinceMs: z.number().optional(),
});

const position = z.object({
  v: z.literal(1),
  /** The start of the latest full walk; absent before the first. */
  fullWalkAtMs: z.number().optional(),
  /** The latest change seen: the next walk by change goes down to it. */
  mark: z.number().optional(),
  walk: walkState.optional(),
  pending: z.array(z.string()),
  /** Markets whose own pages failed. The next walk reads them first. */
  deferred: z.array(z.string()).exactOptional(),
  /** A full walk that missed nothing so far. It ends once the listing and its pending markets were read. */
  sweep: z.object({ startedAtMs: z.number(), isListed: z.boolean() }).optional(),
});
export type MarketPosition = z.infer<typeof position>;
type Walk = z.infer<typeof walkState>;

/** Clocks differ and indexes lag: a walk by change goes this far below the last change seen. */
const MARK_OVERLAP_MS = 10_000;
const MAX_SKEW_MS = 60_000;
/** Later ones replace the first. */
const MAX_DEFERRED = 5_000;

/** The walk of a stored position, or a new walk when the position has none or is unreadable. */
export function openWalk(stored: unknown, nowMs: number, settings: MarketWalkSettings): MarketPosition {
  const parsed = position.safeParse(stored);
  const last: MarketPosition = parsed.success ? parsed.data : { v: 1, pending: [] };
  if (last.walk || last.pending.length > 0) return last;
  const { sweep: _, deferred = [], ...others } = last;
  const at: MarketPosition = { ...others, pending: deferred };
  const start = { page: 0, seen: [], nextMark: nowMs - MAX_SKEW_MS };
  const sinceFullMs = nowMs - (at.fullWalkAtMs ?? Number.NEGATIVE_INFINITY);
  if (sinceFullMs >= 0 && sinceFullMs < settings.fullWalkEveryMs) {
    const newSinceMs = (at.mark ?? at.fullWalkAtMs ?? nowMs) - MARK_OVERLAP_MS;
    // The last page reaches below the mark, to markets that did not change.
    const answers = { sinceMs: newSinceMs, unresolved: false };
    return { ...at, walk: { kind: 'recent', ...start, answers, newSinceMs } };
  }
  const isFirst = at.fullWalkAtMs === undefined;
  const sinceMs = isFirst ? nowMs - settings.answersOfResolvedMs : (at.fullWalkAtMs ?? 0) - MAX_SKEW_MS;
  const walk: Walk = { kind: 'full', ...start, answers: { sinceMs, unresolved: isFirst } };
  return { ...at, fullWalkAtMs: nowMs, walk, sweep: { startedAtMs: nowMs, isListed: false } };
}

/** The position after this many pending pages were asked for; the unread ones wait for the next walk. */
export function withoutPending(at: MarketPosition, count: number, unread: readonly string[] = []): MarketPosition {
  const after = { ...at, pending: at.pending.slice(count) };
  if (unread.length === 0) return after;
  return { ...after, deferred: [...new Set([...(at.deferred ?? []), ...unread])].slice(-MAX_DEFERRED) };
}

/**
 * The sweep of a page that left the walk at `at`, and the position after it. The sweep ends with the page that reads the last pending
 * market of the last listed page.
 */
export function closeSweep(at: MarketPosition): {
  position: MarketPosition;
  sweep?: { startedAtMs: number; ended: boolean };
} {
  const { sweep, ...others } = at;
  if (sweep === undefined) return { position: at };
  const ended = sweep.isListed && at.pending.length === 0;
  return { position: ended ? others : at, sweep: { startedAtMs: sweep.startedAtMs, ended } };
}

export function isListing(at: MarketPosition): at is MarketPosition & { walk: Walk } {
  return at.pending.length === 0 && at.walk !== undefined;
}

/** Whether the next page should be fetched at once. */
export function hasMore(at: MarketPosition): boolean {
  return at.pending.length > 0 || at.walk !== undefined;
}

export function nextQuery({ walk }: { walk: Walk }, settings: MarketWalkSettings): MarketsQuery {
  return {
    sort: walk.kind === 'full' ? 'created-time' : 'updated-time',
    limit: settings.pageSize,
    ...(walk.before !== undefined && { before: walk.before }),
  };
}

interface Advance {
  position: MarketPosition;
  /** Rows that were not on the page before. */
  fresh: unknown[];
  /** The reason for an early end of the walk, if any. */
  cutShort?: string;
}

/**
 * After a page whose next row alone fails: the walk ends, because only the failed page names the next one. Its sweep never ends, so no
 * market counts as missing.
 */
export function afterFailure({ walk, sweep: _, ...at }: MarketPosition & { walk: Walk }): MarketPosition {
  // A walk by change keeps the old mark, so the next walk reads the same changes.
  return walk.kind === 'full' ? { ...at, mark: Math.max(walk.nextMark, at.mark ?? 0) } : at;
}

/**
 * A page below the whole size may end between markets of one millisecond without showing it, so its walk proves no absence.
 */
export function withoutSweep(at: MarketPosition & { walk: Walk }): MarketPosition & { walk: Walk } {
  const { sweep: _, ...others } = at;
  return others;
}

/** The position after a page of the listing. */
export function advance(
  at: MarketPosition & { walk: Walk },
  rows: readonly unknown[],
  nowMs: number,
  settings: MarketWalkSettings,
): Advance {
  const { walk } = at;
  const seen = new Set(walk.seen);
  const fresh = rows.filter((row) => !seen.has(contractIdOf(row) ?? ''));
  const pending = fresh
    .filter((row) => needsAnswers(row, walk, nowMs) || isNew(row, walk))
    .flatMap((row) => contractIdOf(row) ?? [])
    .filter((id) => VENUE_ID.test(id));
  const nextMark = walk.page === 0 ? firstMark(walk, rows, nowMs) : walk.nextMark;
  const end = walkEnd(at, rows, fresh, settings);
  if (end === undefined) {
    const firstId = contractIdOf(rows[0]);
    const { seen: _, before: __, firstId: ___, ...rest } = walk;
    const following: Walk = {
      ...rest,
      ...cursorOf(rows, walk.kind),
      page: walk.page + 1,
      nextMark,
      ...(firstId !== undefined && { firstId }),
    };
    return { fresh, position: { ...at, walk: following, pending } };
  }
  const { walk: _, sweep, ...done } = at;
  // A walk by change that was cut short keeps the old mark, so the next walk reads the same changes.
  const mark = end === '' || walk.kind === 'full' ? Math.max(nextMark, at.mark ?? 0) : at.mark;
  const after: MarketPosition = {
    ...done,
    pending,
    ...(mark !== undefined && { mark }),
    // A listing that was cut short missed markets that exist.
    ...(end === '' && sweep !== undefined && { sweep: { ...sweep, isListed: true } }),
  };
  return end === '' ? { fresh, position: after } : { fresh, position: after, cutShort: `${walk.kind} walk: ${end}` };
}

/**
 * `before=<id>` means strictly below that market's time, so markets of the same time would be lost at the end of a page. The cursor is the
 * last market above the final group of equal times, and the next page repeats the group.
 */
function cursorOf(rows: readonly unknown[], kind: Walk['kind']): { before?: string; seen: string[] } {
  const last = rows.at(-1);
  const lastMs = orderMs(last, kind);
  let start = rows.length - 1;
  while (start > 0 && orderMs(rows[start - 1], kind) === lastMs) start -= 1;
  const above = start > 0 && lastMs !== undefined ? contractIdOf(rows[start - 1]) : undefined;
  if (above !== undefined) return { before: above, seen: rows.slice(start).flatMap((row) => contractIdOf(row) ?? []) };
  const lastId = rows.map(contractIdOf).findLast((id) => id !== undefined);
  return lastId === undefined ? { seen: [] } : { before: lastId, seen: [] };
}

/**
 * Every change after the first page of a walk by change is above that page, even where the venue's answers lag. A full walk takes minutes,
 * so only its beginning counts.
 */
function firstMark(walk: Walk, rows: readonly unknown[], nowMs: number): number {
  if (walk.kind === 'full') return walk.nextMark;
  const changes = rows.flatMap((row) => orderMs(row, 'recent') ?? []).filter((ms) => ms <= nowMs + MAX_SKEW_MS);
  return changes.length === 0 ? walk.nextMark : Math.max(...changes);
}

/** Undefined while the walk continues, '' at its regular end, else the reason for an early end. */
function walkEnd(
  at: MarketPosition & { walk: Walk },
  rows: readonly unknown[],
  fresh: readonly unknown[],
  settings: MarketWalkSettings,
): string | undefined {
  const { walk } = at;
  if (walk.kind === 'full' && walk.page === 0 && rows.length === 0) return 'the venue lists nothing';
  if (fresh.length === 0) return '';
  const firstId = contractIdOf(rows[0]);
  if (firstId !== undefined && firstId === walk.firstId) return 'the venue repeats a page';
  if (!rows.some((row) => contractIdOf(row) !== undefined)) return 'a page without ids';
  if (walk.kind === 'full') return undefined;
  const changes = rows.flatMap((row) => orderMs(row, 'recent') ?? []);
  if (changes.some((ms, index) => ms > (changes[index - 1] ?? Number.POSITIVE_INFINITY))) {
    return 'the venue does not sort by latest change';
  }
  if (at.mark !== undefined && (changes.at(-1) ?? 0) < at.mark - MARK_OVERLAP_MS) return '';
  return walk.page + 1 >= settings.maxRecentPages ? `more than ${settings.maxRecentPages} changed pages` : undefined;
}

function needsAnswers(row: unknown, walk: Walk, nowMs: number): boolean {
  if (!isMultipleChoice(row)) return false;
  const { isResolved } = row as { isResolved?: unknown };
  if (isResolved !== true && walk.answers.unresolved) return true;
  const closeMs = numberOf(row, 'closeTime') ?? 0;
  const changes = [numberOf(row, 'createdTime'), numberOf(row, 'lastUpdatedTime'), numberOf(row, 'resolutionTime')];
  return Math.max(closeMs <= nowMs ? closeMs : 0, ...changes.map((ms) => ms ?? 0)) >= walk.answers.sinceMs;
}

function isNew(row: unknown, { newSinceMs }: Walk): boolean {
  return newSinceMs !== undefined && isRead(row) && (numberOf(row, 'createdTime') ?? 0) >= newSinceMs;
}

function orderMs(row: unknown, kind: Walk['kind']): number | undefined {
  return numberOf(row, kind === 'full' ? 'createdTime' : 'lastUpdatedTime');
}

function numberOf(row: unknown, field: string): number | undefined {
  const value = row !== null && typeof row === 'object' ? (row as Record<string, unknown>)[field] : undefined;
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
