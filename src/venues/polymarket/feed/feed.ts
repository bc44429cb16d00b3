import type { PriceRecord } from '../../../domain/markets/market.ts';
import type { Quotes } from '../../../domain/markets/quoted-price.ts';
import type { Decimal } from '../../../domain/values/decimal.ts';
import { isStorableText } from '../../../domain/values/text.ts';
import type { FeedLoss, FeedMarket, FeedReading, FeedSession } from '../../feeds/port.ts';
import { emptyReading, isObject, parseFrame, quarantine, sawVenueTime, skip } from '../../feeds/reading.ts';
import { chunks } from '../../http/parts.ts';
import { readModel } from '../../rejection.ts';
import { shortConditionId, wholeConditionId } from '../condition-ids.ts';
import { parseBooks, priceWithLast } from '../parse-book.ts';
import { FeedBook } from './book.ts';
import type { HashContext } from './hash.ts';
import {
  type FeedBookMessage,
  type FeedLeg,
  feedBestQuotes,
  feedBook,
  feedChange,
  feedLastTrade,
  feedLeg,
  feedMarketEvent,
  feedTickSize,
} from './models.ts';
import { lastTradeTexts, readBest, readLevel, readPrint, readStamp } from './values.ts';

/** Ids of one message: the venue closes the socket at thousands. */
const IDS_PER_MESSAGE = 100;
/** The venue sends no snapshot when a socket has too many tokens, and says nothing. */
const SNAPSHOT_WITHIN_MS = 10_000;
/** A batch of the engine spans several frames, and the trade that a hash covers is announced up to 90 ms later. */
const MISMATCH_LASTS_MS = 2_000;
/** Market events are global and repeat. */
const MAX_REMEMBERED_EVENTS = 10_000;
const LAST_TRADES_KEPT = 6;
const TOKEN_ID = /^\d{1,100}$/;

interface Token {
  readonly marketId: string;
  /** When a snapshot was requested, epoch milliseconds; absent when none is due. */
  awaitedSinceMs?: number | undefined;
  book?: FeedBook | undefined;
  /** Of the last verified snapshot. */
  context?: HashContext | undefined;
  /** The last trade that named this token. */
  lastTrade?: Decimal;
  /** With the stamp of the venue, epoch milliseconds: later quotes of one stamp have later times. */
  quote?: PriceRecord & { readonly stampMs: number };
}

export function createPolymarketSession(): FeedSession {
  return new PolymarketSession();
}

/** The market channel of the CLOB. A quote is the venue's own best price, which already shows the end of its batch; a book is verified. */
class PolymarketSession implements FeedSession {
  readonly #tokens = new Map<string, Token>();
  readonly #tokensOf = new Map<string, string[]>();
  /** The market's id by the form of the CLOB, which may differ from that of the catalog. */
  readonly #marketIds = new Map<string, string>();
  /** Possible texts of the market's last trade, newest first. */
  readonly #lastTrades = new Map<string, string[]>();
  readonly #events = new Set<string>();
  #nowMs = 0;
  #isOpen = false;

  open(): string[] {
    return [];
  }

  ping(): string {
    return 'PING';
  }

