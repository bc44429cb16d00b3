import { VenueError } from '../errors.ts';
import type { CallContext } from '../port.ts';
import { isHttpStatus, type KalshiClient, type ListAnswer } from './client.ts';
import type { EventDirectory } from './event-directory.ts';
import { fieldOf } from './parse-market.ts';
import type { SeriesDirectory } from './series-directory.ts';
import { afterRefusal, type MarketPosition, type MarketWalkSettings, nextQuery } from './walk-markets.ts';

/** The form of the venue's market ids. Other ids would break the comma list of the request. */
const TICKER = /^[^\s,:]{1,200}$/;

/** The facts of markets that are not in their own rows. */
export interface Directories {
  events: EventDirectory;
  series: SeriesDirectory;
}

interface MarketStep {
  walk: MarketPosition;
  answer?: ListAnswer;
  skipped?: string;
}

/** One page with the events and series of its markets. It goes around an expired cursor and a refused filter. */
export async function listMarkets(
  client: KalshiClient,
  { events, series }: Directories,
  walk: MarketPosition,
  settings: MarketWalkSettings,
  { signal, now }: CallContext,
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
  let { rows } = answer;
  if (listing === 'events') events.learn(rows);
  else rows = await events.complete(rows, signal);
  return { walk, answer: { ...answer, rows: await series.complete(rows, now(), signal) } };
}

/**
 * Market objects by ticker with their events and series, from the live route, else from the archive. Unknown tickers are absent. Rows of
 * other markets are dropped; rows without a ticker stay, so that they are counted.
 */
export async function findMarkets(
  client: KalshiClient,
  { events, series }: Directories,
  marketIds: readonly string[],
  { signal, now }: CallContext,
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
  return series.complete(await events.complete(rows, signal), now(), signal);
}

/** Without an archive, archived markets count as unknown. */
async function listArchived(client: KalshiClient, tickers: readonly string[], signal: AbortSignal): Promise<unknown[]> {
  try {
    return await client.listArchivedMarkets(tickers, signal);
  } catch (error) {
    if (isHttpStatus(error, [404])) return [];
    throw error;
  }
}
