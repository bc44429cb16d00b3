import { openOutcomes, recentlyReadOutcomes, type WatchedOutcome } from '../../src/store/catalog/watched-outcomes.ts';
import { runPoll } from '../polling/polling.ts';
import { fetchRequested, priceStore } from '../polling/price-page.ts';
import { defineJob } from '../process/define.ts';

/** The place in the round over all open outcomes. */
interface RoundPosition {
  afterTokenId: string;
}

function isRoundPosition(position: unknown): position is RoundPosition {
  return typeof (position as RoundPosition | null)?.afterTokenId === 'string';
}

/**
 * Goes round all open outcomes of a venue, one batch per page. Where prices do not come with books, each tick begins with one
 * batch of outcomes that clients read recently; then the round continues.
 */
export const pollPrices = defineJob('poll-prices', ({ venue }, context) => {
  let isFirstPage = true;
  return runPoll(context, { venue, lease: 'prices', adapters: context.adapters }, (adapter) => ({
    ...priceStore(context),
    async fetch(position, call) {
      const pricesOf = (some: readonly WatchedOutcome[]) =>
        fetchRequested(some, (ids) => adapter.fetchPrices(ids, call));
      const limit = adapter.maxOutcomesPerFetch;
      const { books } = adapter.capabilities;
      const onlyBooks = books && adapter.pricesWithoutBooks !== true;
      if (isFirstPage && !books) {
        isFirstPage = false;
        const recent = await recentlyReadOutcomes(context.db, venue, limit);
        if (recent.length > 0) return { ...(await pricesOf(recent)), position, more: true };
      }
      const after = isRoundPosition(position) ? BigInt(position.afterTokenId) : 0n;
      const outcomes = await openOutcomes(context.db, venue, { afterTokenId: after, limit, onlyBooks });
      const last = outcomes.at(-1);
      const isRoundDone = outcomes.length < limit || last === undefined;
      return {
        ...(await pricesOf(outcomes)),
        position: isRoundDone ? null : { afterTokenId: String(last.tokenId) },
        more: !isRoundDone,
      };
    },
  }));
});
