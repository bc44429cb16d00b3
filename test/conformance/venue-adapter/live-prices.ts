import { describe, expect, it } from 'vitest';
import type { PriceRecord } from '../../../src/domain/markets/market.ts';
import type { PriceSweep, SweepPart } from '../../../src/venues/port.ts';
import { checkRejected, invariants } from './invariants.ts';
import { MAX_PAGES, stored, useLiveVenue, venueErrorOr } from './live-session.ts';
import type { LiveFault, LiveVenue } from './venue-under-test.ts';

const FAULTS: readonly LiveFault[] = ['server_errors', 'rate_limit', 'truncated_json', 'renamed_field', 'slow'];
/** Enough for parts that learn from the sweep before, and for a listing that continues from sweep to sweep. */
const SWEEPS = 4;

/** Sweeps over the prices of all open markets, for adapters that offer them; requests by outcome are the truth. */
export function describeLivePrices(venueName: string, live: { name: string; start: () => Promise<LiveVenue> }): void {
  describe(`${venueName} price sweeps on ${live.name}`, () => {
    const session = useLiveVenue(live.start, 'shared');

    /** Reads the parts of one sweep to their ends, as read back from the database between two pages. */
    async function sweepOnce(sweep: PriceSweep, previous: readonly SweepPart[]) {
      const prices: PriceRecord[] = [];
      const ended: SweepPart[] = [];
      let markets = 0;
      for (const part of sweep.parts(session.venue.now(), previous)) {
        let at = { part, more: true };
        for (let pages = 0; at.more; pages += 1) {
          expect(pages).toBeLessThan(MAX_PAGES);
          const page = await sweep.fetch(stored(at.part), session.context());
          page.rejected.forEach(checkRejected);
          for (const price of page.records) invariants.prices(price, session.venue.now());
          prices.push(...page.records);
          markets += page.markets;
          at = page;
        }
        ended.push(stored(at.part));
      }
      return { prices, ended, markets };
    }

    it('list the price of every open market as a request by outcome has it, sweep after sweep', async () => {
      const { sweepPrices: sweep } = session.adapter;
      if (!sweep) return;
      const open = (await session.catalog()).filter(({ status }) => status === 'open' || status === 'halted');
      const ids = open.flatMap(({ outcomes }) => outcomes.map(({ outcomeId }) => outcomeId));
      const truth = textsOf((await session.adapter.fetchPrices(ids, session.context())).records);
      expect(truth.length).toBeGreaterThan(0);
      let previous: readonly SweepPart[] = [];
      for (let sweeps = 0; sweeps < SWEEPS; sweeps += 1) {
        const { prices, ended, markets } = await sweepOnce(sweep, previous);
        expect(textsOf(prices)).toEqual(truth);
        expect(markets).toBeGreaterThanOrEqual(open.length);
        previous = ended;
      }
    });

    it.each(FAULTS)('throw or reject under %s, and list everything afterwards', async (fault) => {
      const { sweepPrices: sweep } = session.adapter;
      if (!sweep) return;
      const { prices, ended } = await sweepOnce(sweep, []);
      await session.break(fault);
      const broken = session.adapter.sweepPrices ?? sweep;
      for (const part of broken.parts(session.venue.now(), ended)) {
        const page = await venueErrorOr(() => broken.fetch(part, session.context()));
        for (const price of page?.records ?? []) invariants.prices(price, session.venue.now());
      }
      await session.venue.heal();
      await session.restart();
      expect(textsOf((await sweepOnce(session.adapter.sweepPrices ?? sweep, ended)).prices)).toEqual(textsOf(prices));
    });

    it('price both outcomes of a market from one, when the adapter mirrors outcomes', async () => {
      if (!session.adapter.mirrorsOutcomes) return;
      const open = (await session.catalog()).filter(
        ({ status, outcomes }) => status === 'open' && outcomes.length === 2,
      );
      const pairs = open.map(({ outcomes }) => outcomes.map(({ outcomeId }) => outcomeId) as [string, string]);
      const truth = await session.adapter.fetchPrices(pairs.flat(), session.context());
      for (const mirrors of [new Map(pairs), new Map(pairs.map(([one, other]) => [other, one]))]) {
        const { records, rejected } = await session.adapter.fetchPrices(
          [...mirrors.keys()],
          session.context(),
          mirrors,
        );
        expect(rejected).toEqual([]);
        expect(textsOf(records)).toEqual(textsOf(truth.records));
      }
      expect(truth.records.length).toBeGreaterThan(pairs.length);
    });
  });
}

/** Each distinct price without its time. */
function textsOf(prices: readonly PriceRecord[]): string[] {
  const texts = prices.map(({ outcomeId, price, bid, ask }) => [outcomeId, price, bid ?? '-', ask ?? '-'].join(' '));
  return [...new Set(texts)].sort();
}
