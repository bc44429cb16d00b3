import { describe, expect, it } from 'vitest';
import type { BookRecord, MarketRecord, MarketStatus } from '../../../src/domain/markets/market.ts';
import { VenueError } from '../../../src/venues/errors.ts';
import type { MarketPage } from '../../../src/venues/port.ts';
import { invariants } from './invariants.ts';
import { expectLedger, stored, tradeCollector, useLiveVenue, venueErrorOr } from './live-session.ts';
import type { LiveFault, LiveVenue } from './venue-under-test.ts';

const FAULTS: readonly LiveFault[] = ['server_errors', 'rate_limit', 'truncated_json', 'renamed_field', 'slow'];

const TRADABLE: ReadonlySet<MarketStatus> = new Set(['created', 'open', 'halted']);
const NOT_IN_SUMMARIES: ReadonlySet<string> = new Set([
  'isSummary',
  'description',
  'resolutionCriteria',
  'category',
  'tags',
]);

/** The half of the suite that sends HTTP requests to a running venue with known truth. */
export function describeLive(venueName: string, live: { name: string; start: () => Promise<LiveVenue> }): void {
  describe(`${venueName} on ${live.name}`, () => {
    const session = useLiveVenue(live.start);
    const { context, follow } = session;
    const collector = () => tradeCollector(() => session.venue);
    const pollTrades = (at: unknown) => session.adapter.pollTrades(at, context());

    it('visits every market once in a catalog walk', async () => {
      const seen = await session.catalog();
      for (const market of seen) invariants.markets(market, session.venue.now());
      expect(seen.map((market) => market.marketId).sort()).toEqual((await session.venue.marketIds()).sort());
    });

    it('names every market that can still trade before the sweep ends, and ends it once', async () => {
      const startMs = session.venue.now();
      const pages: MarketPage[] = [];
      await follow(
        (at, call) => session.adapter.pollMarkets(at, call),
        (page) => pages.push(page),
      );
      const swept = pages.filter((page) => page.sweep !== undefined);
      expect(swept.map((page) => page.sweep?.startedAtMs)).toEqual(swept.map(() => startMs));
      expect(swept.map((page) => page.sweep?.ended)).toEqual(swept.map((page) => page === swept.at(-1)));
      expect(swept.length).toBeGreaterThan(0);
      const named = new Set(swept.flatMap((page) => [...idsOf(page.records), ...(page.sweep?.alsoListed ?? [])]));
      const tradable = pages.flatMap((page) => page.records).filter(({ status }) => TRADABLE.has(status));
      expect(tradable.length).toBeGreaterThan(0);
      expect(idsOf(tradable).filter((id) => !named.has(id))).toEqual([]);
    });

    it('finds markets of any state by their ids, equal to the listing, and no others', async () => {
      const listed = new Map((await session.catalog()).map((market) => [market.marketId, market]));
      expect(new Set([...listed.values()].map((market) => TRADABLE.has(market.status))).size).toBe(2);
      const { unknownMarketId = 'no-such-market' } = session.venue;
      const wanted = [unknownMarketId, ...listed.keys()];
      const found: MarketRecord[] = [];
      for (let start = 0; start < wanted.length; start += session.adapter.maxMarketsPerFetch) {
        const some = wanted.slice(start, start + session.adapter.maxMarketsPerFetch);
        const batch = await session.adapter.fetchMarkets(some, context());
        expect(batch.rejected).toEqual([]);
        found.push(...batch.records);
      }
      expect(idsOf(found).sort()).toEqual([...listed.keys()].sort());
      for (const market of found) {
        const [one, other] = inCommon(market, listed.get(market.marketId) ?? market);
        expect(one).toEqual(other);
      }
      expect(await session.adapter.fetchMarkets([], context())).toEqual({ records: [], rejected: [] });
    });

    it('prices outcomes, and returns the two-sided book of each when the venue has books', async () => {
      const outcomeIds = await session.venue.outcomeIds();
      expect(outcomeIds.length).toBeGreaterThan(0);
      const prices = await session.adapter.fetchPrices(outcomeIds, context());
      const books = await session.adapter.fetchBooks(outcomeIds, context());
      expect(prices.rejected).toEqual([]);
      expect(books.rejected).toEqual([]);
      for (const price of prices.records) invariants.prices(price, session.venue.now());
      for (const book of books.records) invariants.books(book, session.venue.now());
      const withBook = session.adapter.capabilities.books ? [...outcomeIds] : [];
      expect(books.records.map((book) => book.outcomeId).sort()).toEqual(withBook.sort());
      expect(prices.records.length).toBeGreaterThan(0);
    });

    it('returns the same books while they stay, poll after poll', async () => {
      const outcomeIds = await session.venue.outcomeIds();
      const levelsOf = (records: readonly BookRecord[]) =>
        records.map(({ outcomeId, bids, asks }) => JSON.stringify([outcomeId, bids, asks])).sort();
      const { records: first } = await session.adapter.fetchBooks(outcomeIds, context());
      for (let polls = 0; polls < 3; polls += 1) {
        const { records, rejected } = await session.adapter.fetchBooks(outcomeIds, context());
        expect(rejected).toEqual([]);
        expect(levelsOf(records)).toEqual(levelsOf(first));
        for (const book of records) invariants.books(book, session.venue.now());
      }
    });

    it('returns nothing for outcomes that the venue does not know', async () => {
      expect(await session.adapter.fetchPrices(['1234567890', 'no such outcome'], context())).toEqual({
        records: [],
        rejected: [],
      });
      expect(await session.adapter.fetchBooks([], context())).toEqual({ records: [], rejected: [] });
    });

    it('yields the ledger exactly when it is polled during trading', async () => {
      const { trades, take } = collector();
      let position: unknown = null;
      for (let round = 0; round < 12; round += 1) {
        position = await follow(pollTrades, take, position);
        await session.venue.trade();
      }
      await session.venue.rest();
      await follow(pollTrades, take, position);
      expect(trades.size).toBeGreaterThan(0);
      expectLedger(trades.values(), await session.venue.ledger());
    });

    it('loses and invents nothing when it restarts anywhere in a walk', async () => {
      const { trades, take } = collector();
      let position: unknown = null;
      for (let round = 0; round < 8; round += 1) {
        await session.venue.trade();
        // One page, then a crash, before or after its position was stored.
        const page = await session.adapter.pollTrades(position, context());
        take(page);
        if (round % 2 === 0) position = stored(page.position);
        await session.restart();
      }
      await session.venue.rest();
      position = await follow(pollTrades, take, position);
      await follow(pollTrades, take, position);
      expectLedger(trades.values(), await session.venue.ledger());
    });

    it.each(FAULTS)('throws or rejects under %s, and is correct again afterwards', async (fault) => {
      const { trades, take } = collector();
      let position: unknown = await follow(pollTrades, take);
      await session.venue.trade();
      await session.venue.rest();
      await session.break(fault);
      const faulty = await venueErrorOr(() => session.adapter.pollTrades(position, context()));
      if (faulty) {
        take(faulty);
        position = faulty.position;
      }
      const markets = await venueErrorOr(() => session.adapter.pollMarkets(null, context()));
      for (const market of markets?.records ?? []) invariants.markets(market, session.venue.now());
      const outcomeIds = await session.venue.outcomeIds();
      const prices = await venueErrorOr(() => session.adapter.fetchPrices(outcomeIds, context()));
      for (const price of prices?.records ?? []) invariants.prices(price, session.venue.now());

      await session.venue.heal();
      await session.restart();
      await follow(pollTrades, take, position);
      expectLedger(trades.values(), await session.venue.ledger());
      expect(idsOf(await session.catalog()).sort()).toEqual((await session.venue.marketIds()).sort());
    });

    it('stops at once when its call is aborted', async () => {
      const aborted = { signal: AbortSignal.abort(), now: () => session.venue.now() };
      await expect(session.adapter.pollTrades(null, aborted)).rejects.toMatchObject({ code: 'aborted' });
      await expect(session.adapter.pollMarkets(null, aborted)).rejects.toBeInstanceOf(VenueError);
    });
  });
}

function idsOf(markets: readonly MarketRecord[]): string[] {
  return markets.map((market) => market.marketId);
}

/** The fields in which two views of a market must agree: all of them, or those of a summary. */
function inCommon(one: MarketRecord, other: MarketRecord): [Partial<MarketRecord>, Partial<MarketRecord>] {
  if (!one.isSummary && !other.isSummary) return [one, other];
  const isShared = (key: string) => key in one && key in other && !NOT_IN_SUMMARIES.has(key);
  const shared = (market: MarketRecord) => Object.fromEntries(Object.entries(market).filter(([key]) => isShared(key)));
  return [shared(one), shared(other)];
}
