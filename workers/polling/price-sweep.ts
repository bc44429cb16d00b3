import { tradableOutcomes } from '../../src/store/catalog/watched-outcomes.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type { PriceSweep, SweepPart } from '../../src/venues/port.ts';
import type { JobContext } from '../process/define.ts';
import { failedBatch, priceStore } from './price-page.ts';
import { type SweepSource, type SweepTally, sweepClock, tallyOf } from './sweep-tally.ts';

/** The skip reason of a price whose market is not stored as tradable: the catalog poll stores it, or has stored its end. */
const UNKNOWN_MARKET = 'unknown_market';

/** A page that fails so often in a sweep ends its part: the others must not wait for it. */
const MAX_FAILURES = 2;

interface SweptPart {
  part: SweepPart;
  more: boolean;
  /** Its next page failed so often: parts with fewer failures come first. */
  failures?: number;
}

/** The parts of a sweep with their cursors. After a complete sweep no part has more pages; the next sweep evaluates its parts. */
interface SweepPosition {
  tally: SweepTally;
  parts: readonly SweptPart[];
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
      const open = parts.flatMap(({ more, failures = 0 }, index) =>
        more && !busy.has(index) ? [{ index, failures }] : [],
      );
      const [first] = open.sort((a, b) => a.failures - b.failures);
      const index = first?.index ?? -1;
      const free = parts[index];
      return free && { index, part: free.part };
    },

    async fetch({ index, part }, call) {
      const failed = (error: unknown) => {
        // An unreachable host says nothing of the part, which continues at the same page.
        if (error instanceof VenueError && error.code === 'network') throw error;
        return { ...failedBatch(error), markets: 0, part, more: true };
      };
      const answer = await sweep.fetch(part, call).catch(failed);
      const { records, rejected, markets, part: after, more, fault } = answer;
      const ids = records.map(({ outcomeId }) => outcomeId);
      const known = await tradableOutcomes(db, venue, ids);
      const tokenIdOf = new Map(known.map(({ outcomeId, tokenId }) => [outcomeId, tokenId]));
      const prices = records.filter(({ outcomeId }) => tokenIdOf.has(outcomeId));
      const skipped = records.length - prices.length;
      metrics.skippedRecords.inc({ venue, kind: store.kind, reason: UNKNOWN_MARKET }, skipped);
      return (before) => {
        const position = before as SweepPosition;
        const failures = fault === undefined ? 0 : (position.parts[index]?.failures ?? 0) + 1;
        const isGivenUp = failures >= MAX_FAILURES;
        const tally = clock.counted(position.tally, { markets, skipped, isFailed: isGivenUp });
        const swept = { part: after, more: more && !isGivenUp, ...(failures > 0 && !isGivenUp && { failures }) };
        const parts = position.parts.with(index, swept);
        const isSweepEnd = !parts.some((each) => each.more);
        const place = { position: { tally, parts } satisfies SweepPosition, more: !isSweepEnd };
        const failure = fault && { fault, isIdle: true as const };
        return { records: prices, rejected, tokenIdOf, tally, isSweepEnd, ...place, ...failure };
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
