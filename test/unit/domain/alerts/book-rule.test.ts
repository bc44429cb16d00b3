import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BookRule,
  BookRun,
  type KnownFee,
  momentsOf,
  type ObservedBook,
} from '../../../../src/domain/alerts/book-rule.ts';
import { executable } from '../../../../src/domain/markets/executable.ts';
import type { FeeRule } from '../../../../src/domain/markets/fee.ts';
import { compareDecimals, decimal, divideDecimals, subtractDecimals } from '../../../../src/domain/values/decimal.ts';

const level = (cents: number, size: number) => ({ price: decimal(String(cents / 100)), size: decimal(String(size)) });
const curve = (rate: string): FeeRule => ({
  model: 'price_curve',
  takerRate: decimal(rate),
  exponent: 1,
  digits: 4,
  rounding: 'up',
});

interface SomeBook {
  atMs: number;
  bid: number;
  ask: number;
  size: number;
}

const toObserved = ({ atMs, bid, ask, size }: SomeBook): ObservedBook => ({
  atMs,
  levels: () => ({ bids: [level(bid, size), level(bid - 2, 50)], asks: [level(ask, size), level(ask + 2, 50)] }),
});

const someBooks = fc
  .uniqueArray(
    fc.record({
      atMs: fc.integer({ min: 1, max: 60 }),
      bid: fc.integer({ min: 30, max: 52 }),
      ask: fc.integer({ min: 48, max: 70 }),
      size: fc.constantFrom(5, 20, 80),
    }),
    { maxLength: 25, selector: ({ atMs }) => atMs },
  )
  .map((books) => books.sort((a, b) => a.atMs - b.atMs));
const someFees: fc.Arbitrary<KnownFee[]> = fc
  .uniqueArray(
    fc.record({
      knownMs: fc.integer({ min: 0, max: 60 }),
      statement: fc.constantFrom(
        { periods: [{ rule: curve('0.07') }] },
        { periods: [{ rule: { model: 'none' as const } }] },
        { periods: [{ rule: { model: 'none' as const } }, { fromMs: 30, rule: curve('0.5') }] },
        { periods: [], reason: 'not_stated' as const },
      ),
    }),
    { maxLength: 4, selector: ({ knownMs }) => knownMs },
  )
  .map((fees) => fees.sort((a, b) => a.knownMs - b.knownMs));
const someTimes = fc.record({
  startMs: fc.integer({ min: 0, max: 40 }),
  lastsMs: fc.constantFrom(10, 30, Number.POSITIVE_INFINITY),
  cooldownMs: fc.constantFrom(null, 1, 7),
  amount: fc.constantFrom('3', '20', '60').map(decimal),
  target: fc.integer({ min: 38, max: 62 }).map((cents) => decimal(String(cents / 100))),
});

/** The price of an order at a moment, looked up again from all books until another moment. */
function priceAt(
  side: 'buy' | 'sell',
  books: readonly SomeBook[],
  fees: readonly KnownFee[],
  { amount, atMs, untilMs }: { amount: string; atMs: number; untilMs: number },
) {
  const book = books.findLast((one) => one.atMs <= untilMs);
  const known = fees.findLast(({ knownMs }) => knownMs <= atMs);
  const rule = known?.statement.periods.findLast(({ fromMs = 0 }) => fromMs <= atMs)?.rule;
  if (!book || !rule || book.bid >= book.ask) return null;
  const order = { side, by: 'size', amount: decimal(amount) } as const;
  const fill = executable(toObserved(book).levels(side), order, { fee: rule, sizeDigits: 0 });
  return fill.isComplete ? fill.priceWithFee : null;
}

interface Look {
  atMs: number;
  untilMs: number;
}

/** The firings of a rule: a look at the start, with the books before it, and one at each later millisecond with a new book. */
function bruteForce(
  { startMs, endMs, cooldownMs }: Pick<BookRule, 'startMs' | 'endMs' | 'cooldownMs'>,
  lists: readonly (readonly SomeBook[])[],
  isMet: (look: Look) => boolean,
): number[] {
  const looks: Look[] = [{ atMs: startMs, untilMs: startMs - 1 }];
  for (let ms = startMs; ms < Math.min(endMs, 100); ms += 1)
    if (lists.some((books) => books.some(({ atMs }) => atMs === ms))) looks.push({ atMs: ms, untilMs: ms });
  const fired: number[] = [];
  for (const look of looks) {
    const last = fired.at(-1);
    const isDue = last === undefined || (cooldownMs !== null && look.atMs - last >= cooldownMs);
    if (isDue && isMet(look)) fired.push(look.atMs);
  }
  return fired;
}

