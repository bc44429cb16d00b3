import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Database, sql, type Tx } from '../../../../src/store/db/tx.ts';
import { claimTogether } from '../../../../src/store/deliveries/claims.ts';
import { finishAttempt } from '../../../../src/store/deliveries/outcomes.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import {
  aDelivery,
  type DeliveryFields,
  storedAttempts,
  storedDelivery,
  storedSubscription,
} from '../../../factories/deliveries.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

type MadeAttempt = Parameters<typeof finishAttempt>[1];

const test = useTestDatabase();
let accountId: bigint;
beforeAll(async () => {
  accountId = await anAccount(test.db);
});

const DELIVERED = { state: 'delivered' } as const;
const STARTED = new Date('2026-01-02T03:04:05.678Z');
const SET_FAILING = sql(
  'test_set_failing',
  `UPDATE webhook_subscription SET failing_since = now() - interval '1 day', exhausted_count = 3 WHERE pk = $1`,
);
const SET_STATUS = sql('test_set_status', 'UPDATE delivery SET status = $2 WHERE pk = $1');
const STEAL = sql('test_steal', `UPDATE delivery SET locked_until = now() + interval '9 hours' WHERE pk = $1`);

/** A subscription with claimed deliveries, each with a successful attempt. */
async function delivered(count: number, fields: Partial<DeliveryFields> = {}): Promise<MadeAttempt[]> {
  const subscriptionPk = await aSubscription(test.db, { accountId });
  for (let index = 0; index < count; index += 1) await aDelivery(test.db, { accountId, subscriptionPk, ...fields });
  const claim = await claimTogether(test.db, { subscriptionPk, limit: count });
  return (claim?.deliveries ?? []).map((delivery, index) => ({
    subscriptionPk,
    delivery,
    attempt: {
      startedAt: STARTED,
      durationMs: 12.6 + index,
      outcome: 'delivered',
      statusCode: 200 + index,
      ...(index === 0 && { responseExcerpt: Buffer.from([0, 255, 92, 34]) }),
    },
  }));
}

/** Records attempts at once, which share transactions; returns the deliveries that were still held. */
async function finishAll(made: readonly MadeAttempt[], db = test.db): Promise<ReadonlySet<bigint>> {
  const finished = await Promise.all(made.map((each) => finishAttempt(db, each, DELIVERED)));
  return new Set(made.flatMap(({ delivery }, index) => (finished[index]?.isRecorded ? [delivery.pk] : [])));
}

/** Counts transactions and can hold the first one. */
class WatchedDatabase extends Database {
  transactions = 0;
  held: Promise<void> = Promise.resolve();

  override async transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    this.transactions += 1;
    await this.held;
    return super.transaction(work);
  }
}

