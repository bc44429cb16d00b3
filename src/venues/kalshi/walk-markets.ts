import { z } from 'zod';
import type { ListAnswer, Parameters } from './client.ts';

/**
 * The walk over Kalshi's catalog as a state machine without I/O: it chooses the next page and evaluates each page. A full walk lists the
 * events that are open, not yet open, and closed without settlement, then the markets settled since the previous walk. Between full walks
 * it lists the markets that changed, closed or settled since: `updated_time` moves at all three in every recording, but only its move at
 * changes is documented.
 */
export interface MarketWalkSettings {
  eventsPerPage: number;
  marketsPerPage: number;
  fullWalkEveryMs: number;
  /** The reach of the very first walk into settled markets: older ones are history, which is read on demand only. */
  firstSettledSeconds: number;
  /** Bound of each listing between full walks: the next full walk reads the missed markets. */
  maxRecentPages: number;
}

const name = z.enum(['open', 'unopened', 'closed', 'updated', 'closing', 'settled']);
type PhaseName = z.infer<typeof name>;

const phase = z.object({
  name,
  /** Epoch seconds: the listing begins here. */
  since: z.number().int().optional(),
  cursor: z.string().optional(),
  page: z.number().int(),
  /** Restarts of the phase after a refused cursor. */
  restarts: z.number().int(),
});
type Phase = z.infer<typeof phase>;

const position = z.object({
  v: z.literal(1),
  /** The start of the latest full walk; absent before the first. */
  fullWalkAtMs: z.number().optional(),
  /** Everything before this epoch second was seen: the next walk between full ones starts here. */
  since: z.number().int().optional(),
  /** `since` gets this value at the end of the current walk. */
  startedAt: z.number().int().optional(),
  /** A listing of the current walk was cut short or refused: the next walk begins at the same second again. */
  hasMissed: z.boolean().optional(),
  phases: z.array(phase),
});
export type MarketPosition = z.infer<typeof position>;

/** Clocks differ and indexes lag: a walk begins this long before the start of the previous one. */
const OVERLAP_SECONDS = 60;
/** A venue that refuses its own cursors would otherwise restart a phase endlessly. */
const MAX_RESTARTS = 2;

/** The walk of a stored position, or a new walk when the position has none or is unreadable. */
export function openWalk(stored: unknown, nowMs: number, settings: MarketWalkSettings): MarketPosition {
  const parsed = position.safeParse(stored);
  const at: MarketPosition = parsed.success ? parsed.data : { v: 1, phases: [] };
  if (at.phases.length > 0) return at;
  const startedAt = Math.floor(nowMs / 1000);
  const since = (at.since ?? startedAt - settings.firstSettledSeconds) - OVERLAP_SECONDS;
  const isFull = at.fullWalkAtMs === undefined || nowMs - at.fullWalkAtMs >= settings.fullWalkEveryMs;
  if (!isFull)
    return { ...at, startedAt, phases: [begin('updated', since), begin('closing', since), begin('settled', since)] };
  const phases = [begin('open'), begin('unopened'), begin('closed'), begin('settled', since)];
  return { ...at, startedAt, phases, fullWalkAtMs: nowMs };
}

function begin(phaseName: PhaseName, since?: number): Phase {
  return { name: phaseName, page: 0, restarts: 0, ...(since !== undefined && { since }) };
}

/** The request of the next page. `max_close_ts` excludes markets that have not closed yet. */
export function nextQuery(
  at: MarketPosition,
  settings: MarketWalkSettings,
): { listing: 'events' | 'markets'; parameters: Parameters } {
  const { name: phaseName, since, cursor } = currentPhase(at);
  const markets = { limit: settings.marketsPerPage, cursor };
  switch (phaseName) {
    case 'open':
    case 'unopened':
    case 'closed':
      return { listing: 'events', parameters: { limit: settings.eventsPerPage, cursor, status: phaseName } };
    case 'updated':
      return { listing: 'markets', parameters: { ...markets, min_updated_ts: since } };
    case 'closing': {
      const window = { min_close_ts: since, max_close_ts: at.startedAt };
      return { listing: 'markets', parameters: { ...markets, status: 'closed', ...window } };
    }
    case 'settled':
      return { listing: 'markets', parameters: { ...markets, status: 'settled', min_settled_ts: since } };
  }
}

