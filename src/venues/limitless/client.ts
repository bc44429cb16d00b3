import { VenueError } from '../errors.ts';
import { type BatchRequest, createVenueHttp, type VenueAnswer, type VenueHttpSettings } from '../http/http.ts';
import { createMemberBatches, type MemberBatches } from '../http/member-batches.ts';
import type { BreakerState, RefusedMember, VenueObserver } from '../observer.ts';
import type { RecordKind, RejectedRecord } from '../port.ts';
import { rejectRecord } from '../rejection.ts';
import { flattenGroups } from './listing.ts';

export const LIMITLESS = 'limitless';

/** Settings of the host's client that tests and operators may change. */
/** The largest pages of the venue: it answers 400 above 25 markets, and serves at most 100 events. */
export const MAX_LISTED = 25;
export const MAX_EVENTS = 100;

/** Pages count from 1. */
export interface PageQuery {
  page: number;
  limit: number;
}

export interface ListedPage {
  /** Markets; the options of a group carry the facts of their group. */
  rows: unknown[];
  /** Past the end of the list. */
  isEmpty: boolean;
  /** Markets of this page that the venue cannot list, by their places in the list. */
  skipped?: readonly RefusedMember[];
  ageMs: number;
  observedAt: number;
}

export interface EventsPage {
  /** Newest first. */
  rows: unknown[];
  /** Events of the market when the page was made. */
  total: number;
  ageMs: number;
  observedAt: number;
}

/** Limitless' read endpoints, without a key. Every call throws VenueError only. */
export interface LimitlessClient {
  /**
   * `GET /markets/active`: markets that are not resolved. A page that the venue cannot serve for one of its markets is read in smaller
   * pages, and that market is `skipped`.
   */
  listMarkets(query: PageQuery, signal: AbortSignal): Promise<ListedPage>;
  /** One market or group in any state; throws `http_status` 404 for an unknown slug. */
  getMarket(slug: string, signal: AbortSignal, batch?: BatchRequest): Promise<VenueAnswer>;
  /** The book of YES. */
  getBook(slug: string, signal: AbortSignal, batch?: BatchRequest): Promise<VenueAnswer>;
  /** Trades of one market. */
  listEvents(slug: string, query: PageQuery, signal: AbortSignal): Promise<EventsPage>;
  /** The requests of one route that each name an id. */
  members(route: string): MemberBatches;
  breakerState(): BreakerState;
  close(): Promise<void>;
}

/** The venue publishes no limit. Its own clients send two requests at once and pause 300 ms, which is about this rate. */
export const REQUESTS_PER_SECOND = 3;
/** Requests in flight at once. */
export const AT_ONCE = 2;

