import type { TradeRecord } from '../../src/domain/markets/market.ts';
import { noteCaughtUp } from '../../src/store/catalog/poll-state.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import type { TapePage, VenueAdapter } from '../../src/venues/port.ts';
import { type PageSource, runPoll } from '../polling/polling.ts';
import { rejectUntimely, tradeStore, type WrittenTrades } from '../polling/trade-page.ts';
import { defineJob, type JobContext } from '../process/define.ts';

/** Follows the tape of a venue. */
export const pollTrades = defineJob('poll-trades', ({ venue }, context) =>
  runPoll(context, { venue, lease: 'trades', adapters: context.adapters }, (adapter) => tape(context, adapter)),
);

function tape(context: JobContext, adapter: VenueAdapter): PageSource<TradeRecord, WrittenTrades, TapePage> {
  const { metrics, producer, now } = context;
  return {
    ...tradeStore(context, adapter),
    fetch: async (position, call) => rejectUntimely(context, await adapter.pollTrades(position, call)),
    async finish(tx, { caughtUpMs }) {
      if (caughtUpMs !== undefined) await noteCaughtUp(tx, adapter.venue, caughtUpMs);
    },
    wake(parts, { records }) {
      const shards = shardsOf(parts.flatMap(({ tokenIds }) => tokenIds));
      if (shards.length === 0) return;
      producer.wakeStage('fold-candles', shards);
      producer.wakeStage('evaluate-alerts', shards);
      // The newest trade shows the delay. Older trades of the page only wait for it.
      const newestMs = records.reduce((newest, { tsMs }) => Math.max(newest, tsMs), 0);
      metrics.tradeDelay.observe({ venue: adapter.venue }, Math.max(0, now() - newestMs) / 1000);
    },
  };
}
