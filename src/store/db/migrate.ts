import pg from 'pg';
import type { DataSource } from 'typeorm';
import { OddswireError } from '../../domain/values/errors.ts';
import { sqlState } from './tx.ts';

/** One lock for the boot work of all processes: our migrations and BullMQ's ("oddw" in ASCII). */
const BOOT_LOCK = 0x6f_64_64_77;

/** The maximum duration of one attempt to take the boot lock before the signal is checked again. */
const LOCK_TRY_MS = 2_000;

/**
 * Runs `work` in one process at a time. The lock belongs to its own connection, so it ends with the process even after a kill.
 * @throws OddswireError `aborted` when the signal fires before the process has the lock.
 */
export async function withBootLock<T>(databaseUrl: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: 'oddswire-boot',
    keepAlive: true,
    lock_timeout: LOCK_TRY_MS,
  });
  // The next statement reports a lost connection; without a listener the event would end the process.
  client.on('error', () => undefined);
  await client.connect();
  try {
    while (!(await tryLock(client))) {
      if (signal.aborted) throw new OddswireError('aborted', 'stopped while waiting for the boot lock');
    }
    return await work();
  } finally {
    await client.end();
  }
}

/** SQLSTATE of a lock timeout. */
const LOCK_NOT_AVAILABLE = '55P03';

async function tryLock(client: pg.Client): Promise<boolean> {
  try {
    await client.query('SELECT pg_advisory_lock($1)', [BOOT_LOCK]);
    return true;
  } catch (error) {
    if (sqlState(error) === LOCK_NOT_AVAILABLE) return false;
    throw error;
  }
}

/** Migrates the schema to the current version. Call it inside `withBootLock`, because TypeORM takes no lock. */
export async function migrate(dataSource: DataSource): Promise<void> {
  await dataSource.runMigrations();
}
