import type { PriceRecord } from '../src/domain/market.ts';
import { shardsOf } from '../src/store/marks.ts';
import { writePrices } from '../src/store/prices.ts';
import { openOutcomes, type WatchedOutcome } from '../src/store/watched-outcomes.ts';
import { defineJob } from './define.ts';
import { runPoll } from './polling.ts';

/** Where the round over all open outcomes goes on. */
interface RoundPosition {
  afterTokenId: string;
}

function isRoundPosition(position: unknown): position is RoundPosition {
  return typeof (position as RoundPosition | null)?.afterTokenId === 'string';
}

/** Goes round all open outcomes of a venue, a batch per page. */
export const pollPrices = defineJob('poll-prices', ({ venue }, context) => {
  let batch = new Map<string, WatchedOutcome>();
  return runPoll<PriceRecord>(context, {
    venue,
    kind: 'prices',
    fetch: async (adapter, position, call) => {
      const after = isRoundPosition(position) ? BigInt(position.afterTokenId) : 0n;
      const outcomes = await openOutcomes(context.db, venue, {
        afterTokenId: after,
        limit: adapter.maxOutcomesPerFetch,
        onlyBooks: adapter.capabilities.books,
      });
      batch = new Map(outcomes.map((outcome) => [outcome.outcomeId, outcome]));
      const prices =
        outcomes.length === 0 ? { records: [], rejected: [] } : await adapter.fetchPrices([...batch.keys()], call);
      const last = outcomes.at(-1);
      const isRoundDone = outcomes.length < adapter.maxOutcomesPerFetch || last === undefined;
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
