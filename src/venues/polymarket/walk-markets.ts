import { z } from 'zod';
import { parseVenueTimeMs } from '../venue-time.ts';
import type { Listing, MarketsAnswer, MarketsQuery } from './client.ts';

/**
 * The walk over Gamma's catalog as a state machine without I/O: it chooses the next page and evaluates each page. A full walk lists all
 * open markets, then the closed ones by latest change, because the default filter hides closed markets and with them closes and
 * resolutions. Between full walks, both lists are walked from the latest change down to the last one seen.
 */
export interface MarketWalkSettings {
  pageSize: number;
  fullWalkEveryMs: number;
  /** Pages of closed markets in the very first walk: older ones are history, which is read on demand only. */
  firstClosedPages: number;
  /** Bound of a walk by latest change between full walks: the next full walk reads the missed markets. */
  maxRecentPages: number;
  /** The same bound within a full walk: after a long outage it catches up on the markets that closed meanwhile. */
  maxCatchUpPages: number;
}

const phase = z.object({
  name: z.enum(['open', 'closed']),
  /** By latest change, down to the mark; else the whole listing. */
  byChange: z.boolean(),
  /** Part of a full walk. */
  full: z.boolean(),
  cursor: z.string().optional(),
  offset: z.number().int(),
  page: z.number().int(),
  /** Restarts of the phase after a refused cursor. */
  restarts: z.number().int(),
  /** Places in a row that were skipped before the next page, because their markets fail. */
  skipped: z.number().int().optional(),
  firstId: z.string().optional(),
  previousFirstId: z.string().optional(),
  /** The creation time of the oldest page from a cache. */
  madeMs: z.number().optional(),
});

const position = z.object({
  v: z.literal(1),
  listing: z.enum(['keyset', 'offset']),
  /** The start of the latest full walk; absent before the first. */
  fullWalkAtMs: z.number().optional(),
  /** The latest change seen in each listing: the next walk by change goes down to it. */
  marks: z.object({ open: z.number().optional(), closed: z.number().optional() }),
  /** The mark of the current phase; it counts once the phase ends. */
  nextMark: z.number().optional(),
  /** Counts the walks: each uses another limit, so its addresses are new to caches. */
  turn: z.number().int().nonnegative().optional(),
  phases: z.array(phase),
});

export type MarketPosition = z.infer<typeof position>;
type Phase = z.infer<typeof phase>;

/** Clocks differ and indexes lag: a walk by change goes this far below the last change seen. */
const MARK_OVERLAP_MS = 10_000;
const MAX_SKEW_MS = 60_000;
/** A venue that refuses its own cursors would otherwise restart a phase endlessly. */
const MAX_RESTARTS = 2;
/** After more places in a row, the listing fails as a whole. */
const MAX_SKIPPED = 3;
/** The lifetime of a page in the venue's cache. */
const MAX_AGE_MS = 300_000;
/** This many walks by change use different limits: more than run within the lifetime of a page. */
const LIMIT_TURNS = 30;

/** The walk of a stored position, or a new walk when the position has none or is unreadable. */
export function openWalk(stored: unknown, nowMs: number, settings: MarketWalkSettings): MarketPosition {
  const parsed = position.safeParse(stored);
  const at: MarketPosition = parsed.success ? parsed.data : { v: 1, listing: 'keyset', marks: {}, phases: [] };
  if (at.phases.length > 0) return at;
  const isFull = at.fullWalkAtMs === undefined || nowMs - at.fullWalkAtMs >= settings.fullWalkEveryMs;
  const phases: Phase[] = [
    { name: 'open', byChange: !isFull, full: isFull, offset: 0, page: 0, restarts: 0 },
    { name: 'closed', byChange: true, full: isFull, offset: 0, page: 0, restarts: 0 },
  ];
  const turn = ((at.turn ?? -1) + 1) % LIMIT_TURNS;
  // A full walk also tests whether the keyset listing has recovered.
  return isFull ? { ...at, turn, phases, fullWalkAtMs: nowMs, listing: 'keyset' } : { ...at, turn, phases };
}

/** The request of the next page. */
export function nextQuery(at: MarketPosition, settings: MarketWalkSettings): MarketsQuery {
  const current = currentPhase(at);
  return {
    listing: at.listing,
    closed: current.name === 'closed',
    recentFirst: current.byChange,
    limit: current.byChange ? settings.pageSize - limitTurn(at, settings) : settings.pageSize,
    ...(current.cursor !== undefined && { cursor: current.cursor }),
    ...(at.listing === 'offset' && { offset: current.offset }),
  };
}

