import { beforeAll, describe, expect, it } from 'vitest';
import { DAY_MS } from '../../../../src/domain/values/durations.ts';
import { newId } from '../../../../src/domain/values/ids.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { listWebhooks, type WebhookFilter } from '../../../../src/store/ops/webhooks.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { aDelivery } from '../../../factories/deliveries.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const database = useTestDatabase();
let accountId: bigint;
beforeAll(async () => {
  accountId = await anAccount(database.db);
});

const SET_STATE = sql(
  'test_set_webhook_state',
  `UPDATE webhook_subscription SET failing_since = now() - $2 * interval '1 minute', status = $3, pause_reason = $4, deleted_at = $5
   WHERE pk = $1`,
);
const FAIL = sql('test_fail_delivery', `UPDATE delivery SET last_error = 'timeout' WHERE pk = $1`);
const ATTEMPT = sql(
  'test_attempt',
  `INSERT INTO delivery_attempt (delivery_pk, attempt_number, started_at, duration_ms, outcome) VALUES ($1, 1, now(), $2, 'delivered')`,
);

async function aHook(
  name: string,
  state: { failingFor?: number; status?: string; reason?: string; deleted?: boolean } = {},
) {
  const id = newId('wh');
  const pk = await aSubscription(database.db, { id, accountId, url: `https://${name}.test/hook?token=hidden` });
  const { failingFor = null, status = 'active', reason = null, deleted } = state;
  await database.db.query(SET_STATE, [pk, failingFor, status, reason, deleted ? new Date() : null]);
  return pk;
}

async function deliver(subscriptionPk: bigint, status: 'delivered' | 'failed' | 'pending', times = 1) {
  for (let n = 0; n < times; n++) {
    const { pk } = await aDelivery(database.db, { accountId, subscriptionPk, status });
    await database.db.query(ATTEMPT, [pk, 10 * (n + 1)]);
    if (status !== 'delivered') await database.db.query(FAIL, [pk]);
  }
}

async function list(filter: WebhookFilter = {}, limit = 10, offset = 0) {
  const { webhooks, next } = await listWebhooks(database.db, filter, { sinceMs: Date.now() - DAY_MS, limit, offset });
  return { names: webhooks.map(({ url }) => new URL(url).hostname.replace('.test', '')), webhooks, next };
}

describe('listWebhooks', () => {
  it('lists webhooks worst first, with their figures of the last day', async () => {
    await aHook('active');
    await aHook('paused', { status: 'paused' });
    const few = await aHook('few');
    const many = await aHook('many');
    await aHook('stopped', { status: 'paused', reason: 'gone' });
    await aHook('short', { failingFor: 5 });
    await aHook('long', { failingFor: 500 });
    await aHook('deleted', { failingFor: 900, deleted: true });
    await deliver(few, 'failed');
    await deliver(many, 'failed', 2);
    await deliver(many, 'pending');
    await deliver(many, 'delivered', 6);

    const { names, webhooks } = await list();
    expect(names).toEqual(['long', 'short', 'stopped', 'many', 'few', 'paused', 'active']);
    expect(webhooks.map(({ state }) => state)).toEqual([
      ...['failing', 'failing', 'stopped', 'partly', 'partly', 'paused', 'active'],
    ]);
    expect(webhooks[3]).toMatchObject({
      ...{ failed: 2, retrying: 1, finished: 8, delivered: 6, pending: 1, p95Ms: 60 },
      ...{ lastError: 'timeout', lastStatusCode: null },
    });
    expect(webhooks[6]).toMatchObject({ failed: 0, finished: 0, p95Ms: null, lastError: null, lastDeliveredAt: null });
  });

  it('filters by state, account and address, and continues at a position', async () => {
    expect((await list({ state: 'failing' })).names).toEqual(['long', 'short']);
    expect((await list({ webhook: 'STOPPED.test/ho' })).names).toEqual(['stopped']);
    expect((await list({ webhook: 'hidden' })).names).toEqual([]);
    expect((await list({ account: String(accountId) })).names).toHaveLength(7);
    expect((await list({ account: 'unknown' })).names).toEqual([]);
    const first = await list({}, 4);
    const second = await list({}, 4, first.next);
    expect([first.next, second.next]).toEqual([4, undefined]);
    expect([...first.names, ...second.names]).toEqual((await list()).names);
  });
});
