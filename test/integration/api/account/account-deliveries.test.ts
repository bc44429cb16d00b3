import { expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { insertDeliveries, insertEvents } from '../../../../src/store/deliveries/events.ts';
import { aSubscription } from '../../../factories/alerts.ts';
import { aDelivery, anAttempt, type DeliveryFields } from '../../../factories/deliveries.ts';
import { withApi } from '../with-api.ts';

const { api, stranger } = withApi();

/** An account with two webhooks. */
async function anOwner() {
  const client = await api.client();
  const webhook = async () => {
    const id = newId('wh');
    return { id, pk: await aSubscription(api.db, { accountId: client.accountId, id }) };
  };
  const hooks = [await webhook(), await webhook()] as const;
  return {
    client,
    hooks,
    delivery: (hook: { pk: bigint }, fields: Partial<DeliveryFields> = {}) =>
      aDelivery(api.db, { accountId: client.accountId, subscriptionPk: hook.pk, ...fields }),
    async list(query = '') {
      const { status, body } = await client.account('GET', `/v1/deliveries${query}`);
      expect([query, status]).toEqual([query, 200]);
      return { items: body.data as { id: string; [field: string]: unknown }[], next: body.meta?.next_cursor };
    },
  };
}

it('the deliveries of an account have their webhook, and the duration of the latest attempt', async () => {
  const { hooks, delivery, list } = await anOwner();
  const failed = await delivery(hooks[0], { status: 'failed', attemptCount: 2 });
  await anAttempt(api.db, failed.pk, { number: 1, minutesAgo: 3, ms: 11, outcome: 'failed', error: 'timeout' });
  await anAttempt(api.db, failed.pk, { number: 2, minutesAgo: 2, ms: 22, outcome: 'failed', error: 'timeout' });
  const pending = await delivery(hooks[1]);
  const { items } = await list();
  expect(items).toMatchObject([
    { id: pending.id, webhookId: hooks[1].id, status: 'pending', attempts: 0 },
    { id: failed.id, webhookId: hooks[0].id, status: 'failed', attempts: 2, lastDurationMs: 22 },
  ]);
  expect(items[0]).not.toHaveProperty('lastDurationMs');
  expect(items[0]).not.toHaveProperty('alertId');
});

it('the event of an alert has the alert, and other events have none', async () => {
  const { client, hooks, delivery, list } = await anOwner();
  const [alert, id] = [newId('alert'), newId('evt')];
  await api.db.transaction(async (tx) => {
    const event = {
      id,
      accountId: client.accountId,
      type: 'price_alert',
      body: '{}',
      dedupeKey: `alert:${alert}`,
    } as const;
    const eventPk = (await insertEvents(tx, [event])).get(id) ?? 0n;
    await insertDeliveries(tx, [{ eventPk, subscriptionPk: hooks[0].pk }]);
  });
  await delivery(hooks[0], { type: 'transaction' });
  expect((await list()).items.map(({ alertId }) => alertId)).toEqual([undefined, alert]);
});

it('filters combine, and an unknown webhook is not found', async () => {
  const { client, hooks, delivery, list } = await anOwner();
  const states = ['pending', 'delivered', 'failed', 'cancelled'] as const;
  const made: { id: string; eventId: string; hook: string; status: string; type: string }[] = [];
  for (const hook of hooks) {
    for (const status of states) {
      for (const type of ['price_alert', 'transaction'] as const) {
        made.unshift({ ...(await delivery(hook, { status, type })), hook: hook.id, status, type });
      }
    }
  }
  const ids = (keep: (each: (typeof made)[number]) => boolean) => made.filter(keep).map(({ id }) => id);
  const event = made[3]?.eventId ?? '';
  for (const [query, keep] of [
    ['', () => true],
    ...states.map((state) => [`?status=${state}`, ({ status }: { status: string }) => status === state] as const),
    [`?webhookId=${hooks[0].id}`, ({ hook }) => hook === hooks[0].id],
    [
      `?webhookId=${hooks[1].id}&status=failed&eventType=transaction`,
      (each) => each.hook === hooks[1].id && each.status === 'failed' && each.type === 'transaction',
    ],
    ['?eventType=price_alert', ({ type }) => type === 'price_alert'],
    [`?eventId=${event}`, ({ eventId }) => eventId === event],
    [`?eventId=${event}&webhookId=${hooks[0].id}`, ({ eventId, hook }) => eventId === event && hook === hooks[0].id],
    ['?eventId=evt_unknown', () => false],
    ['?since=2020-01-01', () => true],
    [`?since=${new Date(Date.now() + 60_000).toISOString()}`, () => false],
  ] as [string, (each: (typeof made)[number]) => boolean][]) {
    expect([query, (await list(query)).items.map(({ id }) => id)]).toEqual([query, ids(keep)]);
  }
  const unknown = await client.account('GET', '/v1/deliveries?webhookId=wh_unknown');
  expect([unknown.status, unknown.body.error.code]).toEqual([404, 'webhook_not_found']);
});

it('no delivery, webhook, event or cursor of another account is in the list', async () => {
  const { client, hooks, delivery, list } = await anOwner();
  const made = [await delivery(hooks[0]), await delivery(hooks[1])];
  const { next } = await list('?limit=1');
  for (const [query, code] of [
    [`?webhookId=${hooks[0].id}`, 'webhook_not_found'],
    [`?limit=1&cursor=${next}`, 'invalid_cursor'],
  ]) {
    expect((await stranger.account('GET', `/v1/deliveries${query}`)).body.error.code).toBe(code);
  }
  for (const query of ['', `?eventId=${made[0]?.eventId}`]) {
    expect((await stranger.account('GET', `/v1/deliveries${query}`)).body.data).toEqual([]);
  }
  const bound = await client.account('GET', `/v1/deliveries?limit=1&status=failed&cursor=${next}`);
  expect(bound.body.error.code).toBe('invalid_cursor');
});

it('pages return each existing delivery of all webhooks exactly once while deliveries are added', async () => {
  const { hooks, delivery, list } = await anOwner();
  const there: string[] = [];
  for (let n = 0; n < 11; n += 1) there.unshift((await delivery(hooks[n % 2 === 0 ? 0 : 1], { status: 'failed' })).id);
  const seen: string[] = [];
  let cursor: string | null | undefined;
  do {
    const page = await list(`?status=failed&limit=4${cursor ? `&cursor=${cursor}` : ''}`);
    seen.push(...page.items.map(({ id }) => id));
    cursor = page.next;
    await delivery(hooks[0], { status: 'failed' });
  } while (cursor);
  expect(seen).toEqual(there);
});

it('deliveries of a deleted webhook are in no list', async () => {
  const { client, hooks, delivery, list } = await anOwner();
  await delivery(hooks[0]);
  const left = await delivery(hooks[1]);
  await client.account('DELETE', `/v1/webhooks/${hooks[0].id}`);
  expect((await list()).items.map(({ id }) => id)).toEqual([left.id]);
});