/** The difference between the page size and the limit of this walk: at most a third. */
function limitTurn(at: MarketPosition, { pageSize }: MarketWalkSettings): number {
  return (at.turn ?? 0) % Math.max(1, Math.min(LIMIT_TURNS, Math.floor(pageSize / 3)));
}

/** The same walk on another listing: its current phase begins again. */
export function switchListing(at: MarketPosition, listing: Listing): MarketPosition {
  return { ...at, listing, phases: [restarted(currentPhase(at)), ...at.phases.slice(1)] };
}

/**
 * After a refused request: the phase again without its cursor if it had one, a few times; the walk without the phase if it used an order
 * that the venue may not know, or an offset beyond the venue's limit. Undefined when neither applies.
 */
export function afterRefusal(at: MarketPosition): MarketPosition | undefined {
  const current = currentPhase(at);
  if (current.cursor !== undefined && current.restarts < MAX_RESTARTS) {
    const again = { ...restarted(current), restarts: current.restarts + 1 };
    return { ...at, phases: [again, ...at.phases.slice(1)] };
  }
  return current.cursor !== undefined || current.byChange || current.offset > 0 ? withoutPhase(at) : undefined;
}

/**
 * After a page by offset whose next market alone fails: the same walk behind that market, or without the phase after too many of them. A
 * walk by offset proves no absence.
 */
export function afterFailure(at: MarketPosition): MarketPosition {
  const current = currentPhase(at);
  const { offset, skipped = 0 } = current;
  if (skipped >= MAX_SKIPPED) return withoutPhase(at);
  return { ...at, phases: [{ ...current, offset: offset + 1, skipped: skipped + 1 }, ...at.phases.slice(1)] };
}

/** The walk without its phase, which missed markets: its mark stays. */
export function withoutPhase(at: MarketPosition): MarketPosition {
  return { ...at, phases: at.phases.slice(1) };
}

function restarted(current: Phase): Phase {
  const { name, byChange, full, restarts } = current;
  return { name, byChange, full, restarts, offset: 0, page: 0 };
}

interface Advance {
  position: MarketPosition;
  /** Set on the pages of a full walk's open markets: these are all markets that are not over. */
  sweep?: { startedAtMs: number; ended: boolean; madeSinceMs?: number };
  /** The reason for an early end of the phase, if any. */
  cutShort?: string;
}

/** The position after a page. */
export function advance(
  at: MarketPosition,
  answer: MarketsAnswer,
  nowMs: number,
  settings: MarketWalkSettings,
): Advance {
  const current = currentPhase(at);
  const changes = answer.rows.map(changedAtMs).filter((ms) => ms !== undefined);
  const nextMark = current.page === 0 ? pageMark(current, changes, nowMs) : at.nextMark;
  const madeMs = oldestMadeMs(current, answer, nowMs);
  const end = phaseEnd(at, current, answer, changes, settings);
  if (end === undefined) {
    const firstId = idOf(answer.rows[0]);
    const following: Phase = {
      ...restarted(current),
      offset: current.offset + answer.rows.length,
      page: current.page + 1,
      ...(answer.nextCursor !== undefined && { cursor: answer.nextCursor }),
      ...(madeMs !== undefined && { madeMs }),
      ...(firstId !== undefined && { firstId: current.firstId ?? firstId, previousFirstId: firstId }),
    };
    const position = withMark({ ...at, phases: [following, ...at.phases.slice(1)] }, nextMark);
    return { position, ...sweepOf(at, false, madeMs) };
  }
  // A walk that was cut short keeps its old mark, so the next one reads the same changes; a full walk gives up on them.
  const isThrough = end === '' || current.full;
  const mark = isThrough ? Math.max(freshMark(nextMark ?? 0, madeMs), at.marks[current.name] ?? 0) : 0;
  const marks = mark > 0 ? { ...at.marks, [current.name]: mark } : at.marks;
  const done = withMark({ ...at, marks, phases: at.phases.slice(1) }, undefined);
  const isWhole = end === '' && isWholeListing(at, current, answer, settings);
  const advanced = { position: done, ...sweepOf(at, isWhole, madeMs) };
  return end === '' ? advanced : { ...advanced, cutShort: `${current.name} markets: ${end}` };
}

