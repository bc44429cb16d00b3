import {
  type OpenOutcome,
  type OutcomeKey,
  openOutcomes,
  recentlyReadOutcomes,
  tradableOutcomes,
  type WatchedOutcome,
} from '../../src/store/catalog/watched-outcomes.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type { PriceSweep, SweepPart, VenueAdapter } from '../../src/venues/port.ts';
import { catalogMemoryOf } from '../ingest/catalog-memory.ts';
import { failedBatch, fetchRequested, runPoll } from '../polling/poll.ts';
import { type SweepSource, sweepPages } from '../polling/sweep-walk.ts';
import { defineJob, type JobContext } from '../process/define.ts';

/**
 * Sweeps over the prices of all open markets of a venue, by the venue's own list of quotes or by the ids of the outcomes. A tick that ends
 * before the sweep leaves the rest to the next one. A sweep that takes longer than its interval is followed by the next one at once.
 */
export const pollPrices = defineJob('poll-prices', ({ venue }, context) =>
  runPoll(context, { venue, lease: 'prices', adapters: context.adapters }, (adapter, start) =>
    adapter.sweepPrices
      ? sweepPages(context, priceSweep(context, venue, adapter.sweepPrices), start)
      : sweepPages(context, priceRound(context, venue, adapter), start),
  ),
);

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
function priceSweep(
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

/** A place in the round, as text: the keys of a market and of one of its tokens. */
type Place = `${bigint}:${bigint}`;

/** Outcomes behind `from`, up to `to`. */
interface Range {
  from: Place;
  to: Place;
  /** No outcome comes after this range. */
  isLast: boolean;
}

/** A sweep that names the outcomes. The stored position is null between two sweeps. */
interface RoundPosition {
  /** Everything up to this place is stored. */
  after: Place;
  /** Stored ranges beyond it: pages in flight are before them. A process that takes over requests them again. */
  ahead: readonly Range[];
}

interface OutcomesRequest {
  outcomes: readonly (WatchedOutcome | OpenOutcome)[];
  /** Absent: outcomes beside the round. */
  range?: Range;
}

/**
 * Sweeps over the open outcomes of all markets of a venue, in batches that overlap where the venue allows it. A batch without an answer ends
 * the tick, and the next tick begins behind it: its outcomes have their turn in the next sweep. Where prices do not come with
 * books, each tick begins with one batch of outcomes that clients read recently.
 */
function priceRound(
  { db, metrics }: JobContext,
  venue: string,
  adapter: VenueAdapter,
): SweepSource<RoundPosition, OutcomesRequest> {
  const { maxOutcomesPerFetch: limit, mirrorsOutcomes: pairs = false } = adapter;
  const onlyBooks = adapter.capabilities.books && adapter.pricesWithoutBooks !== true;
  let isRecentDue = !adapter.capabilities.books;

  async function rangeAfter(from: Place): Promise<OutcomesRequest> {
    const page = { after: keyOf(from), limit, onlyBooks, pairs };
    const outcomes = await catalogMemoryOf(metrics, venue).page(from, () => openOutcomes(db, venue, page));
    const last = outcomes.at(-1);
    const to: Place = last ? `${last.marketPk}:${last.tokenId}` : from;
    return { outcomes, range: { from, to, isLast: outcomes.length < limit } };
  }

  return {
    atOnce: adapter.fetchesAtOnce ?? 1,
    resume: (stored) => (isRoundPosition(stored) ? { after: stored.after, ahead: [] } : undefined),
    begin: () => ({ after: '0:0', ahead: [] }),

    async take({ after, ahead }, inFlight) {
      if (isRecentDue) {
        isRecentDue = false;
        const outcomes = await recentlyReadOutcomes(db, venue, limit);
        if (outcomes.length > 0) return { outcomes };
      }
      const ranges = [...inFlight].map(({ range }) => range);
      if (ranges.includes(undefined)) return undefined;
      const taken = [...ahead, ...ranges.filter((range) => range !== undefined)];
      if (taken.some(({ isLast }) => isLast)) return undefined;
      return rangeAfter(taken.reduce((furthest, { to }) => (isBehind(to, furthest) ? to : furthest), after));
    },

    async fetch({ outcomes, range }, call) {
      const pairsOf = outcomes.flatMap((outcome) =>
        'mirror' in outcome && outcome.mirror ? [[outcome, outcome.mirror] as const] : [],
      );
      const mirrors = new Map(pairsOf.map(([one, other]) => [one.outcomeId, other.outcomeId]));
      const answer = await fetchRequested(outcomes, (ids) => adapter.fetchPrices(ids, call, mirrors));
      const tokenIdOf = new Map([
        ...answer.tokenIdOf,
        ...pairsOf.map(([, other]) => [other.outcomeId, other.tokenId] as const),
      ]);
      const markets = outcomes.filter((outcome) => 'isFirst' in outcome && outcome.isFirst).length;
      return {
        ...answer,
        tokenIdOf,
        markets,
        skipped: 0,
        place(before) {
          const position = moved(before, range);
          return { position, isSweepEnd: position === null, isFailed: answer.fault !== undefined };
        },
      };
    },
  };
}

/** The position with one more stored range; null after the last one. */
function moved(position: RoundPosition, range: Range | undefined): RoundPosition | null {
  const ahead = range === undefined ? [...position.ahead] : [...position.ahead, range];
  let { after } = position;
  for (;;) {
    const at = ahead.findIndex(({ from }) => from === after);
    const [next] = at < 0 ? [] : ahead.splice(at, 1);
    if (next === undefined) return { ...position, after, ahead };
    if (next.isLast) return null;
    after = next.to;
  }
}

function isRoundPosition(position: unknown): position is RoundPosition {
  const { after, ahead } = (position ?? {}) as Partial<RoundPosition>;
  return typeof after === 'string' && /^\d+:\d+$/.test(after) && Array.isArray(ahead);
}

function keyOf(place: Place): OutcomeKey {
  const [marketPk = '0', tokenId = '0'] = place.split(':');
  return { marketPk: BigInt(marketPk), tokenId: BigInt(tokenId) };
}

function isBehind(place: Place, other: Place): boolean {
  const [a, b] = [keyOf(place), keyOf(other)];
  return a.marketPk === b.marketPk ? a.tokenId > b.tokenId : a.marketPk > b.marketPk;
}
