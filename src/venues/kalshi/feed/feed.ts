import { type Quotes, quotedPrice } from '../../../domain/markets/quoted-price.ts';
import type { Decimal } from '../../../domain/values/decimal.ts';
import { isStorableText } from '../../../domain/values/text.ts';
import type { FeedLoss, FeedMarket, FeedReading, FeedSession } from '../../feeds/port.ts';
import { emptyReading, isObject, parseFrame, quarantine, sawVenueTime, skip } from '../../feeds/reading.ts';
import { readModel } from '../../rejection.ts';
import { otherSide } from '../dollars.ts';
import { UNKNOWN_MARKET } from '../parse-book.ts';
import { bothSides, realQuote } from '../parse-price.ts';
import { readFeed } from '../parse-trade.ts';
import { COMBINATION, isCombinationTicker, outcomeIdsOf, tickersOf } from '../tickers.ts';
import { KalshiFeedBook } from './book.ts';
import { KalshiChannels, readChange, readTicker } from './channels.ts';
import {
  feedDelta,
  feedError,
  feedLifecycle,
  feedSnapshot,
  feedTicker,
  feedTrade,
  type KalshiFrame,
  kalshiFrame,
  subscribed,
} from './models.ts';

const SNAPSHOT_WITHIN_MS = 10_000;
const CROSSED_LASTS_MS = 2_000;
/** Authentication, and three errors after which the venue sends nothing more to the subscription. */
const FINAL_ERRORS: ReadonlySet<number> = new Set([9, 10, 17, 25]);
/** Changes of the catalog. The other words of the channel change no field that oddswire keeps. */
const CATALOG_CHANGES: ReadonlySet<string> = new Set([
  'created',
  'activated',
  'deactivated',
  'close_date_updated',
  'determined',
  'settled',
]);
const METADATA_CHANGES: ReadonlySet<string> = new Set(['price_level_structure_updated', 'metadata_updated']);

interface Market {
  awaitedSinceMs?: number | undefined;
  book?: KalshiFeedBook | undefined;
  crossedSinceMs?: number | undefined;
  lastPrice?: Decimal;
  quote?: Quotes & { price: Decimal; asOfMs: number };
}

/** `usesYesPrice`: the meaning of NO levels, which the subscription states explicitly because the venue plans to change its default. */
export function createKalshiSession({ usesYesPrice = true }: { usesYesPrice?: boolean } = {}): FeedSession {
  return new KalshiSession(usesYesPrice);
}

/**
 * Books, tickers and trades of subscribed markets, and the life cycle of all markets. A quote has the time of its arrival, as in the polls of
 * this venue. A trade is a print: the channel states milliseconds, and a stored trade has the microseconds of the REST answer.
 */
class KalshiSession implements FeedSession {
  readonly #channels: KalshiChannels;
  readonly #usesYesPrice: boolean;
  readonly #markets = new Map<string, Market>();
  #nowMs = 0;

  constructor(usesYesPrice: boolean) {
    this.#usesYesPrice = usesYesPrice;
    this.#channels = new KalshiChannels(usesYesPrice);
  }

