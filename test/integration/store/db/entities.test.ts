import { describe, expect, it } from 'vitest';
import { AccountEntity } from '../../../../src/store/db/entities/account.ts';
import { AlertEntity } from '../../../../src/store/db/entities/alert.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { anAccount, anAlert } from '../../../factories/alerts.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const COLUMNS = sql(
  'test_columns',
  `SELECT attname::text AS name, format_type(atttypid, NULL) AS type, NOT attnotnull AS is_nullable
   FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0`,
);
const PG_TYPES: Record<string, string> = { int: 'integer', timestamptz: 'timestamp with time zone' };

const test = useTestDatabase();

describe('the entities', () => {
  it('have columns of the names, types and nullability of their tables', async () => {
    for (const { tableName, columns } of test.db.dataSource.entityMetadatas) {
      const stored = await test.db.query<{ name: string }>(COLUMNS, [tableName]);
      for (const { databaseName: name, type, isArray, isNullable } of columns) {
        const stated = `${PG_TYPES[String(type)] ?? type}${isArray ? '[]' : ''}`;
        expect(stored.find((column) => column.name === name)).toEqual({ name, type: stated, isNullable });
      }
    }
  });

  it('give bigint for bigint columns, and null for an empty one', async () => {
    const accountId = await anAccount(test.db);
    const fields = { accountId, mint: 'token', condition: 'above', target: '1' } as const;
    const alert = await test.db.transaction((tx) => anAlert(tx, fields));
    expect(await test.db.em.getRepository(AccountEntity).findOneBy({ id: accountId })).toMatchObject({ id: accountId });
    const { pk, tokenId } = alert;
    const row = await test.db.em.getRepository(AlertEntity).findOneBy({ pk, accountId });
    expect(row).toMatchObject({ pk, accountId, tokenId, webhookPk: null });
  });

  it('convert every bigint column', () => {
    const columns = test.db.dataSource.entityMetadatas.flatMap(({ columns }) => columns);
    const unconverted = columns.filter(({ type, transformer }) => type === 'bigint' && transformer === undefined);
    expect(unconverted.map(({ propertyPath }) => propertyPath)).toEqual([]);
  });
});