export function createLimitlessClient(options: {
  /** Everything before `/markets`: `https://api.limitless.exchange`. */
  url: string;
  http?: VenueHttpSettings;
  observer?: VenueObserver;
}): LimitlessClient {
  const http = createVenueHttp({
    venue: LIMITLESS,
    baseUrl: options.url,
    requestsPerSecond: REQUESTS_PER_SECOND,
    burst: AT_ONCE,
    connections: AT_ONCE,
    ...options.http,
    ...(options.observer && { observer: options.observer }),
  });
  async function listPart(query: PageQuery, signal: AbortSignal, batch: BatchRequest) {
    const answer = await http.get({ route: 'markets', path: '/markets/active', query: queryOf(query), signal, batch });
    const listed = readList(answer.json, ['data', 'markets']);
    const { cachedMs: ageMs, observedAt } = answer;
    return { rows: flattenGroups(listed), isEmpty: listed.length === 0, ageMs, observedAt };
  }

  return {
    async listMarkets({ page, limit }, signal) {
      const first = (page - 1) * limit;
      const places = Array.from({ length: limit }, (_, at) => String(first + at));
      // Places move with every new market, so the batches of a page remember nothing for the next one.
      const { answers, refused, fault } = await createMemberBatches({
        ...http,
        venue: LIMITLESS,
        route: 'markets',
      }).ask(
        places,
        async (members, batch) =>
          Promise.all(
            pagesOf(first + places.indexOf(members[0] ?? ''), members.length).map((part) =>
              listPart(part, signal, batch),
            ),
          ),
        { size: limit },
      );
      if (fault) throw fault;
      const parts = answers.flatMap(({ answer }) => answer);
      return {
        rows: parts.flatMap(({ rows }) => rows),
        isEmpty: refused.length === 0 && parts.every(({ isEmpty }) => isEmpty),
        ...(refused.length > 0 && { skipped: refused }),
        ageMs: Math.max(...parts.map(({ ageMs }) => ageMs)),
        observedAt: Math.min(...parts.map(({ observedAt }) => observedAt)),
      };
    },
    getMarket: (slug, signal, batch) => http.get({ route: 'market', path: marketPath(slug), signal, batch }),
    getBook: (slug, signal, batch) => http.get({ route: 'book', path: `${marketPath(slug)}/orderbook`, signal, batch }),
    async listEvents(slug, query, signal) {
      const path = `${marketPath(slug)}/events`;
      const { json, ageMs, observedAt } = await http.get({ route: 'events', path, query: queryOf(query), signal });
      const rows = readList(json, ['events']);
      return { rows, total: readTotal(json, rows, query), ageMs, observedAt };
    },
    members: (route) => createMemberBatches({ ...http, venue: LIMITLESS, route, observer: options.observer }),
    breakerState: () => http.breakerState(),
    close: () => http.close(),
  };
}

function marketPath(slug: string): string {
  return `/markets/${encodeURIComponent(slug)}`;
}

/** The fewest pages that together are these places of the list: a page begins at a multiple of its size. */
function pagesOf(first: number, count: number): PageQuery[] {
  const pages: PageQuery[] = [];
  for (let at = first; at < first + count; ) {
    let limit = first + count - at;
    while (at % limit !== 0) limit -= 1;
    pages.push({ page: at / limit + 1, limit });
    at += limit;
  }
  return pages;
}

/** The rejected records that stand for the markets that a page does not list. */
export function rejectSkipped(kind: RecordKind, { skipped = [] }: Pick<ListedPage, 'skipped'>): RejectedRecord[] {
  return skipped.map(({ member, reason }) => {
    const rejection = { reason: 'page_unavailable', detail: `place ${member} of the listing: ${reason}` };
    return rejectRecord(kind, { place: member }, rejection, `place ${member}`);
  });
}

function queryOf({ page, limit }: PageQuery): URLSearchParams {
  return new URLSearchParams({ page: String(page), limit: String(limit) });
}

/** The list of an answer, bare or under the first of these keys that exists. */
function readList(json: unknown, keys: readonly string[]): unknown[] {
  const answer = (json ?? {}) as Record<string, unknown>;
  const list = Array.isArray(json) ? json : answer[keys.find((key) => answer[key] !== undefined) ?? ''];
  if (Array.isArray(list)) return list;
  throw invalid(`${keys[0]}: expected a list`);
}

/** Positions of events count from the end of the feed, so an answer without its total is useless. */
function readTotal(json: unknown, rows: readonly unknown[], { page, limit }: PageQuery): number {
  const { totalRows, limit: served = limit } = (json ?? {}) as { totalRows?: unknown; limit?: unknown };
  if (Number(served) !== limit) throw invalid(`events: a page of ${String(served).slice(0, 20)} instead of ${limit}`);
  const total = typeof totalRows === 'number' || typeof totalRows === 'string' ? Number(totalRows) : Number.NaN;
  if (!Number.isSafeInteger(total) || total < 0) throw invalid('totalRows: expected a whole number');
  if (rows.length > limit || (rows.length > 0 && (page - 1) * limit + rows.length > total)) {
    throw invalid(`events: ${rows.length} rows on page ${page} of ${total}`);
  }
  return total;
}

function invalid(message: string): VenueError {
  return new VenueError(LIMITLESS, 'invalid_payload', message, { retryable: true });
}
