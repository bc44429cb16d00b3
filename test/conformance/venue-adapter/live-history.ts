import { beforeAll, describe, expect, it } from 'vitest';
import type { TradeRecord } from '../../../src/domain/markets/market.ts';
import type { HistoryPage, HistoryRequest } from '../../../src/venues/port.ts';
import { expectLedger, MAX_PAGES, stored, tradeCollector, useLiveVenue, venueErrorOr } from './live-session.ts';
import type { LedgerTrade, LiveFault, LiveVenue } from './venue-under-test.ts';

/** The faults between two pages, in turn. */
const FAULTS: readonly LiveFault[] = ['server_errors', 'truncated_json', 'renamed_field', 'rate_limit'];

interface Past {
  request: HistoryRequest;
  ledger: LedgerTrade[];
  /** The same trades on the live tape. */
  live: TradeRecord[];
}

/** The walk back over the trades of one market; it does not change the venue. */
export function describeLiveHistory(venueName: string, live: { name: string; start: () => Promise<LiveVenue> }): void {
  describe(`${venueName} history on ${live.name}`, () => {
    const session = useLiveVenue(live.start, 'shared');
    let pasts: Past[];
    let busiest: Past;

    beforeAll(async () => {
      await session.venue.trade();
      await session.venue.rest();
      const markets = await session.catalog();
      const { trades, take } = tradeCollector(() => session.venue);
      await session.follow((at, call) => session.adapter.pollTrades(at, call), take);
      const ledger = await session.venue.ledger();
      const found = markets.map(({ marketId, outcomes }): Past => {
        const outcomeIds = outcomes.map((outcome) => outcome.outcomeId);
        const isOwn = ({ outcomeId }: { outcomeId: string }) => outcomeIds.includes(outcomeId);
        const request = { marketId, outcomeIds, fromMs: 0, toMs: session.venue.now() };
        return { request, ledger: ledger.filter(isOwn), live: [...trades.values()].filter(isOwn) };
      });
      expect(found.reduce((sum, past) => sum + past.ledger.length, 0)).toBe(ledger.length);
      pasts = found;
      const [first] = found.sort((a, b) => b.ledger.length - a.ledger.length);
      if (first === undefined) throw new Error('the venue has no market');
      busiest = first;
    });

    function collector({ fromMs, toMs }: HistoryRequest) {
      const { trades, take } = tradeCollector(() => session.venue);
      let reachedMs = toMs;
      return {
        trades,
        get reachedMs() {
          return reachedMs;
        },
        take(page: HistoryPage): void {
          take(page);
          for (const { tsMs } of page.records) expect(tsMs >= fromMs && tsMs < toMs).toBe(true);
          expect(page.truncated).toBeUndefined();
          expect(page.reachedMs).toBeLessThanOrEqual(reachedMs);
          reachedMs = page.reachedMs;
        },
      };
    }

    async function walk(request: HistoryRequest): Promise<Map<string, TradeRecord>> {
      const seen = collector(request);
      await session.follow((at, call) => session.adapter.pollHistory(request, at, call), seen.take);
      expect(seen.reachedMs).toBeLessThanOrEqual(request.fromMs);
      return seen.trades;
    }

    it('equals the ledger when walked to the start of each market, with the ids of the live tape', async () => {
      for (const past of pasts) {
        const trades = await walk(past.request);
        expectLedger(trades.values(), past.ledger);
        expect([...trades.keys()].sort()).toEqual(past.live.map((trade) => trade.tradeId).sort());
      }
    });

    it('is the same when cut into two ranges at a trade, which is in the later one', async () => {
      const times = busiest.live.map((trade) => trade.tsMs).sort((a, b) => a - b);
      const cutMs = times[Math.floor(times.length / 2)] ?? 0;
      const earlier = await walk({ ...busiest.request, toMs: cutMs });
      const later = await walk({ ...busiest.request, fromMs: cutMs });
      expect(Math.min(...[...later.values()].map((trade) => trade.tsMs))).toBe(cutMs);
      expect(earlier.size).toBeGreaterThan(0);
      expect(earlier.size + later.size).toBe(busiest.ledger.length);
      expectLedger([...earlier.values(), ...later.values()], busiest.ledger);
    });

    it('loses and invents nothing when it restarts and fails between any two pages', async () => {
      const seen = collector(busiest.request);
      const poll = (position: unknown) => session.adapter.pollHistory(busiest.request, position, session.context());
      let position: unknown = null;
      let isMore = true;
      for (let tries = 0; isMore && tries < MAX_PAGES; tries += 1) {
        await session.venue.break(FAULTS[tries % FAULTS.length] ?? 'server_errors');
        await venueErrorOr(() => poll(position));
        await session.venue.heal();
        await session.restart();
        const page = await poll(position);
        seen.take(page);
        // On every second page the walk dies before the position is stored.
        if (tries % 2 === 0) continue;
        position = stored(page.position);
        isMore = page.more;
      }
      expect(isMore).toBe(false);
      expect(seen.reachedMs).toBeLessThanOrEqual(busiest.request.fromMs);
      expectLedger(seen.trades.values(), busiest.ledger);
    });
  });
}
