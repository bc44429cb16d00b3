import type { TradeRecord } from '../src/domain/market.ts';
import { shardsOf } from '../src/store/marks.ts';
import { defineJob } from './define.ts';
import { runPoll } from './polling.ts';
import { prepareForTrades, writeTradePage } from './trade-page.ts';

/** Follows the tape of a venue. */
export const pollTrades = defineJob('poll-trades', ({ venue }, context) =>
  runPoll<TradeRecord>(context, {
    venue,
    kind: 'trades',
    fetch: (adapter, position, call) => adapter.pollTrades(position, call),
    prepare: (records) => prepareForTrades(context, records),
    write: async (tx, records, adapter) => {
      const { inserted, tokenIds } = await writeTradePage(context, tx, records, adapter);
      return {
        written: inserted,
        wake: () => {
          context.producer.wakeStage('fold-candles', shardsOf(tokenIds));
          context.producer.wakeStage('evaluate-alerts', shardsOf(tokenIds));
        },
      };
    },
  }),
);