function sweepOf(at: MarketPosition, ended: boolean, madeMs: number | undefined): Pick<Advance, 'sweep'> {
  const { name, full } = currentPhase(at);
  const startedAtMs = at.fullWalkAtMs;
  if (name !== 'open' || !full || startedAtMs === undefined) return {};
  const isOlder = madeMs !== undefined && madeMs < startedAtMs;
  return { sweep: { startedAtMs, ended, ...(isOlder && { madeSinceMs: madeMs }) } };
}

function oldestMadeMs(current: Phase, { ageMs }: MarketsAnswer, nowMs: number): number | undefined {
  if (ageMs === undefined) return current.madeMs;
  return Math.min(nowMs - ageMs, current.madeMs ?? Number.POSITIVE_INFINITY);
}

/**
 * The highest mark after a page from a cache. Later changes are not on that page. The store also rejects its rows where it stored something
 * since, which may itself come from a page of the greatest age: those rows are read again too.
 */
function freshMark(nextMark: number, madeMs: number | undefined): number {
  return madeMs === undefined ? nextMark : Math.min(nextMark, madeMs - MAX_AGE_MS);
}

/**
 * Whether an ended phase has seen every market of its list. By offset that is never certain: a market that closes moves the following ones
 * up, one of them to a page that was already read. It is not certain either when the very first page is full without a next one, or empty:
 * a changed format would look like that.
 */
function isWholeListing(
  at: MarketPosition,
  current: Phase,
  answer: MarketsAnswer,
  settings: MarketWalkSettings,
): boolean {
  if (at.listing !== 'keyset' || answer.nextCursor !== undefined) return false;
  const rows = answer.rows.length;
  return current.page > 0 || (rows > 0 && rows < settings.pageSize);
}

function withMark(at: MarketPosition, nextMark: number | undefined): MarketPosition {
  const { nextMark: _, ...rest } = at;
  return nextMark === undefined ? rest : { ...rest, nextMark };
}

/**
 * The latest change on the first page of a walk by change: every later change is above it. A walk over all markets takes minutes, so only
 * its beginning counts, less the difference of clocks; the same where the list is empty.
 */
function pageMark(current: Phase, changes: readonly number[], nowMs: number): number {
  const latest = Math.max(...changes.filter((ms) => ms <= nowMs + MAX_SKEW_MS), 0);
  return current.byChange && latest > 0 ? latest : nowMs - MAX_SKEW_MS;
}

/** Undefined while the phase continues, '' at its regular end, else the reason for an early end. */
function phaseEnd(
  at: MarketPosition,
  current: Phase,
  answer: MarketsAnswer,
  changes: readonly number[],
  settings: MarketWalkSettings,
): string | undefined {
  const firstId = idOf(answer.rows[0]);
  // A short page by offset does not prove the end: the venue may cap pages below the limit.
  const isLastPage = at.listing === 'keyset' && answer.nextCursor === undefined;
  if (answer.rows.length === 0) {
    return answer.nextCursor === undefined || current.byChange ? '' : 'an empty page with a next one';
  }
  if (firstId !== undefined && (firstId === current.firstId || firstId === current.previousFirstId)) {
    return 'the venue repeats a page';
  }
  if (isLastPage) return '';
  if (answer.nextCursor !== undefined && answer.nextCursor === current.cursor) return 'the venue repeats a cursor';
  if (!current.byChange) return undefined;
  if (changes.some((ms, index) => ms > (changes[index - 1] ?? Number.POSITIVE_INFINITY))) {
    return 'the venue does not sort by latest change';
  }
  const mark = at.marks[current.name];
  if (mark !== undefined && (changes.at(-1) ?? 0) < mark - MARK_OVERLAP_MS) return '';
  if (mark === undefined && current.page + 1 >= settings.firstClosedPages) return '';
  const maxPages = current.full ? settings.maxCatchUpPages : settings.maxRecentPages;
  return current.page + 1 >= maxPages ? `more than ${maxPages} changed pages` : undefined;
}

function currentPhase(at: MarketPosition): Phase {
  const [current] = at.phases;
  if (!current) throw new RangeError('no current walk');
  return current;
}

function idOf(row: unknown): string | undefined {
  if (row === null || typeof row !== 'object') return undefined;
  const { id, conditionId } = row as { id?: unknown; conditionId?: unknown };
  return typeof id === 'string' ? id : typeof conditionId === 'string' ? conditionId : undefined;
}

function changedAtMs(row: unknown): number | undefined {
  return row !== null && typeof row === 'object'
    ? parseVenueTimeMs((row as { updatedAt?: unknown }).updatedAt)
    : undefined;
}
