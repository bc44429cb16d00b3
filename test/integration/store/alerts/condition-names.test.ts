import { expect, it } from 'vitest';
import { ALERT_CONDITIONS } from '../../../../src/domain/alerts/conditions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const CHECK = sql(
  'test_condition_check',
  `SELECT pg_get_constraintdef(oid) AS definition FROM pg_constraint WHERE conname = 'alert_condition_check'`,
);

const test = useTestDatabase();

it('the table of alerts takes every condition, and one that does not exist yet', async () => {
  const [check] = await test.db.query<{ definition: string }>(CHECK);
  const pattern = new RegExp(/~ '(.*?)'/.exec(check?.definition ?? '')?.[1] ?? 'no pattern');
  for (const name of [...ALERT_CONDITIONS, 'depth_below']) expect(name).toMatch(pattern);
  for (const name of ['', 'Above', "a'b", 'a'.repeat(41)]) expect(name).not.toMatch(pattern);
});
