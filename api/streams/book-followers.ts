import { FailureStreaks } from '../../src/observe/failures.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { noteStreamed } from '../../src/store/catalog/market-heat.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import type { Filter } from './filter.ts';

/** A new stream is noted within this time. */
const LOOK_EVERY_MS = 1_000;
/** The store forgets a note after a minute. */
const NOTE_EVERY_MS = 20_000;
const MARKETS_AT_ONCE = 1_000;

/** All markets of a venue, or one of them. */
interface Followed {
  readonly venue: string;
  readonly marketId: string | undefined;
  streams: number;
}

/**
 * Notes the markets whose books the streams of this process send, or whose executable prices, so that the streamer stores these books more often. A subscription without
 * a list of markets follows every market of its venues. After the death of the process its notes end by themselves.
 */
export class BookFollowers {
  readonly #db: Queryable;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #timer: NodeJS.Timeout;
  readonly #streaks = new FailureStreaks();
  readonly #followed = new Map<string, Followed>();
  /** Those that no note has yet. */
  #fresh = new Set<string>();
  #notedAtMs: number;
  #noting: Promise<void> | undefined;

  /** `now`: milliseconds of a monotonic clock. */
  constructor(db: Queryable, log: Logger, now: () => number = () => performance.now()) {
    this.#db = db;
    this.#log = log;
    this.#now = now;
    this.#notedAtMs = now();
    this.#timer = setInterval(() => void this.note(), LOOK_EVERY_MS);
    this.#timer.unref();
  }

  add(filter: Filter): void {
    for (const [key, place] of placesOf(filter)) {
      const known = this.#followed.get(key);
      if (known) known.streams += 1;
      else {
        this.#followed.set(key, { ...place, streams: 1 });
        this.#fresh.add(key);
      }
    }
  }

  remove(filter: Filter): void {
    for (const [key] of placesOf(filter)) {
      const known = this.#followed.get(key);
      if (known === undefined) continue;
      known.streams -= 1;
      if (known.streams === 0) this.#followed.delete(key);
    }
  }

  /** Notes new ones, and all of them when it is due. Never rejects. */
  note(): Promise<void> {
    this.#noting ??= this.#note().finally(() => {
      this.#noting = undefined;
    });
    return this.#noting;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#noting;
  }

  async #note(): Promise<void> {
    const nowMs = this.#now();
    const isDue = nowMs - this.#notedAtMs >= NOTE_EVERY_MS;
    const keys = isDue ? [...this.#followed.keys()] : [...this.#fresh];
    this.#fresh = new Set();
    if (isDue) this.#notedAtMs = nowMs;
    const followed = keys.flatMap((key) => this.#followed.get(key) ?? []);
    const venues = followed.flatMap(({ venue, marketId }) => (marketId === undefined ? [venue] : []));
    const markets = followed.flatMap(({ venue, marketId }) => (marketId === undefined ? [] : [{ venue, marketId }]));
    try {
      await noteStreamed(this.#db, { venues, markets: markets.slice(0, MARKETS_AT_ONCE) });
      for (let start = MARKETS_AT_ONCE; start < markets.length; start += MARKETS_AT_ONCE)
        await noteStreamed(this.#db, { venues: [], markets: markets.slice(start, start + MARKETS_AT_ONCE) });
      this.#streaks.succeeded('note');
    } catch (error) {
      for (const key of keys) if (this.#followed.has(key)) this.#fresh.add(key);
      const { inARow, shouldLog } = this.#streaks.failed('note');
      this.#log[shouldLog ? 'warn' : 'debug']({ err: error, inARow }, 'books of open streams not noted; will retry');
    }
  }
}

function placesOf(filter: Filter): Map<string, Omit<Followed, 'streams'>> {
  const { channels, venues, marketIds, orders } = filter;
  const places = channels.includes('books')
    ? venues.flatMap((venue) => [...(marketIds ?? [undefined])].map((marketId) => ({ venue, marketId })))
    : (orders?.outcomes ?? []).map(({ venue, marketId }) => ({ venue, marketId }));
  return new Map(places.map((place) => [`${place.venue}\n${place.marketId}`, place]));
}