function run(rule: BookRule, lists: readonly (readonly SomeBook[])[]): number[] {
  const evaluation = new BookRun(rule);
  const moments = momentsOf(lists.map((books) => books.map(toObserved)));
  const fired = moments.flatMap((moment) => evaluation.observe(moment));
  return [...fired, ...evaluation.finish()].map(({ atMs }) => atMs);
}

describe('BookRun', () => {
  it('fires an order at exactly the moments that a look at each book finds, for random books and fees', () => {
    fc.assert(
      fc.property(
        ...[someBooks, someFees, someTimes, fc.constantFrom('buy', 'sell'), fc.constantFrom('at_most', 'at_least')],
        (books, fees, { startMs, lastsMs, cooldownMs, amount, target }, side, direction) => {
          const times = { startMs, endMs: startMs + lastsMs, cooldownMs };
          const rule: BookRule = {
            ...times,
            ...{ condition: 'executable', threshold: target, direction, side, by: 'size', amount, seesStart: true },
            legs: [{ sizeDigits: 0, fees }],
          };
          const expected = bruteForce(times, [books], (look) => {
            const price = priceAt(side, books, fees, { amount, ...look });
            if (price === null) return false;
            return direction === 'at_most' ? compareDecimals(price, target) <= 0 : compareDecimals(price, target) >= 0;
          });
          expect(run(rule, [books])).toEqual(expected);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('fires a net difference at exactly the moments that a look at each book finds', () => {
    fc.assert(
      fc.property(someBooks, someBooks, someFees, someFees, someTimes, (bought, sold, feesOfBuy, feesOfSell, some) => {
        const { startMs, lastsMs, cooldownMs, amount } = some;
        const threshold = decimal('0.01');
        const times = { startMs, endMs: startMs + lastsMs, cooldownMs };
        const rule: BookRule = {
          ...times,
          ...{ condition: 'net_difference', threshold, by: 'size', amount, seesStart: true },
          legs: [feesOfBuy, feesOfSell].map((fees) => ({ sizeDigits: 0, fees })),
        };
        const expected = bruteForce(times, [bought, sold], (look) => {
          const buy = priceAt('buy', bought, feesOfBuy, { amount, ...look });
          const sell = priceAt('sell', sold, feesOfSell, { amount, ...look });
          return buy !== null && sell !== null && compareDecimals(subtractDecimals(sell, buy), threshold) >= 0;
        });
        expect(run(rule, [bought, sold])).toEqual(expected);
      }),
      { numRuns: 500 },
    );
  });

  const rule = (over: Partial<BookRule> = {}): BookRule => ({
    ...{ condition: 'executable', threshold: decimal('0.6'), direction: 'at_most', side: 'buy', by: 'size' },
    amount: decimal('10'),
    legs: [{ sizeDigits: 2, fees: [{ knownMs: 0, statement: { periods: [{ rule: { model: 'none' } }] } }] }],
    ...{ startMs: 10, endMs: 100, cooldownMs: null, seesStart: true },
    ...over,
  });

  it('does not fire when the fee is unknown, the book is too small or crossed', () => {
    const book = { atMs: 20, bid: 40, ask: 50, size: 5 };
    expect(run(rule(), [[book]])).toEqual([20]);
    expect(run(rule({ legs: [{ sizeDigits: 2, fees: [] }] }), [[book]])).toEqual([]);
    expect(run(rule({ amount: decimal('56') }), [[book]])).toEqual([]);
    expect(run(rule(), [[{ ...book, bid: 50 }]])).toEqual([]);
  });

  it('fills an order by notional in sizes of the venue', () => {
    const book = { atMs: 20, bid: 40, ask: 50, size: 80 };
    const evaluation = new BookRun(rule({ by: 'notional', amount: decimal('10.004') }));
    const [firing] = evaluation.observe({ atMs: 20, books: [toObserved(book)] });
    expect(firing).toMatchObject({ n: 20n, price: '0.5', fills: [{ filledSize: '20', fee: '0' }], agesMs: [0] });
    expect(firing && divideDecimals(firing.price, decimal('1'), 1)).toBe('0.5');
  });

  it('states how long the books in effect at the start were unchanged', () => {
    const evaluation = new BookRun(rule());
    evaluation.observe({ atMs: 4, books: [toObserved({ atMs: 4, bid: 40, ask: 50, size: 80 })] });
    expect(evaluation.finish()).toMatchObject([{ n: 4n, atMs: 10, agesMs: [6] }]);
    expect(evaluation.finish()).toEqual([]);
  });
});
