import { describe, expect, it } from 'vitest';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import { addApiKey, revokeApiKey } from '../../../src/store/accounts/accounts.ts';
import { takeQuota } from '../../../src/store/accounts/quotas.ts';
import { createAlert, deleteAlert, type NewAlert } from '../../../src/store/alerts/alerts.ts';
import { type AlertChange, changeAlert, lockAlert } from '../../../src/store/alerts/changes.ts';
import { evaluateAlerts } from '../../../src/store/alerts/evaluate.ts';
import { expireDueAlerts } from '../../../src/store/alerts/expiry.ts';
import { ensureTokens } from '../../../src/store/catalog/tokens.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { deleteSubscription } from '../../../src/store/deliveries/subscriptions.ts';
import type { Mark } from '../../../src/store/marks/marks.ts';
import { anAccount, aSubscription } from '../../factories/alerts.ts';
import { untilBlocked } from '../../support/postgres/postgres-lock.ts';
import { useAlertDesk } from './alert-desk.ts';
import { observeAt, storeMarketAt } from './rule-world.ts';

/*
 * The alerter is down for a minute: observations and changes of markets of that minute wait, and meanwhile the owner changes the alert. The
 * times of observations are given, so no test waits.
 */

const EVENTS = sql(
  'test_late_events',
  `SELECT e.body, ARRAY(SELECT d.subscription_pk FROM delivery d WHERE d.event_pk = e.pk) AS to FROM event e
   WHERE e.body::jsonb -> 'data' ->> 'alertId' = $1 ORDER BY e.pk`,
);
const STATE = sql('test_late_state', 'SELECT status, former IS NOT NULL AS has_former FROM alert WHERE pk = $1');
const MOVE = sql(
  'test_move_alert',
  `UPDATE alert SET created_at = created_at - interval '10 minutes', changed_at = changed_at - interval '5 seconds' WHERE pk = $1`,
);
const MOVE_PAUSE = sql(
  'test_move_pause',
  `UPDATE alert SET changed_at = to_timestamp($2 / 1000.0), former = jsonb_set(former, '{-1,untilMs}', to_jsonb($2::bigint)) WHERE pk = $1`,
);
const CLAIM = sql('test_claim_all', `DELETE FROM mark WHERE stage = 'evaluate-alerts' RETURNING id, key, detail`);
const CLAIM_KEY = sql(
  'test_claim_key',
  `DELETE FROM mark WHERE stage = 'evaluate-alerts' AND key = $1 RETURNING id, key, detail`,
);
const CLAIM_OBSERVED = sql(
  'test_claim_observed',
  `DELETE FROM mark WHERE stage = 'evaluate-alerts' AND detail > 0 AND key = (SELECT token_id FROM alert WHERE pk = $1)`,
);
const END_AGO = sql('test_end_ago', `UPDATE alert SET expires_at = now() - interval '30 seconds' WHERE pk = $1`);

const desk = useAlertDesk();

interface Made {
  id: string;
  pk: bigint;
}

async function create(request: NewAlert, accountId = desk.accountId): Promise<Made> {
  const made = await desk.db.transaction((tx) => createAlert(tx, accountId, request));
  if (made.outcome !== 'created') throw new Error(made.outcome);
  return made.alert;
}

/** An alert that is ten minutes old and was evaluated. */
async function anArmed(request: NewAlert, accountId = desk.accountId): Promise<Made> {
  const alert = await create(request, accountId);
  await desk.evaluate();
  await desk.db.query(MOVE, [alert.pk]);
  return alert;
}

async function change(alert: Made, fields: AlertChange): Promise<string> {
  const update = await desk.db.transaction(async (tx) => {
    const locked = await lockAlert(tx, desk.accountId, alert.id);
    if (!locked) throw new Error('no such alert');
    return changeAlert(tx, desk.accountId, locked, fields);
  });
  return update.outcome;
}

async function eventsOf({ id }: Made): Promise<Record<string, unknown>[]> {
  await desk.evaluate();
  const rows = await desk.db.query<{ body: string; to: bigint[] }>(EVENTS, [id]);
  return rows.map(({ body, to }) => ({ ...(JSON.parse(body) as { data: Record<string, unknown> }).data, to }));
}

const stateOf = async ({ pk }: Made) => (await desk.db.query<{ status: string; hasFormer: boolean }>(STATE, [pk]))[0];

const ago = (seconds: number) => Date.now() - seconds * 1_000;

