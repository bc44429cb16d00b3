import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type BadMembers, type Exchange, type FaultHost, startExchange } from '../../../sim/exchange.ts';
import { MEMBER_REFUSED } from '../../../src/venues/http/member-batches.ts';
import { createKalshiAdapter } from '../../../src/venues/kalshi/adapter.ts';
import { createLimitlessAdapter } from '../../../src/venues/limitless/adapter.ts';
import { createManifoldAdapter } from '../../../src/venues/manifold/adapter.ts';
import { createPolymarketAdapter } from '../../../src/venues/polymarket/adapter.ts';
import type { Batch, CallContext, VenueAdapter } from '../../../src/venues/port.ts';
import { createSolanaTokens } from '../../../src/venues/solana/token-adapter.ts';
import { findPlaces, type MarketVenue } from '../../e2e/venue-ledger.ts';
import type { EventOf } from '../../support/venue-events.ts';

const SECOND = 1_790_000_000;
const context: CallContext = { signal: new AbortController().signal, now: () => SECOND * 1000 };

let exchange: Exchange;
let breakers: EventOf<'onBreaker'>[];
let members: EventOf<'onMembers'>[];
let open: { close(): Promise<void> }[];

beforeAll(async () => {
  exchange = await startExchange({
    seed: 7,
    markets: 40,
    historyHours: 0.1,
    rollingSeconds: 0,
    nowSecond: SECOND,
    paused: true,
    solanaTraffic: false,
  });
});
afterAll(() => exchange.close());
beforeEach(() => {
  breakers = [];
  members = [];
  open = [];
});
afterEach(async () => {
  exchange.clearFaults();
  await Promise.all(open.map((adapter) => adapter.close()));
});

/** Adapters as a process that has just started has them. */
function adapters() {
  const shared = {
    observer: {
      onBreaker: (event: EventOf<'onBreaker'>) => breakers.push(event),
      onMembers: (event: EventOf<'onMembers'>) => members.push(event),
    },
    http: { requestsPerSecond: 10_000, burst: 1_000, retryDelayMs: 1 },
  };
  const made = {
    polymarket: createPolymarketAdapter({
      urls: { gamma: exchange.gammaUrl, clob: exchange.clobUrl, data: exchange.dataUrl },
      ...shared,
    }),
    kalshi: createKalshiAdapter({ url: exchange.kalshiUrl, ...shared }),
    manifold: createManifoldAdapter({ url: exchange.manifoldUrl, ...shared }),
    limitless: createLimitlessAdapter({ url: exchange.limitlessUrl, ...shared }),
    solana: createSolanaTokens({ jupiter: exchange.jupiterUrl, ...shared }),
  };
  open.push(...Object.values(made));
  return made;
}
type Adapters = ReturnType<typeof adapters>;

/** A batch that an adapter sends. */
interface BatchUnderTest {
  name: string;
  host: FaultHost;
  /** Only these requests fail. */
  path?: string;
  ids(): Promise<string[]>;
  ask(made: Adapters, ids: string[]): Promise<Batch<{ marketId?: string; outcomeId?: string }>>;
  /** The id by which the venue knows an outcome or a market. */
  memberOf(id: string): string;
}

const same = (id: string) => id;
const beforeColon = (id: string) => id.split(':')[0] ?? '';
const placesOf = async (venue: MarketVenue) => [...(await findPlaces(exchange)).values()].map((place) => place[venue]);
const marketIds = (venue: MarketVenue) => async () => [
  ...new Set((await placesOf(venue)).map(({ marketId }) => marketId)),
];
const outcomeIds = (venue: MarketVenue) => async () =>
  (await placesOf(venue)).flatMap((place) => [...place.outcomeIds]);
const slugOf = async (outcomeId: string) =>
  (await placesOf('limitless')).find((place) => place.outcomeIds.includes(outcomeId))?.marketId ?? '';

function marketBatch(venue: MarketVenue, host: FaultHost): BatchUnderTest {
  const ask = (made: Adapters, ids: string[]) => made[venue].fetchMarkets(ids, context);
  return { name: `markets of ${venue}`, host, ids: marketIds(venue), ask, memberOf: same };
}

