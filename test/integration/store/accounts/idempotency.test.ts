import { beforeEach, expect, it } from 'vitest';
import {
  claimIdempotencyKey,
  keepIdempotentAnswer,
  pruneIdempotencyKeys,
} from '../../../../src/store/accounts/idempotency.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { anAccount } from '../../../factories/alerts.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const test = useTestDatabase();
let accountId: bigint;
beforeEach(async () => {
  accountId = await anAccount(test.db);
});

const claim = (key: string, owner = accountId) => test.db.transaction((tx) => claimIdempotencyKey(tx, owner, key));
const keep = (key: string, sealed: string) =>
  test.db.transaction(async (tx) => {
    await claimIdempotencyKey(tx, accountId, key);
    await keepIdempotentAnswer(tx, accountId, key, sealed);
  });

const AGE = sql(
  'test_age_key',
  `UPDATE idempotency_key SET created_at = now() - $3 * interval '1 second' WHERE account_id = $1 AND key = $2`,
);
const age = (key: string, seconds: number) => test.db.query(AGE, [accountId, key, seconds]);
const HOURS_IN_SECONDS = 24 * 3_600;

it('claimIdempotencyKey scopes a key to its account and keeps it only when the transaction commits', async () => {
  const failed = test.db.transaction(async (tx) => {
    expect(await claimIdempotencyKey(tx, accountId, 'k')).toEqual({ outcome: 'claimed' });
    await keepIdempotentAnswer(tx, accountId, 'k', 'never');
    throw new Error('rolled back');
  });
  await expect(failed).rejects.toThrow('rolled back');
  await keep('k', 'an answer');
  expect(await claim('k')).toEqual({ outcome: 'stored', sealed: 'an answer' });
  expect(await claim('K')).toEqual({ outcome: 'claimed' });
  expect(await claim('k', await anAccount(test.db))).toEqual({ outcome: 'claimed' });
});

it('claimIdempotencyKey returns busy without a wait while another transaction uses the key', async () => {
  const stranger = await anAccount(test.db);
  await keep('kept', 'an answer');
  await test.db.transaction(async (tx) => {
    expect(await claimIdempotencyKey(tx, accountId, 'new')).toEqual({ outcome: 'claimed' });
    expect(await claimIdempotencyKey(tx, accountId, 'kept')).toMatchObject({ outcome: 'stored' });
    expect([await claim('new'), await claim('kept')]).toEqual([{ outcome: 'busy' }, { outcome: 'busy' }]);
    expect(await claim('new', stranger)).toEqual({ outcome: 'claimed' });
  });
  expect(await claim('kept')).toMatchObject({ outcome: 'stored' });
});

it('claimIdempotencyKey ignores an expired key, deleted or not', async () => {
  await keep('k', 'an answer');
  await age('k', HOURS_IN_SECONDS - 60);
  expect(await claim('k')).toEqual({ outcome: 'stored', sealed: 'an answer' });
  await age('k', HOURS_IN_SECONDS);
  expect(await claim('k')).toEqual({ outcome: 'claimed' });
  // The takeover above gave the key a new day.
  expect(await claim('k')).toEqual({ outcome: 'stored', sealed: '' });
});

it('pruneIdempotencyKeys deletes expired keys in batches and skips a key during its takeover', async () => {
  const MANY = sql(
    'test_many_keys',
    `INSERT INTO idempotency_key SELECT $1, 'old-' || n, '', now() - interval '25 hours' FROM generate_series(1, 2500) n`,
  );
  await test.db.query(MANY, [accountId]);
  for (const key of ['young', 'taken']) await keep(key, 'an answer');
  await age('young', HOURS_IN_SECONDS - 60);
  await age('taken', HOURS_IN_SECONDS + 60);
  const stopped = new AbortController();
  stopped.abort();
  expect(await pruneIdempotencyKeys(test.db, stopped.signal)).toBe(0);
  await test.db.transaction(async (tx) => {
    expect(await claimIdempotencyKey(tx, accountId, 'taken')).toEqual({ outcome: 'claimed' });
    expect(await pruneIdempotencyKeys(test.db)).toBe(2_500);
  });
  expect(await claim('young')).toMatchObject({ outcome: 'stored' });
  expect(await claim('taken')).toMatchObject({ outcome: 'stored' });
  expect(await pruneIdempotencyKeys(test.db)).toBe(0);
});
