import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { DataSource } from 'typeorm';
import { OddswireError } from '../../domain/values/errors.ts';
import { MIGRATIONS } from './data-source.ts';
import { type Queryable, sql, sqlState } from './tx.ts';

/** One lock for the boot work of all processes: our migrations and BullMQ's ("oddw" in ASCII). */
const BOOT_LOCK = 0x6f_64_64_77;

/**
 * The interval of the attempts to take the boot lock. A statement that waits for the lock keeps a snapshot, and each CREATE INDEX CONCURRENTLY
 * of the process with the lock waits for the end of all snapshots.
 */
const LOCK_POLL_MS = 50;

/**
 * Runs `work` in one process at a time. The lock belongs to its own connection, so it ends with the process even after a kill.
 * @throws OddswireError `aborted` when the signal fires before the process has the lock.
 */
export async function withBootLock<T>(databaseUrl: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: 'oddswire-boot',
    keepAlive: true,
  });
  // The next statement reports a lost connection; without a listener the event would end the process.
  client.on('error', () => undefined);
  await client.connect();
  try {
    while (!(await tryLock(client))) {
      if (signal.aborted) throw new OddswireError('aborted', 'stopped while waiting for the boot lock');
      await delay(LOCK_POLL_MS);
    }
    return await work();
  } finally {
    await client.end();
  }
}

async function tryLock(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ is_locked: boolean }>('SELECT pg_try_advisory_lock($1) AS is_locked', [
    BOOT_LOCK,
  ]);
  return rows[0]?.is_locked === true;
}

/** Migrates the schema; returns the names of the migrations that ran. Call it inside `withBootLock`, because TypeORM takes no lock. */
export async function migrate(dataSource: DataSource): Promise<string[]> {
  return (await dataSource.runMigrations()).map(({ name }) => name);
}

/** A role that owns the schema may migrate. In an empty database, a role that may create tables becomes the owner. */
const CAN_MIGRATE = sql(
  'can_migrate',
  `SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AND coalesce(
     (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('schema_migration')), true) AS may`,
);

/** Whether the role of this connection may migrate the schema. */
export async function canMigrate(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ may: boolean }>(CAN_MIGRATE);
  return row?.may ?? false;
}

/** The names of the migrations of this release, in their order. */
export const RELEASE_MIGRATIONS: readonly string[] = MIGRATIONS.map((Migration) => new Migration().name);

const APPLIED = sql('applied_migrations', 'SELECT name FROM schema_migration ORDER BY id');

/** The names of the migrations that ran, in their order. */
export async function appliedMigrations(db: Queryable): Promise<string[]> {
  return (await db.query<{ name: string }>(APPLIED)).map(({ name }) => name);
}

/** SQLSTATEs of a table that is missing or not readable for this role. */
const UNREADABLE = ['42P01', '42501'];

/** The migrations of this release that the database lacks, in their order. */
export async function missingMigrations(db: Queryable): Promise<readonly string[]> {
  try {
    const applied = new Set(await appliedMigrations(db));
    return RELEASE_MIGRATIONS.filter((name) => !applied.has(name));
  } catch (error) {
    if (!UNREADABLE.includes(sqlState(error) ?? '')) throw error;
    return RELEASE_MIGRATIONS;
  }
}
