import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import { createAlert } from '../../../src/store/alerts/alerts.ts';
import { evaluateAlerts } from '../../../src/store/alerts/evaluate.ts';
import { ensureTokens } from '../../../src/store/catalog/tokens.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { waitingShards } from '../../../src/store/marks/marks.ts';
import { workShards } from '../../../src/store/marks/stage.ts';
import { aSubscription } from '../../factories/alerts.ts';
import type { EvaluationLimits } from '../../support/alerts/former-alerter.ts';
import { gate } from '../../support/gate.ts';
import { LosableDatabase } from '../workers/worker-harness.ts';
import { useAlertDesk } from './alert-desk.ts';

const STAGE = 'evaluate-alerts' as const;
const LIMITS: EvaluationLimits = { fired: 100, firedPerToken: 40, expired: 70 };
const INSERT_CROWD = sql(
  'test_insert_crowd',
  `INSERT INTO alert (id, account_id, token_id, condition, target)
   SELECT gen_random_uuid()::text, $1, $2, $3, $4 FROM generate_series(1, $5::int)`,
);
const COUNTS = sql(
  'test_crowd_counts',
  `SELECT count(*)::int AS alerts, count(*) FILTER (WHERE a.status = 'triggered')::int AS triggered,
     count(*) FILTER (WHERE a.status = 'expired')::int AS expired, count(e.pk)::int AS events,
     count(DISTINCT e.pk)::int AS distinct_events, count(d.pk)::int AS deliveries
   FROM token t JOIN alert a ON a.token_id = t.id LEFT JOIN event e ON e.dedupe_key = 'alert:' || a.id
   LEFT JOIN delivery d ON d.event_pk = e.pk WHERE t.mint = $1`,
);

const desk = useAlertDesk();
let mint: string;
beforeAll(() => aSubscription(desk.db, { accountId: desk.accountId }));
beforeEach(() => {
  mint = newId('req');
});

async function aCrowd(ofMint: string, condition: 'above' | 'below', target: string, alerts: number): Promise<void> {
  const tokenId = (await ensureTokens(desk.db, [ofMint], 'USD')).get(ofMint);
  await desk.db.query(INSERT_CROWD, [desk.accountId, tokenId, condition, target, alerts]);
}

const countsOf = async (ofMint: string) => (await desk.db.query<Record<string, number>>(COUNTS, [ofMint]))[0];
const allFired = (alerts: number) => ({
  alerts,
  triggered: alerts,
  expired: 0,
  events: alerts,
  distinctEvents: alerts,
  deliveries: alerts,
});

