import { writeMarkets } from '../../src/store/catalog/markets.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import type { VenueAdapter } from '../../src/venues/port.ts';
import type { JobContext } from '../process/define.ts';
import type { MarketStore } from './missing-markets.ts';

/** Stores markets of one venue, and wakes the alerts of markets with a new final outcome. */
export function marketStore(
  { partitions, producer, now }: JobContext,
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
      producer.wakeStage('evaluate-alerts', shardsOf(parts.flatMap(({ finalTokenIds }) => finalTokenIds)));
    },
  };
}
