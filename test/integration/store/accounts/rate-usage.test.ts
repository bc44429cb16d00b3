import { expect, it } from 'vitest';
import { addRateUsage, pruneRateUsage } from '../../../../src/store/accounts/rate-usage.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const test = useTestDatabase();

const requests = (subject: bigint, windowStartMs: number) => ({
  kind: 'requests' as const,
  subject,
  windowStartMs,
  used: 1,
});

it('pruneRateUsage deletes old rows, and neither waits for a row that a process adds to nor deletes it', async () => {
  await addRateUsage(test.db, [requests(1n, 1_000), requests(2n, 1_000)]);
  await test.db.transaction(async (tx) => {
    await addRateUsage(tx, [requests(2n, 60_000)]);
    expect(await pruneRateUsage(test.db, 2_000)).toBe(1);
  });
  expect(await addRateUsage(test.db, [requests(1n, 60_000), requests(2n, 60_000)])).toEqual([1, 2]);
});
