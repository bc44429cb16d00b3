import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../../src/domain/values/ids.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { recoverDeliveries } from '../../../src/store/deliveries/recovery.ts';
import { deleteSubscription, updateSubscription } from '../../../src/store/deliveries/subscriptions.ts';
import { anAccount, aSubscription } from '../../factories/alerts.ts';
import { type AlertDesk, alertDesk } from './alert-desk.ts';

let desk: AlertDesk;
let accountId: bigint;
beforeAll(async () => {
  desk = await alertDesk();
});
afterAll(() => desk.drop());
beforeEach(async () => {
  accountId = await anAccount(desk.db);
});

const RECIPIENTS = sql(
  'test_recipients',
  `SELECT w.id FROM alert a JOIN event e ON e.id = a.event_id JOIN delivery d ON d.event_pk = e.pk
   JOIN webhook_subscription w ON w.pk = d.subscription_pk WHERE a.pk = $1`,
);

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

describe('the event of an alert with a webhook', () => {
  it('goes to that webhook, not to the oldest', async () => {
    await aWebhook();
    const named = await aWebhook();
    expect((await recipientsOf(named.pk)).webhooks).toEqual([named.id]);
  });

  it.each([
    ['was deleted', (id: string) => deleteSubscription(desk.db, accountId, id)],
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
});
