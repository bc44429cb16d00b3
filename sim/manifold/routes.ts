import { json, type Reply, type SimRequest, wholeNumber } from '../server/reply.ts';
import type { World } from '../world/world.ts';
import { BetFeed } from './bet-feed.ts';
import {
  answerIdOf,
  type Contract,
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

type Params = Readonly<Record<string, string | null>>;

/** One row of the listing: what it is ordered by, and how it reads. */
interface Listed {
  readonly id: string;
  readonly createdMs: number;
  readonly updatedMs: number;
  wire(): Wire;
}

/**
 * The v0 routes that the service reads, over the same engine as everything else. An unknown query parameter is a 400, as on the
 * venue, and `before` and `after` stand for the time of what they name, exclusively.
 */
export function manifoldRoutes(world: World): (request: SimRequest) => Reply | undefined {
  const feed = new BetFeed(world);
  const contracts = contractIndex(world);
  return ({ method, path, query }) => {
    const [version, root, id, extra, ...rest] = path.split('/').slice(1);
    if (method !== 'GET' || version !== 'v0' || rest.length > 0) return undefined;
    if (root === 'markets' && id === undefined) return markets(world, contracts(), query);
    if (root === 'bets' && id === undefined) return bets(feed, query);
    if (root === 'market-probs' && id === undefined) return probs(world, contracts(), query);
    if (root === 'market' && id !== undefined && extra === undefined) return market(world, contracts().get(id));
    if (root === 'market' && id !== undefined && extra === 'prob') return prob(world, contracts().get(id));
    return undefined;
  };
}

type Contracts = ReadonlyMap<string, Contract>;

/** Contracts by id, gathered again when time has moved on. */
function contractIndex(world: World): () => Contracts {
  let gatheredSecond = -1;
  let contracts: Contracts = new Map();
  return () => {
    if (gatheredSecond !== world.second) {
      contracts = new Map(contractsOf(world).map((contract) => [contract.id, contract]));
      gatheredSecond = world.second;
    }
    return contracts;
  };
}

/** The venue's error shape. */
function apiError(status: number, message: string): Reply {
  return json({ message }, status);
}

/** The parameters of a query by name, or the refusal of one that is not known. */
function strict(query: URLSearchParams, known: readonly string[]): Params | Reply {
  const unknown = [...query.keys()].find((name) => !known.includes(name));
  if (unknown !== undefined) return apiError(400, `Unrecognized key(s) in object: '${unknown}'`);
  return Object.fromEntries(known.map((name) => [name, query.get(name)]));
}

function isReply(value: Params | Reply): value is Reply {
  return typeof (value as Reply).status === 'number';
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
  const pollMs = (world.options.nowSecond - world.options.historySeconds) * 1000;
  return [...rows, { id: POLL_ID, createdMs: pollMs, updatedMs: pollMs, wire: () => pollMarket(pollMs) }];
}

function bets(feed: BetFeed, query: URLSearchParams): Reply {
  const params = strict(query, [
    'limit',
    'order',
    'contractId',
    'before',
    'after',
    'beforeTime',
    'afterTime',
    'filterRedemptions',
  ]);
  if (isReply(params)) return params;
  const limit = wholeNumber(params['limit'] ?? null) ?? MAX_LIMIT;
  if (limit > MAX_LIMIT) return apiError(400, `Non-points limit must be less than or equal to ${MAX_LIMIT}`);
  const timeOf = (id: string) => feed.find(id)?.createdMs;
  const { before, after, contractId } = params;
  if (before && timeOf(before) === undefined) return apiError(404, 'Bet specified in before parameter not found');
  if (after && timeOf(after) === undefined) return apiError(404, 'Bet specified in after parameter not found');
  const beforeMs = Math.min(
    bound(params['beforeTime'], Number.POSITIVE_INFINITY),
    (before && timeOf(before)) || Infinity,
  );
  const afterMs = Math.max(bound(params['afterTime'], 0), (after && timeOf(after)) || 0);
  const found = feed
    .list()
    .filter((bet) => bet.createdMs > afterMs && bet.createdMs < beforeMs)
    .filter((bet) => !contractId || bet.contractId === contractId);
  const ordered = params['order'] === 'asc' ? found : found.reverse();
  const wires = ordered.map((bet) => () => bet.wire());
  if (params['filterRedemptions'] !== 'true') return json(wires.slice(0, limit).map((wire) => wire()));
  return json(
    wires
      .map((wire) => wire())
      .filter((wire) => !wire['isRedemption'])
      .slice(0, limit),
  );
}

function bound(text: string | null | undefined, otherwise: number): number {
  return wholeNumber(text ?? null) ?? otherwise;
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

function market(world: World, contract: Contract | undefined): Reply {
  if (contract === undefined) return apiError(404, 'Contract not found');
  return json(fullMarket(contract, world.options.seed, world.second));
}
