import { z } from 'zod';
import { MARKET_STATUSES } from '../../src/domain/markets/market.ts';
import { decimalField } from '../../src/domain/values/api-json.ts';
import { BOOK } from '../../src/domain/wire/market-data.ts';
import { param } from '../http/input.ts';
import { feedGaps } from './feed.ts';
import { coldReads, epochTime, MARKET_ID_EXAMPLE, OUTCOME_ID_EXAMPLE, shapeOf } from './wire.ts';

export const book = z.object(shapeOf(BOOK)).meta({ description: 'The book of one outcome at one moment.' });
export type BookBody = z.output<typeof book>;
export type LevelBody = BookBody['bids'][number];

export const bookExample: BookBody = {
  market_id: MARKET_ID_EXAMPLE,
  outcome_id: OUTCOME_ID_EXAMPLE,
  as_of: 1767323041,
  bids: [{ price: decimalField('0.61'), size: decimalField('1250') }],
  asks: [{ price: decimalField('0.63'), size: decimalField('980.5') }],
  best_bid: decimalField('0.61'),
  best_ask: decimalField('0.63'),
  spread: decimalField('0.02'),
};

export const bookQuery = z.object({
  depth: param.depth,
  outcome_id: param.outcomeId.meta({ description: 'Default: the first outcome of the market.' }),
  as_of: param.asOf,
});
export const bookMeta = z.object({
  market_status: z
    .enum(MARKET_STATUSES)
    .optional()
    .meta({ description: 'The status of the market. Absent with `as_of`.' }),
  live: z.boolean().optional().meta({
    description: 'Whether the market trades and a poll saw this book within the last minute. Absent with `as_of`.',
  }),
  observed_at: epochTime.optional().meta({ description: 'When a poll last saw this book. Only when it is not live.' }),
  feed_gaps: feedGaps,
  cold_reads: coldReads,
});
export const bookMetaExample: z.output<typeof bookMeta> = { market_status: 'open', live: true };
