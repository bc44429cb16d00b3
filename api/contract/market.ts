import { z } from 'zod';
import { MARKET_SORTS, MARKET_STATUSES, type MarketStatus } from '../../src/domain/markets/market.ts';
import { decimalField } from '../../src/domain/values/api-json.ts';
import { MARKET } from '../../src/domain/wire/market-data.ts';
import { listParam, param } from '../http/input.ts';
import { coverage, coverageExample } from './completeness.ts';
import {
  EVENT_ID_EXAMPLE,
  epochTime,
  MARKET_ID_EXAMPLE,
  OTHER_OUTCOME_ID_EXAMPLE,
  OUTCOME_ID_EXAMPLE,
  shapeOf,
} from './wire.ts';

const { updated_at, ...others } = shapeOf(MARKET);
export const market = z
  .object({
    ...others,
    coverage: coverage
      .optional()
      .meta({ description: 'Only with one market, and absent when its volume was never compared.' }),
    updated_at,
  })
  .meta({ description: 'A market. Unknown fields are absent.' });
export type MarketBody = z.output<typeof market>;

export const marketExample: MarketBody = {
  market_id: MARKET_ID_EXAMPLE,
  venue: 'polymarket',
  event_id: EVENT_ID_EXAMPLE,
  event_title: 'What will the central bank do in March?',
  title: 'Will the central bank cut rates in March?',
  sibling_label: 'Rate cut',
  description: 'Resolves to "Yes" if the target rate is lowered at the March meeting.',
  category: 'Economics',
  tags: ['economics', 'rates'],
  status: 'open',
  outcomes: [
    { outcome_id: OUTCOME_ID_EXAMPLE, label: 'Yes' },
    { outcome_id: OTHER_OUTCOME_ID_EXAMPLE, label: 'No' },
  ],
  created_at: 1764547200,
  open_at: 1764550800,
  close_at: 1774310400,
  resolution_state: 'none',
  resolution_criteria: 'The statement published after the meeting.',
  url: 'https://polymarket.com/event/rates-march',
  volume: decimalField('1823456.129873'),
  volume_24h: decimalField('20411.5'),
  liquidity: decimalField('88012.44'),
  coverage: coverageExample,
  updated_at: 1767323040,
};

/** A market of the watchlist. */
export const watchedMarket = z
  .object({
    ...shapeOf(MARKET),
    added_at: epochTime.meta({ description: 'When the account put it on its watchlist. Epoch seconds.' }),
  })
  .meta({ description: 'A market of the watchlist of the account. Unknown fields are absent.' });
export type WatchedMarketBody = z.output<typeof watchedMarket>;

const { coverage: _coverage, ...marketWithoutCoverage } = marketExample;
export const watchedMarketExample: WatchedMarketBody = { ...marketWithoutCoverage, added_at: 1767330240 };

/** The answer of a removal. */
export const unwatched = z.object({ venue: z.string(), market_id: z.string(), deleted: z.literal(true) });

/** Names that other APIs use for these states. */
export const STATUS_ALIASES: Readonly<Record<string, MarketStatus>> = {
  unopened: 'created',
  active: 'open',
  paused: 'halted',
};
const STATUS_NAMES = [...MARKET_STATUSES, ...Object.keys(STATUS_ALIASES)];
export const MAX_SEARCH_LENGTH = 200;

/** Filters of lists of markets and of events. */
export const statusFilter = listParam(
  STATUS_NAMES,
  '`unopened`, `active` and `paused` mean `created`, `open` and `halted`.',
);
export const categoryFilter = z
  .string()
  .min(1, 'must not be empty')
  .max(200, 'must have at most 200 characters')
  .optional()
  .meta({ description: "The venue's spelling." });

export const marketListQuery = z.object({
  q: z.string().max(MAX_SEARCH_LENGTH, `must have at most ${MAX_SEARCH_LENGTH} characters`).optional().meta({
    description:
      'Words of title, description, event title or label, the last of which may be a prefix; or the id or ticker of a market, an event or an outcome. Best match first.',
  }),
  status: statusFilter,
  category: categoryFilter,
  event_id: z
    .string()
    .min(1, 'must not be empty')
    .max(200, 'must have at most 200 characters')
    .optional()
    .meta({ description: "The venue's id of an event. The answer holds only its markets.", example: EVENT_ID_EXAMPLE }),
  sort: z
    .enum(MARKET_SORTS, `must be one of ${MARKET_SORTS.join(', ')}`)
    .optional()
    .meta({
      description:
        '`created` (default): the newest `created_at` first. `volume_24h`: the largest first. `close_at`: the earliest first. `updated`: the latest `updated_at` first. Markets without the field come last. Not with `q`, which has its own order.',
    }),
  limit: param.limit,
  cursor: param.cursor,
});
export const marketListMeta = z.object({
  next_cursor: z.string().nullable().meta({ description: 'Null on the last page.' }),
  search: z.enum(['words', 'similar']).optional().meta({
    description: 'Only with `q`. `words`: the markets contain its words. `similar`: only the titles are similar.',
  }),
});
export const marketQuery = z.object({ as_of: param.asOf });
