import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { observedFields, someKind } from '../../support/alerts/some-rules.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { RecordedRun, type RunAlert, TOKENS } from './recorded-run.ts';

/** ODDSWIRE_RUNS=20 records 20 random runs; the default run is fixed. */
const RUNS = process.env['ODDSWIRE_RUNS'];
const ALERTS = 1_000;

const test = useTestDatabase();
beforeAll(async () => {
  const partitions = new Partitions(test.db);
  for (const table of ['observation', 'price_history'] as const) await partitions.ensureAroundNow(table);
});

type Step = (run: RecordedRun) => Promise<void>;
const token = fc.nat({ max: TOKENS - 1 });

const someAlert: fc.Arbitrary<RunAlert> = fc
  .record({
    kind: fc.oneof(
      { weight: 9, arbitrary: someKind as fc.Arbitrary<Omit<RunAlert, 'on' | 'cooldownSeconds' | 'lastsMs'>> },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          { condition: 'status' as const },
          { condition: 'new_market' as const },
          { condition: 'resolution' as const, states: ['settled' as const, 'disputed' as const] },
        ),
      },
    ),
    on: fc.oneof({ weight: 3, arbitrary: token }, fc.constantFrom('market', 'event', 'category', 'words')),
    cooldownSeconds: fc.constantFrom(undefined, 1, 5, 20),
    lastsMs: fc.constantFrom(undefined, undefined, 10_000, 60_000),
  })
  .map(
    ({ kind, on, ...rest }) =>
      ({
        ...kind,
        ...rest,
        // A new market has no token so far, and needs a scope of several markets.
        on: kind.condition === 'new_market' && (typeof on === 'number' || on === 'market') ? 'words' : on,
      }) as RunAlert,
  );

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 20,
    arbitrary: fc
      .record({
        afterMs: fc.constantFrom(0, 1, 1_000, 3_000, 8_000),
        list: fc.array(
          fc.tuple(token, observedFields).map(([of, fields]) => ({ ...fields, token: of })),
          { minLength: 1, maxLength: 6 },
        ),
      })
      .map(({ afterMs, list }) => async (run: RecordedRun) => {
        run.wait(afterMs);
        await run.observe(list);
      }),
  },
  { weight: 30, arbitrary: someAlert.map((fields) => (run: RecordedRun) => run.alert(fields)) },
  {
    weight: 6,
    arbitrary: fc.integer({ min: 1, max: 40 }).map((claimed) => (run: RecordedRun) => run.evaluate(claimed)),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.nat({ max: 2 }),
        fc.constantFrom('open' as const, 'halted' as const, 'closed' as const, 'moves' as const),
      )
      .map(
        ([market, status]) =>
          (run: RecordedRun) =>
            run.change(market, status),
      ),
  },
);

it(
  'a backtest equals the live evaluation for 1,000 random rules of all kinds on one recorded run',
  async () => {
    for (let seed = 1; seed <= Number(RUNS ?? 1); seed++) {
      const run = await RecordedRun.create(test.db);
      const steps = fc.sample(step, { numRuns: 3 * ALERTS, seed: RUNS === undefined ? seed : Date.now() });
      let isResolved = false;
      for (const next of steps) {
        await next(run);
        if (!isResolved && run.alerts >= 0.9 * ALERTS) {
          isResolved = true;
          await run.change(1, 'resolved');
        }
        if (run.alerts === ALERTS) break;
      }
      await run.evaluate(40);
      let fired = 0;
      for await (const { alert, live, backtest } of run.verdicts()) {
        expect({ alert, fired: backtest }).toEqual({ alert, fired: live });
        fired += live.length;
      }
      expect(run.alerts).toBe(ALERTS);
      expect(fired).toBeGreaterThan(ALERTS);
    }
  },
  RUNS === undefined ? undefined : 3_600_000,
);
