import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';
import { INTERVAL_SECONDS } from '../../src/domain/markets/candle.ts';
import { MARKET_SORTS, MARKET_STATUSES, ORDER_SIDES } from '../../src/domain/markets/market.ts';
import { ifKnown, type RouteCalls, toolResult } from './tool-result.ts';

const READ_ONLY = { readOnlyHint: true, openWorldHint: false } as const;
const DEFAULT_MARKETS = 10;
/** A model reads every row, so lists are shorter than those of the API. */
const MAX_ROWS = 100;
const MAX_CANDLES = 500;
const SIBLINGS = 20;
const RECENT_TRADES = 10;
const BOOK_LEVELS = 5;
const DEFAULT_INTERVAL = '1h';

const INTERVALS = Object.keys(INTERVAL_SECONDS) as [string, ...string[]];

const venue = z.string().optional().describe('The name of a venue, such as polymarket or kalshi. Default: all venues.');
const marketId = z.string().min(1).describe('market_id of search_markets.');
const cursor = z.string().optional().describe('next_cursor of the previous page, with the same other arguments.');
const moment = z.number().int().nonnegative().optional();
const version = z.number().int().positive().optional();

/** A market without the texts that only get_market shows. */
interface ListedMarket {
  readonly market_id: string;
  readonly venue: string;
  readonly event_id?: string;
  readonly description?: string;
  readonly resolution_criteria?: string;
  readonly outcomes: readonly { outcome_id: string; label: string }[];
}

interface PricedMarket {
  readonly market_id: string;
  readonly outcomes: unknown;
}

const pathOf = (asked: string | undefined, id: string) =>
  `/v1/${encodeURIComponent(asked ?? 'all')}/markets/${encodeURIComponent(id)}`;

