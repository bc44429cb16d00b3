import type { FeedLoss, FeedReading, FeedSession } from '../../../src/venues/feeds/port.ts';
import { checkRejected, invariants, must } from '../venue-adapter/invariants.ts';
import { NOW_MS, type RecordedFrames } from './recorded-frames.ts';

/** Milliseconds between two frames of a replay. */
const STEP_MS = 10;

export interface Replay {
  session: FeedSession;
  readings: FeedReading[];
  losses: FeedLoss[];
  endMs: number;
}

/** A session that has seen these frames. */
export function prepared(recorded: RecordedFrames, frames: readonly string[] = []) {
  const session = recorded.createSession();
  session.open();
  session.subscribe(recorded.markets, NOW_MS);
  for (const frame of [...recorded.prelude, ...frames]) session.take(frame, NOW_MS);
  return { session, nowMs: NOW_MS };
}

/** Runs frames through a new session; each reading and each announced book must be sound. `see` gets each reading. */
export function replay(
  recorded: RecordedFrames,
  frames: readonly string[] = recorded.frames,
  see?: (session: FeedSession, reading: FeedReading) => void,
): Replay {
  const prepare = prepared(recorded);
  const { session } = prepare;
  let { nowMs } = prepare;
  const readings: FeedReading[] = [];
  const losses: FeedLoss[] = [];
  for (const frame of frames) {
    nowMs += STEP_MS;
    const reading = session.take(frame, nowMs);
    checkReading(session, reading, nowMs);
    see?.(session, reading);
    readings.push(reading);
    losses.push(...reading.losses);
  }
  return { session, readings, losses, endMs: nowMs };
}

/** The law of counting, and the invariants of every record. */
export function checkReading(session: FeedSession, reading: FeedReading, nowMs: number): void {
  const { received, applied, rejected, skipped, updates } = reading;
  must(received === applied + rejected.length + skipped.length, 'a frame is accounted for', reading);
  must(received > 0, 'a frame has a message', reading);
  rejected.forEach(checkRejected);
  for (const reason of skipped) must(/^[a-z][a-z_]{2,39}$/.test(reason), 'a skip reason is groupable', reason);
  for (const update of updates) {
    if (update.kind === 'quote') invariants.prices(update.record, nowMs);
    if (update.kind === 'trade') invariants.trades(update.record, nowMs);
    if (update.kind === 'book') {
      const book = session.book(update.outcomeId);
      must(book !== undefined, 'an announced book is readable', update);
      invariants.books(book, nowMs);
    }
  }
}

/** Counts of a replay by name, for a pinned table. */
export function summary({ readings, losses }: Replay): Record<string, unknown> {
  const sum = (of: (reading: FeedReading) => number) => readings.reduce((total, reading) => total + of(reading), 0);
  return {
    frames: readings.length,
    received: sum((each) => each.received),
    applied: sum((each) => each.applied),
    skipped: tally(readings.flatMap((each) => each.skipped)),
    rejected: tally(readings.flatMap((each) => each.rejected.map(({ reason }) => reason))),
    updates: tally(readings.flatMap((each) => each.updates.map(({ kind }) => kind))),
    losses: tally(losses.map(({ of, reason }) => `${of}:${reason}`)),
  };
}

function tally(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
