import { CdnCache } from '../server/cdn-cache.ts';
import { json, type Reply, type SimRequest, wholeNumber } from '../server/reply.ts';
import type { Market } from '../world/market.ts';
import type { World } from '../world/world.ts';
import { bookObject, eventObject, groupObject, isActive, isPoolMarket, marketObject, type Wire } from './wire.ts';

const MAX_LISTED = 25;
const MAX_EVENTS = 100;
/** The CDN before the lists keeps an answer this long, by its exact address. */
const CDN_SECONDS = 30;
/** User agents that the venue's firewall rejects. */
const REFUSED_AGENT = /^(python|$)/i;

/**
 * The routes of Limitless that the service reads, over the same engine as everything else. A query parameter that a route does not know
 * is a 400, so that no test passes by a parameter that the venue may refuse.
 */
export function limitlessRoutes(world: World): (request: SimRequest) => Reply | undefined {
  const cdn = new CdnCache(() => world.second);
  return (request) => {
    const { method, path, headers } = request;
    const [root, slug, leaf, ...rest] = path.split('/').slice(1);
    if (method !== 'GET' || root !== 'markets' || slug === undefined || rest.length > 0) return undefined;
    if (REFUSED_AGENT.test(headers['user-agent'] ?? '')) return failure(403, 'Forbidden');
    if (slug === 'active')
      return leaf === undefined ? cdn.answer(request, CDN_SECONDS, (each) => active(world, each)) : undefined;
    const found = findMarket(world, slug);
    if (leaf === undefined) return found === undefined ? group(world, slug) : json(ownPage(world, found));
    if (found === undefined) return failure(404, 'Market not found');
    if (leaf === 'orderbook') return book(world, found);
    return leaf === 'events' ? cdn.answer(request, CDN_SECONDS, (each) => events(world, found, each)) : undefined;
  };
}

function failure(statusCode: number, message: string): Reply {
  return json({ message, statusCode }, statusCode);
}

function findMarket(world: World, slug: string): Market | undefined {
  return world.markets.find((market) => market.spec.slug === slug && market.isListed);
}

function group(world: World, slug: string): Reply {
  const member = world.markets.find(({ event }) => event.slug === slug && event.negRiskId !== undefined);
  const options = member === undefined ? [] : optionsOf(world, member);
  return options.length === 0 ? failure(404, 'Market not found') : json(groupObject(options, world));
}

function optionsOf(world: World, member: Market): Market[] {
  return world.siblingsOf(member).filter((option) => option.isListed);
}

function ownPage(world: World, market: Market): Wire {
  const object = marketObject(market, world);
  return market.event.negRiskId === undefined ? object : { ...object, groupSlug: market.event.slug };
}

/** `GET /markets/active`, newest first: markets and groups without a result. Past the end it says that there is nothing at all. */
function active(world: World, { query }: SimRequest): Reply {
  const page = pageOf(query, MAX_LISTED);
  if (page === undefined) return failure(400, 'page or limit is invalid');
  const rows = listing(world);
  const data = rows.slice(page.start, page.start + page.limit).map((row) => row.wire());
  return json({ data, totalMarketsCount: data.length === 0 ? 0 : rows.length });
}

interface Listed {
  createdSecond: number;
  wire(): Wire;
}

function listing(world: World): Listed[] {
  const groups = new Set<number>();
  const rows: Listed[] = [];
  for (const market of world.markets) {
    const { event } = market;
    if (!isActive(market) || groups.has(event.no)) continue;
    if (event.negRiskId === undefined) {
      rows.push({ createdSecond: market.spec.createdSecond, wire: () => marketObject(market, world) });
      continue;
    }
    groups.add(event.no);
    const wire = () => groupObject(optionsOf(world, market), world);
    rows.push({ createdSecond: event.createdSecond, wire });
  }
  return rows.sort((a, b) => b.createdSecond - a.createdSecond);
}

function book(world: World, market: Market): Reply {
  if (isPoolMarket(market) || market.phase === 'resolved') return failure(400, 'The market has no orderbook');
  return json(bookObject(market, world));
}

/** `GET /markets/{slug}/events`, newest first; a resolved market keeps its feed. Pages move while rows arrive. */
function events(world: World, market: Market, { query, tapeEnd = Infinity }: SimRequest): Reply {
  const page = pageOf(query, MAX_EVENTS);
  if (page === undefined) return failure(400, 'page or limit is invalid');
  if (isPoolMarket(market)) return failure(400, 'The market has no orderbook');
  const trades = [...world.tape.newestFirst(market.spec.no)].filter(({ index }) => index < tapeEnd);
  const { start, limit } = page;
  return json({
    events: trades.slice(start, start + limit).map((trade) => eventObject(trade, market, world.options.seed)),
    limit,
    page: start / limit + 1,
    totalPages: Math.ceil(trades.length / limit),
    totalRows: trades.length,
  });
}

/** Undefined where the venue answers 400: a size above the largest, or an unknown parameter. */
function pageOf(query: URLSearchParams, largest: number): { start: number; limit: number } | undefined {
  if ([...query.keys()].some((name) => name !== 'page' && name !== 'limit')) return undefined;
  const page = wholeNumber(query.get('page')) ?? (query.has('page') ? 0 : 1);
  const limit = wholeNumber(query.get('limit')) ?? (query.has('limit') ? 0 : Math.min(10, largest));
  return page < 1 || limit < 1 || limit > largest ? undefined : { start: (page - 1) * limit, limit };
}
