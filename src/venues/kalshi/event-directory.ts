import { boundedCache } from '../../domain/values/caches.ts';
import { isHttpStatus, isOfHost, VenueError } from '../errors.ts';
import type { BatchRequest } from '../http/http.ts';
import { type KalshiClient, withEvent } from './client.ts';
import { fieldOf } from './models.ts';
import { isCombination } from './tickers.ts';

/** Single event requests in flight at once. */
const AT_ONCE = 8;
/** Event tickers of one request: the address stays below five kilobytes. */
const BATCH_SIZE = 100;
/** Single requests replace the batch for this long after the venue did not understand one. */
const BATCH_RETRY_MS = 3_600_000;
const MAX_EVENTS = 50_000;
const MAX_AGE_MS = 6 * 3_600_000;
/** Tickers that fit in a comma list. */
const LISTABLE = /^[^\s,:]{1,200}$/;

/**
 * The facts of events by ticker. `GET /markets` only names the event of a market, and a market that was last seen there must keep its
 * category.
 */
export interface EventDirectory {
  /** Remembers the events of these rows. */
  learn(rows: readonly unknown[]): void;
  /**
   * The rows with their events; requests the unknown ones. A row stays without its event when the venue does not serve that event. Throws
   * VenueError when the host takes no requests; the facts read so far stay known.
   */
  complete(rows: readonly unknown[], nowMs: number, signal: AbortSignal): Promise<unknown[]>;
}

/** `onFailure` gets the reason when the venue does not serve the events of some rows. */
export function createEventDirectory(
  client: Pick<KalshiClient, 'getEvent' | 'listEventsByTicker' | 'members'>,
  onFailure: (detail: string) => void,
): EventDirectory {
  const known = boundedCache<ReadFacts>(MAX_EVENTS, MAX_AGE_MS);
  const batches = client.members('events_by_ticker');
  const singles = client.members('event');
  let batchesFromMs = 0;

  async function fetchBatches(tickers: readonly string[], signal: AbortSignal): Promise<void> {
    const listable = tickers.filter((ticker) => LISTABLE.test(ticker));
    // A single event does not need a batch, and its own route is older.
    if (listable.length < 2 || performance.now() < batchesFromMs) return;
    const isRefused = (error: VenueError) => isHttpStatus(error, [400, 404, 405, 414, 422]);
    try {
      await batches.ask(listable, (each, request) => fetchBatch(each, signal, request), {
        size: BATCH_SIZE,
        isOfRoute: isRefused,
      });
    } catch (error) {
      if (!(error instanceof VenueError) || !isRefused(error)) throw error;
      batchesFromMs = performance.now() + BATCH_RETRY_MS;
    }
  }

  /** An answer about other events means that the venue does not understand a list of tickers. */
  async function fetchBatch(asked: readonly string[], signal: AbortSignal, request: BatchRequest): Promise<void> {
    let isAnswer = true;
    for (const event of await client.listEventsByTicker(asked, signal, request)) {
      const ticker = eventTickerOf(event);
      if (ticker !== undefined && asked.includes(ticker)) known.set(ticker, readFacts(event));
      else isAnswer = false;
    }
    if (!isAnswer) batchesFromMs = performance.now() + BATCH_RETRY_MS;
  }

  async function fetchSingles(tickers: readonly string[], signal: AbortSignal): Promise<void> {
    const { fault } = await singles.ask(
      tickers,
      async ([ticker = ''], request) => {
        known.set(ticker, readFacts(await client.getEvent(ticker, signal, request)));
      },
      { size: 1, atOnce: AT_ONCE },
    );
    if (fault) throw fault;
  }

  return {
    learn(rows) {
      for (const row of rows) {
        const ticker = eventTickerOf(row);
        const event = fieldOf(row, 'event');
        if (ticker !== undefined && event !== undefined) known.set(ticker, readFacts(event));
      }
    },
    async complete(rows, nowMs, signal) {
      // The events of combinations are on a route of their own, and combinations are not stored.
      const tickers = rows.filter((row) => !isCombination(row)).map(eventTickerOf);
      const missing = () =>
        [...new Set(tickers.filter((ticker) => ticker !== undefined && !known.has(ticker)))] as string[];
      try {
        await fetchBatches(missing(), signal);
        // An event that the batch does not have may still be on a route of its own.
        await fetchSingles(missing(), signal);
      } catch (error) {
        if (!(error instanceof VenueError) || isOfHost(error)) throw error;
        onFailure(`events: ${error.message}`);
      }
      return rows.map((row) => {
        const { facts, atMs = 0 } = known.get(eventTickerOf(row) ?? '') ?? {};
        const read_at_ms = Math.floor(nowMs - (performance.now() - atMs));
        return withEvent(row, facts && { ...facts, read_at_ms });
      });
    },
  };
}

function eventTickerOf(row: unknown): string | undefined {
  const ticker = fieldOf(row, 'event_ticker');
  // A path cannot contain a lone surrogate.
  return typeof ticker === 'string' && ticker !== '' && ticker.isWellFormed() ? ticker : undefined;
}

interface ReadFacts {
  facts: object | undefined;
  /** The time of the read, milliseconds of a monotonic clock. */
  atMs: number;
}

/** Only the fields that market records use: fifty thousand whole events are too many. */
const FACTS = [
  'event_ticker',
  'series_ticker',
  'title',
  'category',
  'product_metadata',
  'settlement_sources',
  'fee_type_override',
  'fee_multiplier_override',
] as const;

function readFacts(event: unknown): ReadFacts {
  const isObject = event !== null && typeof event === 'object';
  const facts = isObject && Object.fromEntries(FACTS.map((name) => [name, (event as Record<string, unknown>)[name]]));
  return { facts: facts || undefined, atMs: performance.now() };
}
