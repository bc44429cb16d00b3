import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { AlertWorld, type Manner, TOKENS } from './alert-world.ts';

/** ODDSWIRE_RUNS=500 runs 500 random histories; the default histories are fixed. */
const RUNS = process.env['ODDSWIRE_RUNS'];

const test = useTestDatabase({ poolSize: 40 });
beforeAll(async () => {
  const partitions = new Partitions(test.db);
  for (const table of ['observation', 'price_history', 'book_history', 'trade'] as const) {
    await partitions.ensureAroundNow(table);
  }
});

type Step = (world: AlertWorld) => Promise<void>;
const token = fc.nat({ max: TOKENS - 1 });
const price = fc.integer({ min: 1, max: 9 });
const rarely = fc.nat({ max: 5 }).map((n) => n === 0);
const how = fc.record({ late: rarely, held: rarely });

const manner: fc.Arbitrary<Manner> = fc.record({
  evaluators: fc.integer({ min: 1, max: 3 }),
  claimed: fc.integer({ min: 1, max: 6 }),
  limits: fc.record({
    fired: fc.integer({ min: 1, max: 4 }),
    firedPerToken: fc.integer({ min: 1, max: 3 }),
    expired: fc.integer({ min: 1, max: 3 }),
  }),
  dies: rarely,
  isBehind: fc.boolean(),
});

/** A step with a printable form for failure reports. */
function step<T>(name: string, values: fc.Arbitrary<T>, run: (world: AlertWorld, value: T) => Promise<void>) {
  return values.map((value): Step & { toString(): string } =>
    Object.assign((world: AlertWorld) => run(world, value), { toString: () => `${name} ${fc.stringify(value)}` }),
  );
}

const prices = fc.dictionary(token.map(String), price, { minKeys: 1 });
const stepsOf = (anyManner: fc.Arbitrary<Manner>) =>
  fc.oneof(
    {
      weight: 6,
      arbitrary: step(
        'poll',
        fc.record({ kind: fc.constantFrom('prices', 'books'), prices, how }),
        (world, { kind, prices, how }) =>
          world.poll(kind, new Map(Object.entries(prices).map(([key, value]) => [Number(key), value])), how),
      ),
    },
    {
      weight: 3,
      arbitrary: step(
        'print',
        fc.record({ prints: fc.array(fc.tuple(token, price), { minLength: 1, maxLength: 4 }), how }),
        (world, { prints, how }) => world.print(prints, how),
      ),
    },
    {
      weight: 7,
      arbitrary: step(
        'alert',
        fc.record({ token, condition: fc.constantFrom('above', 'below'), target: price, held: rarely }),
        (world, { held, ...fields }) => world.alert(fields, held),
      ),
    },
    { weight: 2, arbitrary: step('commit', fc.nat(), (world, index) => world.commit(index)) },
    { weight: 1, arbitrary: step('delete', fc.nat(), (world, index) => world.deleteAlert(index)) },
    { weight: 1, arbitrary: step('resolve', fc.constant(null), (world) => world.resolve()) },
    { weight: 6, arbitrary: step('evaluate', anyManner, (world, value) => world.evaluate(value)) },
  );

it.each([
  ['evaluateAlerts', fc.constant(0)],
  ['evaluateAlerts beside evaluators of the former release', fc.nat({ max: 2 })],
])(
  '%s fires the alerts of the reference model, once each and on an allowed price, for random histories',
  async (_, formers) => {
    const anyManner = fc.tuple(manner, formers).map(([one, count]) => ({ ...one, formers: count }));
    const steps = stepsOf(anyManner);
    await fc.assert(
      fc.asyncProperty(
        fc.array(steps, { minLength: 5, maxLength: 40, size: 'max' }),
        anyManner,
        async (history, last) => {
          const world = await AlertWorld.create(test.db);
          for (const run of history) await run(world);
          const wrong = (await world.verdicts(last)).filter(({ problem }) => problem !== null);
          expect(wrong).toEqual([]);
        },
      ),
      RUNS === undefined ? { numRuns: 16, seed: 1_874_919 } : { numRuns: Number(RUNS) },
    );
  },
  RUNS === undefined ? undefined : 3_600_000,
);
