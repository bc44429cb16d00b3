import {
  type OpenOutcome,
  type OutcomeKey,
  openOutcomes,
  recentlyReadOutcomes,
  type WatchedOutcome,
} from '../../src/store/catalog/watched-outcomes.ts';
import type { VenueAdapter } from '../../src/venues/port.ts';
import { catalogMemoryOf } from '../ingest/catalog-memory.ts';
import type { JobContext } from '../process/define.ts';
import { fetchRequested } from './requested-batch.ts';
import type { SweepSource } from './sweep-walk.ts';

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
export function priceRound(
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
