import type { CdnCache } from '../server/cdn-cache.ts';
import { dataError, isRefusal, pageReply, readPlace, refuseUnknown } from '../server/data-page.ts';
import { jsonText, type Reply, type SimRequest, wholeNumber } from '../server/reply.ts';
import type { TradeRow, TradeSource } from '../source.ts';

/** `cache-control: max-age` of the trade feed. */
const MAX_AGE_SECONDS = 300;
const LEAST_AMOUNT = 0.01;
const MAX_IDS = 20;
const CONDITION_ID = /^0x([0-9a-f]{62}|[0-9a-f]{64})$/i;
const PARAMETERS = [
  'user',
  'condition',
  'event_id',
  'side',
  'taker_only',
  'filter_type',
  'filter_amount',
  'start',
  'end',
];

/** The end of a page: newest first by second, and by sequence within it. */
interface Anchor {
  readonly second: number;
  readonly sequence: number;
}

interface TradesQuery {
  readonly markets: ReadonlySet<string> | undefined;
  readonly takerOnly: boolean;
  readonly start: number | undefined;
  readonly end: number | undefined;
  readonly side: string | undefined;
  readonly user: string | undefined;
  readonly leastDollars: number;
  readonly leastShares: number;
}

/**
 * `/v2/trades` and `/v2/resolutions` of data-api.polymarket.com, strict about parameters, and version 1, which is gone. A CDN is before the
 * trades. The venue ignores `start` and `end` without `user`; the simulator refuses them, so that no client relies on them.
 */
export function dataRoutes(source: TradeSource, cache: CdnCache): (request: SimRequest) => Reply | undefined {
  const origin = (request: SimRequest) => trades(source, request);
  return (request) => {
    if (request.method !== 'GET') return undefined;
    if (['/trades', '/activity', '/positions'].includes(request.path)) return dataError(410, 'version 1 is retired');
    if (request.path === '/v2/resolutions') return resolutions(source, request);
    return request.path === '/v2/trades' ? cache.answer(request, MAX_AGE_SECONDS, origin) : undefined;
  };
}

/** One list without pages. The venue also reads `question_id` and `event_id`, one kind per request; no client of the simulator needs them. */
function resolutions(source: TradeSource, request: SimRequest): Reply {
  const unknown = [...request.query.keys()].find((name) => name !== 'condition');
  if (unknown !== undefined) return dataError(400, `unknown query param '${unknown}'`, unknown);
  const conditions = [...new Set((request.query.get('condition') ?? '').split(',').filter(Boolean))];
  if (conditions.length === 0) return dataError(400, 'provide exactly one of question_id, condition, event_id');
  if (conditions.length > MAX_IDS) return dataError(400, `at most ${MAX_IDS} values`, 'condition');
  const malformed = conditions.find((id) => !CONDITION_ID.test(id));
  if (malformed !== undefined) return dataError(400, `invalid condition id: ${malformed}`, 'condition');
  const rows = conditions.flatMap((id) => source.resolutionText(id) ?? []);
  return jsonText(`{"data":[${rows.join(',')}]}`);
}

function trades(source: TradeSource, request: SimRequest): Reply {
  const refusal = refuseUnknown(request, PARAMETERS);
  if (refusal) return refusal;
  const place = readPlace<Anchor>(request);
  if (isRefusal(place)) return place;
  const query = parseQuery(source, request.query);
  if (isRefusal(query)) return query;
  const found: TradeRow[] = [];
  let hasMore = false;
  for (const row of source.newestFirst({ ...query, tapeEnd: request.tapeEnd ?? Infinity })) {
    if (place.after && !isBelow(row, place.after)) continue;
    if (!matches(row, query)) continue;
    hasMore = found.length === place.limit;
    if (hasMore) break;
    found.push(row);
  }
  const last = found.at(-1);
  const anchor = hasMore && last ? { second: last.second, sequence: last.sequence } : undefined;
  const rows = found.map((row) => row.text());
  return pageReply(request, rows, place.limit, anchor);
}

function isBelow({ second, sequence }: TradeRow, after: Anchor): boolean {
  return second < after.second || (second === after.second && sequence < after.sequence);
}

function matches(row: TradeRow, query: TradesQuery): boolean {
  if (query.end !== undefined && row.second > query.end) return false;
  if (query.start !== undefined && row.second < query.start) return false;
  if (query.side !== undefined && row.side !== query.side) return false;
  if (query.user !== undefined && row.wallet() !== query.user) return false;
  return row.dollars >= query.leastDollars && row.shares >= query.leastShares;
}

function parseQuery(source: TradeSource, query: URLSearchParams): TradesQuery | Reply {
  const user = query.get('user')?.toLowerCase() || undefined;
  const start = wholeNumber(query.get('start'));
  const end = wholeNumber(query.get('end'));
  if (start === null || end === null) return dataError(400, 'invalid start or end', 'start');
  if (user === undefined && (start ?? end) !== undefined) return dataError(400, 'start and end need user', 'start');
  const side = query.get('side') || undefined;
  if (side !== undefined && side !== 'BUY' && side !== 'SELL')
    return dataError(400, 'side must be BUY or SELL', 'side');
  const unit = query.get('filter_type') ?? 'TOKENS';
  if (unit !== 'TOKENS' && unit !== 'CASH') return dataError(400, 'filterType must be CASH or TOKENS', 'filter_type');
  const amount = Number(query.get('filter_amount') ?? 0);
  if (!(amount >= 0)) return dataError(400, 'invalid filter_amount', 'filter_amount');
  const takerOnly = query.get('taker_only') ?? 'true';
  if (!['true', 'false'].includes(takerOnly)) return dataError(400, 'invalid taker_only', 'taker_only');
  const markets = marketsOf(source, query);
  if (typeof markets === 'string') return dataError(400, markets, 'condition');
  // 0 means the default.
  const least = amount || LEAST_AMOUNT;
  return {
    markets,
    takerOnly: takerOnly === 'true',
    start,
    end,
    side,
    user,
    leastDollars: unit === 'CASH' ? least : 0,
    leastShares: unit === 'TOKENS' ? least : 0,
  };
}

function marketsOf(source: TradeSource, query: URLSearchParams): Set<string> | string | undefined {
  const csv = (name: string) => (query.get(name) ?? '').split(',').filter(Boolean);
  const markets = csv('condition');
  const events = csv('event_id');
  if (markets.length === 0 && events.length === 0) return undefined;
  if (markets.length > 0 && events.length > 0) return 'provide condition or event_id';
  if (Math.max(markets.length, events.length) > MAX_IDS) return `at most ${MAX_IDS} values`;
  const malformed = markets.find((id) => !CONDITION_ID.test(id));
  if (malformed !== undefined) return `invalid condition id: ${malformed}`;
  return new Set([...markets, ...events.flatMap((eventId) => source.marketsOfEvent(eventId))]);
}
