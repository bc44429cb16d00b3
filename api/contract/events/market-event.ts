import { z } from 'zod';
import { decimalField } from '../../../src/domain/values/api-json.ts';
import { MARKET_EVENT } from '../../../src/domain/wire/market-data.ts';
import { param } from '../../http/input.ts';
import { categoryFilter, MAX_SEARCH_LENGTH, market, marketExample, statusFilter } from '../market.ts';
import { EVENT_ID_EXAMPLE, shapeOf } from '../wire.ts';

export const marketEvent = z
  .object({
    ...shapeOf(MARKET_EVENT),
    market_count: z.number().int().meta({ description: 'Number of stored markets of the event.' }),
  })
  .meta({ description: 'An event. Unknown fields are absent.' });
export type MarketEventBody = z.output<typeof marketEvent>;

export const marketEventWithMarkets = marketEvent
  .extend({ markets: z.array(market).meta({ description: 'One page of its markets, newest first.' }) })
  .meta({ description: 'An event with a page of its markets.' });

export const marketEventExample: MarketEventBody = {
  event_id: EVENT_ID_EXAMPLE,
  venue: 'polymarket',
  title: 'What will the central bank do in March?',
  category: 'Economics',
  tags: ['economics', 'rates'],
  status: 'open',
  market_count: 1,
  created_at: 1764547200,
  open_at: 1764550800,
  close_at: 1774310400,
  url: 'https://polymarket.com/event/rates-march',
  volume: decimalField('1823456.129873'),
  volume_24h: decimalField('20411.5'),
  updated_at: 1767323040,
};
export const marketEventWithMarketsExample: z.output<typeof marketEventWithMarkets> = {
  ...marketEventExample,
  markets: [marketExample],
};

export const eventListQuery = z.object({
  q: z
    .string()
    .max(MAX_SEARCH_LENGTH, `must have at most ${MAX_SEARCH_LENGTH} characters`)
    .optional()
    .meta({ description: 'Words of the title. The last word may be a prefix.' }),
  status: statusFilter,
  category: categoryFilter,
  limit: param.limit,
  cursor: param.cursor,
});
export const eventQuery = z.object({ limit: param.limit, cursor: param.cursor });
export const eventMeta = z.object({
  next_cursor: z.string().nullable().meta({ description: 'Null on the last page.' }),
});
