import { z } from 'zod';
import { VenueError } from '../errors.ts';
import type { VenueAnswer } from '../http/http.ts';

/** One page of a list of the Data API, version 2. */
export interface DataPage {
  rows: unknown[];
  /** The cursor of the next page; absent on the last one. It is valid with the filters of its request only. */
  nextCursor?: string;
  /** How long the page was in the venue's CDN, milliseconds; Infinity for a page from there without an age. */
  ageMs: number;
}

/**
 * The CDN keeps each address of `/v2/trades` for 300 s, of `/v2/activity` for 15 s and of `/v2/positions` for 5 s. An address is reused
 * after 400 s.
 */
const PAGE_SIZES = 400;

/**
 * The page size of a first page. It differs each second, so no address is requested twice within its lifetime in the CDN, even after a
 * restart. The size decides the number of rows of a page and never which rows exist. A cursor keeps the size of its first page.
 */
export function pageSizeAt(largest: number, nowMs: number): number {
  return largest - (Math.floor(nowMs / 1000) % Math.min(PAGE_SIZES, largest));
}

const envelope = z.object({
  data: z.array(z.unknown()),
  pagination: z.object({ has_more: z.boolean(), next_cursor: z.string().nullish() }),
});

/**
 * Reads `{data, pagination}`. A walk ends without a cursor, so an answer must state its end clearly.
 * @throws VenueError `invalid_payload`
 */
export function readDataPage(venue: string, answer: VenueAnswer, what: string): DataPage {
  const refuse = (why: string) => new VenueError(venue, 'invalid_payload', `${what}: ${why}`, { retryable: true });
  const parsed = envelope.safeParse(answer.json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw refuse(`${issue?.path.join('.') || 'the answer'}: ${issue?.message}`);
  }
  const { data, pagination } = parsed.data;
  const nextCursor = pagination.next_cursor || undefined;
  if (pagination.has_more && nextCursor === undefined) throw refuse('more pages and no cursor');
  const page = { rows: data, ageMs: ageOf(answer) };
  return nextCursor === undefined ? page : { ...page, nextCursor };
}

function ageOf({ headers, ageMs }: VenueAnswer): number {
  const isHit = /\bhit\b/i.test(String(headers['x-cache'] ?? ''));
  return isHit && headers['age'] === undefined ? Number.POSITIVE_INFINITY : ageMs;
}
