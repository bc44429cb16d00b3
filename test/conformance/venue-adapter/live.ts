import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { MarketRecord, TradeRecord } from '../../../src/domain/market.ts';
import { VenueError } from '../../../src/venues/errors.ts';
import type { CallContext, Page, VenueAdapter } from '../../../src/venues/port.ts';
import { checkRejected, invariants } from './invariants.ts';
import type { LedgerTrade, LiveFault, LiveVenue } from './venue-under-test.ts';

/** Pages of one walk before the test gives up on its end. */
const MAX_PAGES = 5_000;
const FAULTS: readonly LiveFault[] = ['server_errors', 'rate_limit', 'truncated_json', 'renamed_field', 'slow'];

/** The half of the suite that talks HTTP to a running venue whose truth is at hand. */
export function describeLive(venueName: string, live: { name: string; start: () => Promise<LiveVenue> }): void {
  describe(`${venueName} on ${live.name}`, () => {
    let venue: LiveVenue;
    let adapter: VenueAdapter;
    const context = (): CallContext => ({ signal: new AbortController().signal, now: () => venue.now() });

    beforeEach(async () => {
      venue = await live.start();
      adapter = venue.createAdapter();
    });
    afterEach(async () => {
      await adapter.close();
      await venue.close();
    });

    /** Follows a walk to its end. Positions go through JSON at every page, as they do through the database. */
    async function follow<R>(
      poll: (position: unknown, context: CallContext) => Promise<Page<R>>,
      from: unknown,
      take: (page: Page<R>) => void,
    ): Promise<unknown> {
      let position = from;
      for (let pages = 0; pages < MAX_PAGES; pages += 1) {
        const page = await poll(position, context());
        take(page);
        position = JSON.parse(JSON.stringify(page.position));
        if (!page.more) return position;
      }
      throw new Error(`a walk did not end within ${MAX_PAGES} pages`);
    }

    function collector() {
      const trades = new Map<string, TradeRecord>();
      return {
        trades,
        take: (page: Page<TradeRecord>) => {
          for (const trade of page.records) {
            invariants.trades(trade, venue.now());
            trades.set(trade.tradeId, trade);
          }
          page.rejected.forEach(checkRejected);
        },
      };
    }

    async function expectLedger(trades: Iterable<TradeRecord>): Promise<void> {
      const ledger = await venue.ledger();
      expect([...trades].map(textOfRecord).sort()).toEqual(ledger.map(textOfLedger).sort());
    }

    it('visits every market once in a catalog walk', async () => {
      const seen: MarketRecord[] = [];
      await follow(
        (at, call) => adapter.pollMarkets(at, call),
        null,
        (page) => seen.push(...page.records),
      );
      for (const market of seen) invariants.markets(market, venue.now());
      expect(seen.map((market) => market.marketId).sort()).toEqual((await venue.marketIds()).sort());
    });

    it('prices outcomes, and has the two-sided book of each where the venue has books', async () => {
      const outcomeIds = await venue.outcomeIds();
      expect(outcomeIds.length).toBeGreaterThan(0);
      const prices = await adapter.fetchPrices(outcomeIds, context());
      const books = await adapter.fetchBooks(outcomeIds, context());
      expect(prices.rejected).toEqual([]);
      expect(books.rejected).toEqual([]);
      for (const price of prices.records) invariants.prices(price, venue.now());
      for (const book of books.records) invariants.books(book, venue.now());
      const withBook = adapter.capabilities.books ? [...outcomeIds] : [];
      expect(books.records.map((book) => book.outcomeId).sort()).toEqual(withBook.sort());
      expect(prices.records.length).toBeGreaterThan(0);
    });

    it('leaves out outcomes that the venue does not know', async () => {
      expect(await adapter.fetchPrices(['1234567890', 'no such outcome'], context())).toEqual({
        records: [],
        rejected: [],
      });
      expect(await adapter.fetchBooks([], context())).toEqual({ records: [], rejected: [] });
    });

    it('polled while trading goes on, yields the ledger exactly', async () => {
      const { trades, take } = collector();
      let position: unknown = null;
      for (let round = 0; round < 12; round += 1) {
        position = await follow((at, call) => adapter.pollTrades(at, call), position, take);
        await venue.trade();
      }
      await venue.rest();
      await follow((at, call) => adapter.pollTrades(at, call), position, take);
      expect(trades.size).toBeGreaterThan(0);
      await expectLedger(trades.values());
    });

    it('restarted anywhere in a walk, loses and invents nothing', async () => {
      const { trades, take } = collector();
      let position: unknown = null;
      for (let round = 0; round < 8; round += 1) {
        await venue.trade();
        // One page, then a crash: sometimes before its position was stored, sometimes after.
        const page = await adapter.pollTrades(position, context());
        take(page);
        if (round % 2 === 0) position = JSON.parse(JSON.stringify(page.position));
        await adapter.close();
        adapter = venue.createAdapter();
      }
      await venue.rest();
      position = await follow((at, call) => adapter.pollTrades(at, call), position, take);
      await follow((at, call) => adapter.pollTrades(at, call), position, take);
      await expectLedger(trades.values());
    });

    it.each(FAULTS)('under %s, throws or refuses, and is right again afterwards', async (fault) => {
      const { trades, take } = collector();
      let position: unknown = await follow((at, call) => adapter.pollTrades(at, call), null, take);
      await venue.trade();
      await venue.rest();
      await venue.break(fault);
      const faulty = await venueErrorOr(() => adapter.pollTrades(position, context()));
      if (faulty) {
        take(faulty);
        position = faulty.position;
      }
      const markets = await venueErrorOr(() => adapter.pollMarkets(null, context()));
      for (const market of markets?.records ?? []) invariants.markets(market, venue.now());
      const outcomeIds = await venue.outcomeIds();
      const prices = await venueErrorOr(() => adapter.fetchPrices(outcomeIds, context()));
      for (const price of prices?.records ?? []) invariants.prices(price, venue.now());

      await venue.heal();
      await adapter.close();
      adapter = venue.createAdapter();
      await follow((at, call) => adapter.pollTrades(at, call), position, take);
      await expectLedger(trades.values());
      const seen: string[] = [];
      await follow(
        (at, call) => adapter.pollMarkets(at, call),
        null,
        (page) => seen.push(...page.records.map((market) => market.marketId)),
      );
      expect(seen.sort()).toEqual((await venue.marketIds()).sort());
    });

    it('stops at once when its call is aborted', async () => {
      const aborted = { signal: AbortSignal.abort(), now: () => venue.now() };
      await expect(adapter.pollTrades(null, aborted)).rejects.toMatchObject({ code: 'aborted' });
      await expect(adapter.pollMarkets(null, aborted)).rejects.toBeInstanceOf(VenueError);
    });
  });
}

/** What a call under a fault gives, or undefined when it throws what it may throw. */
async function venueErrorOr<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch (error) {
    expect(error).toBeInstanceOf(VenueError);
    return undefined;
  }
}

function textOfRecord(trade: TradeRecord): string {
  return [trade.outcomeId, Math.floor(trade.tsMs / 1000), trade.price, trade.size, trade.side ?? ''].join(' ');
}

function textOfLedger(trade: LedgerTrade): string {
  return [trade.outcomeId, trade.second, trade.price, trade.size, trade.side ?? ''].join(' ');
}
