import { z } from 'zod';
import { refuseUnreadable, rejectedOf } from '../rejection.ts';
import { type EventsPage, LIMITLESS, type PageQuery } from './client.ts';
import { type FeedRow, readFeed } from './parse-trade.ts';

/**
 * Pages of a market's feed, newest first, without cursors and without ids, for the live walk and the walk back. Pages shift when
 * rows arrive, but the place of a row counted from the oldest one does not, and the total on each page gives it. Equal rows are counted
 * within their millisecond, so a millisecond is taken only when it was read whole in one call.
 */
export const stretch = z.object({
  /** The oldest and the newest millisecond to read. */
  floorMs: z.number(),
  nextMs: z.number().exactOptional(),
  /** The place of the next row, 0 for the oldest of the feed, and the total with which it was found. Absent: the newest row. */
  next: z.number().int().exactOptional(),
  total: z.number().int().exactOptional(),
});
type Stretch = z.infer<typeof stretch>;

export interface Pager {
  list: (query: PageQuery) => Promise<EventsPage>;
  nowMs: number;
  /** Events a page. A place does not depend on it, so each call may have another. */
  limit: number;
  pagesPerCall: number;
  /** Whether the call begins no further page. */
  isEnd(): boolean;
}

export interface StretchRead {
  /** Rows of complete milliseconds of the stretch, newest first, and rows without a usable time. */
  rows: FeedRow[];
  /** The part that is still to be read. */
  left?: Stretch;
  /** The age of the first page. */
  ageMs: number;
  /** The reason, when a part could not be read. */
  truncated?: string;
}

interface PlacedRow extends FeedRow {
  place: number;
}

/** A millisecond that goes on for so many pages is not a millisecond. */
const MAX_PAGES = 60;

/** Reads on in a stretch. Throws the errors of `list`, and VenueError when all of many rows are unreadable. */
export async function readStretch(
  from: Stretch,
  { list, nowMs, limit, pagesPerCall, isEnd }: Pager,
): Promise<StretchRead> {
  const { next } = from;
  let total = from.total ?? 0;
  let page = next === undefined ? 1 : Math.floor((total - 1 - next) / limit) + 1;
  let place = next === undefined ? Number.POSITIVE_INFINITY : next + 1;
  let ageMs = 0;
  const rows: PlacedRow[] = [];
  for (let pages = 1; ; pages += 1, page += 1) {
    const answer = await list({ page, limit });
    if (pages === 1) ageMs = answer.ageMs;
    // An older view than before, or rows that the venue took back: their places are not those of the rows at hand.
    if (answer.total < total) return { rows: [], left: fromTheTop(from), ageMs };
    total = answer.total;
    const firstPlace = total - 1 - (page - 1) * limit;
    for (const [index, row] of readPage(answer.rows, nowMs).entries()) {
      if (firstPlace - index >= place) continue;
      place = firstPlace - index;
      rows.push({ ...row, place });
    }
    const lastMs = rows.findLast((row) => row.ms !== undefined)?.ms;
    const isFeedEnd = answer.rows.length < limit || place === 0;
    if (isFeedEnd || (lastMs !== undefined && lastMs < from.floorMs)) return { rows: inRange(rows, from), ageMs };
    if ((pages >= pagesPerCall || isEnd()) && lastMs !== undefined) {
      // All of it is newer than the range: nothing to hold back.
      if (lastMs > (from.nextMs ?? lastMs)) {
        return { rows: inRange(rows, from), left: { ...from, next: place - 1, total }, ageMs };
      }
      const cut = rows.findIndex(({ ms }) => ms !== undefined && ms <= lastMs);
      const left = { ...from, nextMs: lastMs, next: rows[cut]?.place ?? place, total };
      if (cut > 0) return { rows: inRange(rows.slice(0, cut), from), left, ageMs };
    }
    if (pages < MAX_PAGES) continue;
    const truncated = `events of millisecond ${lastMs ?? 'unknown'}: more than ${rows.length}`;
    return { rows: inRange(rows, from), ageMs, truncated };
  }
}

function fromTheTop({ floorMs, nextMs }: Stretch): Stretch {
  return { floorMs, ...(nextMs !== undefined && { nextMs }) };
}

function inRange(rows: readonly PlacedRow[], { floorMs, nextMs = Number.POSITIVE_INFINITY }: Stretch): FeedRow[] {
  return rows.flatMap(({ place: _, ...row }) =>
    row.ms === undefined || (row.ms >= floorMs && row.ms <= nextMs) ? [row] : [],
  );
}

function readPage(raw: readonly unknown[], nowMs: number): FeedRow[] {
  const rows = readFeed(raw, nowMs);
  refuseUnreadable(LIMITLESS, 'trade', rows.length, rejectedOf(rows));
  return rows;
}
