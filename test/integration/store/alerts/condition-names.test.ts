import { expect, it } from 'vitest';
import { ALERT_CONDITIONS } from '../../../../src/domain/alerts/conditions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { anAccount, anAlert } from '../../../factories/alerts.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const RENAME = sql('test_rename_condition', 'UPDATE alert SET condition = $1');

const test = useTestDatabase();

it('the table of alerts takes every condition, and one that does not exist yet', async () => {
  const accountId = await anAccount(test.db);
  await test.db.transaction((tx) => anAlert(tx, { accountId, mint: 'mint', condition: 'above', target: '1' }));
  for (const name of [...ALERT_CONDITIONS, 'depth_below']) await test.db.query(RENAME, [name]);
  for (const name of ['', 'Above', "a'b", 'a'.repeat(41)]) {
    await expect(test.db.query(RENAME, [name])).rejects.toMatchObject({ code: '23514' });
  }
});
