import type { TradeRow, TradeSource } from '../source.ts';
import { jsonText, plainError, type Reply, type SimRequest, wholeNumber } from './reply.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;

/**
 * How the end of a window looks. `empty`: rows past 4,000 are unreachable and the page is empty. `error`: an offset
 * over 3,000 is a 400, which with pages of 1,000 leaves the same 4,000 rows.
 */
export type OffsetCap = 'empty' | 'error';
const WINDOW_ROWS = 4000;
const MAX_OFFSET = 3000;

interface TradesQuery {
  readonly limit: number;
  readonly offset: number;
  readonly start: number | undefined;
  readonly end: number | undefined;
  readonly side: string | undefined;
  readonly user: string | undefined;
  readonly leastDollars: number;
  readonly leastShares: number;
}

/** The routes of data-api.polymarket.com that the service reads. */
export function dataRoutes(source: TradeSource, offsetCap: OffsetCap): (request: SimRequest) => Reply | undefined {
  return ({ method, path, query }) => {
    if (method !== 'GET' || path !== '/trades') return undefined;
    const parsed = parseQuery(query);
    if (typeof parsed === 'string') return plainError(400, parsed);
    if (parsed.offset > MAX_OFFSET && offsetCap === 'error') {
      return plainError(400, `max historical activity offset of ${MAX_OFFSET} exceeded`);
    }
    const rows = source.newestFirst({
      markets: marketsOf(source, query),
      takerOnly: query.get('takerOnly') !== 'false',
    });
    return jsonText(`[${page(rows, parsed).join(',')}]`);
  };
}

/** Rows `offset .. offset + limit` of the filtered tape, never past the window. */
function page(rows: Iterable<TradeRow>, query: TradesQuery): string[] {
  const last = Math.min(query.offset + query.limit, WINDOW_ROWS);
  const found: string[] = [];
  let at = 0;
  if (query.offset >= last) return found;
  for (const row of rows) {
    if (query.end !== undefined && row.second > query.end) continue;
    // Newest first: nothing behind this row can be in the range.
    if (query.start !== undefined && row.second < query.start) break;
    if (!matches(row, query)) continue;
    if (at >= query.offset) found.push(row.text());
    at += 1;
    if (at === last) break;
  }
  return found;
}

function matches(row: TradeRow, query: TradesQuery): boolean {
  if (query.side !== undefined && row.side !== query.side) return false;
  if (query.user !== undefined && row.wallet() !== query.user) return false;
  return row.dollars >= query.leastDollars && row.shares >= query.leastShares;
}

function parseQuery(query: URLSearchParams): TradesQuery | string {
  const limit = wholeNumber(query.get('limit'));
  const offset = wholeNumber(query.get('offset'));
  const start = wholeNumber(query.get('start'));
  const end = wholeNumber(query.get('end'));
  if (limit === null || offset === null) return 'invalid limit or offset';
  if (start === null || end === null) return 'invalid start or end';
  const side = query.get('side') || undefined;
  if (side !== undefined && side !== 'BUY' && side !== 'SELL') return 'invalid side';
  const amount = Number(query.get('filterAmount') ?? 0);
  if (!Number.isFinite(amount)) return 'invalid filterAmount';
  const unit = query.get('filterType');
  return {
    limit: Math.min(limit ?? DEFAULT_LIMIT, MAX_LIMIT),
    offset: offset ?? 0,
    start,
    end,
    side,
    user: query.get('user')?.toLowerCase() || undefined,
    leastDollars: unit === 'CASH' ? amount : 0,
    leastShares: unit === 'TOKENS' ? amount : 0,
  };
}

function marketsOf(source: TradeSource, query: URLSearchParams): Set<string> | undefined {
  const csv = (name: string) => (query.get(name) ?? '').split(',').filter(Boolean);
  const markets = csv('market');
  const events = csv('eventId');
  if (markets.length === 0 && events.length === 0) return undefined;
  return new Set([...markets, ...events.flatMap((eventId) => source.marketsOfEvent(eventId))]);
}
