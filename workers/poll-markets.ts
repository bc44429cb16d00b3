import type { MarketRecord } from '../src/domain/market.ts';
import { writeMarkets } from '../src/store/markets.ts';
import { shardsOf } from '../src/store/marks.ts';
import { defineJob } from './define.ts';
import { runPoll } from './polling.ts';

/** Walks the catalog of a venue. */
export const pollMarkets = defineJob('poll-markets', ({ venue }, context) =>
  runPoll<MarketRecord>(context, {
    venue,
    kind: 'markets',
    fetch: (adapter, position, call) => adapter.pollMarkets(position, call),
    prepare: () => context.partitions.ensureAroundNow('price_history'),
    write: async (tx, records, adapter) => {
      const { changed, finalTokenIds } = await writeMarkets(tx, venue, adapter.currency, records, context.now());
      return {
        written: changed,
        wake: () => context.producer.wakeStage('evaluate-alerts', shardsOf(finalTokenIds)),
      };
    },
  }),
);
