import { z } from 'zod';
import { INTERVALS } from '../../src/domain/markets/candle.ts';
import { decimalField } from '../../src/domain/values/api-json.ts';
import { DEFAULT_BUCKETS, MAX_BUCKETS } from '../../src/domain/values/time-range.ts';
import { CANDLE } from '../../src/domain/wire/market-data.ts';
import { param } from '../http/input.ts';
import { coverage, coverageExample } from './completeness.ts';
import { feedGaps } from './feed.ts';
import { coldReads, count, decimalValue, epochTime, OUTCOME_ID_EXAMPLE, opaqueId, shapeOf } from './wire.ts';

export const candle = z.object(shapeOf(CANDLE)).meta({ description: 'OHLCV of one outcome over one bucket.' });
export type CandleBody = z.output<typeof candle>;

export const candleExample: CandleBody = {
  timestamp: 1767319200,
  open: decimalField('0.6'),
  high: decimalField('0.64'),
  low: decimalField('0.59'),
  close: decimalField('0.62'),
  volume: decimalField('10450.75'),
  notional: decimalField('6426.3118'),
  trades: 87,
  closed: true,
};

export const volumeWindow = z.object({
  timestamp: candle.shape.timestamp,
  volume: decimalValue,
  notional: decimalValue,
  trades: count,
});
export const volumeExample: z.output<typeof volumeWindow> = {
  timestamp: 1767319200,
  volume: decimalField('18003.5'),
  notional: decimalField('9120.4'),
  trades: 141,
};

export const snapshot = z.object({
  timestamp: epochTime.meta({ description: 'The boundary, epoch seconds.' }),
  price: decimalValue,
  best_bid: decimalValue.optional(),
  best_ask: decimalValue.optional(),
});
export const snapshotExample: z.output<typeof snapshot> = {
  timestamp: 1767319200,
  price: decimalField('0.62'),
  best_bid: decimalField('0.61'),
  best_ask: decimalField('0.63'),
};

/** Of which time trades are stored; see `TradeCoverage`. */
export const history = z
  .object({
    status: z.enum(['complete', 'backfilling', 'partial']),
    covered_from: z.int().optional().meta({ description: 'All trades since this time are stored. Epoch seconds.' }),
    covered_to: z.int().optional().meta({
      description:
        'All trades from `covered_from` until this time are stored; newer ones may be missing. Epoch seconds, of a whole minute.',
    }),
    trades: count.optional().meta({ description: 'Older trades stored so far.' }),
    requested_at: epochTime.optional(),
    reason: z.string().optional().meta({ description: 'Why the status is `partial`, or the cause of a delay.' }),
    coverage: coverage.optional().meta({ description: 'Absent when the volume was never compared.' }),
  })
  .meta({ description: 'Of which time the trades of this market are stored.' });
export type HistoryBody = z.output<typeof history>;
export const historyExample: HistoryBody = {
  status: 'complete',
  covered_from: 1764550800,
  covered_to: 1767322980,
  coverage: coverageExample,
};

const interval = z.enum(INTERVALS);
const RANGE = `Epoch seconds, \`[start, end)\`. Default: the last ${DEFAULT_BUCKETS} buckets; at most ${MAX_BUCKETS}.`;
const range = {
  start: param.start.meta({ description: RANGE }),
  end: param.end.meta({ description: RANGE }),
};
const oneOutcome = param.outcomeId.meta({ description: 'Default: the first outcome of the market.' });
const anyOutcome = param.outcomeId.meta({ description: 'Default: all outcomes of the market.' });

export const candleQuery = z.object({
  ...range,
  outcome_id: oneOutcome,
  interval: param.interval,
  fill: z
    .enum(['none', 'previous'], 'must be none or previous')
    .default('none')
    .meta({ description: '`previous` fills buckets without trades with the previous close.' }),
});
export const snapshotQuery = z.object({ ...range, outcome_id: oneOutcome, interval: param.interval });
export const volumeQuery = z.object({ ...range, outcome_id: anyOutcome, window: param.interval });

const outcome_id = opaqueId.optional();
export const candleMeta = z.object({ interval, outcome_id, history, cold_reads: coldReads });
export const snapshotMeta = z.object({ interval, outcome_id, feed_gaps: feedGaps });
export const volumeMeta = z.object({ window: interval, outcome_id, history, cold_reads: coldReads });
export const seriesMetaExample = { interval: '1h', outcome_id: OUTCOME_ID_EXAMPLE } as const;