/** A quote of a token that was received some seconds ago. */
async function seenAgo(mint: string, seconds: number, price: string): Promise<void> {
  const tokenId = (await ensureTokens(desk.db, [mint], 'USD')).get(mint) ?? 0n;
  await observeAt(desk.db, [tokenId], ago(seconds), [
    { token: 0, price: decimal(price), bid: null, ask: null, size: null },
  ]);
}

async function aMarket() {
  const made = desk.market();
  await storeMarketAt(desk.db, made.market, ago(3_000));
  await desk.evaluate();
  return made;
}

const above = { condition: 'above', target: decimal('0.5') } as const;

describe('an alert of the specification', () => {
  it.each(['above', 'below'] as const)('has its name in the event of %s', async (condition) => {
    const mint = newId('req');
    const alert = await create({ tokenMint: mint, condition, target: decimal('0.5'), name: 'half' });
    await desk.see(mint, '0.5');
    expect(await eventsOf(alert)).toMatchObject([{ condition, currentPrice: 0.5, name: 'half' }]);
  });
});

describe('a pause while the alerter is down', () => {
  it('of an alert on a token lets an observation before it fire, which ends the alert', async () => {
    const mint = newId('req');
    const alert = await anArmed({ ...above, tokenMint: mint, name: 'mine' });
    await seenAgo(mint, 60, '0.6');
    expect(await change(alert, { status: 'paused' })).toBe('changed');
    expect(await stateOf(alert)).toMatchObject({ status: 'paused' });
    expect(await eventsOf(alert)).toMatchObject([{ currentPrice: 0.6, targetPrice: 0.5, name: 'mine' }]);
    expect(await stateOf(alert)).toMatchObject({ status: 'triggered' });
  });

  it('of an alert whose creation waits too lets the quote in effect at its creation fire', async () => {
    const mint = newId('req');
    await desk.see(mint, '0.7');
    const alert = await create({ ...above, tokenMint: mint });
    await change(alert, { status: 'paused' });
    expect(await eventsOf(alert)).toMatchObject([{ currentPrice: 0.7 }]);
  });

  it('of an alert with a scope that repeats lets each observation before it fire, and the alert stays paused', async () => {
    const { market, mint, other } = await aMarket();
    const scope = { market_id: market.marketId };
    const alert = await anArmed({ ...above, condition: 'crosses_above', scope, cooldownSeconds: 10 });
    for (const [seconds, price] of [
      [60, '0.4'],
      [50, '0.6'],
      [40, '0.4'],
      [30, '0.7'],
    ] as const) {
      await seenAgo(mint, seconds, price);
    }
    await seenAgo(other, 45, '0.4');
    await seenAgo(other, 35, '0.8');
    await change(alert, { status: 'paused' });
    expect((await eventsOf(alert)).map((event) => event['currentPrice']).sort()).toEqual([0.6, 0.7, 0.8]);
    expect(await stateOf(alert)).toMatchObject({ status: 'paused' });
  });

  it('of a status alert lets a change of the market before it fire', async () => {
    const { market, mint } = await aMarket();
    const alerts = [
      await anArmed({ tokenMint: mint, condition: 'status' }),
      await anArmed({ scope: { market_id: market.marketId }, condition: 'status' }),
    ];
    await storeMarketAt(desk.db, { ...market, status: 'halted' }, ago(60));
    for (const alert of alerts) await change(alert, { status: 'paused' });
    await storeMarketAt(desk.db, { ...market, status: 'closed' }, Date.now());
    for (const alert of alerts) expect(await eventsOf(alert)).toMatchObject([{ status: 'halted' }]);
  });

  it('lets no observation after it fire', async () => {
    const mint = newId('req');
    const alert = await anArmed({ ...above, tokenMint: mint });
    await change(alert, { status: 'paused' });
    await desk.see(mint, '0.9');
    expect(await eventsOf(alert)).toEqual([]);
    expect(await stateOf(alert)).toMatchObject({ status: 'paused' });
  });

  it('lets an observation fire that was received before it and commits after it', async () => {
    const { market, mint } = await aMarket();
    const alert = await anArmed({ ...above, scope: { market_id: market.marketId } });
    await desk.db.transaction(async (tx) => {
      await desk.seeIn(tx, mint, '0.6');
      await change(alert, { status: 'paused' });
      expect(await eventsOf(alert)).toEqual([]);
      expect((await expireDueAlerts(desk.db)).alerts).toEqual([]);
    });
    expect(await eventsOf(alert)).toMatchObject([{ currentPrice: 0.6 }]);
  });

  it('loses nothing when an evaluation read the alert before it and locks the alert after it', async () => {
    const mint = newId('req');
    const alert = await anArmed({ ...above, tokenMint: mint, cooldownSeconds: 60 });
    await seenAgo(mint, 60, '0.6');
    let evaluation: Promise<unknown> = Promise.resolve();
    await desk.db.transaction(async (tx) => {
      const locked = await lockAlert(tx, desk.accountId, alert.id);
      if (!locked) throw new Error('no such alert');
      evaluation = desk.db.transaction(async (evaluating) =>
        evaluateAlerts(evaluating, await evaluating.query<Mark>(CLAIM)),
      );
      await untilBlocked(desk.db);
      await changeAlert(tx, desk.accountId, locked, { status: 'paused' });
    });
    await evaluation;
    expect(await eventsOf(alert)).toMatchObject([{ currentPrice: 0.6 }]);
  });

  it('and a resumption let the observations before and after fire, and none between', async () => {
    const { market, mint } = await aMarket();
    const alert = await anArmed({ ...above, scope: { market_id: market.marketId }, cooldownSeconds: 1 });
    await seenAgo(mint, 60, '0.6');
    await change(alert, { status: 'paused' });
    await desk.db.query(MOVE_PAUSE, [alert.pk, ago(50)]);
    await seenAgo(mint, 40, '0.7');
    await change(alert, { status: 'active' });
    await desk.see(mint, '0.8');
    expect((await eventsOf(alert)).map((event) => event['currentPrice'])).toEqual([0.6, 0.8]);
  });

  it('lets the alert fire although its end passes before its evaluation', async () => {
    const mint = newId('req');
    const alert = await anArmed({ ...above, tokenMint: mint, expiresAt: new Date(Date.now() + 600_000) });
    await seenAgo(mint, 60, '0.6');
    await change(alert, { status: 'paused' });
    // An evaluation that read the alert before the pause took the mark of the observation.
    await desk.db.query(CLAIM_OBSERVED, [alert.pk]);
    await desk.db.query(END_AGO, [alert.pk]);
    expect((await expireDueAlerts(desk.db)).alerts).not.toContain(alert.id);
    expect(await eventsOf(alert)).toMatchObject([{ currentPrice: 0.6 }]);
    expect(await stateOf(alert)).toMatchObject({ status: 'triggered' });
  });

  it('keeps the former condition until the observations before it have been evaluated', async () => {
    const mint = newId('req');
    const alert = await anArmed({ ...above, tokenMint: mint });
    await seenAgo(mint, 60, '0.4');
    await change(alert, { status: 'paused' });
    await desk.db.query(MOVE_PAUSE, [alert.pk, ago(50)]);
    await expireDueAlerts(desk.db);
    expect(await stateOf(alert)).toEqual({ status: 'paused', hasFormer: true });
    await desk.evaluate();
    await expireDueAlerts(desk.db);
    expect(await stateOf(alert)).toEqual({ status: 'paused', hasFormer: false });
  });
});

