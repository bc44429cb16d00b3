import type { TradeRecord } from '../../domain/markets/market.ts';
import { parseDecimal } from '../../domain/values/decimal.ts';
import { createOrdinals, tradeIdOf } from '../ordinal-ids.ts';
import { emptyBatch, type ParsedBatch } from '../parsed-batch.ts';
import type { RejectedRecord } from '../port.ts';
import { isPlausibleQuantity, isPositive, isUnitPrice } from '../quantity.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import { MAX_AHEAD_MS, parseVenueTimeMs } from '../venue-time.ts';
import { textOf } from './listing.ts';
import { type LimitlessEvent, limitlessEvent } from './models.ts';
import { fromRaw } from './parse-market.ts';

/** Before the venue existed. */
const MIN_MS = Date.UTC(2023, 0, 1);

/** One row of a market's feed, before it has an id. */
export interface FeedRow {
  /** Epoch milliseconds; undefined when the row has no usable time. */
  ms: number | undefined;
  trade?: Omit<TradeRecord, 'tradeId'>;
  canonical?: string;
  unknownSide?: string;
  rejected?: RejectedRecord;
}

/** The rows of one page of `GET /markets/{slug}/events`, in the order they came; pure. */
export function readFeed(rows: readonly unknown[], nowMs: number): FeedRow[] {
  return rows.map((raw) => readRow(raw, nowMs));
}

function readRow(raw: unknown, nowMs: number): FeedRow {
  const time = readTime(raw, nowMs);
  const parsed = parseRow(raw, time);
  const ms = time.ok ? time.value : undefined;
  if (parsed.ok) return { ms, ...parsed.value };
  return { ms, rejected: rejectRecord('trades', raw, parsed.rejection, textOf(raw, 'txHash')) };
}

function parseRow(raw: unknown, time: Reading<number>): Reading<Omit<FeedRow, 'ms' | 'rejected'>> {
  const reading = readModel(limitlessEvent, raw);
  if (!reading.ok) return reading;
  if (!time.ok) return time;
  const event = reading.value;
  const price = parseDecimal(event.price);
  const rawSize = parseDecimal(event.matchedSize);
  if (price === null || rawSize === null) {
    return reject('invalid_field', `${price === null ? 'price' : 'matchedSize'}: not a number`);
  }
  if (!isUnitPrice(price)) return reject('price_out_of_range', `price: ${price.slice(0, 40)}`);
  if (!isPositive(rawSize)) return reject('size_not_positive', `matchedSize: ${rawSize.slice(0, 40)}`);
  if (!isPlausibleQuantity(rawSize)) return reject('size_out_of_range', `matchedSize: ${rawSize.slice(0, 40)}`);
  const sideWord = String(event.side ?? '');
  const side = sideWord === '0' ? 'buy' : sideWord === '1' ? 'sell' : undefined;
  return accept({
    trade: {
      outcomeId: event.tokenId,
      tsMs: time.value,
      price,
      size: fromRaw(rawSize),
      ...(side !== undefined && { side }),
    },
    canonical: canonicalEvent(event, time.value, [price, rawSize]),
    ...(side === undefined && { unknownSide: sideWord.slice(0, 100) }),
  });
}

/** The canonical text of a row: equal trades have equal texts in every notation of numbers and hex digits. */
function canonicalEvent(event: LimitlessEvent, ms: number, numbers: readonly string[]): string {
  const { tokenId, side, txHash, makerAmount, takerAmount, profile } = event;
  const amounts = [makerAmount, takerAmount].map((each) => parseDecimal(each) ?? '');
  const hexes = [txHash, profile?.account].map((each) => (each ?? '').toLowerCase());
  return [ms, tokenId, String(side ?? ''), ...numbers, ...amounts, ...hexes].join('|');
}

function readTime(raw: unknown, nowMs: number): Reading<number> {
  const text = textOf(raw, 'createdAt');
  if (text === undefined) return reject('missing_field', 'createdAt');
  const ms = parseVenueTimeMs(text);
  if (ms === undefined) return reject('invalid_field', 'createdAt: not a time');
  if (ms < MIN_MS) return reject('timestamp_out_of_range', `createdAt: ${text.slice(0, 40)}`);
  return ms > nowMs + MAX_AHEAD_MS ? reject('timestamp_in_future', `createdAt: ${text.slice(0, 40)}`) : accept(ms);
}

/**
 * Gives rows their ids, oldest first; every millisecond among them must be complete, and no row may be there twice. The venue gives
 * no order within a millisecond.
 */
export function identifyTrades(newestFirst: readonly FeedRow[]): ParsedBatch<TradeRecord> {
  const batch = emptyBatch<TradeRecord>();
  const ordinalOf = createOrdinals();
  for (const row of [...newestFirst].reverse()) {
    if (row.rejected) batch.rejected.push(row.rejected);
    if (row.unknownSide !== undefined) batch.unknowns.push({ field: 'side', value: row.unknownSide });
    if (row.trade === undefined || row.canonical === undefined) continue;
    batch.records.push({ tradeId: tradeIdOf(row.canonical, ordinalOf(row.canonical)), ...row.trade });
  }
  return batch;
}
