import type { MigrationInterface, QueryRunner } from 'typeorm';

const INDEX = 'market_resolution_of_results';

/** How far the questions about results of each age have come, by venue: see `src/store/catalog/undecided-markets.ts`. */
export class ResultsAskedAgain0045 implements MigrationInterface {
  readonly name = 'ResultsAskedAgain1798200000045';
  /** An index is built without blocking writes only outside a transaction. After an interruption every statement runs again. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE TABLE IF NOT EXISTS result_recheck (
      venue text COLLATE "C" NOT NULL, age interval NOT NULL, received_at timestamptz NOT NULL, market_id bigint NOT NULL, n int NOT NULL,
      PRIMARY KEY (venue, age))`);
    await runner.query('SET lock_timeout = 0');
    await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${INDEX}`);
    await runner.query(`CREATE INDEX CONCURRENTLY ${INDEX} ON market_resolution (venue, received_at, market_id, n)
      WHERE state IN ('resolved', 'settled', 'voided')`);
    await runner.query('RESET lock_timeout');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${INDEX}`);
    await runner.query('DROP TABLE IF EXISTS result_recheck');
  }
}
