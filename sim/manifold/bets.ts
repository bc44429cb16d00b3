import { json, type Reply, type SimRequest } from '../server/reply.ts';
import type { Bet, BetFeed } from './bet-feed.ts';
import type { Contracts } from './contracts.ts';
import { apiError, isReply, type Params, strict } from './strict-query.ts';

const MAX_LIMIT = 1000;
const PARAMETERS = [
  'limit',
  'order',
  'contractId',
  'contractSlug',
  'answerId',
  'before',
  'after',
  'beforeTime',
  'afterTime',
  'filterRedemptions',
];

type BetsRequest = Pick<SimRequest, 'query' | 'tapeEnd'>;

/** `GET /bets`, newest first unless `order=asc`; times in milliseconds, exclusive like `before` and `after`. */
export function listBets(feed: BetFeed, contracts: Contracts, { query, tapeEnd = Infinity }: BetsRequest): Reply {
  const params = strict(query, PARAMETERS);
  if (isReply(params)) return params;
  const limit = numberOf(params, 'limit') ?? MAX_LIMIT;
  const order = params['order'] ?? 'desc';
  if (Number.isNaN(limit) || limit < 0 || !['asc', 'desc'].includes(order)) {
    return apiError(400, 'limit or order is invalid');
  }
  if (limit > MAX_LIMIT) return apiError(400, `Non-points limit must be less than or equal to ${MAX_LIMIT}`);
  const window = windowOf(feed, params);
  if ('status' in window) return window;
  const matches = filterOf(contracts, query, params);
  const found: Bet[] = [];
  const isAscending = order === 'asc';
  for (const bet of isAscending ? feed.oldestFirst(window.afterMs) : feed.newestFirst(window.beforeMs)) {
    const isPast = isAscending ? bet.createdMs >= window.beforeMs : bet.createdMs <= window.afterMs;
    if (isPast || found.length === limit) break;
    const isInside = bet.createdMs > window.afterMs && bet.createdMs < window.beforeMs;
    if (isInside && bet.tradeIndex < tapeEnd && matches(bet)) found.push(bet);
  }
  return json(found.map((bet) => bet.wire()));
}

/** Both bounds are exclusive; with a bet and a time, the narrower bound applies. */
function windowOf(feed: BetFeed, params: Params): { afterMs: number; beforeMs: number } | Reply {
  const times = { beforeTime: numberOf(params, 'beforeTime'), afterTime: numberOf(params, 'afterTime') };
  const bad = Object.entries(times).find(([, time]) => Number.isNaN(time));
  if (bad !== undefined) return apiError(400, `${bad[0]}: expected a number`);
  const { before, after } = params;
  const [beforeBet, afterBet] = [before, after].map((id) => (id ? feed.find(id) : undefined));
  if (before && beforeBet === undefined) return apiError(404, 'Bet specified in before parameter not found');
  if (after && afterBet === undefined) return apiError(404, 'Bet specified in after parameter not found');
  return {
    beforeMs: Math.min(times.beforeTime ?? Infinity, beforeBet?.createdMs ?? Infinity),
    afterMs: Math.max(times.afterTime ?? 0, afterBet?.createdMs ?? 0),
  };
}

function filterOf(contracts: Contracts, query: URLSearchParams, params: Params): (bet: Bet) => boolean {
  const contractIds = new Set(query.getAll('contractId'));
  const { contractSlug, answerId } = params;
  if (contractIds.size === 0 && contractSlug) {
    const contract = [...contracts.values()].find((each) => each.slug === contractSlug);
    // An unknown slug matches no bet.
    contractIds.add(contract?.id ?? '');
  }
  const withoutRedemptions = params['filterRedemptions'] === 'true';
  return (bet) =>
    (contractIds.size === 0 || contractIds.has(bet.contractId)) &&
    (!answerId || bet.answerId === answerId) &&
    !(withoutRedemptions && bet.isRedemption);
}

/** NaN for text that is not a number; undefined when absent. */
function numberOf(params: Params, name: string): number | undefined {
  const text = params[name] ?? null;
  return text === null ? undefined : text === '' ? Number.NaN : Number(text);
}
