import type { BookRecord, PriceLevel } from '../../domain/markets/market.ts';
import { addDecimals, compareDecimals, parseDecimal } from '../../domain/values/decimal.ts';
import { isStorableText } from '../../domain/values/text.ts';
import { emptyBatch, type ParsedBatch } from '../parsed-batch.ts';
import { isPlausibleQuantity } from '../quantity.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import { otherSide, readPrice } from './dollars.ts';
import { fieldOf, type KalshiBook, type KalshiSides, kalshiBook } from './models.ts';
import { COMBINATION, isCombinationTicker, outcomeIdsOf } from './tickers.ts';

/** The skip reason of an empty book of an unknown market: the venue answers with an empty book for any ticker. */
export const UNKNOWN_MARKET = 'unknown_market';

/**
 * The books of both outcomes from Kalshi's two lists of bids: an ask at p is a bid of the other side at 1 - p with the same size. Levels
 * are sorted, merged and not empty, in any order of the payload. The answer has no time: `asOfMs` is that of the whole answer; pure.
 * `requested` limits the tickers to those of the request.
 */
export function parseBooks(
  rows: readonly unknown[],
  asOfMs: number,
  requested?: ReadonlySet<string>,
): ParsedBatch<BookRecord> {
  const batch = emptyBatch<BookRecord>();
  const seen = new Set<string>();
  for (const row of rows) {
    const reading = parseBook(row, asOfMs, seen, requested);
    if (!reading.ok) {
      batch.rejected.push(rejectRecord('books', row, reading.rejection, fieldOf(row, 'ticker')));
      continue;
    }
    const { ticker, books } = reading.value;
    seen.add(ticker);
    if (isCombinationTicker(ticker)) batch.skipped.push(COMBINATION);
    else if (books.every(isEmpty) && fieldOf(row, 'market_id') === '') batch.skipped.push(UNKNOWN_MARKET);
    else batch.records.push(...books);
  }
  return batch;
}

function parseBook(
  row: unknown,
  asOfMs: number,
  seen: ReadonlySet<string>,
  requested: ReadonlySet<string> | undefined,
): Reading<{ ticker: string; books: BookRecord[] }> {
  const reading = readModel(kalshiBook, row);
  if (!reading.ok) return reading;
  const { ticker } = reading.value;
  if (!isStorableText(ticker)) return reject('unstorable_text', 'ticker');
  if (requested && !requested.has(ticker)) return reject('not_requested', 'ticker: the market was not requested');
  if (seen.has(ticker)) return reject('duplicate_record', 'ticker: the same market twice in one answer');
  const sides = readSides(reading.value);
  if (!sides.ok) return sides;
  const yes = readLevels('yes', sides.value.yes_dollars, sides.value.yes);
  if (!yes.ok) return yes;
  const no = readLevels('no', sides.value.no_dollars, sides.value.no);
  if (!no.ok) return no;
  const bid = yes.value[0]?.price;
  const ask = no.value[0] && otherSide(no.value[0].price);
  if (bid !== undefined && ask !== undefined && compareDecimals(bid, ask) > 0) {
    return reject('crossed_book', `yes bid ${bid} above yes ask ${ask}`);
  }
  const ids = outcomeIdsOf(ticker);
  return accept({
    ticker,
    books: [
      { outcomeId: ids.yes, asOfMs, bids: yes.value, asks: asksFrom(no.value) },
      { outcomeId: ids.no, asOfMs, bids: no.value, asks: asksFrom(yes.value) },
    ],
  });
}

/** A book without orders. An unknown market looks the same. */
export function isEmpty({ bids, asks }: BookRecord): boolean {
  return bids.length === 0 && asks.length === 0;
}

/** A book with unknown keys must not count as empty: after a rename of the keys, every book would look empty. */
function readSides({ orderbook_fp, orderbook }: KalshiBook): Reading<KalshiSides> {
  const sides = orderbook_fp ?? orderbook;
  if (!sides) return reject('missing_field', 'orderbook_fp: absent, and orderbook too');
  const { yes_dollars, no_dollars, yes, no } = sides;
  const isKnown = [yes_dollars, no_dollars, yes, no].some((side) => side !== undefined);
  const isBare = Object.keys(sides).length === 0;
  return isKnown || isBare ? accept(sides) : reject('missing_field', 'orderbook_fp: both sides are absent');
}

/** Bids of one side, best first. */
function readLevels(side: string, dollars: KalshiSides['yes'], cents: KalshiSides['yes']): Reading<PriceLevel[]> {
  const levels: PriceLevel[] = [];
  for (const [index, [rawPrice, rawSize]] of (dollars ?? cents ?? []).entries()) {
    const at = `${side}.${index}`;
    const price = dollars ? readPrice(at, rawPrice, undefined) : readPrice(at, undefined, rawPrice);
    if (!price.ok) return price;
    const size = parseDecimal(rawSize);
    if (price.value === undefined || size === null) return reject('invalid_field', `${at}: not a number`);
    if (size.startsWith('-') || !isPlausibleQuantity(size)) {
      return reject('size_out_of_range', `${at}: ${size.slice(0, 40)}`);
    }
    if (size !== '0') levels.push({ price: price.value, size });
  }
  levels.sort((a, b) => compareDecimals(b.price, a.price));
  const merged: PriceLevel[] = [];
  for (const level of levels) {
    const last = merged.at(-1);
    if (last?.price === level.price) last.size = addDecimals(last.size, level.size);
    else merged.push(level);
  }
  return accept(merged);
}

/** Bids of the other side, best first, are asks of this one, best first. */
function asksFrom(bids: readonly PriceLevel[]): PriceLevel[] {
  return bids.map(({ price, size }) => ({ price: otherSide(price), size }));
}
