import { asError } from '../../domain/values/errors.ts';
import { isDeeperThan } from '../http/json-depth.ts';
import type { RecordKind } from '../port.ts';
import { accept, type Reading, reject, rejectRecord } from '../rejection.ts';
import type { FeedReading } from './port.ts';

/** Deeper than any frame of a venue. */
const MAX_DEPTH = 20;

export function emptyReading(): FeedReading {
  return {
    received: 0,
    applied: 0,
    updates: [],
    rejected: [],
    skipped: [],
    unknowns: [],
    losses: [],
    notices: [],
    sends: [],
  };
}

/** The JSON of a frame. */
export function parseFrame(frame: string): Reading<unknown> {
  if (isDeeperThan(frame, MAX_DEPTH)) return reject('too_deep', `more than ${MAX_DEPTH} levels`);
  try {
    return accept(JSON.parse(frame) as unknown);
  } catch (error) {
    return reject('not_json', asError(error).message);
  }
}

/** Counts one message that carries no data to keep. */
export function skip(reading: FeedReading, reason: string): undefined {
  reading.received += 1;
  reading.skipped.push(reason);
}

/** Counts one message that the quarantine keeps. */
export function quarantine(
  reading: FeedReading,
  kind: RecordKind,
  raw: unknown,
  rejection: { reason: string; detail: string },
  recordId?: unknown,
): undefined {
  reading.received += 1;
  reading.rejected.push(rejectRecord(kind, raw, rejection, recordId));
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** Advances the newest venue time of a reading. */
export function sawVenueTime(reading: FeedReading, ms: number): void {
  reading.venueAtMs = Math.max(reading.venueAtMs ?? ms, ms);
}
