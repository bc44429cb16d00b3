import { beforeAll, beforeEach, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { Database, sql } from '../../../../src/store/db/tx.ts';
import { recoverDeliveries, retryDelivery } from '../../../../src/store/deliveries/recovery.ts';
import { pruneEvents } from '../../../../src/store/deliveries/retention.ts';
import { forgetOldSecrets } from '../../../../src/store/deliveries/subscriptions.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { aDelivery, type DeliveryFields } from '../../../factories/deliveries.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const DAY_MS = 86_400_000;

const AN_OLD_EVENT = sql(
  'test_old_event',
  `INSERT INTO event (id, dedupe_key, account_id, type, body, created_at)
   SELECT 'evt_' || gen_random_uuid(), gen_random_uuid(), $1, 'price_alert', '{}', now() - $2 * interval '1 day' FROM generate_series(1, $3)`,
);
const AGE = sql(
  'test_age_both',
  `WITH e AS (UPDATE event SET created_at = now() - $2 * interval '1 day'
     WHERE pk = (SELECT event_pk FROM delivery WHERE pk = $1))
   UPDATE delivery SET created_at = now() - $2 * interval '1 day' WHERE pk = $1`,
);
const AN_ATTEMPT = sql(
  'test_attempt_days_ago',
  `INSERT INTO delivery_attempt (delivery_pk, attempt_number, started_at, duration_ms, outcome)
   VALUES ($1, $2, now() - $3 * interval '1 day', 1, 'failed')`,
);
const ANOTHER_DELIVERY = sql(
  'test_another_delivery',
  `INSERT INTO delivery (id, event_pk, subscription_pk, status)
   SELECT $2, event_pk, $3, $4 FROM delivery WHERE pk = $1 RETURNING pk`,
);
const REMAINING = sql(
  'test_remaining',
  `SELECT (SELECT count(*)::int FROM event) AS events, (SELECT count(*)::int FROM delivery) AS deliveries,
     (SELECT count(*)::int FROM delivery_attempt) AS attempts`,
);
const EMPTY = sql('test_empty', 'TRUNCATE event, delivery, delivery_attempt');

const test = useTestDatabase();
let accountId: bigint;
let subscriptionPk: bigint;
const webhookId = newId('wh');
beforeAll(async () => {
  accountId = await anAccount(test.db);
  subscriptionPk = await aSubscription(test.db, { accountId, id: webhookId });
});
beforeEach(() => test.db.query(EMPTY));

async function old(days: number, fields: Partial<DeliveryFields> = {}, attemptsDaysAgo: number[] = []) {
  const made = await aDelivery(test.db, { accountId, subscriptionPk, ...fields });
  await test.db.query(AGE, [made.pk, days]);
  for (const [index, ago] of attemptsDaysAgo.entries()) await test.db.query(AN_ATTEMPT, [made.pk, index + 1, ago]);
  return made;
}

const prune = (db: Database = test.db, signal?: AbortSignal) =>
  pruneEvents({
    db,
    attemptsBeforeMs: Date.now() - 30 * DAY_MS,
    eventsBeforeMs: Date.now() - 90 * DAY_MS,
    testsBeforeMs: Date.now() - 90 * DAY_MS,
    ...(signal && { signal }),
  });
const remaining = async () =>
  (await test.db.query<{ events: number; deliveries: number; attempts: number }>(REMAINING))[0];

it('pruneEvents deletes old attempts of finished deliveries and keeps those of pending ones', async () => {
  await old(40, { status: 'failed' }, [40, 39, 2]);
  await old(40, { status: 'delivered' }, [40]);
  await old(40, { status: 'cancelled' }, [31]);
  await old(40, { attemptCount: 2 }, [40, 39]);
  await old(29, { status: 'failed' }, [29]);
  expect(await prune()).toEqual({ attemptsPruned: 4, deliveriesPruned: 0, eventsPruned: 0 });
  expect(await remaining()).toEqual({ events: 5, deliveries: 5, attempts: 4 });
  expect(await prune()).toEqual({ attemptsPruned: 0, deliveriesPruned: 0, eventsPruned: 0 });
});

it('pruneEvents deletes old events with their deliveries unless a delivery is pending', async () => {
  const other = await aSubscription(test.db, { accountId });
  await old(91, { status: 'failed' }, [91]);
  const both = await old(91, { status: 'delivered' }, [91]);
  await test.db.query(ANOTHER_DELIVERY, [both.pk, newId('dlv'), other, 'cancelled']);
  const half = await old(91, { status: 'delivered' });
  await test.db.query(ANOTHER_DELIVERY, [half.pk, newId('dlv'), other, 'pending']);
  await old(91, { dueInSeconds: 600 });
  await old(89, { status: 'failed' });
  await test.db.query(AN_OLD_EVENT, [accountId, 0, 1]);
  expect(await prune()).toEqual({ attemptsPruned: 2, deliveriesPruned: 3, eventsPruned: 2 });
  expect(await remaining()).toEqual({ events: 4, deliveries: 4, attempts: 0 });
});

it('pruneEvents works in batches and stops between two batches on abort', async () => {
  await test.db.query(AN_OLD_EVENT, [accountId, 100, 2_300]);
  await test.db.query(AN_OLD_EVENT, [accountId, 1, 1_500]);
  const stopping = new AbortController();
  class StoppingDatabase extends Database {
    #transactions = 0;
    override transaction: Database['transaction'] = async (work) => {
      this.#transactions += 1;
      // The first statement deletes attempts and finds no rows.
      if (this.#transactions === 2) stopping.abort();
      return super.transaction(work);
    };
  }
  expect(await prune(new StoppingDatabase(test.db.dataSource), stopping.signal)).toMatchObject({ eventsPruned: 1_000 });
  expect(await prune()).toMatchObject({ eventsPruned: 1_300 });
  expect(await remaining()).toMatchObject({ events: 1_500 });
});

it('pruneEvents skips locked rows until the next run', async () => {
  const held = await old(91, { status: 'failed' }, [91]);
  await old(91, { status: 'failed' }, [91]);
  await test.db.transaction(async (tx) => {
    await tx.query(sql('test_hold', 'SELECT pk FROM delivery WHERE pk = $1 FOR UPDATE'), [held.pk]);
    expect(await prune()).toEqual({ attemptsPruned: 1, deliveriesPruned: 1, eventsPruned: 1 });
  });
  expect(await remaining()).toEqual({ events: 1, deliveries: 1, attempts: 1 });
  expect(await prune()).toEqual({ attemptsPruned: 1, deliveriesPruned: 1, eventsPruned: 1 });
});

it('pruneEvents keeps rows that a concurrent retry or recovery made pending', async () => {
  const rows = [];
  for (let count = 0; count < 30; count++) rows.push(await old(91, { status: 'failed' }, [91]));
  const [pruned, retries] = await Promise.all([
    prune(),
    Promise.all(rows.map(({ id }) => test.db.transaction((tx) => retryDelivery(tx, accountId, webhookId, id)))),
    recoverDeliveries({
      db: test.db,
      accountId,
      subscriptionId: webhookId,
      since: new Date(Date.now() - 100 * DAY_MS),
      onCommit: () => undefined,
    }),
  ]);
  const pending = sql('test_pending', `SELECT count(*)::int AS rows FROM delivery WHERE status = 'pending'`);
  const [kept] = await test.db.query<{ rows: number }>(pending);
  expect(pruned.eventsPruned + (kept?.rows ?? 0)).toBe(30);
  expect(retries.filter(({ outcome }) => outcome === 'retried').length).toBeLessThanOrEqual(kept?.rows ?? 0);
});

it('forgetOldSecrets deletes an expired secret and keeps one that still signs', async () => {
  const rotate = sql(
    'test_rotated',
    `UPDATE webhook_subscription SET previous_sealed_secret = 'old', previous_secret_until = now() + $2 * interval '1 hour' WHERE pk = $1`,
  );
  const expired = await aSubscription(test.db, { accountId });
  const signing = await aSubscription(test.db, { accountId });
  await test.db.query(rotate, [expired, -2]);
  await test.db.query(rotate, [signing, 1]);
  expect(await forgetOldSecrets(test.db)).toBe(1);
  expect(await forgetOldSecrets(test.db)).toBe(0);
});