describe('an evaluation with more met alerts than one transaction fires', () => {
  it('fires each alert once, in several transactions', async () => {
    await aCrowd(mint, 'above', '0.6', 130);
    await desk.see(mint, '0.7');
    const claims = await desk.evaluate(LIMITS);
    expect(claims.map(({ fired }) => fired.length)).toEqual([40, 40, 40, 10]);
    expect(await countsOf(mint)).toEqual(allFired(130));
  });

  it('loses no alert when the evaluator dies inside or between transactions', async () => {
    await aCrowd(mint, 'above', '0.6', 130);
    await desk.see(mint, '0.7');
    const [shard = 0] = await waitingShards(desk.db, STAGE);
    const db = new LosableDatabase(desk.db.dataSource);
    let isLost = false;
    db.loseAtCommit = () => {
      isLost = !isLost;
      return isLost;
    };
    const once = () =>
      workShards(db, STAGE, [shard], { limit: 100, order: 'oldest' }, (tx, marks) =>
        evaluateAlerts(tx, marks, { limits: LIMITS }),
      );
    await expect(once()).rejects.toThrow('terminating connection');
    expect(await countsOf(mint)).toMatchObject({ triggered: 0, events: 0 });
    await once();
    expect(await countsOf(mint)).toMatchObject({ triggered: 40, events: 40, deliveries: 40 });
    await expect(once()).rejects.toThrow('terminating connection');
    await desk.evaluate(LIMITS);
    expect(await countsOf(mint)).toEqual(allFired(130));
  });

  it('also fires alerts of the other tokens of the shard', async () => {
    // Token ids 16 apart share a shard.
    const mints = Array.from({ length: 17 }, () => newId('req'));
    const tokens = await ensureTokens(desk.db, mints, 'USD');
    const byKey = [...tokens].sort(([, a], [, b]) => (a < b ? -1 : 1)).map(([name]) => name);
    const [crowded = '', quiet = ''] = [byKey[0], byKey[16]];
    await aCrowd(crowded, 'above', '0.6', 90);
    await aCrowd(quiet, 'below', '0.4', 1);
    await desk.see(crowded, '0.7');
    await desk.see(quiet, '0.3');
    const [first] = await desk.evaluate(LIMITS);
    expect(first?.fired).toHaveLength(41);
    expect([await countsOf(crowded), await countsOf(quiet)]).toEqual([allFired(90), allFired(1)]);
  });

  it('fires each alert on the first price that met it, despite later prices', async () => {
    await aCrowd(mint, 'above', '0.6', 90);
    await desk.see(mint, '0.7');
    const first = await desk.evaluate({ ...LIMITS, firedPerToken: 89 });
    await aCrowd(mint, 'above', '0.6', 90);
    await desk.see(mint, '0.75', '0.8');
    await desk.evaluate(LIMITS, 1);
    expect(first).toHaveLength(2);
    const prices = sql(
      'test_crowd_prices',
      `SELECT triggered_price, count(*)::int AS alerts FROM alert a JOIN token t ON t.id = a.token_id WHERE t.mint = $1
       GROUP BY 1 ORDER BY 1`,
    );
    expect(await desk.db.query(prices, [mint])).toEqual([
      { triggeredPrice: '0.7', alerts: 90 },
      { triggeredPrice: '0.75', alerts: 90 },
    ]);
  });

  it('expires the other alerts in several transactions after the met alerts fired', async () => {
    const { market, mint: outcome } = desk.market();
    await desk.list(market);
    await aCrowd(outcome, 'above', '0.6', 50);
    await aCrowd(outcome, 'above', '0.9', 150);
    await desk.see(outcome, '0.7');
    await desk.resolve(market);
    const claims = await desk.evaluate(LIMITS);
    const counts = claims.map(({ fired, expired }) => [fired.length, expired.length]);
    // The other outcome has no alerts.
    expect(counts.filter(([fired, expired]) => fired !== 0 || expired !== 0)).toEqual([
      [40, 0],
      [10, 70],
      [0, 70],
      [0, 10],
    ]);
    expect(await countsOf(outcome)).toMatchObject({ alerts: 200, triggered: 50, expired: 150, events: 50 });
  });
});

it('createAlert and a deletion do not wait for an evaluation of their token', async () => {
  await aCrowd(mint, 'above', '0.6', 30);
  const other = await desk.create(mint, 'below', '0.1');
  await desk.see(mint, '0.7');
  const [shard = 0] = await waitingShards(desk.db, STAGE);
  const evaluated = gate();
  const mayCommit = gate();
  const evaluating = workShards(desk.db, STAGE, [shard], { limit: 100, order: 'oldest' }, async (tx, marks) => {
    const result = await evaluateAlerts(tx, marks);
    evaluated.open();
    await mayCommit.opened;
    return result;
  });
  await evaluated.opened;
  const request = { tokenMint: mint, condition: 'above', target: decimal('0.65') } as const;
  const made = await desk.db.transaction((tx) => createAlert(tx, desk.accountId, request));
  await desk.db.query(sql('test_delete_meanwhile', 'DELETE FROM alert WHERE pk = $1'), [other.pk]);
  mayCommit.open();
  expect((await evaluating).results[0]?.fired).toHaveLength(30);
  await desk.evaluate();
  expect(made.outcome === 'created' && (await desk.stateOf(made.alert))).toMatchObject({
    triggeredPrice: '0.7',
    events: 1,
  });
});
