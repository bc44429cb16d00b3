import { beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../../src/domain/values/ids.ts';
import { deleteAlert } from '../../../src/store/alerts/alerts.ts';
import { evaluateAlerts } from '../../../src/store/alerts/evaluate.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { listAccountEvents } from '../../../src/store/deliveries/account-events.ts';
import { recoverDeliveries } from '../../../src/store/deliveries/recovery.ts';
import { deleteSubscription, updateSubscription } from '../../../src/store/deliveries/subscriptions.ts';
import { anAccount, aSubscription } from '../../factories/alerts.ts';
import { claimAll, drain } from '../../support/drain.ts';
import { untilBlocked } from '../../support/postgres/postgres-lock.ts';
import { useAlertDesk } from './alert-desk.ts';

const desk = useAlertDesk();
let accountId: bigint;
beforeEach(async () => {
  accountId = await anAccount(desk.db);
});

const RECIPIENTS = sql(
  'test_recipients',
  `SELECT w.id FROM alert a JOIN event e ON e.id = a.event_id JOIN delivery d ON d.event_pk = e.pk
   JOIN webhook_subscription w ON w.pk = d.subscription_pk WHERE a.pk = $1`,
);

describe('the event of an alert', () => {
  it('has the same id when a restored database fires the alert again, also at another price', async () => {
    const mint = newId('req');
    const alert = await desk.create(mint, 'above', '0.6', { accountId });
    await desk.evaluate();
    const fireAt = async (price: string, end: () => void) => {
      let fired: string[] = [];
      await desk.db
        .transaction(async (tx) => {
          await desk.seeIn(tx, mint, price);
          const marks = await claimAll(tx, 'evaluate-alerts');
          fired = (await evaluateAlerts(tx, marks)).fired.map(({ eventId }) => eventId);
          end();
        })
        .catch((error: unknown) => expect(error).toBe(LOST));
      return fired;
    };
    const LOST = new Error('the backup is older than this transaction');
    const lose = () => {
      throw LOST;
    };
    const first = await fireAt('0.7', lose);
    expect(first).toHaveLength(1);
    expect(await fireAt('0.8', () => undefined)).toEqual(first);
    expect(await desk.stateOf(alert)).toMatchObject({ status: 'triggered', events: 1 });
  });
});

/** Inserts a subscription and returns its public id. */
async function aWebhook(
  fields: { events?: string[]; status?: 'active' | 'paused' } = {},
): Promise<{ id: string; pk: bigint }> {
  const id = newId('wh');
  return { id, pk: await aSubscription(desk.db, { id, accountId, ...fields }) };
}

/** Creates an alert, runs `meanwhile`, meets the alert: returns the subscriptions that get its event. */
async function recipientsOf(webhookPk?: bigint, meanwhile: () => Promise<unknown> = async () => undefined) {
  const mint = newId('req');
  const alert = await desk.create(mint, 'above', '0.6', { accountId, ...(webhookPk !== undefined && { webhookPk }) });
  await desk.evaluate();
  await meanwhile();
  await desk.see(mint, '0.7');
  const woken = (await desk.evaluate()).flatMap(({ subscriptionPks }) => subscriptionPks);
  expect(await desk.stateOf(alert)).toMatchObject({ status: 'triggered', events: 1 });
  const rows = await desk.db.query<{ id: string }>(RECIPIENTS, [alert.pk]);
  expect(woken).toHaveLength(rows.length);
  return { alert, webhooks: rows.map(({ id }) => id) };
}

describe('the event of an alert without a webhook', () => {
  it('goes to the oldest active webhook of the account that lists price alerts', async () => {
    await aSubscription(desk.db, { accountId: await anAccount(desk.db) });
    await aWebhook({ events: ['transaction', 'balance_change'] });
    await aWebhook({ status: 'paused' });
    const deleted = await aWebhook();
    await deleteSubscription(desk.db, accountId, deleted.id);
    const oldest = await aWebhook({ events: ['transaction', 'price_alert'] });
    await aWebhook();
    expect((await recipientsOf()).webhooks).toEqual([oldest.id]);
  });

  it('goes to the oldest webhook at the time of firing, not at the creation of the alert', async () => {
    const first = await aWebhook();
    const second = await aWebhook();
    const { webhooks } = await recipientsOf(undefined, () => deleteSubscription(desk.db, accountId, first.id));
    expect(webhooks).toEqual([second.id]);
  });

  it('goes to a webhook that is newer than the alert', async () => {
    let late = { id: '' };
    const { webhooks } = await recipientsOf(undefined, async () => {
      late = await aWebhook();
    });
    expect(webhooks).toEqual([late.id]);
  });

  it('is stored without a webhook, and a later webhook recovers it', async () => {
    const since = new Date(Date.now() - 60_000);
    const { alert, webhooks } = await recipientsOf();
    expect(webhooks).toEqual([]);
    const later = await aWebhook();
    const recovered = await recoverDeliveries({
      db: desk.db,
      accountId,
      subscriptionId: later.id,
      since,
      onCommit: () => undefined,
    });
    expect(recovered).toMatchObject({ outcome: 'recovered', recovered: 1 });
    expect(await desk.db.query(RECIPIENTS, [alert.pk])).toEqual([{ id: later.id }]);
  });
});

const DELETE_AS_BEFORE = sql(
  'test_delete_as_before',
  `UPDATE webhook_subscription SET deleted_at = now(), sealed_secret = '' WHERE pk = $1`,
);

async function recover(subscriptionId: string) {
  const since = new Date(Date.now() - 60_000);
  const done = await recoverDeliveries({ db: desk.db, accountId, subscriptionId, since, onCommit: () => undefined });
  return done.outcome === 'recovered' ? done.recovered : done.outcome;
}

describe('the event of an alert with a webhook', () => {
  it('goes to that webhook, not to the oldest', async () => {
    await aWebhook();
    const named = await aWebhook();
    expect((await recipientsOf(named.pk)).webhooks).toEqual([named.id]);
  });

  it.each([
    ['was paused', (id: string) => updateSubscription(desk.db, accountId, id, { status: 'paused' })],
    [
      'no longer lists price alerts',
      (id: string) => updateSubscription(desk.db, accountId, id, { events: ['transaction'] }),
    ],
  ] as const)('is stored without a delivery when the webhook %s', async (_why, change) => {
    await aWebhook();
    const named = await aWebhook();
    expect((await recipientsOf(named.pk, () => change(named.id))).webhooks).toEqual([]);
  });

  it('goes to that webhook when it was paused and is active again', async () => {
    const named = await aWebhook({ status: 'paused' });
    const { webhooks } = await recipientsOf(named.pk, () =>
      updateSubscription(desk.db, accountId, named.id, { status: 'active' }),
    );
    expect(webhooks).toEqual([named.id]);
  });

  it.each([
    ['a process of this release', (named: { id: string }) => deleteSubscription(desk.db, accountId, named.id)],
    ['a process of an older release', (named: { pk: bigint }) => desk.db.query(DELETE_AS_BEFORE, [named.pk])],
  ])('goes to the default webhook when %s deleted the webhook', async (_which, remove) => {
    const named = await aWebhook();
    const oldest = await aWebhook();
    await aWebhook();
    expect((await recipientsOf(named.pk, () => remove(named))).webhooks).toEqual([oldest.id]);
  });

  it('is undelivered, and another webhook recovers it, when the alert fires during the deletion of the webhook', async () => {
    const named = await aWebhook();
    const other = await aWebhook();
    const mint = newId('req');
    const alert = await desk.create(mint, 'above', '0.6', { accountId, webhookPk: named.pk });
    await desk.evaluate();
    await desk.see(mint, '0.7');
    let deletion: Promise<unknown> | undefined;
    await drain(desk.db, 'evaluate-alerts', { limit: 100, order: 'oldest' }, async (tx, marks) => {
      await evaluateAlerts(tx, marks);
      deletion = deleteSubscription(desk.db, accountId, named.id);
      await untilBlocked(desk.db);
    });
    expect(await deletion).toEqual({ alerts: 0 });
    expect(await desk.stateOf(alert)).toMatchObject({ status: 'triggered', events: 1, deliveries: 1 });
    const undelivered = await listAccountEvents(desk.db, accountId, { undelivered: true }, 10, undefined);
    expect(undelivered.events).toMatchObject([{ deliveries: 1, isUndelivered: true, webhookId: null }]);
    expect(await recover(other.id)).toBe(1);
  });

  it.each([
    ['exists', async () => undefined],
    ['was deleted', async (alertId: string) => deleteAlert(desk.db, accountId, alertId)],
  ] as const)('is recovered by that webhook and by no other when the alert %s', async (_state, change) => {
    const other = await aWebhook();
    const named = await aWebhook({ status: 'paused' });
    const { alert, webhooks } = await recipientsOf(named.pk);
    expect(webhooks).toEqual([]);
    await change(alert.id);
    const undelivered = await listAccountEvents(desk.db, accountId, { undelivered: true }, 10, undefined);
    expect(undelivered.events).toMatchObject([{ deliveries: 0, isUndelivered: true, webhookId: named.id }]);
    expect(await recover(other.id)).toBe(0);
    await updateSubscription(desk.db, accountId, named.id, { status: 'active' });
    expect(await recover(named.id)).toBe(1);
    expect(await recover(other.id)).toBe(0);
  });

  it('is recovered by another webhook after its own was deleted', async () => {
    const other = await aWebhook();
    const named = await aWebhook({ status: 'paused' });
    await recipientsOf(named.pk);
    expect(await recover(other.id)).toBe(0);
    await deleteSubscription(desk.db, accountId, named.id);
    expect(await recover(other.id)).toBe(1);
  });

  it('is recovered by that webhook only when an older process wrote the event without its target', async () => {
    const other = await aWebhook();
    const named = await aWebhook({ status: 'paused' });
    const { alert } = await recipientsOf(named.pk);
    await desk.db.query(sql('test_no_target', `UPDATE event SET target_pk = NULL WHERE dedupe_key = 'alert:' || $1`), [
      alert.id,
    ]);
    expect(await recover(other.id)).toBe(0);
    await updateSubscription(desk.db, accountId, named.id, { status: 'active' });
    expect(await recover(named.id)).toBe(1);
  });
});
