import type { TradeRecord } from '../../src/domain/markets/market.ts';
import { quarantine } from '../../src/store/catalog/quarantine.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { type WrittenTrades, writeTrades } from '../../src/store/series/trades.ts';
import type { VenueAdapter } from '../../src/venues/port.ts';
import type { JobContext } from '../process/define.ts';

const DAY_MS = 86_400_000;
/** A venue clock may be this far ahead of ours. */
const FUTURE_TOLERANCE_MS = 300_000;

/** Trades before this moment, epoch milliseconds, are neither accepted nor kept. */
export function tradeFloorMs(context: Pick<JobContext, 'config' | 'now'>): number {
  return context.now() - context.config.retention.tradesDays * DAY_MS;
}

function isTimely(context: JobContext, { tsMs }: TradeRecord): boolean {
  return tsMs <= context.now() + FUTURE_TOLERANCE_MS && tsMs >= tradeFloorMs(context);
}

/** Makes the partitions that a page of trades needs, before its transaction. */
export async function prepareForTrades(context: JobContext, trades: readonly TradeRecord[]): Promise<void> {
  const moments = trades.filter((trade) => isTimely(context, trade)).map((trade) => trade.tsMs);
  await context.partitions.ensure('trade', moments);
  await context.partitions.ensureAroundNow('observation');
}

interface WrittenTradePage extends WrittenTrades {
  /** Trades out of time. */
  quarantined: number;
  /** Counts what was quarantined here: once the page is committed. */
  count(): void;
}

/** Writes trades of one venue with the marks that follow from them; those out of time are quarantined. Idempotent. */
export async function writeTradePage(
  context: JobContext,
  tx: Tx,
  trades: readonly TradeRecord[],
  { venue, currency }: Pick<VenueAdapter, 'venue' | 'currency'>,
): Promise<WrittenTradePage> {
  const timely = trades.filter((trade) => isTimely(context, trade));
  const written = await writeTrades(tx, timely, currency);
  const untimely = trades
    .filter((trade) => !isTimely(context, trade))
    .map((trade) => ({
      kind: 'trades' as const,
      reason: trade.tsMs > context.now() ? 'time_in_future' : 'before_retention_floor',
      recordId: trade.tradeId,
      detail: `trade at ${new Date(trade.tsMs).toISOString()}`,
      sample: JSON.stringify(trade),
    }));
  await quarantine(tx, venue, untimely);
  const count = () => {
    for (const { kind, reason } of untimely) context.metrics.rejectedRecords.inc({ venue, kind, reason });
  };
  return { ...written, quarantined: untimely.length, count };
}