function outcomeBatch(
  venue: Exclude<MarketVenue, 'limitless'>,
  kind: 'prices' | 'books',
  path: string,
  memberOf: BatchUnderTest['memberOf'],
): BatchUnderTest {
  const host = venue === 'polymarket' ? 'clob' : venue;
  const ask = (made: Adapters, ids: string[]) => {
    const adapter: VenueAdapter = made[venue];
    return kind === 'prices' ? adapter.fetchPrices(ids, context) : adapter.fetchBooks(ids, context);
  };
  return { name: `${kind} of ${venue}`, host, path, ids: outcomeIds(venue), ask, memberOf };
}

const BATCHES: BatchUnderTest[] = [
  outcomeBatch('polymarket', 'prices', '/books', same),
  outcomeBatch('polymarket', 'books', '/books', same),
  marketBatch('polymarket', 'gamma'),
  outcomeBatch('kalshi', 'prices', '/trade-api/v2/markets', beforeColon),
  outcomeBatch('kalshi', 'books', '/trade-api/v2/markets/orderbooks', beforeColon),
  marketBatch('kalshi', 'kalshi'),
  outcomeBatch('manifold', 'prices', '/v0/market-probs', beforeColon),
  marketBatch('manifold', 'manifold'),
  marketBatch('limitless', 'limitless'),
  {
    name: 'token prices of solana',
    host: 'jupiter',
    path: '/price/v3',
    ids: async () => exchange.solana.tokens().map(({ mint }) => mint),
    ask: (made, ids) => made.solana.fetchTokenPrices(ids, context),
    memberOf: same,
  },
];

function breakWith(batch: Pick<BatchUnderTest, 'host' | 'path'>, bad: BadMembers) {
  exchange.addFault({ host: batch.host, ...(batch.path && { path: batch.path }), kind: 'bad_member', members: bad });
}

describe.each(BATCHES)('$name', (batch) => {
  const idOf = (record: { marketId?: string; outcomeId?: string }) => record.marketId ?? record.outcomeId ?? '';
  const read = async (made = adapters()) => {
    const { records, rejected, unread, fault } = await batch.ask(made, await batch.ids());
    const refused = rejected
      .filter(({ reason }) => [MEMBER_REFUSED, 'page_unavailable'].includes(reason))
      .map(({ recordId }) => recordId);
    return { ids: records.map(idOf).sort(), refused: refused.sort(), unread, fault };
  };
  /** Distinct members of records, not beside each other where the batch has more than two. */
  async function members2(): Promise<{ all: string[]; bad: [string, string] }> {
    const all = (await read()).ids;
    const named = [...new Set(all.map(batch.memberOf))];
    const [first = '', last = ''] = [named[0], named.at(-1)];
    expect(named.length).toBeGreaterThan(2);
    return { all, bad: [first, last] };
  }
  const without = (ids: string[], bad: readonly string[]) => ids.filter((id) => !bad.includes(batch.memberOf(id)));

  it.each([400, 500])(
    'come without two members that break the batch with %i, and the breaker stays closed',
    async (status) => {
      // Where a request names one member, the venue answers 400 for one that it does not know.
      const { all, bad } = await members2();
      breakWith(batch, { ids: bad, status });
      const made = adapters();
      const first = await read(made);
      expect(first).toEqual({ ids: without(all, bad), refused: [...bad].sort(), unread: undefined, fault: undefined });
      const again = await read(made);
      expect({ ...again, unread: [...(again.unread ?? [])].sort() }).toEqual({
        ids: without(all, bad),
        refused: [],
        unread: [...bad].sort(),
        fault: undefined,
      });
      expect(breakers).toEqual([]);
      expect(members.flatMap(({ refused }) => refused.map(({ member }) => member)).sort()).toEqual([...bad].sort());
      exchange.clearFaults();
      expect((await read()).ids).toEqual(all);
    },
  );

  it('come with both members that fail only beside each other', async () => {
    const { all, bad } = await members2();
    breakWith(batch, { ids: bad, together: true });
    const made = adapters();
    for (let call = 0; call < 2; call += 1) {
      expect(await read(made)).toEqual({ ids: all, refused: [], unread: undefined, fault: undefined });
    }
    expect({ breakers, members }).toEqual({ breakers: [], members: [] });
  });
});

