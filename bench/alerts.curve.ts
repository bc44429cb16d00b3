import { it } from 'vitest';
import { type AlertWorld, anAlertWorld, BATCH, batchCosts, spread } from './support/alert-worlds.ts';
import { curve } from './support/curve.ts';
import { percentile, sizesOf, whole } from './support/numbers.ts';
import { report } from './support/report.ts';

/** The curve's numbers of active alerts: BENCH_CURVE_ALERTS=10000,100000 for a quick run. */
const ALERTS = sizesOf('BENCH_CURVE_ALERTS', [10_000, 1_000_000]);
const TOKENS = Math.max(...ALERTS) / 4;

it('evaluates a batch of a thousand prices, with more and more alerts', async () => {
  const worlds: AlertWorld[] = [];
  try {
    for (const alerts of ALERTS) worlds.push(await anAlertWorld({ alerts, tokens: TOKENS }));
    const costs = await batchCosts(worlds);
    const points = costs.map((samples, index) => ({
      size: `${whole(ALERTS[index] ?? 0)} alerts`,
      measured: spread(samples),
      value: percentile(samples, 0.5),
    }));
    report(curve(`${whole(BATCH)} changed prices, ${whole(TOKENS)} tokens`, points, { atMost: 2 }));
  } finally {
    for (const { test } of worlds) await test.drop();
  }
});
