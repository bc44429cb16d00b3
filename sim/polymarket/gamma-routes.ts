import { json, jsonText, type Reply, type SimRequest, wholeNumber } from '../server/reply.ts';
import { type GammaEntry, type GammaSource, SORT_FIELDS, type SortField } from '../source.ts';

const KEYSET_MAX_LIMIT = 100;
const LEGACY_MAX_LIMIT = 500;
const DEFAULT_LIMIT = 20;
/** The greatest offset of the legacy listing; its refusal names the keyset route. */
const LEGACY_MAX_OFFSET = 2000;
/** The legacy listing is marked as deprecated and still answers. */
const DEPRECATED = {
  deprecation: 'true',
  sunset: 'Fri, 01 May 2026 00:00:00 GMT',
  warning: '299 - "use /markets/keyset"',
};
const MAX_CONDITION_IDS = 100;

type Route = (request: SimRequest) => Reply | undefined;

/** The routes of gamma-api.polymarket.com that the service reads. */
export function gammaRoutes(source: GammaSource): Route {
  const listing = new GammaListing(source);
  return (request) => {
    if (request.method !== 'GET') return gammaError(405, 'method not allowed');
    const [root, name, extra, ...rest] = request.path.split('/').slice(1);
    if (rest.length > 0) return undefined;
    if (root === 'markets' && name === undefined) return legacyPage(listing, source, request.query);
    if (root === 'markets' && name === 'keyset' && extra === undefined) {
      return keysetPage(listing, source, request.query);
    }
    const hasTags = wantsTags(request.query);
    if (root === 'markets' && name === 'slug' && extra !== undefined) return one(source.bySlug(extra), hasTags);
    if (root === 'markets' && name !== undefined && extra === undefined) return oneById(source, name, hasTags);
    if (root === 'events' && name !== undefined && extra === undefined) return event(source, name);
    return undefined;
  };
}

function oneById(source: GammaSource, id: string, hasTags: boolean): Reply {
  return /^\d+$/.test(id) ? one(source.byId(id), hasTags) : gammaError(422, 'id is invalid');
}

function one(entry: GammaEntry | undefined, hasTags: boolean): Reply {
  return entry === undefined ? gammaError(404, 'id not found') : jsonText(entry.text(hasTags));
}

function wantsTags(query: URLSearchParams): boolean {
  return query.get('include_tag') === 'true';
}

function event(source: GammaSource, id: string): Reply {
  if (!/^\d+$/.test(id)) return gammaError(422, 'id is invalid');
  const text = source.eventText(id);
  return text === undefined ? gammaError(404, 'id not found') : jsonText(text);
}

interface Order {
  readonly field: SortField;
  readonly ascending: boolean;
}

function keysetPage(listing: GammaListing, source: GammaSource, query: URLSearchParams): Reply {
  if (query.has('offset')) return gammaError(400, 'offset is not allowed on keyset endpoints');
  const order = orderOf(query);
  if (order === undefined) return gammaError(422, 'order fields are not valid');
  const limit = limitOf(query, KEYSET_MAX_LIMIT);
  if (limit === undefined) return gammaError(422, 'limit is invalid');
  const cursor = query.get('after_cursor');
  const position = cursor === null || cursor === '' ? undefined : readCursor(cursor, order.field, order.ascending);
  if (cursor && position === undefined) return gammaError(400, 'after_cursor is invalid');
  const filter = filterOf(source, query);
  if (typeof filter === 'string') return gammaError(422, filter);

  const page: string[] = [];
  let last: KeysetPosition | undefined;
  let hasMore = false;
  for (const { value, entry } of listing.walk(order.field, order.ascending, position)) {
    if (!filter(entry)) continue;
    if (page.length === limit) {
      hasMore = true;
      break;
    }
    page.push(entry.text(wantsTags(query)));
    last = { ...order, value, rank: entry.rank };
  }
  const next = hasMore && last !== undefined ? `,"next_cursor":${JSON.stringify(cursorText(last))}` : '';
  return jsonText(`{"markets":[${page.join(',')}]${next}}`);
}

function legacyPage(listing: GammaListing, source: GammaSource, query: URLSearchParams): Reply {
  const order = orderOf(query);
  if (order === undefined) return gammaError(422, 'order fields are not valid');
  const limit = limitOf(query, LEGACY_MAX_LIMIT);
  const offset = wholeNumber(query.get('offset')) ?? (query.get('offset') ? undefined : 0);
  if (limit === undefined) return gammaError(422, 'limit is invalid');
  if (offset === undefined) return gammaError(422, 'offset is invalid');
  if (offset > LEGACY_MAX_OFFSET) {
    return gammaError(422, 'offset too large, use /markets/keyset for deeper pagination');
  }
  const filter = filterOf(source, query);
  if (typeof filter === 'string') return gammaError(422, filter);
  const page: string[] = [];
  let skipped = 0;
  for (const { entry } of listing.walk(order.field, order.ascending, undefined)) {
    if (page.length === limit) break;
    if (!filter(entry)) continue;
    if (skipped < offset) skipped += 1;
    else page.push(entry.text(wantsTags(query)));
  }
  return { ...jsonText(`[${page.join(',')}]`), headers: DEPRECATED };
}

