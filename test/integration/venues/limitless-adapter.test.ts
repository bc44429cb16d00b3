import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../src/domain/markets/market.ts';
import { createLimitlessAdapter } from '../../../src/venues/limitless/adapter.ts';
import type { CallContext, VenueAdapter } from '../../../src/venues/port.ts';
import { startSimulatedLimitless } from '../../conformance/venue-adapter/limitless-exchange.ts';

let venue: Awaited<ReturnType<typeof startSimulatedLimitless>>;
let adapter: VenueAdapter;
let context: CallContext;
beforeEach(async () => {
  venue = await startSimulatedLimitless({ liveMarkets: 30 });
  adapter = venue.createAdapter();
  context = { signal: new AbortController().signal, now: () => venue.now() };
});
afterEach(async () => {
  await adapter.close();
  await venue.close();
});

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${venue.exchange.limitlessUrl}${path}`, { headers: { 'user-agent': 'oddswire', ...headers } });
const requests = (path: RegExp) => venue.exchange.requests().filter((each) => path.test(each.path));

async function catalog(): Promise<MarketRecord[]> {
  const markets: MarketRecord[] = [];
  for (let position: unknown = null, more = true; more; ) {
    const page = await adapter.pollMarkets(position, context);
    markets.push(...page.records);
    ({ position, more } = page);
  }
  return markets;
}

async function followTrades(position: unknown = null): Promise<unknown> {
  let at = position;
  for (let more = true; more; ) {
    const page = await adapter.pollTrades(at, context);
    at = page.position;
    ({ more } = page);
  }
  return at;
}

describe('the simulated venue', () => {
  it.each([
    ['a page above 25', '/markets/active?page=1&limit=26', 400],
    ['an unknown parameter', '/markets/active?page=1&limit=25&salt=1', 400],
    ['an unknown market', '/markets/no-such-market', 404],
  ])('refuses %s', async (_what, path, status) => {
    expect((await get(path)).status).toBe(status);
  });

  it('refuses the default user agent of Python', async () => {
    expect((await get('/markets/active', { 'user-agent': 'Python-urllib/3.12' })).status).toBe(403);
  });

  it('lists nothing past its end', async () => {
    expect(await (await get('/markets/active?page=99&limit=25')).json()).toEqual({ data: [], totalMarketsCount: 0 });
  });
});

describe('the Limitless adapter', () => {
  it('reads the options of a group as the markets of one event, from a listing and one by one', async () => {
    const options = (await catalog()).filter((market) => market.eventId !== undefined);
    expect(options.length).toBeGreaterThan(2);
    expect(new Set(options.map((market) => market.eventId)).size).toBe(1);
    expect(new Set(options.map((market) => market.siblingLabel)).size).toBe(options.length);
    const fresh = venue.createAdapter();
    const ids = options.map((market) => market.marketId);
    const { records } = await fresh.fetchMarkets(ids, context);
    await fresh.close();
    expect(records.sort((a, b) => (a.marketId < b.marketId ? -1 : 1))).toEqual(
      options.sort((a, b) => (a.marketId < b.marketId ? -1 : 1)),
    );
    // The page of the group is read once for all of them, apart from options that are requested at the same time.
    expect(requests(new RegExp(`/${options[0]?.eventId}$`)).length).toBeLessThanOrEqual(2);
  });

  it('prices pools by percents and books by their quotes, and a stub not at all', async () => {
    const markets = await catalog();
    const ids = markets.flatMap(({ outcomes }) => outcomes.map((outcome) => outcome.outcomeId));
    const { records } = await adapter.fetchPrices(ids, context);
    const pools = markets.filter((market) => !market.hasBook);
    expect(pools.length).toBeGreaterThan(0);
    const priced = new Set(records.map((price) => price.outcomeId));
    for (const { outcomes } of pools) expect(outcomes.every((outcome) => priced.has(outcome.outcomeId))).toBe(true);
    for (const { price } of records) expect(Number(price)).toBeLessThanOrEqual(1);
    const stubs = venue.exchange.state().markets.filter((market) => !market.hasTraders && market.phase === 'open');
    const stubSlugs = new Set(stubs.map((market) => market.slug));
    const books = markets.filter((market) => market.hasBook && stubSlugs.has(market.marketId));
    expect(books.length).toBeGreaterThan(0);
    for (const { outcomes } of books) expect(outcomes.some((outcome) => priced.has(outcome.outcomeId))).toBe(false);
  });

  it('finds the books of tokens that it has not seen yet', async () => {
    const [first] = await venue.outcomeIds();
    const { records } = await adapter.fetchBooks([first ?? ''], context);
    expect(records.map((book) => book.outcomeId)).toEqual([first]);
    expect(requests(/active/).length).toBeGreaterThan(0);
    const listed = requests(/active/).length;
    await adapter.fetchBooks(['1234567890'], context);
    expect(requests(/active/)).toHaveLength(listed);
  });

  it('asks for no address in two rounds within the time for which the venue caches it', async () => {
    const seen = new Set<string>();
    let count = requests(/events|active/).length;
    let position: unknown = null;
    for (let rounds = 0; rounds < 3; rounds += 1) {
      venue.exchange.step(11);
      position = await followTrades(position);
      const round = requests(/events|active/).slice(count);
      count += round.length;
      const addresses = new Set(round.map(({ path, query }) => `${path}?${query}`));
      expect(addresses.size).toBeGreaterThan(10);
      for (const address of addresses) expect(seen).not.toContain(address);
      for (const address of addresses) seen.add(address);
    }
  });

  it('asks for no feed of a market that did not trade', async () => {
    const position = await followTrades();
    const traded = new Set(venue.exchange.ledger().trades.map((row) => row.conditionId));
    const quiet = venue.exchange.state().markets.filter(({ conditionId }) => !traded.has(conditionId));
    expect(quiet.length).toBeGreaterThan(0);
    const read = requests(/events/).map(({ path }) => path);
    for (const { slug } of quiet) expect(read).not.toContain(`/markets/${slug}/events`);
    // Nothing traded meanwhile, and the second look is not due yet.
    venue.exchange.idle(15);
    await followTrades(position);
    expect(requests(/events/)).toHaveLength(read.length);
  });

  it('claims to have read all trades up to a round only when each feed of it was read', async () => {
    const claims: (number | undefined)[] = [];
    const follow = async (position: unknown) => {
      let at = position;
      for (let more = true; more; ) {
        const page = await adapter.pollTrades(at, context);
        at = page.position;
        ({ more } = page);
        if (!more) claims.push(page.caughtUpMs);
      }
      return at;
    };
    await followTrades();
    const [{ path = '' } = {}] = requests(/events/);
    venue.exchange.addFault({ host: 'limitless', kind: 'status500', path });
    const position = await follow(null);
    // Between two rounds nothing is due, and the feed is still not read.
    venue.exchange.idle(1);
    await follow(position);
    expect(requests(/events/).filter((each) => each.path === path).length).toBeGreaterThan(1);
    expect(claims).toEqual([undefined, undefined]);
    venue.exchange.clearFaults();
    venue.exchange.idle(31);
    await follow(position);
    expect(claims.at(-1)).toBeGreaterThan(0);
  });

  it('stores its prices when the connection fails midway, and goes on there', async () => {
    const markets = await catalog();
    const ids = markets.flatMap(({ outcomes }) => outcomes.map((outcome) => outcome.outcomeId));
    const { records: all } = await adapter.fetchPrices(ids, context);
    venue.exchange.idle(31);
    let pages = 0;
    const failing = createLimitlessAdapter({
      url: venue.exchange.limitlessUrl,
      markets: { pageSize: 10 },
      http: { requestsPerSecond: 10_000, maxAttempts: 1 },
      observer: {
        onRequest: () => {
          pages += 1;
          if (pages === 1) venue.exchange.addFault({ host: 'limitless', kind: 'reset', count: 1 });
        },
      },
    });
    const first = await failing.fetchPrices(ids, context);
    const second = await failing.fetchPrices(ids, context);
    await failing.close();
    expect(first.records.length).toBeGreaterThan(0);
    expect(second.records.length).toBeGreaterThan(0);
    const idsOf = (records: readonly { outcomeId: string }[]) => records.map((record) => record.outcomeId);
    expect([...idsOf(first.records), ...idsOf(second.records)].sort()).toEqual(idsOf(all).sort());
  });
});
