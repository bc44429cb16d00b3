import { z } from 'zod';
import { decimalField, numberField } from '../../src/domain/values/api-json.ts';
import { PROBABILITY_RANGE } from '../../src/domain/wire/fields.ts';
import { OUTCOME_PRICE } from '../../src/domain/wire/market-data.ts';
import { idList, param } from '../http/input.ts';
import { epochTime, MARKET_ID_EXAMPLE, OUTCOME_ID_EXAMPLES, opaqueId, shapeOf } from './wire.ts';

const quote = shapeOf(OUTCOME_PRICE);

/** A price snapshot (specification section 2.4). */
export const prices = z
  .object({
    market_id: opaqueId,
    as_of: epochTime.meta({
      description: 'The newest of the times of the prices: when the venue had set it, or last had it unchanged.',
    }),
    outcomes: z.array(
      z.object({
        ...quote,
        probability: quote.probability.meta({
          description: 'The price, if a winning share pays 1.',
          override: { minimum: PROBABILITY_RANGE.least, maximum: PROBABILITY_RANGE.greatest },
        }),
      }),
    ),
  })
  .meta({ description: 'The latest prices of a market: one item per outcome.' });
export type PricesBody = z.output<typeof prices>;

export const pricesExample: PricesBody = {
  market_id: MARKET_ID_EXAMPLE,
  as_of: 1767323041,
  outcomes: [
    {
      outcome_id: OUTCOME_ID_EXAMPLES[0],
      price: decimalField('0.62'),
      probability: numberField('0.62'),
      best_bid: decimalField('0.61'),
      best_ask: decimalField('0.63'),
    },
    {
      outcome_id: OUTCOME_ID_EXAMPLES[1],
      price: decimalField('0.38'),
      probability: numberField('0.38'),
      best_bid: decimalField('0.37'),
      best_ask: decimalField('0.39'),
    },
  ],
};

export const pricesQuery = z.object({ as_of: param.asOf });
export const batchPricesQuery = z.object({
  market_ids: idList('market', MARKET_ID_EXAMPLE),
  as_of: param.asOf,
});
export const batchPricesMeta = z.object({
  missing: z.array(z.string()).meta({ description: 'Ids that are unknown or have no price yet.' }),
});
