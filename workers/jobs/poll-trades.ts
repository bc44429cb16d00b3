import type { TradeRecord } from '../../src/domain/markets/market.ts';
import type { TapePage, VenueAdapter } from '../../src/venues/port.ts';
import { rejectUntimely, tradeStore, type WrittenTrades } from '../ingest/trade-store.ts';
import { type PageSource, runPoll, walkPages } from '../polling/poll.ts';
import { type TapeMemory, tapeMemoryOf } from '../polling/tape-memory.ts';
import { defineJob, type JobContext } from '../process/define.ts';

/** Follows the tape of a venue. */
export const pollTrades = defineJob('poll-trades', ({ venue }, context) =>
  runPoll(context, { venue, lease: 'trades', adapters: context.adapters }, async (adapter, start) => {
    const memory = tapeMemoryOf(context.db, venue);
    memory.begin(start.position);
    try {
      return await walkPages(context, tape(context, adapter, memory), start);
    } catch (error) {
      memory.fail();
      throw error;
    }
  }),
);

function tape(
  context: JobContext,
  adapter: VenueAdapter,
  memory: TapeMemory,
): PageSource<TradeRecord, WrittenTrades, TapePage> {
  const { metrics, now } = context;
  const store = tradeStore(context, adapter);
  return {
    ...store,
    async fetch(position, call) {
      return rejectUntimely(context, await adapter.pollTrades(position, { ...call, ...memory.knowledge }));
    },
    news: (records) => records.filter(({ tradeId }) => !memory.has(tradeId)),
    wake(parts, page) {
      const { records } = page;
      memory.committed(page, parts.length <= 1, now());
      store.wake(parts);
      if (parts.every(({ tokenIds }) => tokenIds.length === 0)) return;
      // The newest trade shows the delay. Older trades of the page only wait for it.
      const newestMs = records.reduce((newest, { tsMs }) => Math.max(newest, tsMs), 0);
      metrics.tradeDelay.observe({ venue: adapter.venue }, Math.max(0, now() - newestMs) / 1000);
    },
  };
}