/** The tools that read market data. */
export function addMarketTools(server: McpServer, calls: RouteCalls): void {
  server.registerTool(
    'search_markets',
    {
      title: 'Search prediction markets',
      description:
        'Finds markets of all venues by words, or lists them by volume, closing time or age. Returns ids, titles, status, outcomes and their ' +
        'present prices. `prices` is null for a market without a price.',
      inputSchema: z.strictObject({
        query: z
          .string()
          .max(200)
          .optional()
          .describe('Words of the title or event. Without it: a list in the order of `sort`.'),
        venue,
        status: z.enum(MARKET_STATUSES).optional().describe('Only markets in this state; `open` can be traded.'),
        category: z.string().optional().describe("Only this category, in the venue's spelling."),
        sort: z.enum(MARKET_SORTS).optional().describe('The order of a list without `query`.'),
        limit: z.number().int().min(1).max(MAX_ROWS).default(DEFAULT_MARKETS),
        cursor,
      }),
      annotations: READ_ONLY,
    },
    ({ query, venue: asked, ...filter }) =>
      toolResult(calls, async () => {
        const path = `/v1/${encodeURIComponent(asked ?? 'all')}/markets`;
        const { data, meta } = await calls.get(path, { ...filter, q: query });
        return { markets: await withPrices(calls, data as ListedMarket[]), next_cursor: meta['next_cursor'] ?? null };
      }),
  );

  server.registerTool(
    'get_market',
    {
      title: 'Read a market with its context',
      description:
        'One market with its rules, prices, book, latest trades, the other markets of its event with their prices, how complete its stored ' +
        'trades are, and whether its venue answers. Prices are decimals as text; of an outcome they are between 0 and 1.',
      inputSchema: z.strictObject({ market_id: marketId, venue }),
      annotations: READ_ONLY,
    },
    ({ market_id: id, venue: asked }) => toolResult(calls, () => readMarket(calls, id, asked)),
  );

  server.registerTool(
    'get_executable',
    {
      title: 'Read the cost or the proceeds of an order',
      description:
        'Fills an order from the stored book of one outcome, level by level, with the fee of the venue: average price, fee, total, price with ' +
        'fee, slippage against the middle, and what the book lacks when `complete` is false. Name `size` or `notional`. An unknown fee is ' +
        'null with `fee_reason`, and so is everything that needs it: it is not 0. `live` is false for a book that is not the present one.',
      inputSchema: z.strictObject({
        market_id: marketId,
        venue,
        outcome_id: z.string().optional().describe('outcome_id of get_market. Default: the first outcome.'),
        side: z.enum(ORDER_SIDES).describe('A buy takes asks, a sell takes bids.'),
        size: z.string().optional().describe('Units of the outcome, a decimal as text such as "500".'),
        notional: z.string().optional().describe('In place of size: price times size without the fee, as text.'),
        as_of: moment.describe('Epoch seconds: the book and the fee that were known then. Default: now.'),
      }),
      annotations: READ_ONLY,
    },
    ({ market_id: id, venue: asked, ...order }) =>
      toolResult(calls, async () => {
        const { data, meta } = await calls.get(`${pathOf(asked, id)}/executable`, order);
        const { live, observed_at, market_status, feed_gaps } = meta;
        return { ...(data as Record<string, unknown>), market_status, live, observed_at, feed_gaps };
      }),
  );

  server.registerTool(
    'get_fees',
    {
      title: 'Read the fee of a market',
      description:
        'The rule by which the venue charges an order, and announced changes. `fee` is null with a `reason` when it is not known. Model ' +
        'price_curve: size × rate × (price × (1 − price)) ^ exponent of each fill.',
      inputSchema: z.strictObject({
        market_id: marketId,
        venue,
        as_of: moment.describe('Epoch seconds: the fee that applied and was known then. Default: now.'),
      }),
      annotations: READ_ONLY,
    },
    ({ market_id: id, venue: asked, as_of }) =>
      toolResult(
        calls,
        async () => (await calls.get(`${pathOf(asked, id)}/fees`, { as_of })).data as Record<string, unknown>,
      ),
  );

  server.registerTool(
    'get_resolution',
    {
      title: 'Read the result of a market',
      description:
        'Where the result of a market stands (state), what each outcome pays (payouts, by outcome_id of get_market), and the timeline: ' +
        'proposals, disputes, results, corrections and settlements, with the times that the venue states. `payouts` is null with a `reason` ' +
        'when they are not known. A proposed or disputed result is not final.',
      inputSchema: z.strictObject({ market_id: marketId, venue }),
      annotations: READ_ONLY,
    },
    ({ market_id: id, venue: asked }) =>
      toolResult(
        calls,
        async () => (await calls.get(`${pathOf(asked, id)}/resolution`)).data as Record<string, unknown>,
      ),
  );

  server.registerTool(
    'get_rules',
    {
      title: 'Read the rules of a market',
      description:
        'The text that decides the result of a market, where its venue reads the result (settlement_source), and the list of the versions ' +
        'with the times since which they hold. With as_of the rules that were known at that time; with from and to also the difference of ' +
        'two versions in words. Times are epoch seconds.',
      inputSchema: z
        .strictObject({
          market_id: marketId,
          venue,
          as_of: moment.describe('Epoch seconds: the rules that were known at this time.'),
          from: version.describe('The earlier number of `versions`, with `to`.'),
          to: version.describe('The later number of `versions`, with `from`.'),
        })
        .refine(({ from, to }) => (from === undefined) === (to === undefined), 'give both from and to, or neither'),
      annotations: READ_ONLY,
    },
    ({ market_id: id, venue: asked, ...query }) =>
      toolResult(
        calls,
        async () => (await calls.get(`${pathOf(asked, id)}/rules`, query)).data as Record<string, unknown>,
      ),
  );

  server.registerTool(
    'get_history',
    {
      title: 'Read the history of a market',
      description:
        'Candles of one outcome, or trades of a market, with a statement how complete the history is. Times are epoch seconds.',
      inputSchema: z
        .strictObject({
          market_id: marketId,
          venue,
          series: z.enum(['candles', 'trades']).default('candles'),
          outcome_id: z
            .string()
            .optional()
            .describe('Default: the first outcome for candles, every outcome for trades.'),
          interval: z.enum(INTERVALS).optional().describe(`Candles only: their length. Default: ${DEFAULT_INTERVAL}.`),
          start: moment.describe('Epoch seconds. Default for candles: the last 300 buckets.'),
          end: moment.describe('Epoch seconds, exclusive.'),
          limit: z
            .number()
            .int()
            .min(1)
            .max(MAX_CANDLES)
            .optional()
            .describe(
              `Trades per page, at most ${MAX_ROWS} (default); or the newest candles, at most ${MAX_CANDLES} (default).`,
            ),
          cursor: cursor.describe('Trades only: next_cursor of the previous page.'),
        })
        .superRefine(({ series, interval, limit, cursor: after }, context) => {
          const refuse = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
          if (series === 'candles' && after !== undefined)
            refuse('cursor', 'belongs to trades: an earlier end reads older candles');
          if (series === 'trades' && interval !== undefined) refuse('interval', 'belongs to candles');
          if (series === 'trades' && limit !== undefined && limit > MAX_ROWS)
            refuse('limit', `must be at most ${MAX_ROWS} for trades`);
        }),
      annotations: READ_ONLY,
    },
    ({ market_id: id, venue: asked, series, interval = DEFAULT_INTERVAL, limit, cursor: after, ...range }) =>
      toolResult(calls, async () => {
        const path = pathOf(asked, id);
        if (series === 'trades') {
          const page = { limit: limit ?? MAX_ROWS, cursor: after };
          const { data, meta } = await calls.get(`${path}/trades`, { ...range, ...page });
          return { trades: data, completeness: meta['history'], next_cursor: meta['next_cursor'] ?? null };
        }
        const { data, meta } = await calls.get(`${path}/candles`, { ...range, interval });
        const candles = data as unknown[];
        const shown = limit ?? MAX_CANDLES;
        return {
          outcome_id: meta['outcome_id'],
          interval,
          candles: candles.slice(-shown),
          // The oldest candles are left out: an earlier `end` reads them.
          omitted: Math.max(0, candles.length - shown),
          completeness: meta['history'],
        };
      }),
  );
}

