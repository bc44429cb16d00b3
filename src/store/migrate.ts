import pg from 'pg';
import type { DataSource } from 'typeorm';

/** One lock for all boot work of all processes: our migrations and BullMQ's ("oddw" in ASCII). */
const BOOT_LOCK = 0x6f_64_64_77;

/**
 * Runs `work` while no other process does. The lock lives on a connection of its own, so it ends with the process even if
 * that is killed.
 */
export async function withBootLock<T>(databaseUrl: string, work: () => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'oddswire-boot' });
  await client.connect();
  try {
    await client.query('SELECT pg_advisory_lock($1)', [BOOT_LOCK]);
    return await work();
  } finally {
    await client.end();
  }
}

/** Brings the schema up to date. Call inside `withBootLock`: TypeORM itself takes none. */
export async function migrate(dataSource: DataSource): Promise<void> {
  await dataSource.runMigrations();
}
