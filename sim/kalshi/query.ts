import { json, type Reply, wholeNumber } from '../server/reply.ts';

/** The requested part of a listing. */
export interface PageRequest {
  readonly limit: number;
  /** The running number in the cursor. */
  readonly after: number | undefined;
}

/** `limit` and `cursor`; undefined when one of them is invalid. */
export function pageOf(query: URLSearchParams, standard: number, most: number): PageRequest | undefined {
  const limit = wholeNumber(query.get('limit'));
  const cursor = query.get('cursor') || undefined;
  const after = cursor === undefined ? undefined : wholeNumber(Buffer.from(cursor, 'base64url').toString());
  if (limit === null || limit === 0 || after === null || (cursor !== undefined && after === undefined))
    return undefined;
  return { limit: Math.min(limit ?? standard, most), after };
}

export function cursorOf(no: number): string {
  return Buffer.from(String(no)).toString('base64url');
}

/** The next matching rows up to the limit, in order of creation. */
export function take<T>(
  all: readonly T[],
  page: PageRequest,
  matches: (each: T) => boolean,
): { found: T[]; cursor: string } {
  const found: T[] = [];
  for (let at = page.after ?? 0; at < all.length; at += 1) {
    const each = all[at];
    if (each === undefined || !matches(each)) continue;
    if (found.length === page.limit) return { found, cursor: cursorOf(at) };
    found.push(each);
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
