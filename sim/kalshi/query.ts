import { json, type Reply, wholeNumber } from '../server/reply.ts';

/** The requested part of a listing. */
export interface PageRequest {
  readonly limit: number;
  /** The running number in the cursor. */
  readonly after: number | undefined;
}

/** `limit` and `cursor`; undefined when one of them is invalid. A limit above the greatest is refused, and not lowered. */
export function pageOf(query: URLSearchParams, standard: number, most: number): PageRequest | undefined {
  const limit = wholeNumber(query.get('limit'));
  const cursor = query.get('cursor') || undefined;
  const after = cursor === undefined ? undefined : wholeNumber(Buffer.from(cursor, 'base64url').toString());
  if (limit === null || limit === 0 || (limit ?? standard) > most) return undefined;
  if (after === null || (cursor !== undefined && after === undefined)) return undefined;
  return { limit: limit ?? standard, after };
}

export function cursorOf(no: number): string {
  return Buffer.from(String(no)).toString('base64url');
}

/** A row of a listing, with its running number for the cursor. */
export interface Listed<T> {
  readonly no: number;
  readonly row: T;
}

/** The rows of a list from a position on, in order of creation. */
export function* listed<T>(all: readonly T[], after = 0): Generator<Listed<T>> {
  for (let no = after; no < all.length; no += 1) {
    const row = all[no];
    if (row !== undefined) yield { no, row };
  }
}

/** The next matching rows up to the limit, in their order. */
export function take<T>(
  rows: Iterable<Listed<T>>,
  limit: number,
  matches: (row: T) => boolean,
): { found: T[]; cursor: string } {
  const found: T[] = [];
  for (const { no, row } of rows) {
    if (!matches(row)) continue;
    if (found.length === limit) return { found, cursor: cursorOf(no) };
    found.push(row);
  }
  return { found, cursor: '' };
}

/** The values of a comma list; undefined when the parameter is absent. */
export function listOf(query: URLSearchParams, name: string): ReadonlySet<string> | undefined {
  const text = query.get(name);
  return text === null || text === '' ? undefined : new Set(text.split(','));
}

export function badRequest(details: string): Reply {
  return json({ error: { code: 'bad_request', message: 'bad request', details } }, 400);
}

export function notFound(): Reply {
  return json({ error: { code: 'not_found', message: 'not found' } }, 404);
}
