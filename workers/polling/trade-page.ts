import type { TradeRecord } from '../../src/domain/markets/market.ts';
import { DAY_MS } from '../../src/domain/values/durations.ts';
import { writeTrades } from '../../src/store/series/trades.ts';
import type { Page, RejectedRecord, VenueAdapter } from '../../src/venues/port.ts';
import { MAX_AHEAD_MS } from '../../src/venues/venue-time.ts';
import type { JobContext } from '../process/define.ts';
import type { PageStore } from './page-store.ts';

type TimeLimits = Pick<JobContext, 'config' | 'now'>;

/** Trades before this moment, epoch milliseconds, are neither accepted nor kept. */
export function tradeFloorMs(context: TimeLimits): number {
  return context.now() - context.config.retention.tradesDays * DAY_MS;
}

/** The page with trades of the future and from before the retention floor among its rejected records. */
export function rejectUntimely<P extends Page<TradeRecord>>(context: TimeLimits, page: P): P {
  const latestMs = context.now() + MAX_AHEAD_MS;
  const earliestMs = tradeFloorMs(context);
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
export interface WrittenTrades {
  written: number;
  /** Outcomes with a new trade. */
  tokenIds: readonly bigint[];
}

/** Stores trades of one venue with the marks that follow from them. */
export function tradeStore(
  { partitions }: Pick<JobContext, 'partitions'>,
  { currency }: Pick<VenueAdapter, 'currency'>,
): Omit<PageStore<TradeRecord, WrittenTrades>, 'wake'> {
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
  };
}
