import { z } from 'zod';
import { ORDER_SIDES } from '../../src/domain/markets/market.ts';
import { decimalField } from '../../src/domain/values/api-json.ts';
import { decimal } from '../../src/domain/values/decimal.ts';
import { EXECUTABLE } from '../../src/domain/wire/market-data.ts';
import { idList, param, replacing } from '../http/input.ts';
import { bookMeta, bookMetaExample } from './book.ts';
import { decimalValue, MARKET_ID_EXAMPLE, OUTCOME_ID_EXAMPLE, shapeOf } from './wire.ts';

const fields = shapeOf(EXECUTABLE);
export const executable = z.object(fields).meta({
  description: 'What an order that takes from the stored book costs or pays, level by level and with the fee.',
});
export type ExecutableBody = z.output<typeof executable>;

export const executableExample: ExecutableBody = {
  market_id: MARKET_ID_EXAMPLE,
  outcome_id: OUTCOME_ID_EXAMPLE,
  side: 'buy',
  size: decimalField('500'),
  filled_size: decimalField('500'),
  filled_notional: decimalField('315'),
  average_price: decimalField('0.63'),
  worst_price: decimalField('0.63'),
  levels: 1,
  fee: decimalField('4.662'),
  total: decimalField('319.662'),
  price_with_fee: decimalField('0.639324'),
  slippage: decimalField('0.01'),
  complete: true,
  crossed: false,
  as_of: 1767323041,
};

/** Digits before and after the point: more than any venue or book has. */
const MAX_AMOUNT_DIGITS = 30;
const AMOUNT_RULE = `must be a decimal greater than 0 such as 500 or 0.25, with at most ${MAX_AMOUNT_DIGITS} digits before and after the point`;
const AMOUNT = new RegExp(`^(?=.*[1-9])[0-9]{1,${MAX_AMOUNT_DIGITS}}(?:\\.[0-9]{1,${MAX_AMOUNT_DIGITS}})?$`);

/** The amount of an order, as canonical text: `500` and `500.0` are one order. */
export const orderAmount = z
  .string()
  .regex(AMOUNT, AMOUNT_RULE)
  .transform((text) => decimal(text))
  .meta({ override: replacing({ type: 'string', pattern: AMOUNT.source }) });

const size = orderAmount.meta({
  description: 'Units of the outcome, with at most the digits after the point that the venue accepts.',
  example: '500',
});
const orderQuery = {
  side: z
    .enum(ORDER_SIDES, `must be ${ORDER_SIDES.join(' or ')}`)
    .meta({ description: 'A `buy` takes asks, a `sell` takes bids.', example: 'buy' }),
  size: size.optional(),
  notional: orderAmount
    .optional()
    .meta({ description: 'In place of `size`: price times size without the fee, in the currency of the venue.' }),
};

export const executableQuery = z.object({
  ...orderQuery,
  outcome_id: param.outcomeId.meta({ description: 'Default: the first outcome of the market.' }),
  as_of: param.asOf,
});
export const executableMeta = bookMeta;
export const executableMetaExample = bookMetaExample;

const { market_status, live, observed_at } = bookMeta.shape;
const placed = { venue: z.string(), market_status, live, observed_at };
export const placedExecutable = z
  .object({ ...fields, ...placed })
  .meta({ description: 'What an order costs or pays, with its venue and the age of the book.' });
export type PlacedExecutableBody = z.output<typeof placedExecutable>;

export const placedExecutableExample: PlacedExecutableBody = {
  ...executableExample,
  venue: 'polymarket',
  market_status: 'open',
  live: true,
};

export const batchExecutableQuery = z.object({
  outcome_ids: idList('outcome', OUTCOME_ID_EXAMPLE),
  ...orderQuery,
  as_of: param.asOf,
});
export const batchExecutableMeta = z.object({
  missing: z.array(z.string()).meta({ description: 'Ids that are unknown or have no book.' }),
});

const venueName = z
  .string()
  .min(1, 'must not be empty')
  .meta({ description: 'The venue of the outcome, or `all`.', example: 'polymarket' });
export const compareQuery = z.object({
  buy_venue: venueName,
  buy_outcome_id: param.requiredOutcomeId.meta({ example: OUTCOME_ID_EXAMPLE }),
  sell_venue: venueName.meta({ example: 'kalshi' }),
  sell_outcome_id: param.requiredOutcomeId.meta({ example: 'KXRATECUT-26MAR-T425:yes' }),
  size,
  as_of: param.asOf,
});

const nullableDecimal = decimalValue.nullable();
export const comparison = z
  .object({
    buy: placedExecutable,
    sell: placedExecutable,
    net: nullableDecimal.meta({
      description:
        '`sell.total` minus `buy.total`. Null unless both fill the whole size with known fees: the fills say why.',
    }),
    net_per_unit: nullableDecimal.meta({ description: '`net` / `size`. Null with `net`.' }),
    age_difference_seconds: z.int().min(0).meta({ description: 'Between `as_of` of the two books.' }),
  })
  .meta({
    description:
      'A purchase at one place and a sale of the same size at another. Whether the two outcomes mean the same is not checked.',
  });

export const comparisonExample: z.output<typeof comparison> = {
  buy: placedExecutableExample,
  sell: {
    ...placedExecutableExample,
    venue: 'kalshi',
    market_id: 'KXRATECUT-26MAR-T425',
    outcome_id: 'KXRATECUT-26MAR-T425:yes',
    side: 'sell',
    filled_notional: decimalField('335'),
    average_price: decimalField('0.67'),
    worst_price: decimalField('0.67'),
    fee: decimalField('7.74'),
    total: decimalField('327.26'),
    price_with_fee: decimalField('0.65452'),
    slippage: decimalField('0.005'),
    as_of: 1767323038,
  },
  net: decimalField('7.598'),
  net_per_unit: decimalField('0.015196'),
  age_difference_seconds: 3,
};