describe('books of limitless', () => {
  it('come without a market whose book fails, and the breaker stays closed', async () => {
    const ids = await outcomeIds('limitless')();
    const all = (await adapters().limitless.fetchBooks(ids, context)).records.map(({ outcomeId }) => outcomeId);
    const bad = await slugOf(all[0] ?? '');
    exchange.addFault({ host: 'limitless', path: `/markets/${bad}/orderbook`, kind: 'status500' });
    const { limitless } = adapters();
    const { records, rejected } = await limitless.fetchBooks(ids, context);
    const good = await Promise.all(all.map(async (id) => ((await slugOf(id)) === bad ? [] : [id])));
    expect(records.map(({ outcomeId }) => outcomeId).sort()).toEqual(good.flat().sort());
    expect(rejected).toMatchObject([{ recordId: bad, reason: MEMBER_REFUSED }]);
    expect((await limitless.fetchBooks(ids, context)).unread).toEqual([bad]);
    expect(breakers).toEqual([]);
  });
});

describe('last trades of polymarket', () => {
  it('leave the prices of other tokens as they are when they fail', async () => {
    const ids = await outcomeIds('polymarket')();
    const before = (await adapters().polymarket.fetchPrices(ids, context)).records;
    exchange.addFault({ host: 'clob', path: '/last-trades-prices', kind: 'status500' });
    const { records } = await adapters().polymarket.fetchPrices(ids, context);
    const prices = new Map(before.map(({ outcomeId, price }) => [outcomeId, price]));
    expect(records.length).toBeGreaterThan(0);
    expect(records.every(({ outcomeId, price }) => prices.get(outcomeId) === price)).toBe(true);
  });
});

describe('symbols of solana', () => {
  it('come without the mint that breaks the search', async () => {
    const tokens = exchange.solana.tokens();
    const bad = tokens[1]?.mint ?? '';
    breakWith({ host: 'jupiter', path: '/tokens/v2/search' }, { ids: [bad] });
    const symbols = await adapters().solana.fetchTokenSymbols(
      tokens.map(({ mint }) => mint),
      context,
    );
    expect([...symbols.keys()].sort()).toEqual(
      tokens
        .map(({ mint }) => mint)
        .filter((mint) => mint !== bad)
        .sort(),
    );
  });
});

describe('a refused batch route of kalshi', () => {
  it('is asked once, and not for every chunk and call', async () => {
    exchange.addFault({
      host: 'kalshi',
      path: '/trade-api/v2/markets/orderbooks',
      kind: 'bad_member',
      members: { ids: ['orderbooks'], status: 401 },
    });
    const ids = await outcomeIds('kalshi')();
    const { kalshi } = adapters();
    const before = exchange.requests().length;
    const first = await kalshi.fetchBooks(ids, context);
    const second = await kalshi.fetchBooks(ids, context);
    expect(first.records.length).toBeGreaterThan(0);
    expect(second.records.length).toBe(first.records.length);
    const paths = exchange
      .requests()
      .slice(before)
      .map(({ path }) => path);
    expect(paths.filter((path) => path.endsWith('/orderbooks')).length).toBe(1);
  });
});

describe('pages of quotes of kalshi that fail for one market', () => {
  /** One sweep, part after part. */
  async function sweep(kalshi: VenueAdapter, previous: readonly unknown[] = []) {
    const { sweepPrices } = kalshi;
    if (sweepPrices === undefined) throw new TypeError('kalshi sweeps its prices');
    const read = { ids: new Set<string>(), rejected: new Set<string>(), parts: [] as unknown[] };
    for (const begun of sweepPrices.parts(SECOND * 1000, previous)) {
      let part: unknown = begun;
      for (let more = true; more; ) {
        const page = await sweepPrices.fetch(part, context);
        for (const { outcomeId } of page.records) read.ids.add(outcomeId);
        for (const { reason } of page.rejected) read.rejected.add(reason);
        part = JSON.parse(JSON.stringify(page.part));
        more = page.more;
      }
      read.parts.push(part);
    }
    return { ...read, ids: [...read.ids].sort() };
  }

  it.each([1, 2])('leave the prices of all but its neighbours of a second, with %i bad markets', async (count) => {
    const { kalshi } = adapters();
    const before = await sweep(kalshi);
    const tickers = [...new Set(before.ids.map(beforeColon))];
    const bad = count === 1 ? tickers.slice(0, 1) : [tickers[0] ?? '', tickers.at(-1) ?? ''];
    exchange.addFault({
      host: 'kalshi',
      path: '/trade-api/v2/markets',
      kind: 'bad_member',
      members: { ids: bad, inAnswer: true },
    });
    const start = exchange.requests().length;
    const { ids, rejected, parts } = await sweep(kalshi);
    const requests = exchange.requests().length - start;
    expect(rejected).toEqual(new Set(['page_unavailable']));
    expect(ids.length).toBeGreaterThan(before.ids.length / 2);
    expect(ids.every((id) => before.ids.includes(id) && !bad.includes(beforeColon(id)))).toBe(true);
    expect(requests).toBeLessThan(count * 150);
    expect(breakers).toEqual([]);
    // The next sweep goes on as well, and reads the market when it heals.
    expect((await sweep(kalshi, parts)).ids).toEqual(ids);
    exchange.clearFaults();
    expect((await sweep(kalshi, parts)).ids).toEqual(before.ids);
  });

  it('are the fault of the host when every page fails', async () => {
    exchange.addFault({ host: 'kalshi', path: '/trade-api/v2/markets', kind: 'status500' });
    const { kalshi } = adapters();
    await expect(sweep(kalshi)).rejects.toMatchObject({ statusCode: 500 });
  });
});