  open(): string[] {
    return [this.#channels.openLifecycle()];
  }

  /** The socket's own pings keep the connection. */
  ping(): undefined {
    return undefined;
  }

  subscribe(markets: readonly FeedMarket[], nowMs: number): string[] {
    const added = markets.map(({ marketId }) => marketId).filter((ticker) => !this.#markets.has(ticker));
    for (const ticker of added) this.#markets.set(ticker, { awaitedSinceMs: nowMs });
    return this.#channels.add(added);
  }

  unsubscribe(marketIds: readonly string[]): string[] {
    const removed = marketIds.filter((ticker) => this.#markets.delete(ticker));
    return this.#channels.remove(removed);
  }

  refresh(marketIds: readonly string[], nowMs: number): string[] {
    const tickers = marketIds.filter((ticker) => this.#markets.has(ticker));
    for (const ticker of tickers) {
      const market = this.#markets.get(ticker);
      if (market) market.awaitedSinceMs = nowMs;
    }
    return this.#channels.requestSnapshots(tickers);
  }

  book(outcomeId: string) {
    const [ticker = ''] = tickersOf([outcomeId]);
    const market = this.#markets.get(ticker);
    if (market?.book === undefined || market.crossedSinceMs !== undefined) return undefined;
    return market.book.toRecord(outcomeId.endsWith(':yes') ? 'yes' : 'no', market.quote?.asOfMs ?? this.#nowMs);
  }

  check(nowMs: number): FeedLoss[] {
    const missing: string[] = [];
    const crossed: string[] = [];
    for (const [ticker, market] of this.#markets) {
      const { awaitedSinceMs, crossedSinceMs } = market;
      if (awaitedSinceMs !== undefined && nowMs - awaitedSinceMs >= SNAPSHOT_WITHIN_MS) {
        market.awaitedSinceMs = nowMs;
        missing.push(ticker);
      } else if (crossedSinceMs !== undefined && nowMs - crossedSinceMs >= CROSSED_LASTS_MS) {
        drop(market, nowMs);
        crossed.push(ticker);
      }
    }
    return [...lossOf('missing_snapshot', missing), ...lossOf('crossed_book', crossed)];
  }

  take(frame: string, nowMs: number): FeedReading {
    this.#nowMs = nowMs;
    const reading = emptyReading();
    const parsed = parseFrame(frame);
    if (!parsed.ok) quarantine(reading, 'prices', frame, parsed.rejection);
    else {
      const model = readModel(kalshiFrame, parsed.value);
      if (!model.ok) quarantine(reading, 'prices', parsed.value, model.rejection);
      else this.#message(model.value, reading, nowMs);
    }
    return reading;
  }

  #message(frame: KalshiFrame, reading: FeedReading, nowMs: number): undefined {
    const { type, sid, seq, msg } = frame;
    if (type === 'subscribed') return this.#subscribed(msg, reading);
    if (type === 'error') this.#error(msg, reading);
    const channel = this.#channels.channelOf(sid);
    const place = this.#channels.count(sid, seq);
    if (channel !== undefined && place === 'gap') this.#lost(channel, reading, nowMs);
    if (type === 'error') return skip(reading, 'venue_error');
    if (type === 'unsubscribed' && typeof sid === 'number') this.#channels.closed(sid);
    if (type === 'ok' || type === 'unsubscribed') return skip(reading, 'control');
    if (type === 'event_lifecycle' || type === 'event_fee_update') return skip(reading, 'metadata');
    if (channel === undefined) return skip(reading, 'unknown_sid');
    if (place === 'repeated') return skip(reading, 'repeated');
    return this.#data(type, msg, reading, nowMs);
  }

  #data(type: string, msg: unknown, reading: FeedReading, nowMs: number): undefined {
    switch (type) {
      case 'orderbook_snapshot':
        return this.#snapshot(msg, reading, nowMs);
      case 'orderbook_delta':
        return this.#delta(msg, reading, nowMs);
      case 'ticker':
        return this.#ticker(msg, reading, nowMs);
      case 'trade':
        return this.#trade(msg, reading, nowMs);
      case 'market_lifecycle_v2':
        return this.#lifecycle(msg, reading);
      default:
        reading.unknowns.push({ field: 'feed.type', value: type });
        return skip(reading, 'unknown_type');
    }
  }

  #subscribed(msg: unknown, reading: FeedReading): undefined {
    const model = readModel(subscribed, msg);
    if (!model.ok) return quarantine(reading, 'markets', msg, model.rejection);
    reading.sends.push(...this.#channels.opened(model.value.channel, model.value.sid));
    reading.notices.push({ kind: 'ready' });
    return skip(reading, 'control');
  }

  #error(msg: unknown, reading: FeedReading): void {
    const model = readModel(feedError, msg);
    const { code, msg: message } = model.ok ? model.value : { code: 0, msg: undefined };
    const isFinal = FINAL_ERRORS.has(code);
    reading.notices.push({ kind: 'error', code: String(code), message: (message ?? '').slice(0, 200), isFinal });
  }

  /** A number of this channel is missing, so any of its markets may lack a change. */
  #lost(channel: string, reading: FeedReading, nowMs: number): void {
    const marketIds = [...this.#markets.keys()];
    const of = channel === 'orderbook_delta' ? 'books' : channel === 'trade' ? 'trades' : 'markets';
    if (of === 'books') for (const market of this.#markets.values()) drop(market, nowMs);
    reading.losses.push({ of, reason: 'sequence_gap', marketIds });
  }

  #snapshot(msg: unknown, reading: FeedReading, nowMs: number): undefined {
    const model = readModel(feedSnapshot, msg);
    const ticker = tickerOf(msg);
    if (!model.ok) return this.#rejectBook(msg, reading, model.rejection, ticker, nowMs);
    const raw = model.value;
    const market = this.#markets.get(raw.market_ticker);
    if (isCombinationTicker(raw.market_ticker)) return skip(reading, COMBINATION);
    if (market === undefined) return skip(reading, 'not_subscribed');
    const book = KalshiFeedBook.read(raw, this.#usesYesPrice);
    if (!book.ok) return this.#rejectBook(msg, reading, book.rejection, ticker, nowMs);
    market.awaitedSinceMs = undefined;
    market.crossedSinceMs = undefined;
    if (book.value.isEmpty && raw.market_id === '') {
      market.book = undefined;
      return skip(reading, UNKNOWN_MARKET);
    }
    market.book = book.value;
    return this.#changed(raw.market_ticker, market, reading, nowMs);
  }

  #delta(msg: unknown, reading: FeedReading, nowMs: number): undefined {
    const model = readModel(feedDelta, msg);
    const ticker = tickerOf(msg);
    if (!model.ok) return this.#rejectDelta(msg, reading, model.rejection, ticker, nowMs);
    const raw = model.value;
    if (isCombinationTicker(raw.market_ticker)) return skip(reading, COMBINATION);
    const market = this.#markets.get(raw.market_ticker);
    if (market === undefined) return skip(reading, 'not_subscribed');
    if (market.book === undefined) return skip(reading, 'awaiting_snapshot');
    const change = readChange(raw, nowMs);
    if (!change.ok) return this.#rejectDelta(msg, reading, change.rejection, ticker, nowMs);
    if (typeof raw.ts_ms === 'number') sawVenueTime(reading, raw.ts_ms);
    const { price, delta } = change.value;
    const bookPrice = raw.side === 'no' && !this.#usesYesPrice ? otherSide(price) : price;
    if (!market.book.apply(raw.side, bookPrice, delta)) {
      drop(market, nowMs);
      reading.losses.push(...lossOf('negative_size', [raw.market_ticker]));
      return quarantine(reading, 'books', msg, { reason: 'negative_size', detail: `delta_fp: ${delta}` }, ticker);
    }
    return this.#changed(raw.market_ticker, market, reading, nowMs);
  }

  /** A change that cannot be applied leaves its book unknown, and without a readable ticker every book. */
  #rejectDelta(
    msg: unknown,
    reading: FeedReading,
    rejection: { reason: string; detail: string },
    ticker: string | undefined,
    nowMs: number,
  ): undefined {
    if (ticker !== undefined && this.#markets.has(ticker)) {
      return this.#rejectBook(msg, reading, rejection, ticker, nowMs);
    }
    quarantine(reading, 'books', msg, rejection, ticker);
    for (const market of this.#markets.values()) drop(market, nowMs);
    reading.losses.push(...lossOf('rejected_book', [...this.#markets.keys()]));
  }

  #rejectBook(
    msg: unknown,
    reading: FeedReading,
    rejection: { reason: string; detail: string },
    ticker: string | undefined,
    nowMs: number,
  ): undefined {
    quarantine(reading, 'books', msg, rejection, ticker);
    const market = ticker === undefined ? undefined : this.#markets.get(ticker);
    if (ticker === undefined || market === undefined) return;
    drop(market, nowMs);
    reading.losses.push(...lossOf('rejected_book', [ticker]));
  }

  /** Announces a changed book. A crossed one is held back: it is the middle of a change, or wrong. */
  #changed(ticker: string, market: Market, reading: FeedReading, nowMs: number): undefined {
    reading.received += 1;
    reading.applied += 1;
    if (market.book === undefined) return;
    if (market.book.isCrossed) {
      market.crossedSinceMs ??= nowMs;
      return;
    }
    market.crossedSinceMs = undefined;
    this.#quote(ticker, market, market.book.best, reading, nowMs);
    const { yes, no } = outcomeIdsOf(ticker);
    reading.updates.push({ kind: 'book', outcomeId: yes }, { kind: 'book', outcomeId: no });
  }

  /** The book states the same quotes earlier; the ticker adds the price of the last trade. */
  #ticker(msg: unknown, reading: FeedReading, nowMs: number): undefined {
    const model = readModel(feedTicker, msg);
    const ticker = tickerOf(msg);
    if (!model.ok) return quarantine(reading, 'prices', msg, model.rejection, ticker);
    const raw = model.value;
    if (isCombinationTicker(raw.market_ticker)) return skip(reading, COMBINATION);
    const market = this.#markets.get(raw.market_ticker);
    if (market === undefined) return skip(reading, 'not_subscribed');
    const quotes = readTicker(raw, nowMs);
    if (!quotes.ok) return quarantine(reading, 'prices', msg, quotes.rejection, ticker);
    if (typeof raw.ts_ms === 'number') sawVenueTime(reading, raw.ts_ms);
    const { last, ...best } = quotes.value;
    if (last !== undefined) market.lastPrice = last;
    if (market.book !== undefined) return skip(reading, 'has_book');
    reading.received += 1;
    reading.applied += 1;
    this.#quote(raw.market_ticker, market, best, reading, nowMs);
  }

  #trade(msg: unknown, reading: FeedReading, nowMs: number): undefined {
    const model = readModel(feedTrade, msg);
    const ticker = tickerOf(msg);
    if (!model.ok) return quarantine(reading, 'trades', msg, model.rejection, ticker);
    const { market_ticker, ts, ts_ms } = model.value;
    const tsMs = ts_ms ?? (typeof ts === 'number' ? ts * 1000 : undefined);
    if (tsMs === undefined || tsMs > 8.64e15) {
      return quarantine(reading, 'trades', msg, { reason: 'missing_field', detail: 'ts_ms' }, ticker);
    }
    const row = { ...(msg as object), ticker: market_ticker, created_time: new Date(tsMs).toISOString() };
    const [read] = readFeed([row], nowMs);
    if (read?.trade === undefined) {
      const { reason = 'invalid_field', detail = '' } = read?.rejected ?? {};
      return quarantine(reading, 'trades', msg, { reason, detail }, ticker);
    }
    if (read.skipped !== undefined) return skip(reading, read.skipped);
    const market = this.#markets.get(market_ticker);
    if (market === undefined) return skip(reading, 'not_subscribed');
    if (read.unknownSide !== undefined) reading.unknowns.push({ field: 'feed.taker_side', value: read.unknownSide });
    sawVenueTime(reading, tsMs);
    market.lastPrice = read.trade.price;
    reading.received += 1;
    reading.applied += 1;
    const { outcomeId, price } = read.trade;
    reading.updates.push({ kind: 'print', outcomeId, tsMs, price });
  }

  #lifecycle(msg: unknown, reading: FeedReading): undefined {
    const model = readModel(feedLifecycle, msg);
    if (!model.ok) return quarantine(reading, 'markets', msg, model.rejection, tickerOf(msg));
    const { market_ticker: marketId, event_type: change, determination_ts, settled_ts } = model.value;
    if (isCombinationTicker(marketId)) return skip(reading, COMBINATION);
    if (!isStorableText(marketId)) {
      return quarantine(reading, 'markets', msg, { reason: 'unstorable_text', detail: 'market_ticker' });
    }
    if (METADATA_CHANGES.has(change)) return skip(reading, 'metadata');
    if (!CATALOG_CHANGES.has(change)) {
      reading.unknowns.push({ field: 'feed.event_type', value: change });
      return skip(reading, 'unknown_type');
    }
    reading.received += 1;
    reading.applied += 1;
    const times = {
      ...(determination_ts && { resolved: determination_ts * 1_000 }),
      ...(settled_ts && { settled: settled_ts * 1_000 }),
    };
    reading.updates.push({ kind: 'market', marketId, change, ...(Object.keys(times).length > 0 && { times }) });
  }

