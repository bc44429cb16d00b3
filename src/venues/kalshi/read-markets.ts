import { VenueError } from '../errors.ts';
import { isHttpStatus, type KalshiClient, type ListAnswer } from './client.ts';
import type { EventDirectory } from './event-directory.ts';
import {
  afterRefusal,
  type MarketPosition,
  type MarketWalkSettings,
  nextQuery,
  withoutCombinations,
} from './market-walk.ts';
import { fieldOf } from './parse-market.ts';

/** What the venue makes market ids of; anything else would break the comma list that asks for them. */
const TICKER = /^[^\s,:]{1,200}$/;

interface MarketStep {
  walk: MarketPosition;
  answer?: ListAnswer;
  skipped?: string;
}

/** One page with the events of its markets, and a way around a cursor that expired and a filter that is not known. */
export async function listMarkets(
  client: KalshiClient,
  events: EventDirectory,
  walk: MarketPosition,
  settings: MarketWalkSettings,
  signal: AbortSignal,
): Promise<MarketStep> {
  const { listing, parameters } = nextQuery(walk, settings);
  let answer: ListAnswer;
  try {
    answer = await (listing === 'events'
      ? client.listEvents(parameters, signal)
      : client.listMarkets(parameters, signal));
  } catch (error) {
    const without = isHttpStatus(error, [400, 422]) ? afterRefusal(walk) : undefined;
    if (without === undefined) throw error;
    const statusCode = error instanceof VenueError ? error.statusCode : undefined;
    return {
      walk: without,
      skipped: `the venue refused a page of the ${walk.phases[0]?.name} markets: HTTP ${statusCode}`,
    };
  }
  if (listing === 'events') {
    events.learn(answer.rows);
    return { walk, answer };
  }
  return { walk, answer: { ...answer, rows: await events.complete(withoutCombinations(answer.rows), signal) } };
}

/**
 * Market objects by ticker with their events, from the live route or else from the archive; unknown ones are left out. Rows
 * that are no market of those asked for are left out too, and rows that are no market at all stay, so that they are counted.
 */
export async function findMarkets(
  client: KalshiClient,
  events: EventDirectory,
  marketIds: readonly string[],
  signal: AbortSignal,
): Promise<unknown[]> {
  const tickers = [...new Set(marketIds)].filter((id) => id.isWellFormed() && TICKER.test(id));
  if (tickers.length === 0) return [];
  const isAsked = (row: unknown) => {
    const ticker = fieldOf(row, 'ticker');
    return typeof ticker !== 'string' || tickers.includes(ticker);
  };
  const live = (await client.listQuotes(tickers, signal)).rows.filter(isAsked);
  const found = new Set(live.map((row) => fieldOf(row, 'ticker')));
  const missing = tickers.filter((ticker) => !found.has(ticker));
  const archived = missing.length === 0 ? [] : await listArchived(client, missing, signal);
  const rows = [...live, ...archived.filter(isAsked)];
  return events.complete(withoutCombinations(rows), signal);
}

/** Where the archive is not served, what it would hold is as good as unknown. */
async function listArchived(client: KalshiClient, tickers: readonly string[], signal: AbortSignal): Promise<unknown[]> {
  try {
    return await client.listArchivedMarkets(tickers, signal);
  } catch (error) {
    if (isHttpStatus(error, [404])) return [];
    throw error;
  }
}
