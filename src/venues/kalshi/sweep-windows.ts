import { z } from 'zod';

/**
 * The parts of a sweep over the quotes of all open markets, as a state machine without I/O. The pages of one listing follow each other by
 * cursor, so only several listings overlap: windows of creation times. `status=open` excludes filters by close time, and a market keeps
 * its creation time, so it stays in its window.
 */

const TARGET_PARTS = 12;
/** A window of this many pages is split at the next sweep. */
const MOST_PAGES = 15;
/** Fewer pages per window cost more requests for half-empty pages than their overlap saves. */
const LEAST_PAGES = 3;
/** Rows of a page whose creation times represent it. */
const SAMPLED = [0.25, 0.75];
/** A restart repeats the pages of its part. A venue that refuses its own cursors would otherwise restart a part endlessly. */
const MAX_RESTARTS = 2;
/** A venue whose cursors form a circle would otherwise repeat a part endlessly. */
const MAX_PAGES = 1_000;
/** Pages per sweep of the listing without windows, beside the windows. */
const REST_PAGES = 4;
/** With one bad market, one of two halves is read. So many failures in a row are the fault of the host. */
const MAX_FAILURES = 6;
/** It is not documented whether `created_ts` filters include their bounds, and creation times have microseconds. */
const OVERLAP_SECONDS = 1;

const HOUR = 3_600;
const DAY = 24 * HOUR;
/** Before the first complete sweep: windows of creation times, as ages in seconds. Most open markets are young. */
const FIRST_AGES = [364 * DAY, 91 * DAY, 28 * DAY, 14 * DAY, 7 * DAY, 5 * DAY, 3 * DAY, 2 * DAY, DAY, 12 * HOUR];

const part = z.object({
  /** A window; open markets without a window; the paused markets. */
  listing: z.enum(['window', 'rest', 'paused']),
  /** Epoch seconds of creation: `from` inclusive, `to` exclusive; without a bound, the window is open on that side. */
  from: z.number().int().optional(),
  to: z.number().int().optional(),
  cursor: z.string().optional(),
  pages: z.number().int(),
  restarts: z.number().int(),
  /** Creation times of some markets of each page: the quantiles of the next sweep's windows. */
  samples: z.array(z.number().int()),
  /** The venue refused the part. */
  isRefused: z.boolean().optional(),
  /** A page failed, so the part is read in smaller windows: these follow the current one. */
  windows: z.array(z.object({ from: z.number().int().optional(), to: z.number().int().optional() })).optional(),
  /** Samples before the current window. */
  sampled: z.number().int().optional(),
  /** Failed windows since the last page. */
  failures: z.number().int().optional(),
});
type Part = z.infer<typeof part>;

/** A stored part; undefined for a part of another release's format. */
export function readPart(stored: unknown): Part | undefined {
  return part.safeParse(stored).data;
}

/**
 * The parts of a sweep. Each window has about the same number of pages, by the creation times that the last sweep sampled. Two more parts
 * cover the markets that no window lists: the paused ones, and the open ones without a creation time. The latter is a listing of all open
 * markets that continues a few pages per sweep. After a refused window, one sweep reads all open markets as one listing.
 */
export function openParts(nowMs: number, previous: readonly unknown[]): Part[] {
  const last = previous.flatMap((stored) => readPart(stored) ?? []);
  const windows = last.filter(({ listing }) => listing === 'window');
  const paused = begin({ listing: 'paused' });
  if (windows.some(({ isRefused }) => isRefused)) return [begin({ listing: 'window' }), paused];
  const bounds = windows.length === 0 ? firstBounds(nowMs) : boundsOf(windows.flatMap(({ samples }) => samples));
  if (bounds.length === 0) return [begin({ listing: 'window' }), paused];
  const cursor = last.find(({ listing }) => listing === 'rest')?.cursor;
  const rest = begin({ listing: 'rest', ...(cursor !== undefined && { cursor }) });
  return [...windowsBetween(bounds), rest, paused];
}

function begin(facts: Pick<Part, 'listing' | 'from' | 'to' | 'cursor'>): Part {
  return { ...facts, pages: 0, restarts: 0, samples: [] };
}

function windowsBetween(bounds: readonly number[]): Part[] {
  return [undefined, ...bounds].map((from, at) => {
    const to = bounds[at];
    return begin({ listing: 'window', ...(from !== undefined && { from }), ...(to !== undefined && { to }) });
  });
}

function firstBounds(nowMs: number): number[] {
  return FIRST_AGES.map((age) => Math.floor(nowMs / 1000) - age);
}

