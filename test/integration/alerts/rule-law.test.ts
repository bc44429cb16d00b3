import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import type { MarketRecord } from '../../../src/domain/markets/market.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { observedFields, someKind } from '../../support/alerts/some-rules.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import type { Manner } from './alert-world.ts';
import { MARKET_COUNT, type RuleFields, type RuleKind, RuleWorld, TOKENS } from './rule-world.ts';

/** ODDSWIRE_RUNS=500 runs 500 random histories; the default histories are fixed. */
const RUNS = process.env['ODDSWIRE_RUNS'];

const test = useTestDatabase({ poolSize: 40 });
beforeAll(async () => {
  const partitions = new Partitions(test.db);
  for (const table of ['observation', 'price_history'] as const) await partitions.ensureAroundNow(table);
  await partitions.ensure('observation', [Date.now() - 7_200_000, Date.now()]);
});

type Step = (world: RuleWorld) => Promise<void>;
const rarely = fc.nat({ max: 5 }).map((n) => n === 0);

const manner: fc.Arbitrary<Manner> = fc.record({
  evaluators: fc.integer({ min: 1, max: 3 }),
  claimed: fc.integer({ min: 1, max: 40 }),
  limits: fc.record({
    fired: fc.integer({ min: 1, max: 5 }),
    firedPerToken: fc.constant(3),
    expired: fc.constant(3),
  }),
  dies: rarely,
  isBehind: fc.boolean(),
});

function step<T>(name: string, values: fc.Arbitrary<T>, run: (world: RuleWorld, value: T) => Promise<void>) {
  return values.map((value): Step & { toString(): string } =>
    Object.assign((world: RuleWorld) => run(world, value), { toString: () => `${name} ${fc.stringify(value)}` }),
  );
}

const token = fc.nat({ max: TOKENS - 1 });
const someFields = fc
  .record({
    kind: fc.oneof<fc.WeightedArbitrary<RuleKind>[]>(
      { weight: 3, arbitrary: someKind },
      {
        weight: 1,
        arbitrary: fc.constantFrom<RuleKind[]>(
          { condition: 'status' },
          { condition: 'new_market' },
          { condition: 'resolution', states: ['resolved'] },
          { condition: 'resolution', states: ['settled', 'disputed'] },
        ),
      },
    ),
    on: fc.oneof({ weight: 3, arbitrary: token }, fc.constantFrom('market', 'event', 'category', 'words')),
    cooldownSeconds: fc.constantFrom(undefined, 1, 5, 20),
    lastsMs: fc.constantFrom(undefined, undefined, 10_000, 60_000),
  })
  .map(({ kind, on, ...rest }): RuleFields => {
    // A new market has no token so far, and needs a scope of several markets.
    const isNarrow = kind.condition === 'new_market' && (typeof on === 'number' || on === 'market');
    return { kind, on: isNarrow ? 'words' : on, ...rest };
  });

const steps = fc.oneof(
  {
    weight: 10,
    arbitrary: step(
      'observe',
      fc.record({
        afterMs: fc.constantFrom(0, 1_000, 3_000, 8_000),
        list: fc.array(
          fc.tuple(token, observedFields).map(([of, fields]) => ({ ...fields, token: of })),
          { minLength: 1, maxLength: 6 },
        ),
      }),
      async (world, { afterMs, list }) => {
        world.wait(afterMs);
        await world.observe(list);
      },
    ),
  },
  {
    weight: 4,
    arbitrary: step(
      'change',
      fc.record({
        market: fc.nat({ max: MARKET_COUNT - 1 }),
        status: fc.oneof(
          { weight: 5, arbitrary: fc.constantFrom<MarketRecord['status'][]>('open', 'halted', 'closed') },
          { weight: 1, arbitrary: fc.constantFrom<MarketRecord['status'][]>('resolved', 'settled') },
        ),
      }),
      (world, { market, status }) => world.change(market, status),
    ),
  },
  { weight: 5, arbitrary: step('rule', someFields, (world, fields) => world.rule(fields)) },
  { weight: 5, arbitrary: step('evaluate', manner, (world, value) => world.evaluate(value)) },
);

it(
  'evaluateAlerts fires rules exactly as the reference model, for random rules, batches, deaths and concurrent evaluators',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(steps, { minLength: 10, maxLength: 50, size: 'max' }),
        manner,
        async (history, last) => {
          const world = await RuleWorld.create(test.db);
          for (const run of history) await run(world);
          for (const { rule, fired, expected } of await world.verdicts(last)) {
            expect({ rule, fired }).toEqual({ rule, fired: expected });
          }
        },
      ),
      RUNS === undefined ? { numRuns: 16, seed: 523, endOnFailure: true } : { numRuns: Number(RUNS) },
    );
  },
  RUNS === undefined ? undefined : 3_600_000,
);
