import { expect, it } from 'vitest';
import { pruneFirings } from '../../../../src/store/alerts/retention.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { anAccount, anAlert } from '../../../factories/alerts.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const FIRE = sql(
  'test_fire',
  `INSERT INTO alert_firing (alert_pk, subject, n, at, event_id)
   SELECT $1, $2, n, now() - (200 - n) * interval '1 day', 'evt' FROM generate_series($3::int, $4::int) n`,
);
const LEFT = sql('test_left', 'SELECT subject::int, n::int FROM alert_firing WHERE alert_pk = $1 ORDER BY subject, n');
const BULK = sql(
  'test_fire_in_bulk',
  `INSERT INTO alert_firing (alert_pk, subject, n, at, event_id)
   SELECT $1, 1, n, timestamptz '2020-01-01', 'evt' FROM generate_series(1, 2500) n`,
);

const test = useTestDatabase();

async function aRule(): Promise<bigint> {
  const accountId = await anAccount(test.db);
  const made = await test.db.transaction((tx) =>
    anAlert(tx, { accountId, mint: crypto.randomUUID(), condition: 'above', target: '0.5' }),
  );
  return made.pk;
}
const left = async (pk: bigint) =>
  (await test.db.query<{ subject: number; n: number }>(LEFT, [pk])).map(({ subject, n }) => [subject, n]);
const KEPT_MS = 90.5 * 86_400_000;

it('pruneFirings deletes old firings except the last one of each alert and outcome', async () => {
  const [repeating, other] = [await aRule(), await aRule()];
  await test.db.query(FIRE, [repeating, 7, 100, 113]);
  await test.db.query(FIRE, [repeating, 8, 20, 25]);
  await test.db.query(FIRE, [other, 7, 30, 30]);
  expect(await pruneFirings(test.db, Date.now() - KEPT_MS)).toBe(10 + 5);
  expect(await left(repeating)).toEqual([
    [7, 110],
    [7, 111],
    [7, 112],
    [7, 113],
    [8, 25],
  ]);
  expect(await left(other)).toEqual([[7, 30]]);
  expect(await pruneFirings(test.db, Date.now() - KEPT_MS)).toBe(0);
});

it('pruneFirings works in pages, also over firings of one moment, and stops when it is aborted', async () => {
  const pk = await aRule();
  await test.db.query(BULK, [pk]);
  expect(await pruneFirings(test.db, Date.now(), AbortSignal.abort())).toBe(0);
  expect(await pruneFirings(test.db, Date.now() - KEPT_MS)).toBe(2_499);
  expect(await left(pk)).toEqual([[1, 2500]]);
});
