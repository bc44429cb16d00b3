import { z } from 'zod';
import { FEE_REASONS, type FeeRule } from '../../src/domain/markets/fee.ts';
import { decimalField } from '../../src/domain/values/api-json.ts';
import { param } from '../http/input.ts';
import { decimalValue, epochTime, MARKET_ID_EXAMPLE, opaqueId } from './wire.ts';

type Curve = Extract<FeeRule, { model: 'price_curve' }>;
const MODES = ['up', 'half_up'] as const satisfies readonly Curve['rounding'][];

const feeRule = z.discriminatedUnion('model', [
  z.object({ model: z.literal('none') }).meta({ description: 'The venue takes no fee.' }),
  z
    .object({
      model: z.literal('price_curve'),
      taker_rate: decimalValue.meta({ description: 'Of an order that takes from the book.' }),
      maker_rate: decimalValue
        .optional()
        .meta({ description: 'Of an order that rests in the book. Absent when the venue does not state it.' }),
      exponent: z.int().min(1).max(4),
      rounding: z.object({
        digits: z.int().min(0).meta({ description: 'Digits after the point of the fee of a fill.' }),
        mode: z.enum(MODES).meta({ description: '`up` is in favour of the venue.' }),
        balance_digits: z.int().min(0).optional().meta({
          description:
            'Digits after the point of the sum that the account pays or gets for an order: the rest is a fee too. Absent: it is not rounded.',
        }),
      }),
    })
    .meta({ description: 'The fee of each fill: size × rate × (price × (1 − price)) ^ exponent.' }),
]);
export type FeeRuleBody = z.output<typeof feeRule>;

export const marketFees = z
  .object({
    market_id: opaqueId,
    fee: feeRule.nullable().meta({ description: 'The rule that applies; null when it is not known, see `reason`.' }),
    reason: z.enum(FEE_REASONS).optional().meta({
      description:
        'Why `fee` is null: oddswire has `not_read` it yet, the venue has `not_stated` it, states an `unknown_rule`, or it `depends_on_account`.',
    }),
    valid_from: epochTime.optional().meta({ description: 'Absent when the rule applied before oddswire read it.' }),
    valid_until: epochTime.optional().meta({ description: 'When the first of `changes` applies.' }),
    known_at: epochTime.optional().meta({ description: 'When oddswire stored this. Absent when nothing is stored.' }),
    changes: z
      .array(z.object({ at: epochTime, fee: feeRule.nullable().meta({ description: 'Null: an unknown rule.' }) }))
      .meta({ description: 'Later rules that the venue has announced, in the order of their times.' }),
    changes_complete: z.boolean().meta({
      description: 'False when the venue announces no changes, or they could not be read: `changes` may lack some.',
    }),
  })
  .meta({ description: 'The fee of a market.' });
export type MarketFeesBody = z.output<typeof marketFees>;

const ruleExample: FeeRuleBody = {
  model: 'price_curve',
  taker_rate: decimalField('0.04'),
  maker_rate: decimalField('0'),
  exponent: 1,
  rounding: { digits: 5, mode: 'half_up' },
};
export const marketFeesExample: MarketFeesBody = {
  market_id: MARKET_ID_EXAMPLE,
  fee: ruleExample,
  valid_until: 1767571200,
  known_at: 1767312000,
  changes: [{ at: 1767571200, fee: { ...ruleExample, taker_rate: decimalField('0.03') } }],
  changes_complete: true,
};

export const marketFeesQuery = z.object({ as_of: param.asOf });
