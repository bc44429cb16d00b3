import { z } from 'zod';
import type { BookRecord, PriceRecord } from '../../../domain/markets/market.ts';
import { priceOfBook } from '../../../domain/markets/quoted-price.ts';
import type { FeedLoss, FeedMarket, FeedReading, FeedSession } from '../../feeds/port.ts';
import { emptyReading, isObject, parseFrame, quarantine, sawVenueTime, skip } from '../../feeds/reading.ts';
import { type Reading, readModel, reject } from '../../rejection.ts';
import { MAX_AHEAD_MS, parseVenueTimeMs } from '../../venue-time.ts';
import { SLUG } from '../outcome-ids.ts';
import { parseBooks } from '../parse-book.ts';

const NAMESPACE = '/markets';
const CONNECT = `40${NAMESPACE},`;
const EVENT = `42${NAMESPACE},`;
const REFUSED = `44${NAMESPACE},`;
const SNAPSHOT_WITHIN_MS = 10_000;
const MAX_REMEMBERED_EVENTS = 10_000;

interface Market {
  readonly outcomeIds: readonly string[];
  awaitedSinceMs?: number | undefined;
  venueAtMs: number;
  /** YES and NO. */
  books: readonly BookRecord[];
  readonly quotes: Map<string, PriceRecord>;
}

export function createLimitlessSession(): FeedSession {
  return new LimitlessSession();
}

/** Socket.IO 4 over a WebSocket: whole books, and the life cycle of markets. Trades are not pushed. */
class LimitlessSession implements FeedSession {
  readonly #markets = new Map<string, Market>();
  readonly #slugOf = new Map<string, string>();
  readonly #events = new Set<string>();
  #isReady = false;

  /** The venue speaks first. */
  open(): string[] {
    return [];
  }

  /** The venue pings, as a text frame. */
  ping(): undefined {
    return undefined;
  }

  subscribe(markets: readonly FeedMarket[], nowMs: number): string[] {
    for (const { marketId, outcomeIds } of markets) {
      if (outcomeIds.length !== 2 || this.#markets.has(marketId)) continue;
      this.#markets.set(marketId, { outcomeIds, awaitedSinceMs: nowMs, venueAtMs: 0, books: [], quotes: new Map() });
      for (const outcomeId of outcomeIds) this.#slugOf.set(outcomeId, marketId);
    }
    return this.#subscription();
  }

  unsubscribe(marketIds: readonly string[]): string[] {
    for (const marketId of marketIds) {
      for (const outcomeId of this.#markets.get(marketId)?.outcomeIds ?? []) this.#slugOf.delete(outcomeId);
      this.#markets.delete(marketId);
    }
    return this.#subscription();
  }

  /** Each subscription brings the books of all its markets. */
  refresh(marketIds: readonly string[], nowMs: number): string[] {
    for (const marketId of marketIds) {
      const market = this.#markets.get(marketId);
      if (market) market.awaitedSinceMs = nowMs;
    }
    return this.#subscription();
  }

  book(outcomeId: string): BookRecord | undefined {
    return this.#markets.get(this.#slugOf.get(outcomeId) ?? '')?.books.find((book) => book.outcomeId === outcomeId);
  }

  check(nowMs: number): FeedLoss[] {
    const missing: string[] = [];
    for (const [slug, market] of this.#markets) {
      if (market.awaitedSinceMs === undefined || nowMs - market.awaitedSinceMs < SNAPSHOT_WITHIN_MS) continue;
      market.awaitedSinceMs = nowMs;
      missing.push(slug);
    }
    return missing.length === 0 ? [] : [{ of: 'books', reason: 'missing_snapshot', marketIds: missing }];
  }

  take(frame: string, nowMs: number): FeedReading {
    const reading = emptyReading();
    if (frame.startsWith(EVENT)) this.#event(frame.slice(EVENT.length), reading, nowMs);
    else this.#control(frame, reading);
    return reading;
  }

  /** Engine.IO and Socket.IO packets without data. */
  #control(frame: string, reading: FeedReading): undefined {
    if (frame.startsWith('0{')) reading.sends.push(CONNECT);
    else if (frame === '2') {
      reading.sends.push('3');
      reading.notices.push({ kind: 'pong' });
    } else if (frame.startsWith(CONNECT)) {
      this.#isReady = true;
      reading.notices.push({ kind: 'ready' });
      reading.sends.push(event('subscribe_market_lifecycle', {}), ...this.#subscription());
    } else if (frame.startsWith(REFUSED) || frame === '1' || frame.startsWith('41')) {
      this.#isReady = false;
      reading.notices.push({ kind: 'error', code: frame.slice(0, 2), message: frame.slice(0, 200), isFinal: true });
      return skip(reading, 'venue_error');
    } else if (frame !== '6' && frame !== '3' && !frame.startsWith(`43${NAMESPACE},`)) {
      return quarantine(reading, 'books', frame, { reason: 'unknown_packet', detail: frame.slice(0, 40) });
    }
    return skip(reading, 'control');
  }

  #event(text: string, reading: FeedReading, nowMs: number): undefined {
    const parsed = parseFrame(text);
    if (!parsed.ok) return quarantine(reading, 'books', text, parsed.rejection);
    const [name, payload] = Array.isArray(parsed.value) ? (parsed.value as unknown[]) : [];
    switch (name) {
      case 'orderbookUpdate':
        return this.#book(payload, reading, nowMs);
      case 'marketCreated':
      case 'marketResolved':
        return this.#lifecycle(name, payload, reading);
      case 'system':
        return skip(reading, 'control');
      case 'exception':
        reading.notices.push({ kind: 'error', code: 'exception', message: text.slice(0, 200), isFinal: false });
        return skip(reading, 'venue_error');
      case 'oraclePriceData':
        return skip(reading, 'oracle_price');
      // Prices of pools, of which no recording exists.
      case 'newPriceData':
        return skip(reading, 'pool_price');
      default:
        if (typeof name !== 'string') {
          return quarantine(reading, 'books', parsed.value, { reason: 'not_an_event', detail: typeof name });
        }
        reading.unknowns.push({ field: 'feed.event', value: name.slice(0, 100) });
        return skip(reading, 'unknown_type');
    }
  }

  #book(raw: unknown, reading: FeedReading, nowMs: number): undefined {
    const model = readModel(bookUpdate, raw);
    const slug = isObject(raw) ? raw['marketSlug'] : undefined;
    if (!model.ok) return this.#rejectBook(raw, reading, model.rejection, slug, nowMs);
    const { marketSlug, orderbook, timestamp } = model.value;
    const market = this.#markets.get(marketSlug);
    if (market === undefined) return skip(reading, 'not_subscribed');
    const venueAtMs = readTime(timestamp, nowMs);
    if (!venueAtMs.ok) return this.#rejectBook(raw, reading, venueAtMs.rejection, slug, nowMs);
    if (market.awaitedSinceMs === undefined && venueAtMs.value < market.venueAtMs) return skip(reading, 'stale_book');
    const asOfMs = Math.max(nowMs, (market.books[0]?.asOfMs ?? 0) + 1);
    const { records, rejected } = parseBooks([{ ...orderbook, outcomeIds: market.outcomeIds }], asOfMs);
    if (records.length === 0) {
      const { reason = 'invalid_field', detail = '' } = rejected[0] ?? {};
      return this.#rejectBook(raw, reading, { reason, detail }, slug, nowMs);
    }
    market.books = records;
    market.venueAtMs = venueAtMs.value;
    market.awaitedSinceMs = undefined;
    sawVenueTime(reading, venueAtMs.value);
    reading.received += 1;
    reading.applied += 1;
    for (const book of records) {
      reading.updates.push({ kind: 'book', outcomeId: book.outcomeId });
      const quote = priceOfBook(book);
      const before = market.quotes.get(book.outcomeId);
      if (quote === undefined || (before && isSameQuote(before, quote))) continue;
      market.quotes.set(book.outcomeId, quote);
      reading.updates.push({ kind: 'quote', record: quote });
    }
  }

