import type { TradeRecord } from '../../src/domain/markets/market.ts';
import { DAY_MS } from '../../src/domain/values/durations.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import { writeTrades } from '../../src/store/series/trades.ts';
import type { Batch, RejectedRecord, VenueAdapter } from '../../src/venues/port.ts';
import { MAX_AHEAD_MS } from '../../src/venues/venue-time.ts';
import type { IngestDeps, PageStore, Written } from './store-page.ts';

type TimeLimits = Pick<IngestDeps, 'config' | 'now'>;

/** Trades before this moment, epoch milliseconds, are neither accepted nor kept. */
export function tradeFloorMs({ config, now }: TimeLimits): number {
  return now() - config.retention.tradesDays * DAY_MS;
}

/** The page with trades of the future and from before the retention floor among its rejected records. */
export function rejectUntimely<P extends Batch<TradeRecord>>(limits: TimeLimits, page: P): P {
  const latestMs = limits.now() + MAX_AHEAD_MS;
  const earliestMs = tradeFloorMs(limits);
  const isTimely = ({ tsMs }: TradeRecord) => tsMs <= latestMs && tsMs >= earliestMs;
  const untimely = page.records.filter((trade) => !isTimely(trade));
  if (untimely.length === 0) return page;
  const rejected = untimely.map(
    (trade): RejectedRecord => ({
      kind: 'trades',
      reason: trade.tsMs > latestMs ? 'timestamp_in_future' : 'before_retention_floor',
      recordId: trade.tradeId,
      detail: `trade at ${new Date(trade.tsMs).toISOString()}`,
      sample: JSON.stringify(trade),
    }),
  );
  return { ...page, records: page.records.filter(isTimely), rejected: [...page.rejected, ...rejected] };
}

/** The result of writing trades. */
export interface WrittenTrades extends Written {
  /** Outcomes with a new trade. */
  tokenIds: readonly bigint[];
}

/** Stores trades of one venue with the marks that follow from them, and wakes the stages of their outcomes. */
export function tradeStore(
  { partitions, producer }: Pick<IngestDeps, 'partitions' | 'producer'>,
  { currency }: Pick<VenueAdapter, 'currency'>,
) {
  return {
    kind: 'trades',
    async prepare({ records }) {
      await partitions.ensure(
        'trade',
        records.map(({ tsMs }) => tsMs),
      );
      await partitions.ensureAroundNow('observation');
    },
    async write(tx, records) {
      const { inserted, tokenIds } = await writeTrades(tx, records, currency);
      return { written: inserted, tokenIds };
    },
    wake(parts) {
      const shards = shardsOf(parts.flatMap(({ tokenIds }) => tokenIds));
      producer.wakeStage('fold-candles', shards);
      producer.wakeStage('evaluate-alerts', shards);
    },
  } satisfies PageStore<TradeRecord, WrittenTrades>;
}
