import type { BookRecord, PriceLevel, PriceRecord } from '../../domain/markets/market.ts';
import { priceOfBook, quotesOf } from '../../domain/markets/quoted-price.ts';
import {
  addDecimals,
  compareDecimals,
  type Decimal,
  ONE,
  parseDecimal,
  subtractDecimals,
  ZERO,
} from '../../domain/values/decimal.ts';
import { isStorableText } from '../../domain/values/text.ts';
import { emptyBatch, type ParsedBatch } from '../parsed-batch.ts';
import type { RejectedRecord } from '../port.ts';
import { isPlausibleQuantity, isUnitPrice } from '../quantity.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import { MAX_AHEAD_MS } from '../venue-time.ts';
import { type ClobBook, clobBook, clobLastTrade } from './models.ts';

/** 2018, before the venue existed: a lower time is in seconds or garbage. */
const MIN_MS = 1_514_764_800_000;

/** A book without the time of its answer. */
export interface UndatedBook extends Pick<BookRecord, 'outcomeId' | 'bids' | 'asks'> {
  /** When it changed last, epoch milliseconds; absent where the venue does not state it. */
  changedAtMs?: number;
}

/** CLOB books as `readBooks` reads them, with the time of their answer. */
export function parseBooks(
  kind: 'books' | 'prices',
  rows: readonly unknown[],
  nowMs: number,
  requested?: ReadonlySet<string>,
): ParsedBatch<BookRecord> {
  const { records, ...batch } = readBooks(kind, rows, nowMs, requested);
  const dated = ({ changedAtMs, ...book }: UndatedBook) => ({ ...book, ...timesOf(changedAtMs, nowMs) });
  return { ...batch, records: records.map(dated) };
}

/** The times of a book in an answer of this moment. The venue's time is that of the last change of the book. */
export function timesOf(
  changedAtMs: number | undefined,
  answeredAtMs: number,
): Pick<BookRecord, 'asOfMs' | 'seenAtMs'> {
  const asOfMs = changedAtMs ?? answeredAtMs;
  return { asOfMs, ...(asOfMs !== answeredAtMs && { seenAtMs: answeredAtMs }) };
}

/**
 * CLOB books (`POST /books`, `GET /book`), sorted, merged and without empty levels, in any order of the payload; pure. `requested` limits
 * the tokens to those of the request. At a later moment the same rows make the same batch, unless a time was ahead: see `latestTimeOf`.
 */
export function readBooks(
  kind: 'books' | 'prices',
  rows: readonly unknown[],
  nowMs: number,
  requested?: ReadonlySet<string>,
): ParsedBatch<UndatedBook> {
  const batch = emptyBatch<UndatedBook>();
  const seen = new Set<string>();
  for (const row of rows) {
    const reading = parseBook(row, nowMs, seen, requested);
    if (reading.ok) {
      seen.add(reading.value.outcomeId);
      batch.records.push(reading.value);
    } else {
      const assetId = row !== null && typeof row === 'object' ? (row as { asset_id?: unknown }).asset_id : undefined;
      batch.rejected.push(rejectRecord(kind, row, reading.rejection, assetId));
    }
  }
  return batch;
}

/** The latest time of any row, epoch milliseconds. `readBooks` rejects rows whose time is further ahead than `MAX_AHEAD_MS`. */
export function latestTimeOf(rows: readonly unknown[]): number {
  return rows.reduce((latest: number, row) => {
    const ms = Number((row as { timestamp?: unknown } | null)?.timestamp);
    return Number.isNaN(ms) ? latest : Math.max(latest, ms);
  }, 0);
}

function parseBook(
  row: unknown,
  nowMs: number,
  seen: ReadonlySet<string>,
  requested: ReadonlySet<string> | undefined,
): Reading<UndatedBook> {
  const reading = readModel(clobBook, row);
  if (!reading.ok) return reading;
  const raw = reading.value;
  if (!isStorableText(raw.asset_id)) return reject('unstorable_text', 'asset_id');
  if (requested && !requested.has(raw.asset_id))
    return reject('not_requested', 'asset_id: the token was not requested');
  if (seen.has(raw.asset_id)) return reject('duplicate_record', 'asset_id: the same token twice in one answer');
  const changedAt = readTime(raw, nowMs);
  if (!changedAt.ok) return changedAt;
  const bids = readSide('bids', raw.bids, -1);
  if (!bids.ok) return bids;
  const asks = readSide('asks', raw.asks, 1);
  if (!asks.ok) return asks;
  const bid = bids.value[0]?.price;
  const ask = asks.value[0]?.price;
  if (bid !== undefined && ask !== undefined && compareDecimals(bid, ask) > 0) {
    return reject('crossed_book', `bid ${bid} above ask ${ask}`);
  }
  return accept({
    outcomeId: raw.asset_id,
    ...(changedAt.value !== undefined && { changedAtMs: changedAt.value }),
    bids: bids.value,
    asks: asks.value,
  });
}

