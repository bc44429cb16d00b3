import type { BookRecord, PriceLevel } from '../../../domain/markets/market.ts';
import type { Quotes } from '../../../domain/markets/quoted-price.ts';
import { addDecimals, compareDecimals, type Decimal, parseDecimal, ZERO } from '../../../domain/values/decimal.ts';
import { isPlausibleQuantity } from '../../quantity.ts';
import { accept, type Reading, reject } from '../../rejection.ts';
import { otherSide, readPrice } from '../dollars.ts';
import { outcomeIdsOf } from '../tickers.ts';
import type { FeedSnapshot } from './models.ts';

type Levels = Map<Decimal, Decimal>;

/** The book of one market in terms of YES: a snapshot, and the deltas since then. */
export class KalshiFeedBook {
  readonly #ticker: string;
  readonly #bids: Levels;
  readonly #asks: Levels;

  private constructor(ticker: string, bids: Levels, asks: Levels) {
    this.#ticker = ticker;
    this.#bids = bids;
    this.#asks = asks;
  }

  /** `usesYesPrice`: the NO side lists YES asks; otherwise it lists NO bids. */
  static read(raw: FeedSnapshot, usesYesPrice: boolean): Reading<KalshiFeedBook> {
    const bids = readLevels('yes', raw.yes_dollars_fp, false);
    if (!bids.ok) return bids;
    const asks = readLevels('no', raw.no_dollars_fp, !usesYesPrice);
    if (!asks.ok) return asks;
    const book = new KalshiFeedBook(raw.market_ticker, bids.value, asks.value);
    const { bid, ask } = book.best;
    return book.isCrossed ? reject('crossed_book', `yes bid ${bid} above yes ask ${ask}`) : accept(book);
  }

  get best(): Quotes {
    const bid = extreme(this.#bids, 1);
    const ask = extreme(this.#asks, -1);
    return { ...(bid !== undefined && { bid }), ...(ask !== undefined && { ask }) };
  }

  get isCrossed(): boolean {
    const { bid, ask } = this.best;
    return bid !== undefined && ask !== undefined && compareDecimals(bid, ask) > 0;
  }

  get isEmpty(): boolean {
    return this.#bids.size === 0 && this.#asks.size === 0;
  }

  /** Changes the size of a level; false when the size would fall below zero, which shows that a change was lost. */
  apply(side: 'yes' | 'no', price: Decimal, delta: Decimal): boolean {
    const levels = side === 'yes' ? this.#bids : this.#asks;
    const size = addDecimals(levels.get(price) ?? ZERO, delta);
    if (size.startsWith('-')) return false;
    if (size === ZERO) levels.delete(price);
    else levels.set(price, size);
    return true;
  }

  /** YES, or NO as its mirror image. */
  toRecord(side: 'yes' | 'no', asOfMs: number): BookRecord {
    const ids = outcomeIdsOf(this.#ticker);
    const bids = sorted(this.#bids, -1);
    const asks = sorted(this.#asks, 1);
    return side === 'yes'
      ? { outcomeId: ids.yes, asOfMs, bids, asks }
      : { outcomeId: ids.no, asOfMs, bids: mirrored(asks), asks: mirrored(bids) };
  }
}

function readLevels(side: string, raw: FeedSnapshot['yes_dollars_fp'], isMirrored: boolean): Reading<Levels> {
  const levels: Levels = new Map();
  for (const [index, [rawPrice, rawSize]] of (raw ?? []).entries()) {
    const at = `${side}.${index}`;
    const price = readPrice(at, rawPrice, undefined);
    if (!price.ok) return price;
    const size = parseDecimal(rawSize);
    if (price.value === undefined || size === null) return reject('invalid_field', `${at}: not a number`);
    if (size.startsWith('-') || !isPlausibleQuantity(size)) {
      return reject('size_out_of_range', `${at}: ${size.slice(0, 40)}`);
    }
    const yesPrice = isMirrored ? otherSide(price.value) : price.value;
    if (size !== ZERO) levels.set(yesPrice, addDecimals(levels.get(yesPrice) ?? ZERO, size));
  }
  return accept(levels);
}

/** `direction` 1 sorts rising, -1 falling. */
function sorted(levels: Levels, direction: 1 | -1): PriceLevel[] {
  return [...levels].sort(([a], [b]) => direction * compareDecimals(a, b)).map(([price, size]) => ({ price, size }));
}

function mirrored(levels: readonly PriceLevel[]): PriceLevel[] {
  return levels.map(({ price, size }) => ({ price: otherSide(price), size }));
}

/** The highest price for 1, the lowest for -1. */
function extreme(levels: Levels, direction: 1 | -1): Decimal | undefined {
  let best: Decimal | undefined;
  for (const price of levels.keys()) {
    if (best === undefined || compareDecimals(price, best) === direction) best = price;
  }
  return best;
}
