import { json, type Reply, type SimRequest, wholeNumber } from '../server/reply.ts';
import type { World } from '../world/world.ts';
import { type Bet, BetFeed } from './bet-feed.ts';
import {
  answerIdOf,
  type Contract,
  type Contracts,
  contractsOf,
  fullMarket,
  liteMarket,
  POLL_ID,
  pollMarket,
  probabilityOf,
  updatedMs,
  type Wire,
} from './contracts.ts';

const MAX_LIMIT = 1000;
const DEFAULT_MARKETS = 500;
const MAX_PROBS = 100;
const SORTS = ['created-time', 'updated-time'];

/** One row of the listing: its sort keys and its payload. */
interface Listed {
  readonly id: string;
  readonly createdMs: number;
  readonly updatedMs: number;
  wire(): Wire;
}

/**
 * The v0 routes that the service reads, over the same engine as the other hosts. As on the venue, an unknown query parameter is a 400, and
 * `before` and `after` mean the time of the named row, exclusively.
 */
export function manifoldRoutes(world: World): (request: SimRequest) => Reply | undefined {
  const feed = new BetFeed(world);
  const contracts = contractIndex(world);
  return (request) => {
    const { method, path, query } = request;
    const [version, root, id, extra, ...rest] = path.split('/').slice(1);
    if (method !== 'GET' || version !== 'v0' || rest.length > 0) return undefined;
    if (root === 'markets' && id === undefined) return markets(world, contracts(), query);
    if (root === 'bets' && id === undefined) return listBets(feed, contracts(), request);
    if (root === 'market-probs' && id === undefined) return probs(world, contracts(), query);
    if (root === 'market' && id === POLL_ID && extra === undefined) return json(pollMarket(pollMs(world)));
    if (root === 'market' && id !== undefined && extra === undefined) return market(world, contracts().get(id), query);
    if (root === 'market' && id !== undefined && extra === 'prob') return prob(world, contracts().get(id));
    if (root === 'slug' && id !== undefined && extra === undefined) {
      return market(world, bySlug(contracts(), id), query);
    }
    return undefined;
  };
}

function bySlug(contracts: Contracts, slug: string): Contract | undefined {
  return [...contracts.values()].find((contract) => contract.slug === slug);
}

/** Contracts by id, rebuilt after each change of the world. */
function contractIndex(world: World): () => Contracts {
  let gatheredVersion = -1;
  let contracts: Contracts = new Map();
  return () => {
    if (gatheredVersion !== world.version) {
      contracts = new Map(contractsOf(world).map((contract) => [contract.id, contract]));
      gatheredVersion = world.version;
    }
    return contracts;
  };
}

function markets(world: World, contracts: Contracts, query: URLSearchParams): Reply {
  const params = strict(query, ['limit', 'sort', 'order', 'before', 'userId', 'groupId']);
  if (isReply(params)) return params;
  const limit = wholeNumber(params['limit'] ?? null) ?? DEFAULT_MARKETS;
  const sort = params['sort'] ?? 'created-time';
  if (limit > MAX_LIMIT || !SORTS.includes(sort)) return apiError(400, 'limit or sort is invalid');
  const orderOf = (row: Listed) => (sort === 'updated-time' ? row.updatedMs : row.createdMs);
  const rows = listing(world, contracts).sort((a, b) => orderOf(b) - orderOf(a));
  const anchor = rows.find((row) => row.id === params['before']);
  const below = anchor === undefined ? rows : rows.filter((row) => orderOf(row) < orderOf(anchor));
  return json(below.slice(0, limit).map((row) => row.wire()));
}

function listing(world: World, contracts: Contracts): Listed[] {
  const rows = [...contracts.values()].map((contract) => ({
    id: contract.id,
    createdMs: contract.createdMs,
    updatedMs: updatedMs(contract),
    wire: () => liteMarket(contract, world.second),
  }));
  const atMs = pollMs(world);
  return [...rows, { id: POLL_ID, createdMs: atMs, updatedMs: atMs, wire: () => pollMarket(atMs) }];
}

function pollMs({ options }: World): number {
  return (options.nowSecond - options.historySeconds) * 1000;
}

function probs(world: World, contracts: Contracts, query: URLSearchParams): Reply {
  const params = strict(query, ['ids']);
  if (isReply(params)) return params;
  const ids = query.getAll('ids');
  if (ids.length === 0 || ids.length > MAX_PROBS) return apiError(400, 'ids: 1 to 100 of them');
  const found = [...new Set(ids)].flatMap((id) => contracts.get(id) ?? []);
  return json(Object.fromEntries(found.map((contract) => [contract.id, probsOf(contract, world)])));
}

function prob(world: World, contract: Contract | undefined): Reply {
  return contract === undefined ? apiError(404, 'Contract not found') : json(probsOf(contract, world));
}

function probsOf({ markets: members, isMultiple }: Contract, world: World): Wire {
  const { seed } = world.options;
  const [first] = members;
  if (!isMultiple) return { prob: first === undefined ? undefined : probabilityOf(first) };
  return {
    answerProbs: Object.fromEntries(members.map((each) => [answerIdOf(seed, each.spec.no), probabilityOf(each)])),
  };
}

function market(world: World, contract: Contract | undefined, query: URLSearchParams): Reply {
  const params = strict(query, []);
  if (isReply(params)) return params;
  if (contract === undefined) return apiError(404, 'Contract not found');
  return json(fullMarket(contract, world.options.seed, world.second));
}

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
function listBets(feed: BetFeed, contracts: Contracts, { query, tapeEnd = Infinity }: BetsRequest): Reply {
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

/** The first value of each known parameter, null when it is absent. */
type Params = Readonly<Record<string, string | null>>;

/** The venue's error shape. */
function apiError(status: number, message: string): Reply {
  return json({ message }, status);
}

/** The parameters of a query by name, or the refusal of an unknown one. */
function strict(query: URLSearchParams, known: readonly string[]): Params | Reply {
  const unknown = [...query.keys()].find((name) => !known.includes(name));
  if (unknown !== undefined) return apiError(400, `Unrecognized key(s) in object: '${unknown}'`);
  return Object.fromEntries(known.map((name) => [name, query.get(name)]));
}

function isReply(value: Params | Reply): value is Reply {
  return typeof (value as Reply).status === 'number';
}
