import { beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { insertMarks } from '../../../../src/store/marks/marks.ts';
import { readBacklogSamples, sampleThroughput } from '../../../../src/store/ops/overview.ts';
import { listPartlyFailing } from '../../../../src/store/ops/webhooks.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { aDelivery } from '../../../factories/deliveries.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const HOUR_MS = 3_600_000;

const database = useTestDatabase();
let accountId: bigint;
beforeAll(async () => {
  accountId = await anAccount(database.db);
});

const SET_ERROR = sql(
  'test_set_error',
  `UPDATE delivery SET last_error = $2, last_status_code = $3, created_at = now() - $4 * interval '1 minute' WHERE pk = $1`,
);
const SET_SUBSCRIPTION = sql(
  'test_set_subscription',
  `UPDATE webhook_subscription SET failing_since = $2, status = $3, deleted_at = $4 WHERE pk = $1`,
);

async function aHook(
  failed: number,
  over: {
    retrying?: number;
    error?: string;
    minutesAgo?: number;
    failingSince?: Date;
    status?: string;
    deletedAt?: Date;
  } = {},
) {
  const { retrying = 0, error = 'timeout', minutesAgo = 5 } = over;
  const id = newId('wh');
  const pk = await aSubscription(database.db, { id, accountId, url: `https://receiver.test/${id}` });
  await aDelivery(database.db, { accountId, subscriptionPk: pk, status: 'delivered' });
  for (let n = 0; n < failed + retrying; n++) {
    const made = await aDelivery(database.db, {
      accountId,
      subscriptionPk: pk,
      status: n < failed ? 'failed' : 'pending',
    });
    await database.db.query(SET_ERROR, [made.pk, error, error === 'http_error' ? 503 : null, minutesAgo]);
  }
  const { failingSince = null, status = 'active', deletedAt = null } = over;
  await database.db.query(SET_SUBSCRIPTION, [pk, failingSince, status, deletedAt]);
  return id;
}

describe('listPartlyFailing', () => {
  it('lists active webhooks with failures of the period, most failures first', async () => {
    const one = await aHook(1, { error: 'http_error' });
    const many = await aHook(2, { retrying: 4 });
    const retrying = await aHook(0, { retrying: 5, error: 'connection_refused' });
    await aHook(0, { retrying: 4 });
    await aHook(3, { minutesAgo: 90 });
    await aHook(3, { failingSince: new Date() });
    await aHook(3, { status: 'paused' });
    await aHook(3, { deletedAt: new Date() });
    const all = await listPartlyFailing(database.db, Date.now() - HOUR_MS, 10);
    expect(all.webhooks.map(({ id }) => id)).toEqual([many, retrying, one]);
    expect(all.webhooks[0]).toMatchObject({
      failed: 2,
      retrying: 4,
      lastError: 'timeout',
      lastStatusCode: null,
      total: 3,
    });
    expect(all.webhooks[2]).toMatchObject({ failed: 1, retrying: 0, lastError: 'http_error', lastStatusCode: 503 });
    const first = await listPartlyFailing(database.db, Date.now() - HOUR_MS, 1);
    expect([first.webhooks.length, first.total]).toEqual([1, 3]);
    const own = await listPartlyFailing(database.db, Date.now() - HOUR_MS, 1, accountId);
    expect([own.webhooks[0]?.id, own.total]).toEqual([many, 3]);
    const other = await listPartlyFailing(database.db, Date.now() - HOUR_MS, 10, await anAccount(database.db));
    expect(other).toEqual({ webhooks: [], total: 0 });
  });

  it('is empty without failed deliveries', async () => {
    expect(await listPartlyFailing(database.db, Date.now() + HOUR_MS, 10)).toEqual({ webhooks: [], total: 0 });
  });
});

describe('sampleThroughput', () => {
  it('stores the backlog, and samples of older processes have none', async () => {
    const { db } = database;
    await insertMarks(db, 'fold-candles', [
      { key: 1n, detail: 60n },
      { key: 2n, detail: 60n },
    ]);
    await db.query(
      sql(
        'test_old_sample',
        `INSERT INTO ops_throughput (minute, at, trades, price_changes, events, attempts, last_mark_id)
         SELECT t, t, 0, 0, 0, 0, 0 FROM (SELECT date_trunc('minute', now()) - interval '3 minutes' AS t) m`,
      ),
    );
    expect(await sampleThroughput(db)).toBe(true);
    // The pending deliveries of the tests above are due.
    expect(await readBacklogSamples(db)).toEqual([{ at: expect.any(Date), marks: 2, deliveries: 13 }]);
  });
});