  subscribe(markets: readonly FeedMarket[], nowMs: number): string[] {
    const added: string[] = [];
    for (const { marketId, outcomeIds } of markets) {
      const tokenIds = outcomeIds.filter((id) => TOKEN_ID.test(id));
      this.#tokensOf.set(marketId, tokenIds);
      this.#marketIds.set(wholeConditionId(marketId), marketId);
      for (const tokenId of tokenIds) {
        if (this.#tokens.has(tokenId)) continue;
        this.#tokens.set(tokenId, { marketId, awaitedSinceMs: nowMs });
        added.push(tokenId);
      }
    }
    return chunks(added, IDS_PER_MESSAGE).map((assets_ids) => {
      if (this.#isOpen) return JSON.stringify({ operation: 'subscribe', assets_ids });
      this.#isOpen = true;
      return JSON.stringify({ assets_ids, type: 'market', custom_feature_enabled: true });
    });
  }

  unsubscribe(marketIds: readonly string[]): string[] {
    const tokenIds = marketIds.flatMap((id) => this.#tokensOf.get(id) ?? []);
    for (const id of marketIds) {
      this.#tokensOf.delete(id);
      this.#lastTrades.delete(id);
      this.#marketIds.delete(wholeConditionId(id));
    }
    for (const id of tokenIds) this.#tokens.delete(id);
    return chunks(tokenIds, IDS_PER_MESSAGE).map((assets_ids) =>
      JSON.stringify({ operation: 'unsubscribe', assets_ids }),
    );
  }

  /** A repeated subscribe is ignored; after an unsubscribe it brings a new snapshot. */
  refresh(marketIds: readonly string[], nowMs: number): string[] {
    const tokenIds = marketIds.flatMap((id) => this.#tokensOf.get(id) ?? []);
    for (const id of tokenIds) {
      const token = this.#tokens.get(id);
      if (token) token.awaitedSinceMs = nowMs;
    }
    return chunks(tokenIds, IDS_PER_MESSAGE).flatMap((assets_ids) => [
      JSON.stringify({ operation: 'unsubscribe', assets_ids }),
      JSON.stringify({ operation: 'subscribe', assets_ids }),
    ]);
  }

  book(outcomeId: string) {
    const token = this.#tokens.get(outcomeId);
    const book = token?.book;
    if (!book?.isConsistent) return undefined;
    return book.toRecord(Math.max(this.#nowMs, book.timestampMs));
  }

  check(nowMs: number): FeedLoss[] {
    const missing = new Set<string>();
    const mismatched = new Set<string>();
    for (const token of this.#tokens.values()) {
      const { awaitedSinceMs, book } = token;
      const mismatchSinceMs = book?.mismatchSinceMs;
      if (awaitedSinceMs !== undefined && nowMs - awaitedSinceMs >= SNAPSHOT_WITHIN_MS) {
        token.awaitedSinceMs = nowMs;
        missing.add(token.marketId);
      } else if (mismatchSinceMs !== undefined && nowMs - mismatchSinceMs >= MISMATCH_LASTS_MS) {
        this.#drop(token, nowMs);
        mismatched.add(token.marketId);
      }
    }
    return [
      ...(missing.size > 0 ? [loss('missing_snapshot', missing)] : []),
      ...(mismatched.size > 0 ? [loss('hash_mismatch', mismatched)] : []),
    ];
  }

  take(frame: string, nowMs: number): FeedReading {
    this.#nowMs = nowMs;
    const reading = emptyReading();
    if (frame === 'PONG') {
      reading.notices.push({ kind: 'pong' });
      skip(reading, 'control');
      return reading;
    }
    const parsed = parseFrame(frame);
    if (!parsed.ok) quarantine(reading, 'prices', frame, parsed.rejection);
    else if (!Array.isArray(parsed.value)) this.#message(parsed.value, reading, nowMs);
    // The answer to a token that the venue does not know, or that is closed.
    else if (parsed.value.length === 0) skip(reading, 'unknown_token');
    else for (const message of parsed.value) this.#message(message, reading, nowMs);
    return reading;
  }

  #message(raw: unknown, reading: FeedReading, nowMs: number): undefined {
    if (!isObject(raw)) return quarantine(reading, 'prices', raw, { reason: 'not_an_object', detail: typeof raw });
    switch (raw['event_type']) {
      case 'book':
        return this.#snapshot(raw, reading, nowMs);
      case 'price_change':
        return this.#change(raw, reading, nowMs);
      case 'best_bid_ask':
        return this.#bestQuotes(raw, reading, nowMs);
      case 'last_trade_price':
        return this.#lastTrade(raw, reading, nowMs);
      case 'tick_size_change':
        return this.#tickSize(raw, reading);
      case 'new_market':
      case 'market_resolved':
        return this.#marketEvent(raw, reading, raw['event_type']);
      default:
        reading.unknowns.push({ field: 'feed.event_type', value: String(raw['event_type']).slice(0, 100) });
        return skip(reading, 'unknown_type');
    }
  }

  #marketId(stated: string): string {
    return this.#marketIds.get(wholeConditionId(stated)) ?? shortConditionId(stated);
  }

  #snapshot(raw: Record<string, unknown>, reading: FeedReading, nowMs: number): undefined {
    const id = raw['asset_id'];
    const model = readModel(feedBook, raw);
    if (!model.ok) return this.#rejectBook(raw, reading, model.rejection, id, nowMs);
    const message = model.value;
    const token = this.#tokens.get(message.asset_id);
    if (token === undefined || token.marketId !== this.#marketId(message.market))
      return skip(reading, 'not_subscribed');
    const stamp = readStamp(message.timestamp, nowMs);
    if (!stamp.ok) return this.#rejectBook(raw, reading, stamp.rejection, id, nowMs);
    const { records, rejected } = parseBooks('books', [message], nowMs);
    if (records.length === 0) {
      const { reason = 'invalid_field', detail = '' } = rejected[0] ?? {};
      return this.#rejectBook(raw, reading, { reason, detail }, id, nowMs);
    }
    const isAwaited = token.awaitedSinceMs !== undefined;
    if (!isAwaited && token.book && stamp.value < token.book.timestampMs) return skip(reading, 'stale_book');
    const book = new FeedBook(message.market, message.asset_id, message);
    this.#identify(book, message, token, isAwaited, nowMs);
    token.book = book;
    token.awaitedSinceMs = undefined;
    sawVenueTime(reading, stamp.value);
    reading.received += 1;
    reading.applied += 1;
    this.#announce(message.asset_id, token, book, reading);
  }

  /** Emits a whole book and its quotes, unless the book may be wrong. */
  #announce(tokenId: string, token: Token, book: FeedBook, reading: FeedReading): void {
    if (!book.isConsistent) return;
    this.#quote(tokenId, token, book.best, book.timestampMs, reading);
    reading.updates.push({ kind: 'book', outcomeId: tokenId });
  }

  /**
   * Finds the context of the hash. A token that was verified before must match: until then, its book is not announced. The trade that the
   * hash covers may arrive after the book, so a book after a trade is compared with the known context alone: the search through all values
   * takes hundreds of hashes. If the values changed, the mismatch requests a snapshot, which is searched.
   */
  #identify(book: FeedBook, message: FeedBookMessage, token: Token, isAwaited: boolean, nowMs: number): void {
    if (!message.hash) return;
    const known = token.context;
    const stated = message.last_trade_price ?? undefined;
    const trades = this.#lastTrades.get(token.marketId) ?? [];
    const lastTradePrices = [...(stated !== undefined ? [stated] : []), ...trades, ''];
    const tickSize = message.tick_size ?? undefined;
    const isFound =
      (known !== undefined &&
        book.identify(message.hash, {
          known,
          tickSize,
          lastTradePrices: [known.lastTradePrice, ...lastTradePrices],
        })) ||
      ((known === undefined || isAwaited) && book.identify(message.hash, { tickSize, lastTradePrices }));
    if (isFound) token.context = book.context;
    else if (known !== undefined) book.expect(message.hash, known, nowMs);
  }

  /** Without its snapshot a book is unknown, so a rejected one is a loss. */
  #rejectBook(
    raw: unknown,
    reading: FeedReading,
    rejection: { reason: string; detail: string },
    id: unknown,
    nowMs: number,
  ): undefined {
    quarantine(reading, 'books', raw, rejection, id);
    const token = typeof id === 'string' ? this.#tokens.get(id) : undefined;
    if (token === undefined) return;
    this.#drop(token, nowMs);
    reading.losses.push(loss('rejected_book', [token.marketId]));
  }

  #change(raw: Record<string, unknown>, reading: FeedReading, nowMs: number): undefined {
    const model = readModel(feedChange, raw);
    if (!model.ok) return quarantine(reading, 'books', raw, model.rejection, raw['market']);
    const { timestamp, price_changes: legs } = model.value;
    const market = this.#marketId(model.value.market);
    const stamp = readStamp(timestamp, nowMs);
    if (!stamp.ok) return quarantine(reading, 'books', raw, stamp.rejection, market);
    if (legs.length === 0) return skip(reading, 'empty');
    sawVenueTime(reading, stamp.value);
    /** Only the last leg of a token has the hash of the whole frame. */
    const changed = new Map<string, FeedLeg>();
    for (const each of legs) {
      const leg = readModel(feedLeg, each);
      if (!leg.ok) {
        quarantine(reading, 'books', each, leg.rejection, market);
        continue;
      }
      if (this.#leg(leg.value, market, timestamp, stamp.value, reading)) changed.set(leg.value.asset_id, leg.value);
    }
    for (const [tokenId, leg] of changed) this.#settle(tokenId, leg, market, reading, nowMs);
  }

  /** Applies one leg; whether the book of its token changed. */
  #leg(leg: FeedLeg, market: string, timestamp: string, stampMs: number, reading: FeedReading): boolean {
    const token = this.#tokens.get(leg.asset_id);
    if (token === undefined || token.marketId !== market) {
      skip(reading, 'not_subscribed');
      return false;
    }
    const level = readLevel(leg);
    const best = level.ok ? readBest(leg) : level;
    if (!best.ok) {
      quarantine(reading, 'books', leg, best.rejection, leg.asset_id);
      return false;
    }
    if (token.book && stampMs < token.book.timestampMs) {
      skip(reading, 'stale_change');
      return false;
    }
    reading.received += 1;
    reading.applied += 1;
    token.book?.apply(leg.side, { price: leg.price, size: leg.size }, timestamp);
    this.#quote(leg.asset_id, token, best.value, stampMs, reading);
    return token.book !== undefined;
  }