describe('pages of the listing of limitless that fail for one market', () => {
  it.each([1, 2])(
    'leave the catalog and the prices of all other markets as they are, with %i bad markets',
    async (count) => {
      const ids = await outcomeIds('limitless')();
      const catalog = async (limitless: VenueAdapter) => {
        const read = { ids: [] as string[], reasons: new Set<string>(), ended: false };
        let position: unknown = null;
        for (let more = true; more; ) {
          const page = await limitless.pollMarkets(position, context);
          read.ids.push(...page.records.map(({ marketId }) => marketId));
          for (const { reason } of page.rejected) read.reasons.add(reason);
          read.ended = page.sweep?.ended === true;
          ({ more, position } = page);
        }
        return { ...read, ids: [...new Set(read.ids)].sort() };
      };
      const prices = async (limitless: VenueAdapter) => {
        const { records, rejected } = await limitless.fetchPrices(ids, context);
        return {
          ids: records.map(({ outcomeId }) => outcomeId).sort(),
          reasons: new Set(rejected.map(({ reason }) => reason)),
        };
      };
      const good = { catalog: await catalog(adapters().limitless), prices: await prices(adapters().limitless) };
      const alone = [...(await findPlaces(exchange)).values()].flatMap(({ limitless: { hasFeed, marketId } }) =>
        hasFeed && good.catalog.ids.includes(marketId) ? [marketId] : [],
      );
      // The first markets of the exchange are a group, which is one row of the listing.
      const bad = alone.slice(-count);
      expect(new Set(bad).size).toBe(count);
      exchange.addFault({
        host: 'limitless',
        path: '/markets/active',
        kind: 'bad_member',
        members: { ids: bad, inAnswer: true },
      });
      const { limitless } = adapters();
      const found = { catalog: await catalog(limitless), prices: await prices(limitless) };
      expect(found.catalog).toEqual({
        ids: good.catalog.ids.filter((id) => !bad.includes(id)),
        reasons: new Set(['page_unavailable']),
        ended: true,
      });
      const lost = (await placesOf('limitless')).filter(({ marketId }) => bad.includes(marketId));
      const lostIds = lost.flatMap(({ outcomeIds: each }) => [...each]);
      expect(found.prices).toEqual({
        ids: good.prices.ids.filter((id) => !lostIds.includes(id)),
        reasons: new Set(['page_unavailable']),
      });
      expect(breakers).toEqual([]);
    },
  );

  it('are the fault of the host when every page fails', async () => {
    exchange.addFault({ host: 'limitless', path: '/markets/active', kind: 'status500' });
    const { limitless } = adapters();
    await expect(limitless.pollMarkets(null, context)).rejects.toMatchObject({ statusCode: 500 });
  });
});

