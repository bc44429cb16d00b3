import type { MarketRecord } from '../../src/domain/markets/market.ts';
import { markMissing, noteListed } from '../../src/store/catalog/market-sightings.ts';
import { writeMarkets } from '../../src/store/catalog/markets.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import type { MarketPage, VenueAdapter } from '../../src/venues/port.ts';
import { verifyMissing } from '../polling/missing-markets.ts';
import type { WrittenPage } from '../polling/page-writer.ts';
import { runPoll } from '../polling/polling.ts';
import { defineJob } from '../process/define.ts';

/** Walks the catalog of a venue, and looks for the markets that a whole sweep of it did not name. */
export const pollMarkets = defineJob('poll-markets', ({ venue }, context) => {
  // At the start too: the process that ended the sweep may have died.
  let mayBeMissing = true;
  const write = async (
    tx: Tx,
    records: readonly MarketRecord[],
    { currency }: VenueAdapter,
    sweep?: MarketPage['sweep'],
  ): Promise<WrittenPage> => {
    const { changed, finalTokenIds } = await writeMarkets(
      tx,
      venue,
      currency,
      records,
      context.now(),
      sweep?.startedAtMs,
    );
    return {
      written: changed,
      wake: () => context.producer.wakeStage('evaluate-alerts', shardsOf(finalTokenIds)),
    };
  };
  return runPoll<MarketRecord, MarketPage>(context, {
    venue,
    kind: 'markets',
    async beforePage(walk) {
      if (!mayBeMissing) return;
      mayBeMissing = await verifyMissing(context, walk, (tx, records) => write(tx, records, walk.adapter));
    },
    fetch: (adapter, position, call) => adapter.pollMarkets(position, call),
    prepare: () => context.partitions.ensureAroundNow('price_history'),
    write: (tx, records, adapter, { sweep }) => write(tx, records, adapter, sweep),
    async finish(tx, { sweep }) {
      if (!sweep) return;
      await noteListed(tx, venue, sweep.alsoListed ?? [], sweep.startedAtMs);
      if (!sweep.ended) return;
      const sinceMs = sweep.madeSinceMs ?? sweep.startedAtMs;
      const missing = await markMissing(tx, venue, sinceMs, sweep.includesClosed);
      mayBeMissing ||= missing > 0;
    },
  });
});