describe('a change while the alerter is down', () => {
  it('of the target lets an observation before it fire under the former target', async () => {
    const mint = newId('req');
    const alert = await anArmed({ ...above, tokenMint: mint, cooldownSeconds: 1 });
    const once = await anArmed({ ...above, tokenMint: mint });
    await seenAgo(mint, 60, '0.6');
    for (const one of [alert, once]) await change(one, { target: decimal('0.8') });
    await desk.see(mint, '0.7', '0.9');
    expect((await eventsOf(alert)).map((event) => [event['targetPrice'], event['currentPrice']])).toEqual([
      [0.5, 0.6],
      [0.8, 0.9],
    ]);
    expect(await eventsOf(once)).toMatchObject([{ targetPrice: 0.5, currentPrice: 0.6 }]);
    expect(await stateOf(once)).toMatchObject({ status: 'triggered' });
  });

  it('of the target judges no observation before it by the new target', async () => {
    const mint = newId('req');
    const alert = await anArmed({ tokenMint: mint, condition: 'crosses_above', target: decimal('0.8') });
    await seenAgo(mint, 60, '0.1');
    await seenAgo(mint, 50, '0.6');
    await change(alert, { target: decimal('0.5') });
    expect(await eventsOf(alert)).toEqual([]);
    await desk.see(mint, '0.4', '0.7');
    expect(await eventsOf(alert)).toMatchObject([{ targetPrice: 0.5, currentPrice: 0.7 }]);
  });

  it('of the repetition lets an observation before it fire, although the alert has ended', async () => {
    const mint = newId('req');
    const alert = await anArmed({ ...above, tokenMint: mint, cooldownSeconds: 1 });
    await seenAgo(mint, 120, '0.6');
    expect(await eventsOf(alert)).toHaveLength(1);
    await seenAgo(mint, 60, '0.7');
    await change(alert, { cooldownSeconds: null });
    expect(await stateOf(alert)).toMatchObject({ status: 'triggered' });
    expect((await eventsOf(alert)).map((event) => event['currentPrice'])).toEqual([0.6, 0.7]);
  });

  it('of a condition that is paused meanwhile keeps the observations before the pause', async () => {
    const mint = newId('req');
    const alert = await anArmed({ ...above, tokenMint: mint });
    await seenAgo(mint, 60, '0.6');
    await change(alert, { status: 'paused' });
    await change(alert, { target: decimal('0.9') });
    expect(await eventsOf(alert)).toMatchObject([{ targetPrice: 0.5, currentPrice: 0.6 }]);
  });

  it('of the webhook, the name or the note gives an earlier observation the new ones', async () => {
    const mint = newId('req');
    const alert = await anArmed({ ...above, tokenMint: mint, name: 'former' });
    const webhook = await aSubscription(desk.db, { accountId: desk.accountId });
    await seenAgo(mint, 60, '0.6');
    await change(alert, { name: 'new', webhookPk: webhook });
    expect(await eventsOf(alert)).toMatchObject([{ name: 'new', to: [webhook] }]);
  });
});

