import { beforeEach, describe, expect, it } from 'vitest';
import { EVENTS } from '../../../../src/domain/events/events.ts';
import { newId } from '../../../../src/domain/values/ids.ts';
import type { EventType } from '../../../../src/domain/webhooks/event.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aSubscription } from '../../../factories/alerts.ts';
import { aDelivery } from '../../../factories/deliveries.ts';
import type { Client } from '../api-harness.ts';
import { withApi } from '../with-api.ts';

let owner: Client;
const { api, stranger } = withApi();
beforeEach(async () => {
  owner = await api.client();
});

const AN_EVENT = sql(
  'test_account_event',
  `INSERT INTO event (id, account_id, type, body, dedupe_key, target_pk) VALUES ($1, $2, $3, $4, $1, $5)`,
);
const DEDUPE = sql('test_dedupe', 'UPDATE event SET dedupe_key = id WHERE id = ANY ($1::text[])');
const RETRIED = sql(
  'test_retried',
  `UPDATE delivery SET status = 'failed', delivered_at = now() - interval '1 hour' WHERE pk = $1`,
);

const bodyOf = (eventId: string, type: EventType) =>
  EVENTS[type].sample({ eventId, occurredAt: new Date('2026-01-01') }, 'wh_sample');

async function anEvent(fields: { type?: EventType; targetPk?: bigint } = {}): Promise<string> {
  const { type = 'price_alert', targetPk = null } = fields;
  const id = newId('evt');
  const body = bodyOf(id, type);
  await api.db.query(AN_EVENT, [id, owner.accountId, type, body, targetPk]);
  return id;
}

interface Item {
  id: string;
  deliveries: number;
  undelivered: boolean;
}

const list = async (query = '', client = owner) => {
  const answer = await client.account('GET', `/v1/events${query}`);
  expect(answer.status).toBe(200);
  return { items: answer.body.data as Item[], next: answer.body.meta?.next_cursor, text: answer.text };
};
const idsOf = async (query: string) => (await list(query)).items.map(({ id }) => id);

describe('GET /v1/events', () => {
  it('shows an event without a delivery, with its exact payload and the webhook that it names', async () => {
    const webhookId = newId('wh');
    const targetPk = await aSubscription(api.db, { id: webhookId, accountId: owner.accountId, status: 'paused' });
    const id = await anEvent({ targetPk });
    const { items, text } = await list();
    expect(items).toEqual([
      {
        id,
        type: 'price_alert',
        createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
        webhookId,
        deliveries: 0,
        undelivered: true,
        payload: JSON.parse(bodyOf(id, 'price_alert')),
      },
    ]);
    expect(text).toContain(`"payload":${bodyOf(id, 'price_alert')}`);
    expect((await list('', stranger)).items).toEqual([]);
  });

  it('counts an event as undelivered when no delivery is pending or was successful', async () => {
    const subscriptionPk = await aSubscription(api.db, { accountId: owner.accountId });
    const of = (status: 'pending' | 'delivered' | 'failed' | 'cancelled') =>
      aDelivery(api.db, { accountId: owner.accountId, subscriptionPk, status });
    const [pending, delivered, failed, cancelled, retried] = [
      await of('pending'),
      await of('delivered'),
      await of('failed'),
      await of('cancelled'),
      await of('failed'),
    ];
    await api.db.query(RETRIED, [retried.pk]);
    const ids = [pending, delivered, failed, cancelled, retried].map(({ eventId }) => eventId);
    await api.db.query(DEDUPE, [ids]);
    await aDelivery(api.db, { accountId: owner.accountId, subscriptionPk, isTest: true, status: 'failed' });
    const lone = await anEvent({ type: 'transaction' });
    expect(await idsOf('')).toEqual([lone, ...ids.toReversed()]);
    expect(await idsOf('?undelivered=true')).toEqual([lone, cancelled.eventId, failed.eventId]);
    expect(await idsOf('?undelivered=false')).toEqual([retried.eventId, delivered.eventId, pending.eventId]);
    expect(await idsOf('?undelivered=true&type=transaction')).toEqual([lone]);
    expect(await idsOf('?type=balance_change')).toEqual([]);
  });

  it('pages through its events, newest first', async () => {
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) ids.unshift(await anEvent());
    const first = await list('?limit=2&undelivered=true');
    const second = await list(`?limit=2&undelivered=true&cursor=${first.next}`);
    const third = await list(`?limit=2&undelivered=true&cursor=${second.next}`);
    expect([...first.items, ...second.items, ...third.items].map(({ id }) => id)).toEqual(ids);
    expect(third.next).toBeNull();
    const other = await owner.account('GET', `/v1/events?limit=2&cursor=${first.next}`);
    expect([other.status, other.body.error.code]).toEqual([400, 'invalid_cursor']);
  });

  it.each(['?undelivered=yes', '?type=test'])('rejects %s', async (query) => {
    const answer = await owner.account('GET', `/v1/events${query}`);
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request']);
  });
});