  /** Emits the changed quotes of both outcomes. */
  #quote(ticker: string, market: Market, best: Quotes, reading: FeedReading, nowMs: number): undefined {
    const bid = realQuote(best.bid);
    const ask = realQuote(best.ask);
    const price = quotedPrice({ bid, ask }, market.lastPrice);
    const before = market.quote;
    if (price === undefined) return;
    if (before && before.price === price && before.bid === bid && before.ask === ask) return;
    const asOfMs = Math.max(nowMs, (before?.asOfMs ?? 0) + 1);
    market.quote = { price, bid, ask, asOfMs };
    for (const record of bothSides(ticker, asOfMs, price, { bid, ask }))
      reading.updates.push({ kind: 'quote', record });
  }
}

function tickerOf(msg: unknown): string | undefined {
  const ticker = isObject(msg) ? msg['market_ticker'] : undefined;
  return typeof ticker === 'string' ? ticker : undefined;
}

function drop(market: Market, nowMs: number): void {
  market.book = undefined;
  market.crossedSinceMs = undefined;
  market.awaitedSinceMs = nowMs;
}

function lossOf(reason: FeedLoss['reason'], marketIds: readonly string[]): FeedLoss[] {
  return marketIds.length === 0 ? [] : [{ of: 'books', reason, marketIds }];
}
