import { z } from 'zod';
import { MARKET_STATUSES } from '../../../src/domain/markets/market.ts';
import { decimalField } from '../../../src/domain/values/api-json.ts';
import { param } from '../../http/input.ts';
import { categoryFilter, EVENT_ID_EXAMPLE, MAX_SEARCH_LENGTH, market, marketExample, statusFilter } from '../market.ts';
import { decimalValue, epochTime, opaqueId } from '../wire.ts';

/** A venue's event, which groups markets. */
export const marketEvent = z
  .object({
    event_id: opaqueId.meta({ description: "The venue's own id." }),
    venue: z.string(),
    title: z.string().optional().meta({ description: 'Absent while oddswire knows only the id.' }),
    category: z.string().optional().meta({ description: 'The most frequent category of its markets.' }),
    tags: z.array(z.string()).meta({ description: 'The tags of its markets.' }),
    status: z.enum(MARKET_STATUSES).meta({
      description: 'The first of open, halted, created, closed, resolved, settled that a market of it has.',
    }),
    market_count: z.number().int().meta({ description: 'Number of stored markets of the event.' }),
    created_at: epochTime.optional().meta({ description: 'When its first market was created.' }),
    open_at: epochTime.optional().meta({ description: 'When its first market opens.' }),
    close_at: epochTime.optional().meta({ description: 'When its last market closes.' }),
    url: z.string().optional(),
    volume: decimalValue.optional().meta({ description: 'Sum of the known volumes of its markets.' }),
    volume_24h: decimalValue.optional(),
    updated_at: epochTime.meta({ description: 'When the event or one of its markets last changed.' }),
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
