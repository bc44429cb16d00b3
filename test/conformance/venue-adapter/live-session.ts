import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import type { MarketRecord, TradeRecord } from '../../../src/domain/markets/market.ts';
import { VenueError } from '../../../src/venues/errors.ts';
import type { CallContext, Page, VenueAdapter } from '../../../src/venues/port.ts';
import { checkRejected, invariants } from './invariants.ts';
import type { LedgerTrade, LiveFault, LiveVenue, Timeouts } from './venue-under-test.ts';

/** Pages of one walk before the test gives up. */
export const MAX_PAGES = 5_000;
/** Far below the delay of the slow fault. Other tests keep the adapter's own timeouts, which a pause of the machine does not reach. */
const IMPATIENT: Timeouts = { attemptTimeoutMs: 150, callTimeoutMs: 400 };

/** A running venue and an adapter on it. */
interface LiveSession {
  readonly venue: LiveVenue;
  readonly adapter: VenueAdapter;
  context(): CallContext;
  /** The process dies and restarts: only positions remain. */
  restart(timeouts?: Timeouts): Promise<void>;
  /** Every request fails in this way until the venue heals; an adapter on a slow venue waits for a moment only. */
  break(fault: LiveFault): Promise<void>;
  /** Follows a walk to its end, from its beginning without `from`; returns the final position. */
  follow<P extends Page<unknown>>(
    poll: (position: unknown, context: CallContext) => Promise<P>,
    take: (page: P) => void,
    from?: unknown,
  ): Promise<unknown>;
  /** Every market of a full walk. */
  catalog(): Promise<MarketRecord[]>;
}

/** A venue for each test of the surrounding suite, or one for all tests when they do not change it. */
export function useLiveVenue(start: () => Promise<LiveVenue>, sharing: 'own' | 'shared' = 'own'): LiveSession {
  const [before, after] = sharing === 'own' ? [beforeEach, afterEach] : [beforeAll, afterAll];
  let running: { venue: LiveVenue; adapter: VenueAdapter } | undefined;
  const current = () => {
    if (running === undefined) throw new Error('a live venue runs during tests only');
    return running;
  };
  before(async () => {
    const venue = await start();
    running = { venue, adapter: venue.createAdapter() };
  });
  after(async () => {
    const { venue, adapter } = current();
    running = undefined;
    await adapter.close();
    await venue.close();
  });
  const session: LiveSession = {
    get venue() {
      return current().venue;
    },
    get adapter() {
      return current().adapter;
    },
    context: () => ({ signal: new AbortController().signal, now: () => current().venue.now() }),
    async restart(timeouts) {
      const { venue, adapter } = current();
      await adapter.close();
      running = { venue, adapter: venue.createAdapter(timeouts) };
    },
    async break(fault) {
      await current().venue.break(fault);
      if (fault === 'slow') await session.restart(IMPATIENT);
    },
    async follow(poll, take, from = null) {
      let position = from;
      for (let pages = 0; pages < MAX_PAGES; pages += 1) {
        const page = await poll(position, session.context());
        take(page);
        position = stored(page.position);
        if (!page.more) return position;
      }
      throw new Error(`a walk did not end within ${MAX_PAGES} pages`);
    },
    async catalog() {
      const markets: MarketRecord[] = [];
      await session.follow(
        (at, call) => session.adapter.pollMarkets(at, call),
        (page) => markets.push(...page.records),
      );
      return markets;
    },
  };
  return session;
}

/** A position as read back from the database. */
export function stored(position: unknown): unknown {
  return JSON.parse(JSON.stringify(position));
}

/** Keeps the trades of pages by id, like the database, and checks each. */
export function tradeCollector(venue: () => LiveVenue) {
  const trades = new Map<string, TradeRecord>();
  return {
    trades,
    take: (page: Page<TradeRecord>) => {
      for (const trade of page.records) {
        invariants.trades(trade, venue().now());
        trades.set(trade.tradeId, trade);
      }
      page.rejected.forEach(checkRejected);
    },
  };
}

export function expectLedger(trades: Iterable<TradeRecord>, ledger: readonly LedgerTrade[]): void {
  expect([...trades].map(textOfRecord).sort()).toEqual(ledger.map(textOfLedger).sort());
}

/** The result of a call under a fault, or undefined when it throws an allowed error. */
export async function venueErrorOr<T>(call: () => Promise<T>): Promise<T | undefined> {
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
