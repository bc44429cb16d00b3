import { z } from 'zod';
import { PAYOUT_REASONS, RESOLUTION_STATES } from '../../src/domain/markets/resolution.ts';
import { decimalField } from '../../src/domain/values/api-json.ts';
import { PAYOUT, RESOLUTION } from '../../src/domain/wire/market-data.ts';
import { listParam, param } from '../http/input.ts';
import { categoryFilter } from './market.ts';
import { MARKET_ID_EXAMPLE, OUTCOME_ID_EXAMPLES, shapeOf } from './wire.ts';

const { market_id, ...ofRow } = shapeOf(RESOLUTION);
const timelineRow = z.object(ofRow);

export const resolution = z
  .object({
    market_id,
    venue: z.string(),
    state: z.enum(RESOLUTION_STATES),
    payouts: z
      .array(z.object(shapeOf(PAYOUT)))
      .nullable()
      .meta({ description: 'Of the result; null without a result, or when the venue does not state them.' }),
    reason: z
      .enum([...PAYOUT_REASONS, 'no_result'])
      .optional()
      .meta({ description: 'Why `payouts` is null, or needs care.' }),
    timeline: z.array(timelineRow).meta({
      description: 'Oldest first. Empty for a result that a former release stored.',
    }),
  })
  .meta({ description: 'Where the result of a market stands, and how it came about.' });

export const resolutionRow = z
  .object({ venue: z.string(), ...shapeOf(RESOLUTION) })
  .meta({ description: 'A row of the timeline of the result of a market.' });

const rowExample: z.output<typeof timelineRow> = {
  transition: 'resolved',
  state: 'resolved',
  round: 1,
  at: 1767323000,
  received_at: 1767323040,
  payouts: OUTCOME_ID_EXAMPLES.map((outcome_id, index) => ({
    outcome_id,
    payout: decimalField(index === 0 ? '1' : '0'),
  })),
  source: 'route',
};

export const resolutionExample: z.output<typeof resolution> = {
  market_id: MARKET_ID_EXAMPLE,
  venue: 'polymarket',
  state: 'resolved',
  payouts: rowExample.payouts,
  timeline: [
    {
      transition: 'proposed',
      state: 'proposed',
      round: 1,
      received_at: 1767315840,
      payouts: null,
      reason: 'not_stated',
      source: 'route',
    },
    rowExample,
  ],
};
export const resolutionRowExample: z.output<typeof resolutionRow> = {
  market_id: MARKET_ID_EXAMPLE,
  venue: 'polymarket',
  ...rowExample,
};

export const resolutionListQuery = z.object({
  state: listParam(RESOLUTION_STATES, 'The state after the row.'),
  category: categoryFilter,
  since: param.start.meta({
    description:
      'The first page begins with the rows that oddswire received at this time or later, epoch seconds. Not with `cursor`.',
  }),
  limit: param.limit,
  cursor: z
    .string()
    .optional()
    .meta({ description: '`meta.resume_cursor` of an earlier page, with the same filters.' }),
});
export const resolutionListMeta = z.object({
  next_cursor: z.string().nullable().meta({ description: 'Null on the last page.' }),
  resume_cursor: z.string().meta({
    description: 'Continues behind this page, also behind the last one: ask again later, and you miss no row.',
  }),
});