function boundsOf(unordered: readonly number[]): number[] {
  const samples = [...unordered].sort((a, b) => a - b);
  const pages = samples.length / SAMPLED.length;
  const pagesEach = Math.min(MOST_PAGES, Math.max(LEAST_PAGES, Math.ceil(pages / TARGET_PARTS)));
  const step = pagesEach * SAMPLED.length;
  const bounds: number[] = [];
  // Half a window or less joins the last one.
  for (let at = step; at < samples.length - step / 2; at += step) {
    const bound = samples[at];
    if (bound !== undefined && bound !== bounds.at(-1)) bounds.push(bound);
  }
  return bounds;
}

/** The filters of the next page. */
export function nextFilters({ listing, from, to, cursor }: Part): Record<string, string | number | undefined> {
  return {
    status: listing === 'paused' ? 'paused' : 'open',
    min_created_ts: from === undefined ? undefined : from - OVERLAP_SECONDS,
    max_created_ts: to === undefined ? undefined : to + OVERLAP_SECONDS,
    cursor,
  };
}

/** The part after a page or a refusal. */
export interface Step {
  part: Part;
  more: boolean;
  /** The reason for an early end of the part, if any. */
  cutShort?: string;
}

/** The part after a page. `created`: the creation time of each row, epoch seconds, if it is readable. */
export function afterPage(at: Part, nextCursor: string | undefined, created: readonly (number | undefined)[]): Step {
  const { cursor, failures: _, ...rest } = at;
  const sampled = SAMPLED.flatMap((share) => created[Math.floor(share * created.length)] ?? []);
  const read = { ...rest, pages: at.pages + 1, samples: [...at.samples, ...sampled] };
  if (nextCursor === undefined) return nextWindow(read);
  if (nextCursor === cursor) return restarted(at, 'the venue repeats a cursor');
  if (read.pages >= MAX_PAGES) return { part: read, more: false, cutShort: `more than ${MAX_PAGES} pages` };
  const isEnough = at.listing === 'rest' && read.pages >= REST_PAGES;
  return { part: { ...read, cursor: nextCursor }, more: !isEnough };
}

/** The part after a refused request: without its cursor, it begins again. */
export function afterRefusal(at: Part, why: string): Step {
  return at.cursor === undefined
    ? { part: { ...at, isRefused: true }, more: false, cutShort: why }
    : restarted(at, why);
}

/** Whether a page of the part that fails now is the fault of the host. */
export function isHostFailing({ failures = 0 }: Part): boolean {
  return failures + 1 >= MAX_FAILURES;
}

/** Whether the current window is a part of one that failed. */
export function isNarrowed({ windows }: Part): boolean {
  return windows !== undefined;
}

/**
 * The part after a page that the venue cannot serve: the halves of its window wait behind the others, until the second in which the bad
 * market was created stands alone. That second is skipped. A listing without windows ends, and the next sweep begins it anew.
 */
export function afterFailure(at: Part, nowMs: number, why: string): Step & { skipped?: string } {
  const { cursor: _, ...part } = at;
  if (at.listing === 'rest') return { part, more: false, cutShort: why };
  const { from, to, windows = [], failures = 0, sampled = 0 } = part;
  const samples = part.samples.slice(0, sampled);
  const failed = { ...part, samples, failures: failures + 1 };
  const low = from ?? 0;
  const high = to ?? Math.max(low, Math.floor(nowMs / 1000) + DAY);
  if (high - low <= 1) {
    const second = new Date(low * 1000).toISOString();
    return { ...nextWindow({ ...failed, windows }), skipped: `markets created at ${second}: ${why}` };
  }
  const middle = Math.floor((low + high) / 2);
  return nextWindow({
    ...failed,
    windows: [
      ...windows,
      { ...(from !== undefined && { from }), to: middle },
      { from: middle, ...(to !== undefined && { to }) },
    ],
  });
}

/** The part at its next window, if one waits. */
function nextWindow(at: Part): Step {
  const [next, ...windows] = at.windows ?? [];
  if (next === undefined) return { part: at, more: false };
  const { from: _from, to: _to, cursor: _cursor, ...part } = at;
  return { part: { ...part, ...next, windows, restarts: 0, sampled: at.samples.length }, more: true };
}

function restarted({ cursor, ...at }: Part, why: string): Step {
  if (at.restarts >= MAX_RESTARTS) return { part: at, more: false, cutShort: why };
  return {
    part: { ...at, pages: 0, samples: at.samples.slice(0, at.sampled ?? 0), restarts: at.restarts + 1 },
    more: true,
  };
}
