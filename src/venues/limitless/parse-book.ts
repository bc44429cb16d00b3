import type { BookRecord, PriceLevel } from '../../domain/markets/market.ts';
import { addDecimals, compareDecimals, ONE, parseDecimal, subtractDecimals } from '../../domain/values/decimal.ts';
import { isStorableText } from '../../domain/values/text.ts';
import { emptyBatch, type ParsedBatch } from '../parsed-batch.ts';
import { isPlausibleQuantity, isUnitPrice } from '../quantity.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import { textOf } from './listing.ts';
import { type LimitlessBook, limitlessBook } from './models.ts';
import { fromRaw } from './parse-market.ts';

/**
 * Books of YES, and of NO as their mirror image: a bid at p is an ask of the other side at 1 - p, of the same size. Each raw book
 * carries the `outcomeIds` of the requested market. Levels are sorted, merged and not empty, for any order of the raw ones.
 * The venue gives no time: `asOfMs` is that of the answer; pure.
 */
export function parseBooks(rows: readonly unknown[], asOfMs: number): ParsedBatch<BookRecord> {
  const batch = emptyBatch<BookRecord>();
  const seen = new Set<string>();
  for (const row of rows) {
    const reading = parseBook(row, asOfMs, seen);
    if (!reading.ok) {
      batch.rejected.push(rejectRecord('books', row, reading.rejection, textOf(row, 'tokenId')));
      continue;
    }
    for (const { outcomeId } of reading.value) seen.add(outcomeId);
    batch.records.push(...reading.value);
  }
  return batch;
}

function parseBook(row: unknown, asOfMs: number, seen: ReadonlySet<string>): Reading<BookRecord[]> {
  const reading = readModel(limitlessBook, row);
  if (!reading.ok) return reading;
  const { outcomeIds, tokenId } = reading.value;
  const [yes, no] = outcomeIds;
  if (!outcomeIds.every(isStorableText)) return reject('unstorable_text', 'outcomeIds');
  if (yes === no) return reject('duplicate_outcome', 'outcomeIds: YES and NO are the same');
  if (tokenId && tokenId !== yes) return reject('not_requested', 'tokenId: the book of another token');
  if (seen.has(yes) || seen.has(no)) return reject('duplicate_record', 'tokenId: the same market twice in one answer');
  const bids = readSide('bids', reading.value.bids, -1);
  if (!bids.ok) return bids;
  const asks = readSide('asks', reading.value.asks, 1);
  if (!asks.ok) return asks;
  const bid = bids.value[0]?.price;
  const ask = asks.value[0]?.price;
  if (bid !== undefined && ask !== undefined && compareDecimals(bid, ask) > 0) {
    return reject('crossed_book', `bid ${bid} above ask ${ask}`);
  }
  return accept([
    { outcomeId: yes, asOfMs, bids: bids.value, asks: asks.value },
    { outcomeId: no, asOfMs, bids: mirrored(asks.value), asks: mirrored(bids.value) },
  ]);
}

/** `direction` 1 sorts rising, -1 falling. */
function readSide(side: string, raw: LimitlessBook['bids'], direction: 1 | -1): Reading<PriceLevel[]> {
  const levels: PriceLevel[] = [];
  for (const [index, level] of raw.entries()) {
    const price = parseDecimal(level.price);
    const size = parseDecimal(level.size);
    if (price === null || size === null) return reject('invalid_field', `${side}.${index}: not a number`);
    if (!isUnitPrice(price)) return reject('price_out_of_range', `${side}.${index}.price: ${price.slice(0, 40)}`);
    if (size.startsWith('-') || !isPlausibleQuantity(size)) {
      return reject('size_out_of_range', `${side}.${index}.size: ${size.slice(0, 40)}`);
    }
    if (size !== '0') levels.push({ price, size: fromRaw(size) });
  }
  levels.sort((a, b) => direction * compareDecimals(a.price, b.price));
  const merged: PriceLevel[] = [];
  for (const level of levels) {
    const last = merged.at(-1);
    if (last?.price === level.price) last.size = addDecimals(last.size, level.size);
    else merged.push(level);
  }
  return accept(merged);
}

/** Bids of the other side, best first, are asks of this one, best first. */
function mirrored(levels: readonly PriceLevel[]): PriceLevel[] {
  return levels.map(({ price, size }) => ({ price: subtractDecimals(ONE, price), size }));
}