/** Unknown parameters are ignored, as on the venue; `cursor` on a keyset route is one of them. */
function filterOf(source: GammaSource, query: URLSearchParams): ((entry: GammaEntry) => boolean) | string {
  const isClosed = query.get('closed') === 'true';
  const conditionIds = query.getAll('condition_ids');
  if (conditionIds.length > MAX_CONDITION_IDS) return 'condition_ids: too many values';
  const named: (GammaEntry | undefined)[][] = [];
  if (conditionIds.length > 0) named.push(conditionIds.map((id) => source.byConditionId(id)));
  const tokenIds = query.getAll('clob_token_ids');
  if (tokenIds.length > 0) named.push(tokenIds.map((id) => source.byTokenId(id)));
  const ids = query.getAll('id');
  if (ids.length > 0) named.push(ids.map((id) => source.byId(id)));
  const slugs = query.getAll('slug');
  if (slugs.length > 0) named.push(slugs.map((slug) => source.bySlug(slug)));
  const ranks = named.map((list) => new Set(list.map((entry) => entry?.rank)));
  return (entry) => entry.isClosed() === isClosed && ranks.every((set) => set.has(entry.rank));
}

function orderOf(query: URLSearchParams): Order | undefined {
  const [name = 'id'] = (query.get('order') ?? 'id').split(',');
  const field = SORT_FIELDS.find((known) => known === name);
  if (field === undefined) return undefined;
  return { field, ascending: query.get('ascending') !== 'false' };
}

function limitOf(query: URLSearchParams, most: number): number | undefined {
  const limit = wholeNumber(query.get('limit'));
  if (limit === null || limit === 0) return undefined;
  return Math.min(limit ?? DEFAULT_LIMIT, most);
}

/** The end of a page: the sort value and rank of its last market, and the order of the page. */
interface KeysetPosition {
  readonly field: SortField;
  readonly ascending: boolean;
  readonly value: number;
  readonly rank: number;
}

interface SortedListing {
  readonly version: number;
  readonly entries: readonly { readonly value: number; readonly entry: GammaEntry }[];
}

/** Sorting 100,000 markets for each page would cost more than the page: a large catalog keeps its order for a while. */
const LARGE_CATALOG = 5000;
const LARGE_CATALOG_VERSIONS = 1000;

/** The Gamma catalog in any order, by offset or after a position. */
class GammaListing {
  private readonly source: GammaSource;
  private readonly sorted = new Map<string, SortedListing>();

  constructor(source: GammaSource) {
    this.source = source;
  }

  /** Markets after `position` (or from the start) in the given order, lazily. */
  *walk(
    field: SortField,
    ascending: boolean,
    position: KeysetPosition | undefined,
  ): Generator<{ readonly value: number; readonly entry: GammaEntry }> {
    const { entries } = this.listing(field, ascending);
    for (let at = position === undefined ? 0 : after(entries, position); at < entries.length; at += 1) {
      const item = entries[at];
      if (item !== undefined) yield item;
    }
  }

  private listing(field: SortField, ascending: boolean): SortedListing {
    const key = `${field} ${ascending}`;
    const known = this.sorted.get(key);
    const { version } = this.source;
    if (known !== undefined) {
      const tolerated = known.entries.length > LARGE_CATALOG ? LARGE_CATALOG_VERSIONS : 0;
      if (version - known.version <= tolerated) return known;
    }
    const entries = this.source.entries().map((entry) => ({ value: entry.sortValue(field), entry }));
    entries.sort((a, b) => compare(a.value, a.entry.rank, b.value, b.entry.rank, ascending));
    const listing = { version, entries };
    this.sorted.set(key, listing);
    return listing;
  }
}

/** Opaque text of a position, as `next_cursor`. */
function cursorText(position: KeysetPosition): string {
  const { field, ascending, value, rank } = position;
  return Buffer.from(JSON.stringify([field, ascending, value, rank])).toString('base64url');
}

/** Reads a cursor; undefined when it is invalid or belongs to another order. */
function readCursor(text: string, field: SortField, ascending: boolean): KeysetPosition | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  if (!Array.isArray(parsed)) return undefined;
  const [cursorField, cursorAscending, value, rank] = parsed as unknown[];
  if (cursorField !== field || cursorAscending !== ascending) return undefined;
  if (typeof value !== 'number' || typeof rank !== 'number') return undefined;
  return { field, ascending, value, rank };
}

function after(entries: SortedListing['entries'], position: KeysetPosition): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const item = entries[middle];
    const isAfter =
      item !== undefined && compare(item.value, item.entry.rank, position.value, position.rank, position.ascending) > 0;
    if (isAfter) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** By value in the requested direction, then by rank, so that no two markets are equal. */
function compare(valueA: number, rankA: number, valueB: number, rankB: number, ascending: boolean): number {
  if (valueA !== valueB) return ascending ? valueA - valueB : valueB - valueA;
  return rankA - rankB;
}

/** Gamma's error shape. */
function gammaError(status: number, error: string): Reply {
  const type = status === 404 ? 'not found error' : 'validation error';
  return json({ type, error }, status);
}
