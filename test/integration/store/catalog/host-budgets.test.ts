import { beforeEach, describe, expect, it } from 'vitest';
import {
  type BudgetChange,
  changeHostBudget,
  hostRates,
  openHostBudget,
} from '../../../../src/store/catalog/host-budgets.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const CLEAR = sql('test_clear_budgets', 'TRUNCATE host_budget');
const AHEAD = sql(
  'test_budget_of_the_future',
  `UPDATE host_budget SET refilled_at = now() + interval '1 hour', slowed_at = now() + interval '1 hour',
     paused_until = now() + interval '2 hours'`,
);
const HOST = 'venue.test#venue';
const MINUTE = 60_000;

const test = useTestDatabase();
beforeEach(() => test.db.query(CLEAR));

const budget = (ceiling: number, burst = 1) => ({ host: HOST, ceiling, burst });
const open = (ceiling: number, burst?: number) => openHostBudget(test.db, budget(ceiling, burst));

async function change(ceiling: number, of: BudgetChange) {
  const changed = await changeHostBudget(test.db, budget(ceiling), of);
  if (!changed) throw new Error('no budget');
  return changed;
}

/** Takes a turn and has it refused. */
async function refuse(ceiling: number) {
  const { at } = await change(ceiling, { turns: 1 });
  return change(ceiling, { limitedAt: at });
}

describe('openHostBudget', () => {
  it('creates a budget at its ceiling with a burst of turns', async () => {
    await open(10, 4);
    expect(await changeHostBudget(test.db, budget(10, 4), { turns: 9 })).toMatchObject({ granted: 4, rate: 10 });
    expect(await hostRates(test.db, [HOST, 'other'])).toEqual(new Map([[HOST, 10]]));
  });

  it('leaves a stored budget with the same ceiling as it is', async () => {
    await open(1);
    expect(await change(1, { turns: 1 })).toMatchObject({ granted: 1 });
    await refuse(1);
    await open(1);
    expect(await change(1, { turns: 1 })).toMatchObject({ granted: 0, rate: 0.5 });
  });

  it.each([
    ['raises a rate at the old ceiling to the new one', 0, 20, 20],
    ['lowers a rate at the old ceiling to the new one', 0, 4, 4],
    ['keeps a slowed rate under a higher ceiling', 1, 20, 5],
    ['keeps a slowed rate under a lower ceiling', 2, 4, 2.5],
    ['cuts a slowed rate at the new ceiling', 1, 3, 3],
    ['raises a slowed rate to the floor of the new ceiling', 4, 100, 10],
  ])('%s', async (_, refusals, ceiling, rate) => {
    await open(10);
    for (let refused = 0; refused < refusals; refused += 1) await refuse(10);
    await open(ceiling);
    expect(await change(ceiling, {})).toMatchObject({ rate });
  });
});

describe('changeHostBudget', () => {
  it('returns undefined for a budget that does not exist', async () => {
    expect(await changeHostBudget(test.db, budget(1), { turns: 1 })).toBeUndefined();
  });

  it('works after the clock was set back', async () => {
    await open(100);
    await test.db.query(AHEAD);
    const { waitMs, at } = await change(100, { turns: 1 });
    expect(waitMs).toBeLessThanOrEqual(10 * MINUTE + 10);
    expect(await change(100, { limitedAt: at + 0.001 })).toMatchObject({ rate: 50 });
  });
});
