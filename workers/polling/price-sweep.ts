import { tradableOutcomes } from '../../src/store/catalog/watched-outcomes.ts';
import type { PriceSweep, SweepPart } from '../../src/venues/port.ts';
import type { JobContext } from '../process/define.ts';
import { priceStore } from './price-page.ts';
import { type SweepSource, type SweepTally, sweepClock, tallyOf } from './sweep-tally.ts';

/** The skip reason of a price whose market is not stored as tradable: the catalog poll stores it, or has stored its end. */
const UNKNOWN_MARKET = 'unknown_market';

/** The parts of a sweep with their cursors. After a complete sweep no part has more pages; the next sweep evaluates its parts. */
interface SweepPosition {
  tally: SweepTally;
  parts: readonly { part: SweepPart; more: boolean }[];
}

interface PartRequest {
  index: number;
  part: SweepPart;
}

/** Sweeps over the quotes that a venue lists for all its open markets. Pages of different parts overlap. */
export function priceSweep(context: JobContext, venue: string, sweep: PriceSweep): SweepSource<PartRequest> {
  const { db, metrics } = context;
  const store = priceStore(context);
  const clock = sweepClock(context, venue);
  let isResumed = false;
  return {
    ...store,
    atOnce: sweep.atOnce,

    open(stored) {
      const last = isSweepPosition(stored) ? stored : undefined;
      if (!isResumed && last?.parts.some(({ more }) => more)) {
        isResumed = true;
        clock.resume(last.tally);
        return { position: last };
      }
      isResumed = true;
      const tally = clock.begin();
      if (!tally) return undefined;
      const previous = last?.parts.map(({ part }) => part) ?? [];
      const parts = sweep.parts(tally.startedAtMs, previous).map((part) => ({ part, more: true }));
      return { position: { tally, parts } satisfies SweepPosition };
    },

    async take(position, inFlight) {
      const { parts } = position as SweepPosition;
      const busy = new Set([...inFlight].map(({ index }) => index));
      const index = parts.findIndex(({ more }, at) => more && !busy.has(at));
      const free = parts[index];
      return free && { index, part: free.part };
    },

    async fetch({ index, part }, call) {
      const { records, rejected, markets, part: after, more } = await sweep.fetch(part, call);
      const ids = records.map(({ outcomeId }) => outcomeId);
      const known = await tradableOutcomes(db, venue, ids);
      const tokenIdOf = new Map(known.map(({ outcomeId, tokenId }) => [outcomeId, tokenId]));
      const prices = records.filter(({ outcomeId }) => tokenIdOf.has(outcomeId));
      const skipped = records.length - prices.length;
      metrics.skippedRecords.inc({ venue, kind: store.kind, reason: UNKNOWN_MARKET }, skipped);
      return (before) => {
        const position = before as SweepPosition;
        const tally = clock.counted(position.tally, { markets, skipped });
        const parts = position.parts.with(index, { part: after, more });
        const isSweepEnd = !parts.some((each) => each.more);
        const place = { position: { tally, parts } satisfies SweepPosition, more: !isSweepEnd };
        return { records: prices, rejected, tokenIdOf, tally, isSweepEnd, ...place };
      };
    },

    wake(written, page) {
      store.wake(written, page);
      clock.stored(written, page);
    },
  };
}

function isSweepPosition(position: unknown): position is SweepPosition {
  return tallyOf(position) !== undefined && Array.isArray((position as Partial<SweepPosition>).parts);
}
