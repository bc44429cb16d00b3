import pg from 'pg';
import type { DataSource } from 'typeorm';
import { OddswireError } from '../../domain/values/errors.ts';
import { sqlState } from './tx.ts';

/** One lock for all boot work of all processes: our migrations and BullMQ's ("oddw" in ASCII). */
const BOOT_LOCK = 0x6f_64_64_77;

/** How long one try for the boot lock may take before the signal is looked at again. */
const LOCK_TRY_MS = 2_000;

/**
 * Runs `work` while no other process does. The lock lives on a connection of its own, so it ends with the process even if
 * that is killed.
 * @throws OddswireError `aborted` when the signal fires before the lock is ours.
 */
export async function withBootLock<T>(databaseUrl: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: 'oddswire-boot',
    keepAlive: true,
    lock_timeout: LOCK_TRY_MS,
  });
  // Its loss is told by the next statement, if there is one: without a listener it would end the process.
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

/** SQLSTATE of a lock that did not come in time. */
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

/** Brings the schema up to date. Call inside `withBootLock`: TypeORM itself takes none. */
export async function migrate(dataSource: DataSource): Promise<void> {
  await dataSource.runMigrations();
}
