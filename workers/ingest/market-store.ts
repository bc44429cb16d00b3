import type { MarketRecord } from '../../src/domain/markets/market.ts';
import { writeMarkets } from '../../src/store/catalog/markets.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import type { Batch, MarketPage, VenueAdapter } from '../../src/venues/port.ts';
import { catalogMemoryOf } from './catalog-memory.ts';
import type { IngestDeps, PageStore, Written } from './store-page.ts';

export interface WrittenMarkets extends Written {
  finalTokenIds: readonly bigint[];
}

/** Markets of a listing, or of a request that names them. */
export type MarketStore = PageStore<MarketRecord, WrittenMarkets, Batch<MarketRecord> & Pick<MarketPage, 'sweep'>>;

/** Stores markets of one venue, and wakes the alerts of markets with a new final outcome. */
export function marketStore(
  { metrics, partitions, producer, now }: Pick<IngestDeps, 'metrics' | 'partitions' | 'producer' | 'now'>,
  { venue, currency }: Pick<VenueAdapter, 'venue' | 'currency'>,
): MarketStore {
  return {
    kind: 'markets',
    prepare: () => partitions.ensureAroundNow('price_history'),
    async write(tx, records, { sweep }) {
      const written = await writeMarkets(tx, venue, currency, records, now(), sweep?.startedAtMs);
      return { written: written.changed, finalTokenIds: written.finalTokenIds };
    },
    wake(parts) {
      if (parts.some(({ written }) => written > 0)) catalogMemoryOf(metrics, venue).forget();
      producer.wakeStage('evaluate-alerts', shardsOf(parts.flatMap(({ finalTokenIds }) => finalTokenIds)));
    },
  };
}
