import { LRUCache } from 'lru-cache';
import { type KalshiClient, withEvent } from './client.ts';
import { fieldOf } from './parse-market.ts';

/** Event requests under way at once. */
const AT_ONCE = 8;
const MAX_EVENTS = 50_000;
const MAX_AGE_MS = 6 * 3_600_000;

/**
 * The facts of events by ticker. `GET /markets` names a market's event and says nothing of it, and a market must not lose its
 * category because it was last seen there.
 */
export interface EventDirectory {
  /** Remembers the events that these rows carry. */
  learn(rows: readonly unknown[]): void;
  /** The rows with their events, asking the venue for those not known. Throws VenueError; what was learned stays. */
  complete(rows: readonly unknown[], signal: AbortSignal): Promise<unknown[]>;
}

export function createEventDirectory(client: Pick<KalshiClient, 'getEvent'>): EventDirectory {
  const known = new LRUCache<string, { facts: unknown }>({ max: MAX_EVENTS, ttl: MAX_AGE_MS });

  async function fetchMissing(waiting: string[], signal: AbortSignal): Promise<void> {
    for (let ticker = waiting.shift(); ticker !== undefined; ticker = waiting.shift()) {
      try {
        known.set(ticker, { facts: factsOf(await client.getEvent(ticker, signal)) });
      } catch (error) {
        waiting.length = 0;
        throw error;
      }
    }
  }

  return {
    learn(rows) {
      for (const row of rows) {
        const ticker = eventTickerOf(row);
        const event = fieldOf(row, 'event');
        if (ticker !== undefined && event !== undefined) known.set(ticker, { facts: factsOf(event) });
      }
    },
    async complete(rows, signal) {
      const tickers = new Set(rows.map(eventTickerOf).filter((ticker) => ticker !== undefined));
      const waiting = [...tickers].filter((ticker) => !known.has(ticker));
      await Promise.all(Array.from({ length: AT_ONCE }, () => fetchMissing(waiting, signal)));
      return rows.map((row) => withEvent(row, known.get(eventTickerOf(row) ?? '')?.facts));
    },
  };
}

function eventTickerOf(row: unknown): string | undefined {
  const ticker = fieldOf(row, 'event_ticker');
  // A lone surrogate has no place in a path.
  return typeof ticker === 'string' && ticker !== '' && ticker.isWellFormed() ? ticker : undefined;
}

/** Only what a market record is made of: fifty thousand whole events are too many. */
function factsOf(event: unknown): unknown {
  if (event === null || typeof event !== 'object') return undefined;
  const { event_ticker, series_ticker, title, category, product_metadata } = event as Record<string, unknown>;
  return { event_ticker, series_ticker, title, category, product_metadata };
}
