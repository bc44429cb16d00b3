import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import type { FeeRule, FeeStatement } from '../../../src/domain/markets/fee.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import type { Manner } from './alert-world.ts';
import { type BookRuleFields, BookWorld } from './book-world.ts';

/** ODDSWIRE_RUNS=200 runs 200 random histories; the default histories are fixed. */
const RUNS = process.env['ODDSWIRE_RUNS'];

const test = useTestDatabase({ poolSize: 40 });
beforeAll(async () => {
  const partitions = new Partitions(test.db);
  for (const table of ['observation', 'price_history'] as const) await partitions.ensureAroundNow(table);
  await partitions.ensure('book_history', [Date.now() - 86_400_000, Date.now() - 7_200_000, Date.now()]);
});

type Step = (world: BookWorld) => Promise<void>;
const place = fc.nat({ max: 2 });
const cents = (min: number, max: number) => fc.integer({ min, max }).map((value) => decimal(String(value / 100)));
const curve: FeeRule = {
  ...{ model: 'price_curve', takerRate: decimal('0.07'), exponent: 1 },
  ...{ digits: 4, rounding: 'up', balanceDigits: 2 },
};

const none: FeeRule = { model: 'none' };

const STATEMENTS: ((nowMs: number) => FeeStatement)[] = [
  () => ({ periods: [{ rule: none }] }),
  () => ({ periods: [{ rule: curve }] }),
  () => ({ periods: [], reason: 'not_stated' }),
  (nowMs) => ({ periods: [{ rule: curve }, { fromMs: nowMs + 4_000, rule: none }] }),
];

const manner: fc.Arbitrary<Manner> = fc.record({
  evaluators: fc.integer({ min: 1, max: 3 }),
  claimed: fc.integer({ min: 1, max: 40 }),
  limits: fc.record({
    fired: fc.integer({ min: 1, max: 5 }),
    firedPerToken: fc.constant(3),
    expired: fc.constant(3),
    books: fc.integer({ min: 1, max: 12 }),
  }),
  dies: fc.nat({ max: 5 }).map((n) => n === 0),
  isBehind: fc.boolean(),
});

function step<T>(name: string, values: fc.Arbitrary<T>, run: (world: BookWorld, value: T) => Promise<void>) {
  return values.map((value): Step & { toString(): string } =>
    Object.assign((world: BookWorld) => run(world, value), { toString: () => `${name} ${fc.stringify(value)}` }),
  );
}

const levels = (min: number, max: number) =>
  fc.record({ price: cents(min, max), size: fc.constantFrom('4', '30.5', '200').map(decimal) });

const steps = fc.oneof(
  {
    weight: 14,
    arbitrary: step(
      'book',
      fc.record({
        place,
        afterMs: fc.constantFrom(0, 1, 1_000, 3_000, 8_000),
        bid: levels(30, 50),
        ask: levels(47, 68),
        isMarked: fc.nat({ max: 8 }).map((n) => n > 0),
      }),
      async (world, { place: on, afterMs, bid, ask, isMarked }) => {
        world.wait(afterMs);
        await world.book(on, { bids: [bid], asks: [ask, { price: decimal('0.9'), size: decimal('50') }] }, isMarked);
      },
    ),
  },
  {
    weight: 3,
    arbitrary: step(
      'fee',
      fc.record({
        place,
        statement: fc.constantFrom(...STATEMENTS),
      }),
      (world, { place: on, statement }) => world.fee(on, statement),
    ),
  },
  {
    weight: 6,
    arbitrary: step(
      'rule',
      fc.record<BookRuleFields>({
        condition: fc.constantFrom('executable', 'net_difference'),
        side: fc.constantFrom('buy', 'sell'),
        direction: fc.constantFrom('at_most', 'at_least'),
        by: fc.constantFrom('size', 'notional'),
        amount: fc.constantFrom('3', '20.25', '60').map(decimal),
        target: fc.oneof(cents(40, 60), cents(1, 4)),
        cooldownSeconds: fc.constantFrom(undefined, 1, 5, 20),
        lastsMs: fc.constantFrom(undefined, undefined, 10_000, 60_000),
        on: fc.constantFrom([0, 1], [1, 0], [2, 0]),
      }),
      (world, fields) => world.rule(fields),
    ),
  },
  { weight: 5, arbitrary: step('evaluate', manner, (world, value) => world.evaluate(value)) },
  { weight: 1, arbitrary: step('lose', fc.constant(0), (world) => world.loseMarks()) },
  { weight: 1, arbitrary: step('resolve', fc.constant(2), (world, on) => world.resolve(on)) },
);

it(
  'evaluateAlerts and a backtest fire rules on books exactly as a run over all books, for random books, fees, batches, deaths, lost marks and concurrent evaluators',
  async () => {
    let fired = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(steps, { minLength: 10, maxLength: 60, size: 'max' }),
        manner,
        async (history, last) => {
          const world = await BookWorld.create(test.db);
          for (const run of history) await run(world);
          for (const verdict of await world.verdicts(last)) {
            const { rule, expected } = verdict;
            expect({ rule, fired: verdict.fired, backtest: verdict.backtest }).toEqual({
              ...{ rule, fired: expected, backtest: expected },
            });
            fired += expected.length;
          }
        },
      ),
      RUNS === undefined ? { numRuns: 20, seed: 32, endOnFailure: true } : { numRuns: Number(RUNS) },
    );
    expect(fired).toBeGreaterThan(10);
  },
  RUNS === undefined ? undefined : 3_600_000,
);
