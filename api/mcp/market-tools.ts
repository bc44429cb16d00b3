import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';
import { INTERVAL_SECONDS } from '../../src/domain/markets/candle.ts';
import { MARKET_SORTS, MARKET_STATUSES } from '../../src/domain/markets/market.ts';
import type { RouteCalls } from './internal-calls.ts';
import { ifKnown, toolResult } from './tool-result.ts';

const READ_ONLY = { readOnlyHint: true, openWorldHint: false } as const;
const DEFAULT_MARKETS = 10;
/** A model reads every row, so lists are shorter than those of the API. */
const MAX_ROWS = 100;
const MAX_CANDLES = 500;
const SIBLINGS = 20;
const RECENT_TRADES = 10;
const BOOK_LEVELS = 5;

const INTERVALS = Object.keys(INTERVAL_SECONDS) as [string, ...string[]];

const venue = z.string().optional().describe('The name of a venue, such as polymarket or kalshi. Default: all venues.');
const marketId = z.string().min(1).describe('market_id of search_markets.');
const cursor = z.string().optional().describe('next_cursor of the previous page, with the same other arguments.');
const moment = z.number().int().nonnegative().optional();

/** A market without the texts that only get_market shows. */
interface ListedMarket {
  readonly market_id: string;
  readonly venue: string;
  readonly event_id?: string;
  readonly description?: string;
  readonly resolution_criteria?: string;
  readonly outcomes: readonly { outcome_id: string; label: string }[];
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
        'Finds markets of all venues by words, or lists them by volume, closing time or age. Returns ids, titles, status and outcomes.',
      inputSchema: {
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
      },
      annotations: READ_ONLY,
    },
    ({ query, venue: asked, ...filter }) =>
      toolResult(async () => {
        const path = `/v1/${encodeURIComponent(asked ?? 'all')}/markets`;
        const { data, meta } = await calls.get(path, { ...filter, q: query });
        return { markets: (data as ListedMarket[]).map(withoutTexts), next_cursor: meta['next_cursor'] ?? null };
      }),
  );

  server.registerTool(
    'get_market',
    {
      title: 'Read a market with its context',
      description:
        'One market with its rules, prices, book, latest trades, the other markets of its event with their prices, how complete its stored ' +
        'trades are, and whether its venue answers. Prices are decimals as text; of an outcome they are between 0 and 1.',
      inputSchema: { market_id: marketId, venue },
      annotations: READ_ONLY,
    },
    ({ market_id: id, venue: asked }) => toolResult(() => readMarket(calls, id, asked)),
  );

  server.registerTool(
    'get_history',
    {
      title: 'Read the history of a market',
      description:
        'Candles of one outcome, or trades of a market, with a statement how complete the history is. Times are epoch seconds.',
      inputSchema: {
        market_id: marketId,
        venue,
        series: z.enum(['candles', 'trades']).default('candles'),
        outcome_id: z.string().optional().describe('Default: the first outcome for candles, every outcome for trades.'),
        interval: z.enum(INTERVALS).default('1h').describe('The length of a candle.'),
        start: moment.describe('Epoch seconds. Default for candles: the last 300 buckets.'),
        end: moment.describe('Epoch seconds, exclusive.'),
        limit: z.number().int().min(1).max(MAX_ROWS).default(MAX_ROWS).describe('Trades per page.'),
        cursor: cursor.describe('Trades only: next_cursor of the previous page.'),
      },
      annotations: READ_ONLY,
    },
    ({ market_id: id, venue: asked, series, interval, limit, cursor: after, ...range }) =>
      toolResult(async () => {
        const path = pathOf(asked, id);
        if (series === 'trades') {
          const { data, meta } = await calls.get(`${path}/trades`, { ...range, limit, cursor: after });
          return { trades: data, completeness: meta['history'], next_cursor: meta['next_cursor'] ?? null };
        }
        const { data, meta } = await calls.get(`${path}/candles`, { ...range, interval });
        const candles = data as unknown[];
        return {
          outcome_id: meta['outcome_id'],
          interval,
          candles: candles.slice(-MAX_CANDLES),
          // The oldest candles are left out: an earlier `end` reads them.
          omitted: Math.max(0, candles.length - MAX_CANDLES),
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
  if (others.length === 0) return [];
  const ids = others.map(({ market_id: id }) => id).join(',');
  const prices = await calls.get(`${path}/prices`, { market_ids: ids });
  const priced = new Map(
    (prices.data as { market_id: string; outcomes: unknown }[]).map((one) => [one.market_id, one]),
  );
  return others.map((other) => ({ ...withoutTexts(other), prices: priced.get(other.market_id)?.outcomes ?? null }));
}

function withoutTexts({ description: _, resolution_criteria: _rules, ...market }: ListedMarket) {
  return market;
}
