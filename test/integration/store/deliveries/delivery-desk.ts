import { afterAll, beforeAll, beforeEach } from 'vitest';
import { Database, sql } from '../../../../src/store/db/tx.ts';
import { type ClaimedDelivery, claimTogether, MAX_IN_FLIGHT } from '../../../../src/store/deliveries/claims.ts';
import { type AttemptRecord, type DeliveryVerdict, finishAttempt } from '../../../../src/store/deliveries/outcomes.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { aDelivery, type DeliveryFields } from '../../../factories/deliveries.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/postgres/database.ts';

type FinishedAttempt = Awaited<ReturnType<typeof finishAttempt>>;

export const SET_STATUS = sql('test_set_status', 'UPDATE webhook_subscription SET status = $2 WHERE pk = $1');
export const END_LEASE = sql(
  'test_end_lease',
  `UPDATE delivery SET locked_until = now() - interval '1 second' WHERE pk = $1`,
);

const ATTEMPT: AttemptRecord = { startedAt: new Date(), durationMs: 12.6, outcome: 'delivered', statusCode: 200 };
const REFUSED: AttemptRecord = {
  startedAt: new Date(),
  durationMs: 3,
  outcome: 'failed',
  statusCode: 500,
  errorCode: 'http_status',
  responseExcerpt: Buffer.from([0, 255, 10]),
};

/** A database for the tests of a file, and a new subscription for each test. */
interface DeliveryDesk {
  readonly db: Database;
  readonly accountId: bigint;
  readonly subscriptionPk: bigint;
  due(fields?: Partial<DeliveryFields>): ReturnType<typeof aDelivery>;
  many(count: number, fields?: Partial<DeliveryFields>): Promise<unknown>;
  claim(limit?: number): Promise<ClaimedDelivery[]>;
  claimOne(): Promise<ClaimedDelivery>;
  finish(delivery: ClaimedDelivery, verdict: DeliveryVerdict): Promise<FinishedAttempt>;
}

export function deliveryDesk(): DeliveryDesk {
  let test: TestDatabase;
  let accountId: bigint;
  let subscriptionPk: bigint;
  beforeAll(async () => {
    test = await createTestDatabase({ poolSize: 16 });
    accountId = await anAccount(test.db);
  });
  afterAll(() => test.drop());
  beforeEach(async () => {
    subscriptionPk = await aSubscription(test.db, {
      accountId,
      id: `wh_${crypto.randomUUID()}`,
      sealedSecret: 'sealed',
    });
  });

  const due = (fields: Partial<DeliveryFields> = {}) => aDelivery(test.db, { accountId, subscriptionPk, ...fields });
  // Claims like a process of its own.
  const claim = async (limit = MAX_IN_FLIGHT) =>
    (await claimTogether(new Database(test.db.dataSource), { subscriptionPk, limit }))?.deliveries ?? [];
  return {
    get db() {
      return test.db;
    },
    get accountId() {
      return accountId;
    },
    get subscriptionPk() {
      return subscriptionPk;
    },
    due,
    many: (count, fields) => Promise.all(Array.from({ length: count }, () => due(fields))),
    claim,
    async claimOne() {
      const [delivery] = await claim(1);
      if (!delivery) throw new Error('nothing to claim');
      return delivery;
    },
    finish: (delivery, verdict) =>
      finishAttempt(
        test.db,
        { subscriptionPk, delivery, attempt: verdict.state === 'delivered' ? ATTEMPT : REFUSED },
        verdict,
      ),
  };
}
