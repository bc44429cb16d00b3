import type { TradeRecord } from '../src/domain/market.ts';
import { shardsOf } from '../src/store/marks.ts';
import { quarantine } from '../src/store/quarantine.ts';
import { writeTrades } from '../src/store/trades.ts';
import { defineJob } from './define.ts';
import { runPoll } from './polling.ts';

const DAY_MS = 86_400_000;
/** A venue clock may be this far ahead of ours. */
const FUTURE_TOLERANCE_MS = 300_000;

/** Follows the tape of a venue. */
export const pollTrades = defineJob('poll-trades', ({ venue }, context) => {
  const isTimely = (trade: TradeRecord) =>
    trade.tsMs <= context.now() + FUTURE_TOLERANCE_MS &&
    trade.tsMs >= context.now() - context.config.retention.tradesDays * DAY_MS;
  return runPoll<TradeRecord>(context, {
    venue,
    kind: 'trades',
    fetch: (adapter, position, call) => adapter.pollTrades(position, call),
    prepare: async (records) => {
      await context.partitions.ensure(
        'trade',
        records.filter(isTimely).map((trade) => trade.tsMs),
      );
      await context.partitions.ensureAroundNow('observation');
    },
    write: async (tx, records, adapter) => {
      const { inserted, tokenIds } = await writeTrades(tx, records.filter(isTimely), adapter.currency);
      const untimely = records.filter((trade) => !isTimely(trade));
      await quarantine(
        tx,
        venue,
        untimely.map((trade) => ({
          kind: 'trades',
          reason: trade.tsMs > context.now() ? 'time_in_future' : 'before_retention_floor',
          recordId: trade.tradeId,
          detail: `trade at ${new Date(trade.tsMs).toISOString()}`,
          sample: JSON.stringify(trade),
        })),
      );
      return {
        written: inserted,
        wake: () => {
          context.producer.wakeStage('fold-candles', shardsOf(tokenIds));
          context.producer.wakeStage('evaluate-alerts', shardsOf(tokenIds));
        },
      };
    },
  });
});
