import type { z } from 'zod';
import { asError } from '../domain/values/errors.ts';
import { scrubText } from '../domain/values/text.ts';
import { VenueError } from './errors.ts';
import type { RecordKind, RejectedRecord } from './port.ts';

const MAX_DETAIL = 500;
const MAX_SAMPLE_BYTES = 4096;
const MAX_ID = 200;
/** This many rows, all rejected, indicate a changed format. A walk that continued would lose them. */
const SYSTEMIC_ROWS = 20;

/** Why one record is rejected. `reason` is short and groupable, `detail` is for a person. */
interface Rejection {
  reason: string;
  detail: string;
}

export type Reading<T> = { ok: true; value: T } | { ok: false; rejection: Rejection };

export function accept<T>(value: T): Reading<T> {
  return { ok: true, value };
}

export function reject(reason: string, detail: string): { ok: false; rejection: Rejection } {
  return { ok: false, rejection: { reason, detail } };
}

/** Validates one raw record: an absent field is `missing_field`, a field of another type or form `invalid_field`. */
export function readModel<T>(schema: z.ZodType<T>, raw: unknown): Reading<T> {
  if (raw === null || typeof raw !== 'object' || Array.isArray(raw)) return reject('not_an_object', typeof raw);
  const parsed = schema.safeParse(raw);
  if (parsed.success) return accept(parsed.data);
  const [issue] = parsed.error.issues;
  const path = issue?.path ?? [];
  const reason = valueAt(raw, path) === undefined ? 'missing_field' : 'invalid_field';
  return reject(reason, `${path.join('.')}: ${issue?.message ?? 'invalid'}`);
}

function valueAt(raw: unknown, path: readonly PropertyKey[]): unknown {
  let value = raw;
  for (const key of path) {
    if (value === null || typeof value !== 'object') return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

/** The quarantine entry of a rejected record, bounded and storable for any input. */
export function rejectRecord(kind: RecordKind, raw: unknown, rejection: Rejection, recordId?: unknown): RejectedRecord {
  const id = typeof recordId === 'string' && recordId !== '' ? scrubText(recordId.slice(0, MAX_ID)) : undefined;
  return {
    kind,
    reason: rejection.reason,
    detail: scrubText(rejection.detail.slice(0, MAX_DETAIL)),
    sample: sampleOf(raw),
    ...(id !== undefined && { recordId: id }),
  };
}

function sampleOf(raw: unknown): string {
  let text: string;
  try {
    text = JSON.stringify(raw) ?? String(raw);
  } catch (error) {
    text = `not JSON: ${asError(error).message}`;
  }
  const bytes = Buffer.from(scrubText(text.slice(0, MAX_SAMPLE_BYTES)));
  if (bytes.length <= MAX_SAMPLE_BYTES) return bytes.toString();
  // A cut within a character would read back as U+FFFD, which has more bytes than the removed part.
  let end = MAX_SAMPLE_BYTES;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end).toString();
}

/**
 * For a page of so many rows (`what` names one), some of which may be rejected.
 * @throws VenueError when all of many rows are
 */
export function refuseUnreadable(venue: string, what: string, rows: number, rejected: readonly RejectedRecord[]): void {
  const [first] = rejected;
  if (!first || rows < SYSTEMIC_ROWS || rejected.length < rows) return;
  const message = `no ${what} of ${rows} is readable: ${first.reason}, ${first.detail}`;
  throw new VenueError(venue, 'invalid_payload', message, { retryable: true });
}

/** The rejections of the rows of a feed. */
export function rejectedOf(rows: readonly { rejected?: RejectedRecord }[]): RejectedRecord[] {
  return rows.flatMap(({ rejected }) => rejected ?? []);
}
