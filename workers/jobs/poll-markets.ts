import { markMissing, noteListed } from '../../src/store/catalog/market-sightings.ts';
import { writeMarkets } from '../../src/store/catalog/markets.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import { type MarketStore, verifyMissing } from '../polling/missing-markets.ts';
import { runPoll } from '../polling/polling.ts';
import { defineJob } from '../process/define.ts';

/** Walks the catalog of a venue, and verifies the markets that a complete sweep did not name. */
export const pollMarkets = defineJob('poll-markets', ({ venue }, context) =>
  runPoll(context, { venue, lease: 'markets', adapters: context.adapters }, (adapter, advance) => {
    // True at the start, because the process that ended the last sweep may have died.
    let mayBeMissing = true;
    const store: MarketStore = {
      kind: 'markets',
      prepare: () => context.partitions.ensureAroundNow('price_history'),
      async write(tx, records, { sweep }) {
        const { currency } = adapter;
        const written = await writeMarkets(tx, venue, currency, records, context.now(), sweep?.startedAtMs);
        return { written: written.changed, finalTokenIds: written.finalTokenIds };
      },
      wake(parts) {
        context.producer.wakeStage('evaluate-alerts', shardsOf(parts.flatMap(({ finalTokenIds }) => finalTokenIds)));
      },
    };
    return {
      ...store,
      async beforePage(position, call) {
        if (mayBeMissing)
          mayBeMissing = await verifyMissing(context, adapter, store, { venue, position, advance }, call);
      },
      fetch: (position, call) => adapter.pollMarkets(position, call),
      async finish(tx, { sweep }) {
        if (!sweep) return;
        await noteListed(tx, venue, sweep.alsoListed ?? [], sweep.startedAtMs);
        if (!sweep.ended) return;
        const sinceMs = sweep.madeSinceMs ?? sweep.startedAtMs;
        const missing = await markMissing(tx, venue, sinceMs, sweep.includesClosed);
        mayBeMissing ||= missing > 0;
      },
    };
  }),
);
