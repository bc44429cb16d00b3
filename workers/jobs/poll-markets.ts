import type { MarketRecord } from '../../src/domain/markets/market.ts';
import { markMissing, noteListed } from '../../src/store/catalog/market-sightings.ts';
import { noteSwept } from '../../src/store/coverage/totals.ts';
import type { MarketPage } from '../../src/venues/port.ts';
import { marketStore, type WrittenMarkets } from '../ingest/market-store.ts';
import { verifyMissing } from '../polling/missing-markets.ts';
import { type PageSource, runPoll, walkPages } from '../polling/poll.ts';
import { defineJob } from '../process/define.ts';

/** Walks the catalog of a venue, and verifies the markets that a complete sweep did not name. */
export const pollMarkets = defineJob('poll-markets', ({ venue }, context) =>
  runPoll(context, { venue, lease: 'markets', adapters: context.adapters }, (adapter, start) => {
    // True at the start, because the process that ended the last sweep may have died.
    let mayBeMissing = true;
    const store = marketStore(context, adapter);
    const listing: PageSource<MarketRecord, WrittenMarkets, MarketPage> = {
      ...store,
      async beforePage(position, call) {
        if (mayBeMissing) mayBeMissing = await verifyMissing(context, adapter, store, { ...start, position }, call);
      },
      fetch: (position, call) => adapter.pollMarkets(position, call),
      async finish(tx, { sweep }) {
        if (!sweep) return;
        await noteListed(tx, venue, sweep.alsoListed ?? [], sweep.startedAtMs);
        if (!sweep.ended) return;
        const sinceMs = sweep.madeSinceMs ?? sweep.startedAtMs;
        const missing = await markMissing(tx, venue, sinceMs, sweep.includesClosed);
        mayBeMissing ||= missing > 0;
        await noteSwept(tx, venue, sinceMs, context.now());
      },
    };
    return walkPages(context, listing, start);
  }),
);
