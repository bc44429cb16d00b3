import { describe, expect, it } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { newId } from '../../../../src/domain/values/ids.ts';
import { createAlert } from '../../../../src/store/alerts/alerts.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { lockOrder } from '../../../../src/store/deliveries/order.ts';
import { anAlert, aSubscription } from '../../../factories/alerts.ts';
import { gate } from '../../../support/gate.ts';
import { useAlertDesk } from '../../alerts/alert-desk.ts';

/** The advisory locks of `lockOrder`. */
const ORDER_LOCKS = sql(
  'test_order_locks',
  `SELECT objid::bigint AS pk, granted FROM pg_locks
   WHERE locktype = 'advisory' AND classid = x'6f726472'::int AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
);

const desk = useAlertDesk();

describe('evaluateAlerts', () => {
  it('fires an alert once, at the observation that met it, with one event and one delivery', async () => {
    const mint = newId('req');
    const webhook = await aSubscription(desk.db, { accountId: desk.accountId });
    await desk.see(mint, '0.5');
    const alert = await desk.create(mint, 'above', '0.6', { webhookPk: webhook });
    await desk.see(mint, '0.55', '0.61', '0.9', '0.3');
    const results = await desk.evaluate();
    expect(results.flatMap((result) => result.fired)).toHaveLength(1);
    expect(results.flatMap((result) => result.subscriptionPks)).toEqual([webhook]);
    await desk.see(mint, '0.7');
    await desk.evaluate();
    const { body, ...row } = await desk.stateOf(alert);
    expect(row).toEqual({ status: 'triggered', expiredAt: null, triggeredPrice: '0.61', events: 1, deliveries: 1 });
    expect(JSON.parse(body ?? '')).toMatchObject({
      type: 'price_alert',
      data: { alertId: alert.id, tokenMint: mint, condition: 'above', targetPrice: 0.6, currentPrice: 0.61 },
    });
  });

  it('locks the ordered webhooks of all its events in one order', async () => {
    const mint = newId('req');
    const hook = async () => {
      const id = newId('wh');
      return { id, pk: await aSubscription(desk.db, { accountId: desk.accountId, id, orderBy: 'alert' }) };
    };
    const [lower, higher] = [await hook(), await hook()];
    await desk.see(mint, '0.5');
    // The firings of rules are found before the ones of the alerts of the specification.
    const rule = { tokenMint: mint, condition: 'crosses_above', target: decimal('0.6'), webhookId: higher.id } as const;
    await desk.db.transaction((tx) => createAlert(tx, desk.accountId, rule));
    await desk.create(mint, 'above', '0.6', { webhookPk: lower.pk });
    await desk.evaluate();
    await desk.see(mint, '0.7');
    const [isHeld, mayEnd] = [gate(), gate()];
    const holder = desk.db.transaction(async (tx) => {
      await lockOrder(tx, [lower.pk]);
      isHeld.open();
      await mayEnd.opened;
    });
    await isHeld.opened;
    const evaluation = desk.evaluate();
    const locks = () => desk.db.query<{ pk: bigint; granted: boolean }>(ORDER_LOCKS);
    await expect.poll(locks).toContainEqual({ pk: lower.pk, granted: false });
    expect(await locks()).not.toContainEqual({ pk: higher.pk, granted: true });
    mayEnd.open();
    await holder;
    const results = await evaluation;
    const fired = results.flatMap((result) => result.fired);
    expect(fired.map(({ delivery }) => delivery?.webhookId).sort()).toEqual([lower.id, higher.id].sort());
    expect(results.flatMap((result) => result.subscriptionPks).sort()).toEqual([lower.pk, higher.pk]);
  });

  it('fires on a trade print, but ignores one that is more than ten minutes late', async () => {
    const mint = newId('req');
    const alert = await desk.create(mint, 'above', '0.8');
    await desk.print(mint, '0.9', 601_000);
    await desk.evaluate();
    expect((await desk.stateOf(alert)).status).toBe('active');
    await desk.print(mint, '0.81', 599_000);
    await desk.evaluate();
    expect(await desk.stateOf(alert)).toMatchObject({ status: 'triggered', triggeredPrice: '0.81' });
  });

  it('fires an alert that commits while a crossing is evaluated', async () => {
    const mint = newId('req');
    await desk.see(mint, '0.5');
    await desk.evaluate();
    const commits: Promise<{ pk: bigint }>[] = [];
    let mayCommit: () => void = () => undefined;
    const allowed = new Promise<void>((resolve) => {
      mayCommit = resolve;
    });
    const inserted = new Promise<void>((resolve) => {
      commits.push(
        desk.db.transaction(async (tx) => {
          const alert = await anAlert(tx, { accountId: desk.accountId, mint, condition: 'above', target: '0.6' });
          resolve();
          await allowed;
          return alert;
        }),
      );
    });
    await inserted;
    // The crossing is observed, evaluated and over while the alert is still invisible.
    await desk.see(mint, '0.7', '0.5');
    await desk.evaluate();
    mayCommit();
    const [alert] = await Promise.all(commits);
    await desk.evaluate();
    expect(await desk.stateOf(alert ?? { pk: 0n })).toMatchObject({ status: 'triggered', triggeredPrice: '0.7' });
  });

  it('fires an alert once when several processes evaluate it', async () => {
    const mint = newId('req');
    await desk.see(mint, '0.5');
    const alerts = await Promise.all(Array.from({ length: 20 }, () => desk.create(mint, 'above', '0.6')));
    await desk.see(mint, '0.7');
    const results = await Promise.all([desk.evaluate(), desk.evaluate(), desk.evaluate()]);
    expect(results.flat(2).flatMap((result) => result.fired)).toHaveLength(20);
    for (const alert of alerts) expect(await desk.stateOf(alert)).toMatchObject({ status: 'triggered', events: 1 });
  });
});
