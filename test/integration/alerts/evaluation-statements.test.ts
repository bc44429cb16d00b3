import { describe, expect, it } from 'vitest';
import { createAlert } from '../../../src/store/alerts/alerts.ts';
import { evaluateAlerts } from '../../../src/store/alerts/evaluate.ts';
import { drain } from '../../support/drain.ts';
import { useAlertDesk } from './alert-desk.ts';

const desk = useAlertDesk();

/** Evaluates all marks; returns the names of the statements that the evaluations ran. */
async function statements(): Promise<string[]> {
  const names: string[] = [];
  await drain(desk.db, 'evaluate-alerts', { limit: 100, order: 'oldest' }, (tx, marks) =>
    evaluateAlerts(
      {
        em: tx.em,
        query: (statement, values) => {
          names.push(statement.name);
          return tx.query(statement, values);
        },
      },
      marks,
    ),
  );
  return names;
}

describe('an evaluation', () => {
  it('of a price reads the rules of the token once when it has none', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    await desk.see(mint, '0.4');
    await statements();
    await desk.see(mint, '0.5');
    expect((await statements()).filter((name) => name.includes('rule'))).toEqual(['rule_probes']);
  });

  it('of a market reads reports when a status alert fired on it, and not before', async () => {
    const { market } = desk.market();
    await desk.list(market);
    const scope = { market_id: market.marketId };
    await desk.db.transaction((tx) => createAlert(tx, desk.accountId, { scope, condition: 'status' }));
    await desk.db.transaction((tx) => createAlert(tx, desk.accountId, { scope, condition: 'new_market' }));
    await statements();
    await desk.list({ ...market, title: 'Will it rain?' });
    expect(await statements()).not.toContain('market_rule_reporters');
    await desk.list({ ...market, status: 'halted' });
    expect(await statements()).toContain('market_rule_reporters');
    await desk.list({ ...market, status: 'open' });
    expect(await statements()).toContain('market_rule_reporters');
  });
});
