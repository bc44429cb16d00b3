import { afterAll, beforeAll, expect, it } from 'vitest';
import { SHARDS } from '../src/domain/values/shard.ts';
import { anAccount } from '../test/factories/alerts.ts';
import {
  type AlertWorld,
  anAlertWorld,
  BATCH,
  batchCosts,
  evaluateAll,
  price,
  spread,
} from './support/alert-worlds.ts';
import type { Figure } from './support/figure.ts';
import { percentile, sizeOf, whole } from './support/numbers.ts';
import { report } from './support/report.ts';
import { addRules, addTrades, aRuleWorld } from './support/rule-worlds.ts';

/** BENCH_RULES=1000000 for the published figures (250,000 tokens); the default, which is the least, is a quick run. */
const RULES = sizeOf('BENCH_RULES', 160_000);
const FEW_RULES = 10_000;
const TOKENS = RULES / 4;
/** Tokens of one shard: each has four of the few rules, as each of all tokens has of the many. */
const TOUCHED = { count: FEW_RULES / 4, step: SHARDS };
/** The rules of a large account, and of a small one beside it. */
const LARGE = RULES / 10;
const SMALL = 10;
const SMALL_TOKENS = 1_000;
const ROUNDS = 15;
/** Trades of a busy outcome within a day. */
const BUSY = sizeOf('BENCH_BUSY_TRADES', 20_000);
const QUIET = 1_000;

const worlds: AlertWorld[] = [];
async function opened(world: Promise<AlertWorld>): Promise<AlertWorld> {
  const made = await world;
  worlds.push(made);
  return made;
}
let few: AlertWorld;
let touched: AlertWorld;
let many: AlertWorld;
beforeAll(async () => {
  few = await opened(aRuleWorld({ rules: FEW_RULES, tokens: TOKENS }));
  touched = await opened(aRuleWorld({ rules: FEW_RULES, tokens: TOKENS, on: TOUCHED }));
  many = await opened(aRuleWorld({ rules: RULES, tokens: TOKENS }));
});
afterAll(async () => {
  for (const { test } of worlds) await test.drop();
});

/** Milliseconds of the evaluation of one changed price of this token, by world; the worlds take turns. */
async function costsOf(compared: readonly AlertWorld[], token: bigint): Promise<number[][]> {
  const samples = compared.map((): number[] => []);
  for (let round = 0; round < 2 * ROUNDS; round++) {
    for (const [index, world] of compared.entries()) {
      await price(world, [token], String((5_000 + round) / 10_000));
      const { ms, fired } = await evaluateAll(world);
      expect(fired).toBe(0);
      if (round >= ROUNDS) samples[index]?.push(ms);
    }
  }
  return samples;
}

function figure(title: string, [base = [], own = []]: number[][], baseline: string, atMost?: number): Figure {
  return {
    title,
    measured: spread(own),
    baseline: `${baseline}: ${spread(base)}`,
    ratio: percentile(own, 0.5) / percentile(base, 0.5),
    ...(atMost !== undefined && { goal: { atMost } }),
  };
}

it('evaluates a batch of a thousand prices beside mixed rules on outcomes and markets', async () => {
  const title = `${whole(BATCH)} changed prices, ${whole(RULES)} mixed rules, ${whole(TOKENS)} tokens`;
  const [sparse = [], same = [], own = []] = await batchCosts([few, touched, many], { among: TOUCHED.count });
  report([
    figure(`${title}: as many rules per changed outcome`, [same, own], `${whole(FEW_RULES)} rules`, 2),
    figure(`${title}: ${whole(RULES / FEW_RULES)} times as many`, [sparse, own], `${whole(FEW_RULES)} rules`, 2),
  ]);
});

it('evaluates the outcome of a small account beside a large account', async () => {
  const tokens = { alerts: 0, tokens: SMALL_TOKENS };
  const [alone, elsewhere, beside] = [
    await opened(anAlertWorld(tokens)),
    await opened(anAlertWorld(tokens)),
    await opened(anAlertWorld(tokens)),
  ];
  for (const world of [alone, elsewhere, beside]) await addRules(world, world.accountId, SMALL, { count: 1 });
  await addRules(elsewhere, await anAccount(elsewhere.test.db), LARGE, { count: SMALL_TOKENS });
  await addRules(beside, await anAccount(beside.test.db), LARGE, { count: 1 });
  const [base = [], spreadOut = [], crowded = []] = await costsOf([alone, elsewhere, beside], 1n);
  const baseline = 'the small account alone';
  report([
    figure(
      `an outcome with ${SMALL} rules, ${whole(LARGE)} of another account on all outcomes`,
      [base, spreadOut],
      baseline,
      2,
    ),
    figure(`the same, ${whole(LARGE)} of another account on this outcome`, [base, crowded], baseline, 2),
  ]);
});

it('evaluates windows of a day of a busy outcome', async () => {
  const quiet = await opened(anAlertWorld({ alerts: 0, tokens: SMALL_TOKENS }));
  const busy = await opened(anAlertWorld({ alerts: 0, tokens: SMALL_TOKENS }));
  for (const [world, trades] of [
    [quiet, QUIET],
    [busy, BUSY],
  ] as const) {
    await addRules(world, world.accountId, 16, { count: 1 });
    await addTrades(world, 1n, trades);
  }
  const title = `a price of an outcome with ${whole(BUSY)} trades a day and windows of a day`;
  report([figure(title, await costsOf([quiet, busy], 1n), `${whole(QUIET)} trades a day`)]);
});
