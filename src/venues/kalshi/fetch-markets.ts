import type { BookRecord } from '../../domain/markets/market.ts';
import { boundedCache } from '../../domain/values/caches.ts';
import { isHttpStatus, isOfHost, VenueError } from '../errors.ts';
import type { BatchRequest } from '../http/http.ts';
import type { Asked, MemberBatches } from '../http/member-batches.ts';
import type { createPageReader } from '../http/page-reader.ts';
import type { ParsedBatch } from '../parsed-batch.ts';
import type { CallContext, RejectedRecord } from '../port.ts';
import { rejectRecord } from '../rejection.ts';
import type { KalshiClient, ListAnswer, Parameters } from './client.ts';
import type { EventDirectory } from './event-directory.ts';
import type { FeeChangeDirectory } from './fee-changes.ts';
import { fieldOf } from './models.ts';
import { isEmpty, UNKNOWN_MARKET } from './parse-book.ts';
import type { SeriesDirectory } from './series-directory.ts';
import { tickersOf } from './tickers.ts';
import { afterFailure, afterRefusal, type MarketPosition, type MarketWalkSettings, nextQuery } from './walk-markets.ts';

/** The form of the venue's market ids. Other ids would break the comma list of the request. */
const TICKER = /^[^\s,:]{1,200}$/;

/** The facts of markets that are not in their own rows. */
interface Directories {
  events: EventDirectory;
  series: SeriesDirectory;
  fees: FeeChangeDirectory;
}

interface MarketStep {
  walk: MarketPosition;
  answer?: ListAnswer;
  skipped?: string;
  /** Stands for the row that no page of the phase can go past. */
  failed?: RejectedRecord;
}

/** Listings that the walk does not read: they show whether the venue serves any page of a route. */
const PROBES = { events: { limit: 1, status: 'settled' }, markets: { limit: 1, status: 'unopened' } } as const;

