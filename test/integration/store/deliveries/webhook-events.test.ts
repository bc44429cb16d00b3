import { describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { updateSubscription } from '../../../../src/store/deliveries/subscriptions.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { deliveryDesk } from './delivery-desk.ts';

const EVENTS = sql(
  'test_webhook_events',
  `SELECT e.type, e.body::json AS body, ARRAY(SELECT d.subscription_pk FROM delivery d WHERE d.event_pk = e.pk ORDER BY 1) AS to
   FROM event e WHERE e.account_id = $1 AND e.type LIKE 'webhook%' ORDER BY e.pk`,
);
const OWN = sql('test_move_to_account', 'UPDATE webhook_subscription SET account_id = $2, events = $3 WHERE pk = $1');
const LONG_AGO = sql(
  'test_failing_long',
  `UPDATE webhook_subscription SET failing_since = now() - interval '6 days', exhausted_count = 9 WHERE pk = $1`,
);
const BOTH = ['webhook_failing', 'webhook_paused'];

const desk = deliveryDesk();

/** A failing webhook of a new account, which lists both types, and a watching one. */
async function anOwner(watched = BOTH) {
  const accountId = await anAccount(desk.db);
  await desk.db.query(OWN, [desk.subscriptionPk, accountId, ['price_alert', ...BOTH]]);
  const id = newId('wh');
  const watcher = await aSubscription(desk.db, { id, accountId, events: watched });
  const events = () =>
    desk.db.query<{ type: string; body: { id: string; type: string; data: object }; to: bigint[] }>(EVENTS, [
      accountId,
    ]);
  return { accountId, id, watcher, events };
}
async function exhaust(): Promise<readonly bigint[] | undefined> {
  await desk.due();
  return (await desk.finish(await desk.claimOne(), { state: 'failed' })).wake;
}

describe('a failing webhook', () => {
  it('causes one event at its first used-up schedule, which goes to another webhook', async () => {
    const { watcher, events } = await anOwner();
    await desk.due();
    await desk.finish(await desk.claimOne(), { state: 'retry', delaySeconds: 60 });
    expect(await events()).toEqual([]);
    expect(await exhaust()).toEqual([watcher]);
    expect(await exhaust()).toBeUndefined();
    const stored = await events();
    expect(stored).toMatchObject([{ type: 'webhook_failing', to: [watcher] }]);
    const data = { webhookId: expect.stringMatching(/^wh_/), lastError: 'http_status', lastStatusCode: 500 };
    expect(stored[0]?.body).toMatchObject({ type: 'webhook_failing', data });
  });

  it('causes another event after a success', async () => {
    const { events } = await anOwner();
    await exhaust();
    await desk.due();
    await desk.finish(await desk.claimOne(), { state: 'delivered' });
    await exhaust();
    expect((await events()).map(({ type }) => type)).toEqual(['webhook_failing', 'webhook_failing']);
  });

  it('causes an event with the reason when oddswire pauses it', async () => {
    const { watcher, events } = await anOwner();
    await desk.db.query(LONG_AGO, [desk.subscriptionPk]);
    await exhaust();
    expect(await events()).toMatchObject([
      { type: 'webhook_paused', to: [watcher], body: { data: { reason: 'failing' } } },
    ]);
  });

  it('causes an event when its receiver answers 410', async () => {
    const { events } = await anOwner();
    await desk.due();
    await desk.finish(await desk.claimOne(), { state: 'failed', pause: 'gone' });
    expect(await events()).toMatchObject([{ type: 'webhook_paused', body: { data: { reason: 'gone' } } }]);
  });

  it('causes an event without a delivery when no other active webhook lists it', async () => {
    const { accountId, id, events } = await anOwner();
    await updateSubscription(desk.db, accountId, id, { status: 'paused' });
    expect(await exhaust()).toBeUndefined();
    expect(await events()).toMatchObject([{ type: 'webhook_failing', to: [] }]);
  });

  it('causes no event by a test event', async () => {
    const { events } = await anOwner();
    await desk.due({ isTest: true });
    await desk.finish(await desk.claimOne(), { state: 'failed' });
    expect(await events()).toEqual([]);
  });
});