describe('one transaction of many delivered attempts', () => {
  it('records each attempt like a transaction of its own', async () => {
    const made = [...(await delivered(3)), ...(await delivered(2))];
    const [alone] = await delivered(1);
    if (alone === undefined) throw new Error('nothing was claimed');
    await finishAttempt(test.db, alone, DELIVERED);
    expect(await finishAll(made)).toEqual(new Set(made.map(({ delivery }) => delivery.pk)));
    const { deliveredAt: _at, dueIn: _due, ...expected } = await storedDelivery(test.db, alone.delivery.pk);
    for (const { delivery, attempt } of made) {
      const stored = await storedDelivery(test.db, delivery.pk);
      expect(stored).toMatchObject({ ...expected, lastStatusCode: attempt.statusCode });
      expect(stored.deliveredAt).toBeInstanceOf(Date);
      expect(await storedAttempts(test.db, delivery.pk)).toEqual([
        {
          attemptNumber: 1,
          outcome: 'delivered',
          statusCode: attempt.statusCode,
          errorCode: null,
          durationMs: Math.round(attempt.durationMs),
          responseExcerpt: attempt.responseExcerpt ?? null,
        },
      ]);
    }
  });

  it('skips attempts whose lease another worker took, and records no attempt twice', async () => {
    const made = await delivered(4);
    const [lost, finished, cancelled, plain] = made.map(({ delivery }) => delivery.pk);
    await test.db.query(STEAL, [lost]);
    await finishAll(made.slice(1, 2));
    await test.db.query(SET_STATUS, [cancelled, 'cancelled']);
    expect(await finishAll(made)).toEqual(new Set([cancelled, plain]));
    expect(await storedDelivery(test.db, lost ?? 0n)).toMatchObject({ status: 'pending', attemptCount: 0 });
    expect(await storedAttempts(test.db, lost ?? 0n)).toEqual([]);
    expect(await storedAttempts(test.db, finished ?? 0n)).toHaveLength(1);
    // The receiver accepted it, so the success wins over the cancellation.
    expect(await storedDelivery(test.db, cancelled ?? 0n)).toMatchObject({ status: 'delivered' });
    expect(await finishAll(made)).toEqual(new Set());
  });

  it('clears the failures of its own subscriptions, except for test events', async () => {
    const [first, second, tested, lost] = [
      await delivered(1),
      await delivered(1),
      await delivered(1, { isTest: true }),
      await delivered(1),
    ];
    const made = [first, second, tested, lost].flat();
    for (const { subscriptionPk } of made) await test.db.query(SET_FAILING, [subscriptionPk]);
    await test.db.query(STEAL, [lost[0]?.delivery.pk]);
    const outsider = await aSubscription(test.db, { accountId });
    await test.db.query(SET_FAILING, [outsider]);
    await finishAll(made);
    const counts = [];
    for (const pk of [...made.map(({ subscriptionPk }) => subscriptionPk), outsider]) {
      counts.push((await storedSubscription(test.db, pk)).exhaustedCount);
    }
    expect(counts).toEqual([0, 0, 3, 3, 3]);
  });

  it('ends without a deadlock when many processes record in opposite orders', async () => {
    const made = [...(await delivered(8)), ...(await delivered(8)), ...(await delivered(8))];
    const calls = Array.from({ length: 8 }, (_, index) =>
      finishAll(index % 2 === 0 ? made : [...made].reverse(), new Database(test.db.dataSource)),
    );
    const recorded = (await Promise.all(calls)).flatMap((pks) => [...pks]);
    expect(recorded.sort()).toEqual(made.map(({ delivery }) => delivery.pk).sort());
  });
});

describe('the batcher of delivered attempts', () => {
  let db: WatchedDatabase;
  beforeEach(() => {
    db = new WatchedDatabase(test.db.dataSource);
  });

  it('records attempts that end during a transaction in the next one', async () => {
    const made = await delivered(8);
    let letGo = (): void => undefined;
    db.held = new Promise((resolve) => {
      letGo = resolve;
    });
    const finished = made.map((one) => finishAttempt(db, one, DELIVERED));
    expect(db.transactions).toBe(1);
    letGo();
    expect(await Promise.all(finished)).toEqual(made.map(() => ({ isRecorded: true })));
    expect(db.transactions).toBe(2);
    const [again] = made;
    expect(again && (await finishAttempt(db, again, DELIVERED))).toEqual({ isRecorded: false });
    expect(db.transactions).toBe(3);
  });

  it('rejects only the attempt that Postgres refuses', async () => {
    const made = await delivered(5);
    const bad = made[3];
    if (bad === undefined) throw new Error('nothing was claimed');
    // Exceeds the range of the column.
    made[3] = { ...bad, attempt: { ...bad.attempt, durationMs: 2 ** 31 + 5 } };
    const results = await Promise.allSettled(made.map((one) => finishAttempt(db, one, DELIVERED)));
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
    expect(await storedDelivery(test.db, bad.delivery.pk)).toMatchObject({ status: 'pending', isLocked: true });
  });

  it('rejects all attempts of a batch when the database is unavailable, and records later ones', async () => {
    const made = await delivered(3);
    db.held = Promise.reject(new Error('Connection terminated'));
    const results = await Promise.allSettled(made.map((one) => finishAttempt(db, one, DELIVERED)));
    expect(results.every(({ status }) => status === 'rejected')).toBe(true);
    db.held = Promise.resolve();
    const [first] = made;
    expect(first && (await finishAttempt(db, first, DELIVERED))).toEqual({ isRecorded: true });
  });
});
