import type { TradeRecord } from '../../src/domain/markets/market.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import { runPoll } from '../polling/polling.ts';
import { prepareForTrades, writeTradePage } from '../polling/trade-page.ts';
import { defineJob, type JobContext } from '../process/define.ts';

/** Follows the tape of a venue. */
export const pollTrades = defineJob('poll-trades', ({ venue }, context) =>
  runPoll<TradeRecord>(context, {
    venue,
    kind: 'trades',
    fetch: (adapter, position, call) => adapter.pollTrades(position, call),
    prepare: (records) => prepareForTrades(context, records),
    write: async (tx, records, adapter) => {
      const { inserted, quarantined, tokenIds, count } = await writeTradePage(context, tx, records, adapter);
      return {
        written: inserted,
        quarantined,
        wake: () => {
          count();
          if (inserted > 0) noteDelay(context, venue, records);
          context.producer.wakeStage('fold-candles', shardsOf(tokenIds));
          context.producer.wakeStage('evaluate-alerts', shardsOf(tokenIds));
        },
      };
    },
  }),
);

/** How far behind the venue's tape we are: by the newest trade of the page, for older ones only wait for it. */
function noteDelay({ metrics, now }: JobContext, venue: string, trades: readonly TradeRecord[]): void {
  const newestMs = trades.reduce((newest, { tsMs }) => Math.max(newest, tsMs), 0);
  metrics.tradeDelay.observe({ venue }, Math.max(0, now() - newestMs) / 1000);
}