function readTime(raw: ClobBook, nowMs: number): Reading<number | undefined> {
  if (raw.timestamp === undefined || raw.timestamp === null || raw.timestamp === '') return accept(undefined);
  const ms = Number(raw.timestamp);
  if (!Number.isSafeInteger(ms)) return reject('invalid_field', 'timestamp: not whole milliseconds');
  if (ms > nowMs + MAX_AHEAD_MS) return reject('timestamp_in_future', `timestamp: ${ms}`);
  return ms < MIN_MS ? reject('timestamp_out_of_range', `timestamp: ${ms}`) : accept(ms);
}

/** `direction` 1 sorts rising, -1 falling. */
function readSide(side: string, raw: ClobBook['bids'], direction: 1 | -1): Reading<PriceLevel[]> {
  const levels: PriceLevel[] = [];
  for (const [index, level] of raw.entries()) {
    const price = parseDecimal(level.price);
    const size = parseDecimal(level.size);
    if (price === null || size === null) return reject('invalid_field', `${side}.${index}: not a number`);
    if (!isUnitPrice(price)) return reject('price_out_of_range', `${side}.${index}.price: ${price}`);
    if (size.startsWith('-') || !isPlausibleQuantity(size)) {
      return reject('size_out_of_range', `${side}.${index}.size: ${size}`);
    }
    if (size !== '0') levels.push({ price, size });
  }
  levels.sort((a, b) => direction * compareDecimals(a.price, b.price));
  return accept(mergeEqualPrices(levels));
}

function mergeEqualPrices(levels: readonly PriceLevel[]): PriceLevel[] {
  const merged: PriceLevel[] = [];
  for (const level of levels) {
    const last = merged.at(-1);
    if (last?.price === level.price) last.size = addDecimals(last.size, level.size);
    else merged.push({ ...level });
  }
  return merged;
}

/** The best level of each side. */
export function bestLevels({ bids, asks }: Pick<BookRecord, 'bids' | 'asks'>): Pick<BookRecord, 'bids' | 'asks'> {
  return { bids: bids.slice(0, 1), asks: asks.slice(0, 1) };
}

/** The best level of each side of the book of the market's other token: one minus the price, on the opposite side. */
export function bestLevelsOfOther({
  bids,
  asks,
}: Pick<BookRecord, 'bids' | 'asks'>): Pick<BookRecord, 'bids' | 'asks'> {
  const best = (levels: readonly PriceLevel[]) =>
    levels.slice(0, 1).map(({ price, size }) => ({ price: subtractDecimals(ONE, price), size }));
  return { bids: best(asks), asks: best(bids) };
}

/** The price of a book. A last trade that clearly belongs to the other outcome is ignored. */
export function priceWithLast(book: BookRecord, lastTrade: Decimal | undefined): PriceRecord | undefined {
  const { bid = ZERO, ask = ONE } = quotesOf(book);
  const isOwn = lastTrade !== undefined && !isOtherOutcomes(lastTrade, bid, ask);
  return priceOfBook(book, isOwn ? lastTrade : undefined);
}

/** A last trade outside the quotes, with a mirror image inside them, belongs to the other outcome. */
function isOtherOutcomes(price: Decimal, bid: Decimal, ask: Decimal): boolean {
  const isInside = (value: Decimal) => compareDecimals(value, bid) >= 0 && compareDecimals(value, ask) <= 0;
  return !isInside(price) && isInside(subtractDecimals(ONE, price));
}

/**
 * Rows of `POST /last-trades-prices` by token; pure. The `last_trade_price` of the books is not read: in the recordings, the books of both
 * outcomes contain the first outcome's price, and a token that never traded shows 0.5. In this route such a token has no side.
 */
export function parseLastTrades(
  rows: readonly unknown[],
  requested: ReadonlySet<string>,
): { prices: Map<string, Decimal>; rejected: RejectedRecord[] } {
  const prices = new Map<string, Decimal>();
  const rejected: RejectedRecord[] = [];
  for (const row of rows) {
    const reading = readModel(clobLastTrade, row);
    const price = reading.ok ? parseDecimal(reading.value.price) : null;
    if (!reading.ok) rejected.push(rejectRecord('prices', row, reading.rejection));
    else if (!requested.has(reading.value.token_id) || !reading.value.side) continue;
    else if (price !== null && isUnitPrice(price)) prices.set(reading.value.token_id, price);
    else {
      const rejection = { reason: 'price_out_of_range', detail: `price: ${reading.value.price}` };
      rejected.push(rejectRecord('prices', row, rejection, reading.value.token_id));
    }
  }
  return { prices, rejected };
}