describe.each([
  { venue: 'polymarket', host: 'gamma', listing: '/markets/keyset' },
  { venue: 'kalshi', host: 'kalshi', listing: '/trade-api/v2/events' },
  { venue: 'manifold', host: 'manifold', listing: '/v0/markets' },
] as const)('pages of the catalog of $venue that fail for one market', ({ venue, host, listing }) => {
  /** From a stored position to the end of its walk. */
  async function walk(adapter: VenueAdapter, stored: unknown = null, nowMs = SECOND * 1000) {
    const read = { ids: new Set<string>(), reasons: new Set<string>(), ended: false, position: stored };
    for (let more = true; more; ) {
      const page = await adapter.pollMarkets(read.position, { ...context, now: () => nowMs });
      for (const { marketId } of page.records) read.ids.add(marketId);
      for (const { reason } of page.rejected) read.reasons.add(reason);
      read.ended ||= page.sweep?.ended === true;
      read.position = JSON.parse(JSON.stringify(page.position));
      more = page.more;
    }
    return { ...read, ids: [...read.ids] };
  }
  const multiple = async () => (await placesOf('manifold')).map(({ marketId }) => marketId);
  /** Markets amid the listing, not beside each other, that are rows of their own. */
  async function amid(ids: readonly string[], count: number) {
    const all = await multiple();
    const alone = venue === 'manifold' ? ids.filter((id) => all.indexOf(id) === all.lastIndexOf(id)) : ids;
    return Array.from({ length: count }, (_, at) => alone[Math.floor((alone.length * (at + 1)) / (count + 1))] ?? '');
  }
  const breakListing = (ids: readonly string[]) => breakWith({ host }, { ids, inAnswer: true });
  const small = { polymarket: { pageSize: 8 }, kalshi: { eventsPerPage: 8 }, manifold: { pageSize: 8 } };
  const withSmallPages = () => {
    const http = { requestsPerSecond: 10_000, burst: 1_000, retryDelayMs: 1 };
    const urls = { gamma: exchange.gammaUrl, clob: exchange.clobUrl, data: exchange.dataUrl };
    const adapter = {
      polymarket: () => createPolymarketAdapter({ urls, http, markets: small.polymarket }),
      kalshi: () => createKalshiAdapter({ url: exchange.kalshiUrl, http, markets: small.kalshi }),
      manifold: () => createManifoldAdapter({ url: exchange.manifoldUrl, http, markets: small.manifold }),
    }[venue]();
    open.push(adapter);
    return adapter;
  };

  it.each([
    { count: 1, pages: 'whole' },
    { count: 2, pages: 'whole' },
    { count: 2, pages: 'small' },
  ])('end no sweep, but the walk ends, with $count bad markets and $pages pages', async ({ count, pages }) => {
    const good = await walk(adapters()[venue]);
    expect(good.ended).toBe(true);
    const bad = await amid(good.ids, count);
    breakListing(bad);
    const adapter = pages === 'whole' ? adapters()[venue] : withSmallPages();
    const before = exchange.requests().length;
    const found = await walk(adapter);
    const requests = exchange.requests().length - before;
    expect({ reasons: found.reasons, ended: found.ended }).toEqual({
      reasons: new Set(['page_unavailable']),
      ended: false,
    });
    // Only Polymarket can begin a page behind a bad market.
    const above = good.ids.slice(0, good.ids.indexOf(bad[0] ?? ''));
    const expected = venue === 'polymarket' ? good.ids.filter((id) => !bad.includes(id)) : above;
    const isRead = (id: string) => found.ids.includes(id);
    const missed = expected.filter((id) => !isRead(id));
    // A row of Kalshi's listing is an event, which may have several markets.
    expect(missed.length).toBeLessThan(venue === 'kalshi' ? 10 : 1);
    expect(found.ids.length).toBeGreaterThan(good.ids.length / 5);
    expect(bad.some(isRead)).toBe(false);
    expect(requests).toBeLessThan(60 + 30 * count);
    expect(breakers).toEqual([]);

    // The next walk by change goes as far as it can and ends too.
    const next = await walk(adapter, found.position, SECOND * 1000 + 30_000);
    expect(next.ended).toBe(false);

    // After the market healed, the next full walk is a sweep again.
    exchange.clearFaults();
    const healed = await walk(adapter, next.position, SECOND * 1000 + 90_000_000);
    const everRead = [...found.ids, ...next.ids, ...healed.ids];
    expect({ ended: healed.ended, missing: good.ids.filter((id) => !everRead.includes(id)) }).toEqual({
      ended: true,
      missing: [],
    });
  });

  it('are read in whole when the market heals while its page is narrowed', async () => {
    const good = await walk(adapters()[venue]);
    const [bad = ''] = await amid(good.ids, 1);
    exchange.addFault({ host, kind: 'bad_member', members: { ids: [bad], inAnswer: true }, count: 4 });
    const found = await walk(adapters()[venue]);
    expect(good.ids.filter((id) => !found.ids.includes(id))).toEqual([]);
    expect(found.reasons).toEqual(new Set());
    // A narrowed page of Manifold may end between markets of one millisecond.
    expect(found.ended).toBe(venue !== 'manifold');
  });

  it('are the fault of the host when every page fails', async () => {
    exchange.addFault({ host, path: listing, kind: 'status500' });
    await expect(adapters()[venue].pollMarkets(null, context)).rejects.toMatchObject({ statusCode: 500 });
  });
});
