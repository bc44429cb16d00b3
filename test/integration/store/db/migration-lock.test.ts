import pg from 'pg';
import type { DataSource } from 'typeorm';
import { expect, it } from 'vitest';
import { createLogger } from '../../../../src/observe/logger.ts';
import { createDataSource } from '../../../../src/store/db/data-source.ts';
import { AuditTrail0016 } from '../../../../src/store/db/migrations/0016-audit-trail.ts';
import { sqlState } from '../../../../src/store/db/tx.ts';
import { createTestDatabase } from '../../../support/postgres/database.ts';

const LOCK_NOT_AVAILABLE = '55P03';

/** A migrated database, a session of a process that uses it, and the connection of a migration. */
async function beside(migrate: (session: pg.Client, dataSource: DataSource) => Promise<void>): Promise<void> {
  const test = await createTestDatabase({ poolSize: 1 });
  const session = new pg.Client({ connectionString: test.url });
  await session.connect();
  const dataSource = createDataSource({
    databaseUrl: test.url,
    poolSize: 1,
    applicationName: 'test-migrate',
    lockTimeoutMs: 50,
    log: createLogger({ process: 'test', level: 'silent' }),
  });
  try {
    await migrate(session, await dataSource.initialize());
  } finally {
    await dataSource.destroy();
    await session.end();
    await test.drop();
  }
}

it('a migration fails on a locked table, so that no statement queues behind its lock request', () =>
  beside(async (holder, dataSource) => {
    await holder.query('BEGIN');
    await holder.query('SELECT FROM alert');
    const migration = dataSource.query('ALTER TABLE alert ADD COLUMN later int');
    await expect(migration.catch((error: unknown) => Promise.reject(sqlState(error)))).rejects.toBe(LOCK_NOT_AVAILABLE);
    await holder.query('COMMIT');
    await dataSource.query('ALTER TABLE alert ADD COLUMN later int');
  }));

it('the migration of the audit trail runs beside writers of events, alerts, webhooks and wallets', () =>
  beside(async (writer, dataSource) => {
    const audit = new AuditTrail0016();
    const isApplied = async () => {
      const rows: unknown[] = await dataSource.query('SELECT FROM schema_migration WHERE name = $1', [audit.name]);
      return rows.length === 1;
    };
    while (await isApplied()) await dataSource.undoLastMigration({ transaction: 'none' });
    await writer.query('BEGIN');
    await writer.query('LOCK TABLE event, alert, webhook_subscription, wallet IN ROW EXCLUSIVE MODE');
    await dataSource.transaction((em) => audit.up(em.queryRunner ?? dataSource.createQueryRunner()));
    await writer.query('COMMIT');
    expect(await dataSource.query('SELECT FROM audit_trail')).toEqual([]);
  }));
