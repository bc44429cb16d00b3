import type { Config } from '../config/config.ts';
import { OddswireError } from '../domain/values/errors.ts';
import type { Logger } from '../observe/logger.ts';
import { createQueueBackend } from '../queues/backend.ts';
import { createDataSource } from '../store/db/data-source.ts';
import { canMigrate, migrate, missingMigrations, withBootLock } from '../store/db/migrate.ts';
import type { Database } from '../store/db/tx.ts';

/** A waiting migration blocks later queries of its table, so it times out; a later start retries it. */
const MIGRATION_LOCK_MS = 10_000;

/** Migrates oddswire's schema over a connection of its own, past any pooler; returns the names of the migrations that ran. */
export async function migrateSchema(databaseUrl: string, log: Logger): Promise<string[]> {
  const dataSource = createDataSource({
    databaseUrl,
    poolSize: 1,
    applicationName: 'oddswire-migrate',
    lockTimeoutMs: MIGRATION_LOCK_MS,
    log,
  });
  await dataSource.initialize();
  try {
    return await migrate(dataSource);
  } finally {
    await dataSource.destroy();
  }
}

/** Whether a process migrates at its start: its role owns the schema, and no other role is configured for migrations. */
export async function migratesAtStart(db: Database, { databaseMigrateUrl }: Config): Promise<boolean> {
  return databaseMigrateUrl === undefined && (await canMigrate(db));
}

/** @throws OddswireError `other_schema` when a migration of this release did not run */
export async function requireSchema(db: Database): Promise<void> {
  const missing = await missingMigrations(db);
  if (missing.length > 0) {
    throw new OddswireError('other_schema', `the database lacks migrations of this release (${missing.join(', ')})`);
  }
}

/** The migrations of a starting process, without the process: oddswire's schema and, with queues in Postgres, BullMQ's. */
export async function migrateDatabase(
  databaseUrl: string,
  { redisUrl, prefix }: Config['queues'],
  log: Logger,
): Promise<string[]> {
  return withBootLock(databaseUrl, new AbortController().signal, async () => {
    const ran = await migrateSchema(databaseUrl, log);
    if (redisUrl !== undefined) return ran;
    const backend = createQueueBackend({ databaseUrl, prefix, workers: 0, log });
    try {
      await backend.migrate();
    } finally {
      await backend.close();
    }
    return ran;
  });
}
