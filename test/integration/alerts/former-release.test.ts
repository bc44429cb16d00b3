import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { derivedId, newId } from '../../../src/domain/values/ids.ts';
import { ALL_SHARDS } from '../../../src/domain/values/shard.ts';
import { createAlert } from '../../../src/store/alerts/alerts.ts';
import { evaluateAlerts } from '../../../src/store/alerts/evaluate.ts';
import { sql, type Tx } from '../../../src/store/db/tx.ts';
import type { Mark } from '../../../src/store/marks/marks.ts';
import { workShards } from '../../../src/store/marks/stage.ts';
import { aSubscription } from '../../factories/alerts.ts';
import { type EvaluationLimits, evaluateAsFormerly } from '../../support/alerts/former-alerter.ts';
import { useAlertDesk } from './alert-desk.ts';

/*
 * During an upgrade processes of the former release run beside new ones. An alert `above` or `below` is stored without a probe by both, and
 * each of them fires it under the same event.
 */

const ONE_FIRING: EvaluationLimits = { fired: 1, firedPerToken: 1, expired: 1 };
const ALL: EvaluationLimits = { fired: 1_000, firedPerToken: 1_000, expired: 1_000 };

/** The state of a backup that is older than the firing. The observations after it are lost too. */
const RESTORE = [
  sql('test_restore_deliveries', 'DELETE FROM delivery'),
  sql('test_restore_events', 'DELETE FROM event'),
  sql(
    'test_restore_alerts',
    `UPDATE alert SET status = 'active', triggered_at = NULL, triggered_price = NULL, event_id = NULL`,
  ),
  sql('test_restore_observations', 'DELETE FROM observation WHERE price > 0.6'),
] as const;
const DIE = sql('test_die', 'SELECT pg_terminate_backend(pg_backend_pid())');
const STORED = sql(
  'test_stored_alerts',
  `SELECT a.id, a.status, a.probe, a.triggered_price, a.event_id, (SELECT count(*)::int FROM alert_firing f WHERE f.alert_pk = a.pk) AS firings,
     (SELECT count(*)::int FROM event e WHERE e.dedupe_key LIKE 'alert:' || a.id || '%') AS events,
     (SELECT count(*)::int FROM delivery d JOIN event e ON e.pk = d.event_pk WHERE e.id = a.event_id) AS deliveries
   FROM alert a JOIN token t ON t.id = a.token_id WHERE t.mint = $1 ORDER BY a.pk`,
);

type Evaluator = (tx: Tx, marks: readonly Mark[], limits: EvaluationLimits) => Promise<unknown>;

const EVALUATORS: Readonly<Record<'former' | 'new', Evaluator>> = {
  former: evaluateAsFormerly,
  new: (tx, marks, limits) => evaluateAlerts(tx, marks, { limits }),
};
const ORDERS = [
  ['former', 'new'],
  ['new', 'former'],
] as const;

const desk = useAlertDesk();
let mint: string;
beforeAll(() => aSubscription(desk.db, { accountId: desk.accountId }));
beforeEach(() => {
  mint = newId('req');
});

/** One claim of all marks. */
async function claim(
  evaluator: Evaluator,
  limits: EvaluationLimits,
  then?: (tx: Tx) => Promise<unknown>,
): Promise<void> {
  await workShards(desk.db, 'evaluate-alerts', ALL_SHARDS, { limit: 1_600, order: 'oldest' }, async (tx, marks) => {
    await evaluator(tx, marks, limits);
    await then?.(tx);
  });
}

/** Alerts at 0.6 or above: the former API makes the first, and the new API the second. */
async function alertsOfBoth(): Promise<string[]> {
  const { id } = await desk.create(mint, 'above', '0.6');
  const request = { tokenMint: mint, condition: 'above', target: decimal('0.6') } as const;
  const made = await desk.db.transaction((tx) => createAlert(tx, desk.accountId, request));
  if (made.outcome !== 'created') throw new Error(made.outcome);
  return [id, made.alert.id];
}

const fired = (ids: readonly string[], price: string) =>
  ids.map((id) => ({
    id,
    status: 'triggered',
    probe: null,
    triggeredPrice: price,
    eventId: derivedId('evt', `alert:${id}`),
    firings: 0,
    events: 1,
    deliveries: 1,
  }));

describe.each(ORDERS)('when the alerter of the %s release claims first, then that of the %s one', (first, second) => {
  it('alerts of both APIs fire once, under the same events after a restore', async () => {
    await desk.see(mint, '0.5');
    const ids = await alertsOfBoth();
    await claim(EVALUATORS[first], ALL);
    await desk.see(mint, '0.7');
    await claim(EVALUATORS[first], ONE_FIRING);
    await claim(EVALUATORS[second], ALL);
    expect(await desk.db.query(STORED, [mint])).toEqual(fired(ids, '0.7'));

    for (const statement of RESTORE) await desk.db.query(statement);
    await desk.see(mint, '0.8');
    await claim(EVALUATORS[second], ONE_FIRING);
    await claim(EVALUATORS[first], ALL);
    expect(await desk.db.query(STORED, [mint])).toEqual(fired(ids, '0.8'));
  });

  it('alerts fire once when the first one dies before its commit', async () => {
    await desk.see(mint, '0.5');
    const ids = await alertsOfBoth();
    await desk.see(mint, '0.7');
    await expect(claim(EVALUATORS[first], ALL, (tx) => tx.query(DIE))).rejects.toThrow();
    expect(await desk.db.query(STORED, [mint])).toMatchObject(ids.map((id) => ({ id, status: 'active', events: 0 })));
    await claim(EVALUATORS[second], ALL);
    expect(await desk.db.query(STORED, [mint])).toEqual(fired(ids, '0.7'));
  });

  it('an alert of a market with a final outcome fires on an earlier price, and the others expire once', async () => {
    const { market, mint: outcome } = desk.market();
    mint = outcome;
    await desk.list(market);
    await desk.see(mint, '0.5');
    const ids = await alertsOfBoth();
    const other = await desk.create(mint, 'below', '0.1');
    await desk.see(mint, '0.7');
    await desk.resolve(market);
    await claim(EVALUATORS[first], ONE_FIRING);
    await claim(EVALUATORS[second], ONE_FIRING);
    await claim(EVALUATORS[first], ALL);
    await claim(EVALUATORS[second], ALL);
    expect(await desk.db.query(STORED, [mint])).toMatchObject([
      ...fired(ids, '0.7'),
      { id: other.id, status: 'expired', events: 0 },
    ]);
  });
});
