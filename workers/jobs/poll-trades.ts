import type { TradeRecord } from '../../src/domain/markets/market.ts';
import { noteCaughtUp } from '../../src/store/catalog/poll-state.ts';
import type { TapePage, VenueAdapter } from '../../src/venues/port.ts';
import { rejectUntimely, tradeStore, type WrittenTrades } from '../ingest/trade-store.ts';
import { runPoll } from '../polling/lease.ts';
import { type PageSource, walkPages } from '../polling/walk.ts';
import { defineJob, type JobContext } from '../process/define.ts';

/** Follows the tape of a venue. */
export const pollTrades = defineJob('poll-trades', ({ venue }, context) =>
  runPoll(context, { venue, lease: 'trades', adapters: context.adapters }, (adapter, start) =>
    walkPages(context, tape(context, adapter), start),
  ),
);

function tape(context: JobContext, adapter: VenueAdapter): PageSource<TradeRecord, WrittenTrades, TapePage> {
  const { metrics, now } = context;
  const store = tradeStore(context, adapter);
  return {
    ...store,
    fetch: async (position, call) => rejectUntimely(context, await adapter.pollTrades(position, call)),
    async finish(tx, { caughtUpMs }) {
      if (caughtUpMs !== undefined) await noteCaughtUp(tx, adapter.venue, caughtUpMs);
    },
    wake(parts, { records }) {
      store.wake(parts);
      if (parts.every(({ tokenIds }) => tokenIds.length === 0)) return;
      // The newest trade shows the delay. Older trades of the page only wait for it.
      const newestMs = records.reduce((newest, { tsMs }) => Math.max(newest, tsMs), 0);
      metrics.tradeDelay.observe({ venue: adapter.venue }, Math.max(0, now() - newestMs) / 1000);
    },
  };
}