  /** Announces a book that its hash confirms. Until a batch is complete, its hash does not match yet. */
  #settle(tokenId: string, leg: FeedLeg, market: string, reading: FeedReading, nowMs: number): undefined {
    const book = this.#tokens.get(tokenId)?.book;
    if (book === undefined) return;
    if (leg.hash) book.verify(leg.hash, this.#lastTrades.get(market) ?? [], nowMs);
    if (book.isConsistent) reading.updates.push({ kind: 'book', outcomeId: tokenId });
  }

  #bestQuotes(raw: Record<string, unknown>, reading: FeedReading, nowMs: number): undefined {
    const model = readModel(feedBestQuotes, raw);
    if (!model.ok) return quarantine(reading, 'prices', raw, model.rejection, raw['asset_id']);
    const { asset_id: tokenId, timestamp } = model.value;
    const market = this.#marketId(model.value.market);
    const token = this.#tokens.get(tokenId);
    if (token === undefined || token.marketId !== market) return skip(reading, 'not_subscribed');
    const stamp = readStamp(timestamp, nowMs);
    if (!stamp.ok) return quarantine(reading, 'prices', raw, stamp.rejection, tokenId);
    const best = readBest(model.value);
    if (!best.ok) return quarantine(reading, 'prices', raw, best.rejection, tokenId);
    sawVenueTime(reading, stamp.value);
    reading.received += 1;
    reading.applied += 1;
    this.#quote(tokenId, token, best.value, stamp.value, reading);
  }

  #lastTrade(raw: Record<string, unknown>, reading: FeedReading, nowMs: number): undefined {
    const model = readModel(feedLastTrade, raw);
    if (!model.ok) return quarantine(reading, 'trades', raw, model.rejection, raw['asset_id']);
    const { asset_id: tokenId, timestamp } = model.value;
    const market = this.#marketId(model.value.market);
    const token = this.#tokens.get(tokenId);
    if (token === undefined || token.marketId !== market) return skip(reading, 'not_subscribed');
    const stamp = readStamp(timestamp, nowMs);
    if (!stamp.ok) return quarantine(reading, 'trades', raw, stamp.rejection, tokenId);
    const price = readPrint(model.value);
    if (!price.ok) return quarantine(reading, 'trades', raw, price.rejection, tokenId);
    sawVenueTime(reading, stamp.value);
    reading.received += 1;
    reading.applied += 1;
    token.lastTrade = price.value;
    const texts = [...lastTradeTexts(price.value), ...(this.#lastTrades.get(market) ?? [])];
    this.#lastTrades.set(market, [...new Set(texts)].slice(0, LAST_TRADES_KEPT));
    reading.updates.push({ kind: 'print', outcomeId: tokenId, tsMs: stamp.value, price: price.value });
    for (const sibling of this.#tokensOf.get(market) ?? []) {
      const each = this.#tokens.get(sibling);
      if (each?.book?.verifyAgain(texts, nowMs) === 'match') this.#announce(sibling, each, each.book, reading);
    }
  }

  #tickSize(raw: Record<string, unknown>, reading: FeedReading): undefined {
    const model = readModel(feedTickSize, raw);
    if (!model.ok) return quarantine(reading, 'markets', raw, model.rejection, raw['asset_id']);
    this.#tokens.get(model.value.asset_id)?.book?.setTickSize(model.value.new_tick_size);
    skip(reading, 'tick_size');
  }

  #marketEvent(raw: Record<string, unknown>, reading: FeedReading, change: string): undefined {
    const model = readModel(feedMarketEvent, raw);
    if (!model.ok) return quarantine(reading, 'markets', raw, model.rejection, raw['market']);
    const market = this.#marketId(model.value.market);
    if (!isStorableText(market)) {
      return quarantine(reading, 'markets', raw, { reason: 'unstorable_text', detail: 'market' }, market);
    }
    const key = `${change}|${market}`;
    if (this.#events.has(key)) return skip(reading, 'repeated');
    if (this.#events.size >= MAX_REMEMBERED_EVENTS) this.#events.clear();
    this.#events.add(key);
    reading.received += 1;
    reading.applied += 1;
    const { timestamp } = model.value;
    const isResult = change === 'market_resolved' && timestamp;
    const times = isResult ? { times: { resolved: Number(timestamp) } } : {};
    reading.updates.push({ kind: 'market', marketId: market, change, ...times });
  }

  /** Emits a changed quote. Two changes of one millisecond get different times, because the store keeps the newer one. */
  #quote(outcomeId: string, token: Token, { bid, ask }: Quotes, stampMs: number, reading: FeedReading): void {
    const before = token.quote;
    if (before && stampMs < before.stampMs) return;
    const side = (price: Decimal | undefined) => (price === undefined ? [] : [{ price, size: '1' as Decimal }]);
    const top = { outcomeId, asOfMs: stampMs, bids: side(bid), asks: side(ask) };
    const quote = priceWithLast(top, token.lastTrade);
    if (quote === undefined) return;
    if (before && before.price === quote.price && before.bid === quote.bid && before.ask === quote.ask) return;
    const asOfMs = Math.max(stampMs, (before?.asOfMs ?? 0) + 1);
    const record = { ...quote, asOfMs, seenAtMs: Math.max(this.#nowMs, asOfMs) };
    token.quote = { ...record, stampMs };
    reading.updates.push({ kind: 'quote', record });
  }

  #drop(token: Token, nowMs: number): void {
    token.book = undefined;
    token.awaitedSinceMs = nowMs;
  }
}

function loss(reason: FeedLoss['reason'], marketIds: Iterable<string>): FeedLoss {
  return { of: 'books', reason, marketIds: [...marketIds] };
}