  #rejectBook(
    raw: unknown,
    reading: FeedReading,
    rejection: { reason: string; detail: string },
    slug: unknown,
    nowMs: number,
  ): undefined {
    quarantine(reading, 'books', raw, rejection, slug);
    const market = typeof slug === 'string' ? this.#markets.get(slug) : undefined;
    if (market === undefined || typeof slug !== 'string') return;
    market.books = [];
    market.awaitedSinceMs = nowMs;
    reading.losses.push({ of: 'books', reason: 'rejected_book', marketIds: [slug] });
  }

  #lifecycle(change: string, raw: unknown, reading: FeedReading): undefined {
    const model = readModel(lifecycleEvent, raw);
    if (!model.ok) return quarantine(reading, 'markets', raw, model.rejection);
    const { slug, resolutionDate } = model.value;
    const key = `${change}|${slug}|${resolutionDate ?? ''}`;
    if (this.#events.has(key)) return skip(reading, 'repeated');
    if (this.#events.size >= MAX_REMEMBERED_EVENTS) this.#events.clear();
    this.#events.add(key);
    reading.received += 1;
    reading.applied += 1;
    const resolvedMs = parseVenueTimeMs(resolutionDate);
    const times = resolvedMs === undefined ? {} : { times: { resolved: resolvedMs } };
    reading.updates.push({ kind: 'market', marketId: slug, change, ...times });
  }

  /** The whole set, because a subscription replaces the one before. An empty set is an exception at the venue. */
  #subscription(): string[] {
    const marketSlugs = [...this.#markets.keys()];
    return this.#isReady && marketSlugs.length > 0 ? [event('subscribe_market_prices', { marketSlugs })] : [];
  }
}

function event(name: string, payload: object): string {
  return `${EVENT}${JSON.stringify([name, payload])}`;
}

function readTime(text: string, nowMs: number): Reading<number> {
  const ms = parseVenueTimeMs(text);
  if (ms === undefined) return reject('invalid_field', 'timestamp: not a time');
  return ms > nowMs + MAX_AHEAD_MS ? reject('timestamp_in_future', `timestamp: ${ms}`) : { ok: true, value: ms };
}

function isSameQuote(a: PriceRecord, b: PriceRecord): boolean {
  return a.price === b.price && a.bid === b.bid && a.ask === b.ask;
}

/** Socket.IO events that oddswire reads; other fields are ignored. */

const slug = z.string().regex(SLUG);

/** A whole book. `version` counts over the venue and may reset, so it orders nothing. */
const bookUpdate = z.object({
  marketSlug: slug,
  orderbook: z.looseObject({}),
  timestamp: z.string().min(1).max(60),
});

/** Sent three times. */
const lifecycleEvent = z.object({ slug, resolutionDate: z.string().max(60).nullish().catch(undefined) });
