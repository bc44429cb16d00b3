import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The usage of accounts in their current window, one row each. Unlogged: a crash of the server starts new windows. Half of each page
 * stays free, so that updates stay in place.
 */
const UP = [
  `CREATE UNLOGGED TABLE rate_usage (
     account_id bigint NOT NULL,
     kind text COLLATE "C" NOT NULL,
     window_start_ms bigint NOT NULL,
     used bigint NOT NULL,
     PRIMARY KEY (account_id, kind)
   ) WITH (fillfactor = 50)`,
] as const;

export class RateUsage0006 implements MigrationInterface {
  readonly name = 'RateUsage1795258800006';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE rate_usage`);
  }
}
