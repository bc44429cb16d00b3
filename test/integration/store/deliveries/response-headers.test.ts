import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { responseHeaders } from '../../../../src/domain/webhooks/response-headers.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { createDataSource } from '../../../../src/store/db/data-source.ts';
import { ResponseHeaders0060 } from '../../../../src/store/db/migrations/0060-response-headers.ts';
import { type Database, sql } from '../../../../src/store/db/tx.ts';
import type { ClaimedDelivery } from '../../../../src/store/deliveries/claims.ts';
import { finishAttempt } from '../../../../src/store/deliveries/outcomes.ts';
import { findDeliveryWithLog } from '../../../../src/store/deliveries/reads.ts';
import { anyCharacters } from '../../../factories/texts.ts';
import { createTestDatabase } from '../../../support/postgres/database.ts';
import { deliveryDesk } from './delivery-desk.ts';

/** The statement of the former release that stores an attempt. */
const FINISH_FORMERLY = sql(
  'test_finish_formerly',
  `WITH done AS (
     UPDATE delivery SET attempt_count = attempt_count + 1, locked_until = NULL, status = 'pending', next_attempt_at = clock_timestamp(),
       last_status_code = 500, last_error = 'http_status'
     WHERE pk = $1 AND attempt_count = $2 AND locked_until = $3::timestamptz RETURNING pk)
   INSERT INTO delivery_attempt
     (delivery_pk, attempt_number, started_at, duration_ms, outcome, status_code, error_code, response_excerpt)
   SELECT pk, $2 + 1, now(), 3, 'failed', 500, 'http_status', '\\x6e6f'::bytea FROM done`,
);
/** The read of the former release. */
const READ_FORMERLY = sql(
  'test_read_formerly',
  `SELECT attempt_number AS attempt, started_at, duration_ms, outcome, status_code, error_code, response_excerpt
   FROM delivery_attempt WHERE delivery_pk = $1 ORDER BY attempt_number`,
);
const COLUMNS = sql(
  'test_attempt_columns',
  `SELECT column_name FROM information_schema.columns WHERE table_name = 'delivery_attempt' AND column_name = 'response_headers'`,
);

const desk = deliveryDesk();
const HEADERS = responseHeaders({ 'content-type': 'text/plain', 'set-cookie': 'a=b' }, []);

const finishers = {
  former: (delivery: ClaimedDelivery) =>
    desk.db.query(FINISH_FORMERLY, [delivery.pk, delivery.attemptCount, delivery.lease]),
  new: (delivery: ClaimedDelivery) =>
    finishAttempt(
      desk.db,
      {
        subscriptionPk: desk.subscriptionPk,
        delivery,
        attempt: {
          startedAt: new Date(),
          durationMs: 1,
          outcome: 'failed',
          statusCode: 500,
          errorCode: 'http_status',
          responseHeaders: HEADERS,
        },
      },
      { state: 'retry', delaySeconds: 0 },
    ),
};

async function storedOf(db: Database, id: string) {
  const found = await findDeliveryWithLog(db, desk.subscriptionPk, id);
  return found?.attemptLog.map(({ responseHeaders: stored }) => stored);
}

describe('the headers of an answer', () => {
  it.each([
    [['former', 'new', 'former'] as const, [null, HEADERS, null]],
    [['new', 'former', 'new'] as const, [HEADERS, null, HEADERS]],
  ])('are stored by processes of this release, and unknown for those beside them: %j', async (order, expected) => {
    const { id, pk } = await desk.due();
    for (const release of order) await finishers[release](await desk.claimOne());
    expect(await storedOf(desk.db, id)).toEqual(expected);
    expect(await desk.db.query(READ_FORMERLY, [pk])).toMatchObject([{ attempt: 1 }, { attempt: 2 }, { attempt: 3 }]);
  });

  it('differ when an answer had none from those of an attempt without an answer', async () => {
    const { id } = await desk.due();
    const attempt = { startedAt: new Date(), durationMs: 1, outcome: 'failed', errorCode: 'timeout' } as const;
    const none = { headers: [], removed: 0, omitted: 0 };
    for (const fields of [{}, { statusCode: 500, responseHeaders: none }]) {
      const made = { subscriptionPk: desk.subscriptionPk, delivery: await desk.claimOne() };
      await finishAttempt(
        desk.db,
        { ...made, attempt: { ...attempt, ...fields } },
        { state: 'retry', delaySeconds: 0 },
      );
    }
    expect(await storedOf(desk.db, id)).toEqual([null, none]);
  });

  it('come back from Postgres as they were stored, for all names and values', async () => {
    const anyText = fc.oneof(
      anyCharacters(40),
      fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 20 }).map((codes) => String.fromCharCode(...codes)),
      fc.string({ minLength: 2_000, maxLength: 5_000 }),
    );
    const anyHeaders = fc.dictionary(anyText, fc.oneof(anyText, fc.array(anyText, { maxLength: 20 })), { maxKeys: 30 });
    await fc.assert(
      fc.asyncProperty(anyHeaders, async (received) => {
        const { id } = await desk.due();
        const stored = responseHeaders(received, []);
        const made = { subscriptionPk: desk.subscriptionPk, delivery: await desk.claimOne() };
        const attempt = { startedAt: new Date(), durationMs: 1, outcome: 'delivered', statusCode: 200 } as const;
        await finishAttempt(
          desk.db,
          { ...made, attempt: { ...attempt, responseHeaders: stored } },
          { state: 'delivered' },
        );
        expect(await storedOf(desk.db, id)).toEqual([stored]);
      }),
      { numRuns: 60 },
    );
  });
});

it('the migration of the headers runs again after an interruption', async () => {
  const test = await createTestDatabase({ poolSize: 4 });
  const dataSource = await createDataSource({
    databaseUrl: test.url,
    poolSize: 2,
    applicationName: 'test-migrate',
    log: createLogger({ process: 'test', level: 'silent' }),
  }).initialize();
  const runner = dataSource.createQueryRunner();
  const migration = new ResponseHeaders0060();
  await migration.up(runner);
  await migration.down(runner);
  expect(await test.db.query(COLUMNS)).toEqual([]);
  await migration.down(runner);
  await migration.up(runner);
  expect(await test.db.query(COLUMNS)).toHaveLength(1);
  await runner.release();
  await dataSource.destroy();
  await test.drop();
});
