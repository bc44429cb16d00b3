import type { PriceLevel } from '../../../domain/markets/market.ts';
import { compareDecimals, type Decimal, parseDecimal } from '../../../domain/values/decimal.ts';
import { levelText, type WireLevel } from './hash.ts';

interface Level {
  readonly price: Decimal;
  /** In the venue's own digits. */
  readonly size: string;
  readonly text: string;
}

/** The levels of one side of a book, by rising price. A busy feed changes one level at a time, so the order is kept and not made. */
export class FeedLevels {
  readonly #levels: Level[] = [];
  /** The text of each level in the order of the wire; undefined after a change. */
  #text: string | undefined;
  /** Whether the wire has the highest price first. */
  readonly #isFalling: boolean;

  constructor(isFalling: boolean) {
    this.#isFalling = isFalling;
  }

  get lowest(): Decimal | undefined {
    return this.#levels[0]?.price;
  }

  get highest(): Decimal | undefined {
    return this.#levels.at(-1)?.price;
  }

  /** Sets the total of a level; a size of zero deletes it, and an unreadable price has no effect. */
  put(level: WireLevel): void {
    const price = parseDecimal(level.price);
    if (price === null) return;
    const at = this.#placeOf(price);
    const found = this.#levels[at];
    const isKnown = found !== undefined && found.price === price;
    this.#text = undefined;
    if (parseDecimal(level.size) === '0') {
      if (isKnown) this.#levels.splice(at, 1);
      return;
    }
    this.#levels.splice(at, isKnown ? 1 : 0, { price, size: level.size, text: levelText(level) });
  }

  /** A JSON list of the levels in the order of the wire. */
  toText(): string {
    if (this.#text !== undefined) return this.#text;
    const texts = this.#levels.map(({ text }) => text);
    if (this.#isFalling) texts.reverse();
    this.#text = `[${texts.join()}]`;
    return this.#text;
  }

  /** Best level first. */
  toRecords(): PriceLevel[] {
    const records = this.#levels.flatMap(({ price, size: raw }) => {
      const size = parseDecimal(raw);
      return size === null ? [] : [{ price, size }];
    });
    return this.#isFalling ? records : records.reverse();
  }

  /** The place of the first level that is not below this price. */
  #placeOf(price: Decimal): number {
    let [low, high] = [0, this.#levels.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const level = this.#levels[middle] as Level;
      if (compareDecimals(level.price, price) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