describe('a deletion, a revocation and a quota while the alerter is down', () => {
  it('of the alert sends nothing any more', async () => {
    const mint = newId('req');
    const alert = await anArmed({ ...above, tokenMint: mint });
    await seenAgo(mint, 60, '0.6');
    await deleteAlert(desk.db, desk.accountId, alert.id);
    expect(await eventsOf(alert)).toEqual([]);
  });

  it('of its webhook sends the event of an earlier observation to the default one', async () => {
    const accountId = await anAccount(desk.db);
    const webhookId = newId('wh');
    await aSubscription(desk.db, { id: webhookId, accountId });
    const next = await aSubscription(desk.db, { accountId });
    const mint = newId('req');
    const alert = await anArmed({ ...above, tokenMint: mint, webhookId }, accountId);
    await seenAgo(mint, 60, '0.6');
    await deleteSubscription(desk.db, accountId, webhookId);
    expect(await eventsOf(alert)).toMatchObject([{ currentPrice: 0.6, to: [next] }]);
  });

  it('of the key that created it changes nothing, because an alert belongs to its account', async () => {
    const accountId = await anAccount(desk.db);
    const { id } = await addApiKey(desk.db, accountId, { name: 'maker', scopes: ['alerts'] });
    const mint = newId('req');
    const alert = await anArmed({ ...above, tokenMint: mint }, accountId);
    await seenAgo(mint, 60, '0.6');
    expect(await revokeApiKey(desk.db, id)).toBe(true);
    expect(await eventsOf(alert)).toMatchObject([{ currentPrice: 0.6 }]);
  });

  it('counts an alert that is met and not yet evaluated as active, and a paused one not', async () => {
    const accountId = await anAccount(desk.db);
    const mint = newId('req');
    const alert = await anArmed({ ...above, tokenMint: mint }, accountId);
    await seenAgo(mint, 60, '0.6');
    const isGranted = async () => {
      const decision = await desk.db.transaction((tx) => takeQuota(tx, accountId, 'alerts', 1));
      return decision.isGranted;
    };
    expect(await isGranted()).toBe(false);
    expect(await eventsOf(alert)).toHaveLength(1);
    expect(await isGranted()).toBe(true);
  });
});

describe('two evaluators of a paused alert', () => {
  it('fire once for each observation, in any order of the marks', async () => {
    const { market, mint, other } = await aMarket();
    const alert = await anArmed({ ...above, scope: { market_id: market.marketId } });
    await seenAgo(mint, 60, '0.6');
    await seenAgo(other, 55, '0.7');
    await change(alert, { status: 'paused' });
    const tokens = await ensureTokens(desk.db, [mint, other], 'USD');
    const evaluateKey = (key: bigint) =>
      desk.db.transaction(async (tx) => evaluateAlerts(tx, await tx.query<Mark>(CLAIM_KEY, [key])));
    await Promise.all([other, mint].map((one) => evaluateKey(tokens.get(one) ?? 0n)));
    expect((await eventsOf(alert)).map((event) => event['currentPrice']).sort()).toEqual([0.6, 0.7]);
  });
});