/**
 * After a refused request: the phase again without its cursor, a few times, then the walk without the phase; also without the phase where
 * the filter itself is refused. Undefined when the open events themselves are refused: the catalog is then unavailable.
 */
export function afterRefusal(at: MarketPosition): MarketPosition | undefined {
  const current = currentPhase(at);
  if (current.cursor !== undefined && current.restarts < MAX_RESTARTS) {
    const again = { ...begin(current.name, current.since), restarts: current.restarts + 1 };
    return { ...at, phases: [again, ...at.phases.slice(1)] };
  }
  return current.name === 'open' && current.cursor === undefined ? undefined : withoutPhase({ ...at, hasMissed: true });
}

/**
 * After a page whose next row alone fails: the walk without the phase, because only the failed page names the next one. Its sweep never
 * ends, so no market counts as missing.
 */
export function afterFailure(at: MarketPosition): MarketPosition {
  return withoutPhase({ ...at, hasMissed: true });
}

interface Advance {
  position: MarketPosition;
  /** Set on the pages of the phases that together list every market that is not over. */
  sweep?: { startedAtMs: number; ended: boolean };
  /** The reason for an early end of the phase, if any. */
  cutShort?: string;
}

/** The position after a page. */
export function advance(at: MarketPosition, answer: ListAnswer, settings: MarketWalkSettings): Advance {
  const current = currentPhase(at);
  const { nextCursor } = answer;
  if (nextCursor === undefined) {
    // A venue without any open event counts as a fault of the venue.
    const isEmpty = current.name === 'open' && current.page === 0 && answer.rows.length === 0;
    return { position: withoutPhase(isEmpty ? { ...at, hasMissed: true } : at), ...sweepOf(at, !at.hasMissed) };
  }
  const why = reasonToStop(current, nextCursor, at, settings);
  if (why !== undefined) {
    const position = withoutPhase({ ...at, hasMissed: true });
    return { position, cutShort: `${current.name} markets: ${why}`, ...sweepOf(at, false) };
  }
  const following = { ...current, cursor: nextCursor, page: current.page + 1 };
  return { position: { ...at, phases: [following, ...at.phases.slice(1)] }, ...sweepOf(at, false) };
}

const SWEEP: ReadonlySet<PhaseName> = new Set(['open', 'unopened', 'closed']);

/** `isComplete`: the phase ended with this page, and no page of the sweep missed anything. */
function sweepOf(at: MarketPosition, isComplete: boolean): Pick<Advance, 'sweep'> {
  const [current, ...others] = at.phases;
  if (!current || !SWEEP.has(current.name) || at.fullWalkAtMs === undefined) return {};
  const ended = isComplete && !others.some((each) => SWEEP.has(each.name));
  return { sweep: { startedAtMs: at.fullWalkAtMs, ended } };
}

function reasonToStop(
  current: Phase,
  nextCursor: string,
  at: MarketPosition,
  settings: MarketWalkSettings,
): string | undefined {
  if (nextCursor === current.cursor) return 'the venue repeats a cursor';
  const isBounded = !isFullWalk(at) && current.page + 1 >= settings.maxRecentPages;
  return isBounded ? `more than ${settings.maxRecentPages} pages` : undefined;
}

/**
 * The walk without its ended phase. After the last phase, everything before the start of the walk counts as seen. A full walk counts as
 * seen even when it missed pages.
 */
function withoutPhase(at: MarketPosition): MarketPosition {
  const phases = at.phases.slice(1);
  if (phases.length > 0) return { ...at, phases };
  const { startedAt, hasMissed, ...rest } = at;
  const isSeen = startedAt !== undefined && (isFullWalk(at) || !hasMissed);
  return { ...rest, phases, ...(isSeen && { since: startedAt }) };
}

function isFullWalk({ fullWalkAtMs, startedAt }: MarketPosition): boolean {
  return fullWalkAtMs !== undefined && Math.floor(fullWalkAtMs / 1000) === startedAt;
}

function currentPhase(at: MarketPosition): Phase {
  const [current] = at.phases;
  if (!current) throw new RangeError('no current walk');
  return current;
}
