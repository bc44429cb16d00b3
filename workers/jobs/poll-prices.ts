import type { PriceRecord } from '../../src/domain/markets/market.ts';
import { openOutcomes, recentlyReadOutcomes, type WatchedOutcome } from '../../src/store/catalog/watched-outcomes.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import { writePrices } from '../../src/store/prices/prices.ts';
import type { Batch, CallContext, VenueAdapter } from '../../src/venues/port.ts';
import { runPoll } from '../polling/polling.ts';
import { defineJob } from '../process/define.ts';

/** Where the round over all open outcomes goes on. */
interface RoundPosition {
  afterTokenId: string;
}

function isRoundPosition(position: unknown): position is RoundPosition {
  return typeof (position as RoundPosition | null)?.afterTokenId === 'string';
}

/**
 * Goes round all open outcomes of a venue, a batch per page. Where prices do not come with books, each tick begins with one
 * batch of outcomes that clients read lately; the round then goes on where it was.
 */
export const pollPrices = defineJob('poll-prices', ({ venue }, context) => {
  let batch = new Map<string, WatchedOutcome>();
  let isFirstPage = true;

  async function pricesOf(adapter: VenueAdapter, outcomes: readonly WatchedOutcome[], call: CallContext) {
    batch = new Map(outcomes.map((outcome) => [outcome.outcomeId, outcome]));
    const nothing: Batch<PriceRecord> = { records: [], rejected: [] };
    return outcomes.length === 0 ? nothing : adapter.fetchPrices([...batch.keys()], call);
  }

  return runPoll<PriceRecord>(context, {
    venue,
    kind: 'prices',
    fetch: async (adapter, position, call) => {
      const limit = adapter.maxOutcomesPerFetch;
      const { books } = adapter.capabilities;
      const onlyBooks = books && adapter.pricesWithoutBooks !== true;
      if (isFirstPage && !books) {
        isFirstPage = false;
        const wanted = await recentlyReadOutcomes(context.db, venue, limit);
        if (wanted.length > 0) return { ...(await pricesOf(adapter, wanted, call)), position, more: true };
      }
      const after = isRoundPosition(position) ? BigInt(position.afterTokenId) : 0n;
      const outcomes = await openOutcomes(context.db, venue, { afterTokenId: after, limit, onlyBooks });
      const prices = await pricesOf(adapter, outcomes, call);
      const last = outcomes.at(-1);
      const isRoundDone = outcomes.length < limit || last === undefined;
      return {
        ...prices,
        position: isRoundDone ? null : { afterTokenId: String(last.tokenId) },
        more: !isRoundDone,
      };
    },
    prepare: async () => {
      await context.partitions.ensureAroundNow('price_history');
      await context.partitions.ensureAroundNow('observation');
    },
    write: async (tx, records) => {
      const known = records.flatMap(({ outcomeId, ...price }) => {
        const outcome = batch.get(outcomeId);
        return outcome ? [{ ...price, tokenId: outcome.tokenId }] : [];
      });
      const { newer, movedTokenIds } = await writePrices(tx, known);
      return {
        written: newer,
        wake: () => context.producer.wakeStage('evaluate-alerts', shardsOf(movedTokenIds)),
      };
    },
  });
});
