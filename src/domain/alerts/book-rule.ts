import { type Executable, executable, isExecutable, type OrderBookLevels } from '../markets/executable.ts';
import { type FeeRule, type FeeStatement, feePeriodAt } from '../markets/fee.ts';
import { decimal } from '../values/decimal.ts';
import type { BookMeasure, BookTerms } from './condition.ts';
import { BOOK_CONDITIONS, type BookConditionName } from './conditions.ts';
import type { LastFiring } from './rule.ts';

/** A book of an outcome, in effect from its receipt until the next one. */
export interface ObservedBook {
  /** The time of receipt, epoch milliseconds. It orders the books of an outcome. */
  atMs: number;
  /** The levels that an order of a side takes from, with the best one of the other side. */
  levels(side: 'buy' | 'sell'): OrderBookLevels;
}

/** A statement about a fee, with the first millisecond at which it was known. */
export interface KnownFee {
  knownMs: number;
  statement: FeeStatement;
}

/** What an order is given by: its size, or its notional. */
export function orderAmount(given: {
  size?: string | null | undefined;
  notional?: string | null | undefined;
}): Pick<BookTerms, 'by' | 'amount'> {
  const { size, notional } = given;
  return size === null || size === undefined
    ? { by: 'notional', amount: decimal(notional ?? '0') }
    : { by: 'size', amount: decimal(size) };
}

/** An outcome whose book a rule looks at. */
export interface BookLeg {
  /** Digits after the point of a size at its venue. */
  sizeDigits: number;
  /** What was known about the fee of its market, oldest first. */
  fees: readonly KnownFee[];
}

/** A condition on the books of one or two outcomes. */
export interface BookRule extends BookTerms {
  condition: BookConditionName;
  /** In the order of its orders. */
  legs: readonly BookLeg[];
  /** The first time at which it may fire, and the first one at which it may not, epoch milliseconds. */
  startMs: number;
  endMs: number;
  /** The least time between two firings; null: it fires once. */
  cooldownMs: number | null;
  /** Whether the books in effect at the start may fire it. */
  seesStart: boolean;
}

/** `n` is the moment of the later book. */
export interface BookFiring extends LastFiring, BookMeasure {
  fills: readonly Executable[];
  /** How long each book has been unchanged. */
  agesMs: readonly number[];
}

/** The new books of one moment, by the place of their outcome. */
interface BookMoment {
  atMs: number;
  books: readonly (ObservedBook | undefined)[];
}

/** The moments of the books of some outcomes, in order. Books of the same millisecond are one moment. */
export function momentsOf(lists: readonly (readonly ObservedBook[])[]): BookMoment[] {
  const moments = new Map<number, (ObservedBook | undefined)[]>();
  for (const [place, list] of lists.entries()) {
    for (const book of list) {
      const books = moments.get(book.atMs) ?? lists.map(() => undefined);
      books[place] = book;
      moments.set(book.atMs, books);
    }
  }
  return [...moments].map(([atMs, books]) => ({ atMs, books })).sort((a, b) => a.atMs - b.atMs);
}

/**
 * Runs a rule over the books of its outcomes, moment by moment. The result depends on the books and the known fees alone: live evaluation
 * gives the books in effect before the new ones, and the new ones; a backtest gives all.
 */
export class BookRun {
  readonly #rule: BookRule;
  readonly #standing: (ObservedBook | undefined)[];
  #last: LastFiring | undefined;
  #hasStarted = false;

  constructor(rule: BookRule, last?: LastFiring) {
    this.#rule = rule;
    this.#last = last;
    this.#standing = rule.legs.map(() => undefined);
  }

  /** Takes the next moment; returns the firing at the start, when it comes before it, and its own. */
  observe({ atMs, books }: BookMoment): BookFiring[] {
    const { startMs, endMs } = this.#rule;
    const fired = atMs >= startMs ? this.finish() : [];
    for (const [place, book] of books.entries()) if (book) this.#standing[place] = book;
    if (atMs >= startMs && atMs < endMs) fired.push(...this.#judge(atMs));
    return fired;
  }

  /** States that no further book precedes the start; returns the firing on the books in effect. */
  finish(): BookFiring[] {
    const { startMs, endMs, seesStart } = this.#rule;
    if (this.#hasStarted) return [];
    this.#hasStarted = true;
    return seesStart && startMs < endMs ? this.#judge(startMs) : [];
  }

  #judge(atMs: number): BookFiring[] {
    const books = this.#standing.filter((book) => book !== undefined);
    const n = BigInt(Math.max(0, ...books.map((book) => book.atMs)));
    if (books.length < this.#standing.length || !this.#mayFire({ n, atMs })) return [];
    const { legs, condition } = this.#rule;
    const { orders, measure } = BOOK_CONDITIONS[condition];
    const fills = orders(this.#rule).flatMap((order, place) => {
      const [leg, book] = [legs[place], books[place]];
      if (!leg || !book) return [];
      return [executable(book.levels(order.side), order, { fee: feeAt(leg, atMs), sizeDigits: leg.sizeDigits })];
    });
    const measured = fills.every(isExecutable) ? measure(fills, this.#rule) : undefined;
    if (!measured) return [];
    const firing = { n, atMs, ...measured, fills, agesMs: books.map((book) => atMs - book.atMs) };
    this.#last = firing;
    return [firing];
  }

  #mayFire({ n, atMs }: LastFiring): boolean {
    const last = this.#last;
    if (!last) return true;
    const { cooldownMs } = this.#rule;
    return cooldownMs !== null && n > last.n && atMs - last.atMs >= cooldownMs;
  }
}

/** The rule that applies at a moment, as known then; null for an unknown one. */
function feeAt({ fees }: BookLeg, atMs: number): FeeRule | null {
  const known = fees.findLast(({ knownMs }) => knownMs <= atMs);
  return (known && feePeriodAt(known.statement, atMs)?.rule) ?? null;
}
