import { tradableOutcomes } from '../../src/store/catalog/watched-outcomes.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type { PriceSweep, SweepPart } from '../../src/venues/port.ts';
import { catalogMemoryOf } from '../ingest/catalog-memory.ts';
import type { JobContext } from '../process/define.ts';
import { failedBatch } from './requested-batch.ts';
import type { SweepSource } from './sweep-walk.ts';

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
  parts: readonly SweptPart[];
}

interface PartRequest {
  index: number;
  part: SweepPart;
}

/** Sweeps over the quotes that a venue lists for all its open markets. Pages of different parts overlap. */
export function priceSweep(
  { db, metrics }: JobContext,
  venue: string,
  sweep: PriceSweep,
): SweepSource<SweepPosition, PartRequest> {
  return {
    atOnce: sweep.atOnce,

    resume: (stored) => (isSweepPosition(stored) && stored.parts.some(({ more }) => more) ? stored : undefined),

    begin(startedAtMs, stored) {
      const previous = isSweepPosition(stored) ? stored.parts.map(({ part }) => part) : [];
      return { parts: sweep.parts(startedAtMs, previous).map((part) => ({ part, more: true })) };
    },

    async take({ parts }, inFlight) {
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
      const memory = catalogMemoryOf(metrics, venue);
      const tokenIdOf = await memory.tokenIds(ids, (unknown) => tradableOutcomes(db, venue, unknown));
      const prices = records.filter(({ outcomeId }) => tokenIdOf.has(outcomeId));
      const skipped = records.length - prices.length;
      metrics.skippedRecords.inc({ venue, kind: 'prices', reason: UNKNOWN_MARKET }, skipped);
      return {
        records: prices,
        rejected,
        tokenIdOf,
        markets,
        skipped,
        ...(fault && { fault, isIdle: true }),
        place(before) {
          const failures = fault === undefined ? 0 : (before.parts[index]?.failures ?? 0) + 1;
          const isGivenUp = failures >= MAX_FAILURES;
          const swept = { part: after, more: more && !isGivenUp, ...(failures > 0 && !isGivenUp && { failures }) };
          const parts = before.parts.with(index, swept);
          return { position: { parts }, isSweepEnd: !parts.some((each) => each.more), isFailed: isGivenUp };
        },
      };
    },
  };
}

function isSweepPosition(position: unknown): position is SweepPosition {
  return Array.isArray(((position ?? {}) as Partial<SweepPosition>).parts);
}
