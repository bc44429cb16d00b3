import { z } from 'zod';
import { VenueError } from '../errors.ts';
import { POLYMARKET } from './client.ts';
import { secondOf } from './wallet-activity.ts';
import type { NextPage, WalletAnswer } from './wallet-client.ts';

/**
 * The walk over a wallet's activity: oldest first, from the newest second seen less an overlap for late rows. New rows come at
 * the end, so nothing slides while it is paged. A page's last second may be cut: the next read begins with it, whole, which is
 * what lets equal rows of a transaction be counted.
 */
export interface ActivityWalkSettings {
  /** Late rows within this are found. */
  overlapSeconds: number;
  /** Pages that one read takes together when the end of a page cannot be told from its beginning. */
  maxPagesPerRead: number;
}

const second = z.number().int();
const position = z.object({
  v: z.literal(1),
  /** Everything up to this second was read. */
  watermark: second,
  /** Under way: the first second not yet read. */
  next: second.optional(),
});
type ActivityPosition = z.infer<typeof position>;

interface ActivityRead {
  /** Rows of seconds read whole, except perhaps the last, which is read again. */
  rows: unknown[];
  position: ActivityPosition;
  more: boolean;
  /** What could not be read, when something could not. */
  truncated?: string;
}

/** Reads on after `stored`. Throws what `list` throws, and VenueError when the order of the rows leaves no way on. */
export async function readActivity(
  stored: unknown,
  { sinceMs, nowMs, settings }: { sinceMs: number; nowMs: number; settings: ActivityWalkSettings },
  list: (startSecond: number, next: NextPage | undefined) => Promise<WalletAnswer>,
): Promise<ActivityRead> {
  const parsed = position.safeParse(stored);
  const at: ActivityPosition = parsed.success ? parsed.data : { v: 1, watermark: Math.floor(sinceMs / 1000) };
  const from = at.next ?? at.watermark - settings.overlapSeconds;
  const rows: unknown[] = [];
  let next: NextPage | undefined;
  for (let pages = 1; ; pages += 1) {
    // One second earlier, in case the venue takes the beginning for exclusive.
    const answer = await list(from - 1, next);
    rows.push(...answer.rows);
    next = answer.next;
    const seconds = rows.map((row) => secondOf(row, nowMs)).filter((each) => each !== undefined);
    const newest = Math.min(Math.max(at.watermark, ...seconds), Math.floor(nowMs / 1000));
    if (next === undefined) return { rows, position: { v: 1, watermark: newest }, more: false };
    const last = seconds.at(-1) ?? from;
    const isOldestFirst = seconds.every((each, index) => index === 0 || each >= (seconds[index - 1] ?? each));
    if (isOldestFirst && last > from) return { rows, position: { ...at, next: last }, more: true };
    if (pages < settings.maxPagesPerRead) continue;
    if (!isOldestFirst) {
      const message = 'the activity is not in the order that was asked for, and too long to be read at once';
      throw new VenueError(POLYMARKET, 'invalid_payload', message, { retryable: true });
    }
    const truncated = `more than ${rows.length} rows of a wallet in the second ${last}`;
    return { rows, position: { ...at, next: Math.max(last, from) + 1 }, more: true, truncated };
  }
}