/** One page with the events and series of its markets. It goes around an expired cursor, a refused filter, and a row that fails. */
export async function listMarkets(
  client: KalshiClient,
  readPage: ReturnType<typeof createPageReader>,
  { events, series, fees }: Directories,
  walk: MarketPosition,
  settings: MarketWalkSettings,
  { signal, now }: CallContext,
): Promise<MarketStep> {
  const { listing, parameters } = nextQuery(walk, settings);
  const list = (asked: Parameters, batch: BatchRequest | undefined) =>
    listing === 'events' ? client.listEvents(asked, signal, batch) : client.listMarkets(asked, signal, batch);
  let answer: ListAnswer;
  try {
    const page = await readPage({
      size: listing === 'events' ? settings.eventsPerPage : settings.marketsPerPage,
      isFirst: walk.phases[0]?.page === 0,
      read: (limit, batch) => list({ ...parameters, limit }, batch),
      probe: (batch) => list(PROBES[listing], batch),
    });
    if ('failure' in page) return failedStep(walk, page.failure);
    answer = page.answer;
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
  else rows = await events.complete(rows, now(), signal);
  rows = await fees.complete(await series.complete(rows, now(), signal), now(), signal);
  return { walk, answer: { ...answer, rows } };
}

function failedStep(walk: MarketPosition, { message }: VenueError): MarketStep {
  const { name, page } = walk.phases[0] ?? {};
  const detail = `${name} markets, behind ${page} pages: ${message} for the next row alone`;
  const failed = rejectRecord(
    'markets',
    { phase: name, page },
    { reason: 'page_unavailable', detail },
    `${name} markets`,
  );
  return { walk: afterFailure(walk), failed };
}

interface Lookup {
  directories: Directories;
  quotes: MemberBatches;
  archived: MemberBatches;
  /** Tickers of one request. */
  size: number;
}

interface FoundMarkets extends Omit<Asked<unknown>, 'answers'> {
  rows: unknown[];
}

/**
 * Market objects by ticker with their events and series, from the live route, else from the archive. Unknown tickers are absent. Rows of
 * other markets are dropped; rows without a ticker stay, so that they are counted.
 */
export async function findMarkets(
  client: Pick<KalshiClient, 'listQuotes' | 'listArchivedMarkets'>,
  { directories: { events, series, fees }, quotes, archived, size }: Lookup,
  marketIds: readonly string[],
  { signal, now }: CallContext,
): Promise<FoundMarkets> {
  const tickers = [...new Set(marketIds)].filter((id) => id.isWellFormed() && TICKER.test(id));
  const isAsked = (row: unknown) => {
    const ticker = fieldOf(row, 'ticker');
    return typeof ticker !== 'string' || tickers.includes(ticker);
  };
  const live = await quotes.ask(tickers, (each, request) => client.listQuotes(each, signal, request), { size });
  const rows = live.answers.flatMap(({ answer }) => answer.rows).filter(isAsked);
  const found = new Set(rows.map((row) => fieldOf(row, 'ticker')));
  const missing = live.answers.flatMap(({ members }) => members).filter((ticker) => !found.has(ticker));
  const past = await listArchived(client, archived, missing, size, signal);
  rows.push(...past.answers.flatMap(({ answer }) => answer).filter(isAsked));
  const fault = live.fault ?? past.fault;
  const known = await series.complete(await events.complete(rows, now(), signal), now(), signal);
  return {
    rows: await fees.complete(known, now(), signal),
    refused: [...live.refused, ...past.refused],
    unread: [...live.unread, ...past.unread],
    ...(fault && { fault }),
  };
}

/** Without an archive, archived markets count as unknown. When it fails, they are unread. */
async function listArchived(
  client: Pick<KalshiClient, 'listArchivedMarkets'>,
  archived: MemberBatches,
  tickers: readonly string[],
  size: number,
  signal: AbortSignal,
): Promise<Asked<unknown[]>> {
  try {
    return await archived.ask(tickers, (each, request) => client.listArchivedMarkets(each, signal, request), {
      size,
      isOfRoute: (error) => isHttpStatus(error, [404]),
    });
  } catch (error) {
    if (isHttpStatus(error, [404])) return { answers: [], refused: [], unread: [] };
    if (!(error instanceof VenueError) || isOfHost(error)) throw error;
    return { answers: [], refused: [], unread: [...tickers], fault: error };
  }
}

const MAX_KNOWN = 100_000;
/** Markets leave the live routes months after they settle: one check per hour is soon enough. */
const KNOWN_FOR_MS = 3_600_000;

/** The skip reason of an empty book whose market could not be checked. */
const UNCONFIRMED_MARKET = 'unconfirmed_market';

/** Skips the empty books of markets that are unknown or could not be checked. Throws VenueError only when the host takes no requests. */
type SkipUnknown = (batch: ParsedBatch<BookRecord>, signal: AbortSignal) => Promise<ParsedBatch<BookRecord>>;

/**
 * The venue answers with an empty book for any ticker: an unknown market and a market without orders look the same. A market with an empty
 * book counts as known while the market route lists it; the filter checks that once an hour.
 */
export function createUnknownMarketFilter(
  client: Pick<KalshiClient, 'listQuotes'>,
  quotes: MemberBatches,
  size: number,
): SkipUnknown {
  const known = boundedCache<true>(MAX_KNOWN, KNOWN_FOR_MS);
  return async (batch, signal) => {
    const empty = tickersOf(batch.records.filter(isEmpty).map((book) => book.outcomeId));
    const unconfirmed = empty.filter((ticker) => !known.has(ticker));
    if (unconfirmed.length === 0) return batch;
    const checked = new Set<string>();
    let fault: VenueError | undefined;
    try {
      const asked = await quotes.ask(unconfirmed, (each, request) => client.listQuotes(each, signal, request), {
        size,
      });
      for (const { members, answer } of asked.answers) {
        for (const ticker of members) checked.add(ticker);
        for (const row of answer.rows) {
          const ticker = fieldOf(row, 'ticker');
          if (typeof ticker === 'string') known.set(ticker, true);
        }
      }
      fault = asked.fault;
    } catch (error) {
      if (!(error instanceof VenueError) || isOfHost(error)) throw error;
      fault = error;
    }
    const unknown = new Set(unconfirmed.filter((ticker) => !known.has(ticker)));
    const isKnown = ({ outcomeId }: BookRecord) => !tickersOf([outcomeId]).some((ticker) => unknown.has(ticker));
    const reasons = Array.from(unknown, (ticker) => (checked.has(ticker) ? UNKNOWN_MARKET : UNCONFIRMED_MARKET));
    const skipped = [...batch.skipped, ...reasons];
    return { ...batch, records: batch.records.filter(isKnown), skipped, ...(fault && { fault }) };
  };
}
