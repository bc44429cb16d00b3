import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The firings on markets, for corrections of a reported result. Also the conditions of an alert before its last changes, until the
 * observations of that time have been evaluated. An older process neither reads nor writes either.
 */
const INDEXES: readonly { name: string; on: string }[] = [
  { name: 'alert_firing_of_market', on: `alert_firing (subject) WHERE price IS NULL` },
  { name: 'alert_former', on: `alert (pk) WHERE former IS NOT NULL` },
];

export class Corrections0034 implements MigrationInterface {
  readonly name = 'Corrections1797600000034';
  /** An index is built without blocking writes only outside a transaction. After an interruption every statement runs again. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE alert ADD COLUMN IF NOT EXISTS former jsonb');
    await runner.query('SET lock_timeout = 0');
    for (const { name, on } of INDEXES) {
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${name} ON ${on}`);
    }
    await runner.query('RESET lock_timeout');
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const { name } of INDEXES) await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
    await runner.query('ALTER TABLE alert DROP COLUMN IF EXISTS former');
  }
}