async function readMarket(calls: RouteCalls, id: string, asked: string | undefined): Promise<Record<string, unknown>> {
  const { data } = await calls.get(pathOf(asked, id));
  const market = data as ListedMarket;
  const path = pathOf(market.venue, id);
  const [prices, book, trades, venues, siblings] = await Promise.all([
    ifKnown(calls.get(`${path}/prices`)),
    ifKnown(calls.get(`${path}/orderbook`, { depth: BOOK_LEVELS })),
    calls.get(`${path}/trades`, { limit: RECENT_TRADES }),
    calls.get('/v1/venues'),
    readSiblings(calls, market),
  ]);
  return {
    market,
    prices: prices?.data ?? null,
    orderbook: book?.data ?? null,
    recent_trades: trades.data,
    completeness: trades.meta['history'],
    siblings,
    venue: (venues.data as { venue: string }[]).find((one) => one.venue === market.venue) ?? null,
  };
}

/** The other markets of the event with the prices of their outcomes. */
async function readSiblings(calls: RouteCalls, market: ListedMarket): Promise<unknown[]> {
  if (market.event_id === undefined) return [];
  const path = `/v1/${encodeURIComponent(market.venue)}`;
  const { data } = await calls.get(`${path}/markets`, { event_id: market.event_id, limit: SIBLINGS + 1 });
  const others = (data as ListedMarket[]).filter(({ market_id: id }) => id !== market.market_id).slice(0, SIBLINGS);
  return withPrices(calls, others);
}

/** Markets with the prices of their outcomes, null without any. One request for each venue, because two venues may use one id. */
async function withPrices(calls: RouteCalls, markets: readonly ListedMarket[]): Promise<unknown[]> {
  const priced = await Promise.all(
    [...new Set(markets.map(({ venue: name }) => name))].map(async (name) => {
      const ids = markets.filter((market) => market.venue === name).map(({ market_id: id }) => id);
      const { data } = await calls.get(`/v1/${encodeURIComponent(name)}/prices`, { market_ids: ids.join(',') });
      const outcomes = (data as PricedMarket[]).map((one) => [one.market_id, one.outcomes] as const);
      return [name, new Map(outcomes)] as const;
    }),
  );
  const ofVenue = new Map(priced);
  return markets.map((market) => ({
    ...withoutTexts(market),
    prices: ofVenue.get(market.venue)?.get(market.market_id) ?? null,
  }));
}

function withoutTexts({ description: _, resolution_criteria: _rules, ...market }: ListedMarket) {
  return market;
}
