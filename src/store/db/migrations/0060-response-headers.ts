import type { MigrationInterface, QueryRunner } from 'typeorm';

const INDEX = 'delivery_unsent_of_subscription';

/**
 * The headers of the answer of an attempt. NULL: no answer, or an attempt of the former release, whose processes do not name the column.
 * The index has the failed and cancelled deliveries of one webhook: a list of an account must not walk the deliveries of all others.
 */
export class ResponseHeaders0060 implements MigrationInterface {
  readonly name = 'ResponseHeaders1798200000060';
  /** An index is built without blocking writes only outside a transaction. After an interruption every statement runs again. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE delivery_attempt ADD COLUMN IF NOT EXISTS response_headers text');
    // A build waits for older transactions, such as a dump, and blocks no statement meanwhile.
    await runner.query('SET lock_timeout = 0');
    // An interrupted build leaves an invalid index.
    await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${INDEX}`);
    await runner.query(
      `CREATE INDEX CONCURRENTLY ${INDEX} ON delivery (subscription_pk, status, pk) WHERE status IN ('failed', 'cancelled')`,
    );
    await runner.query('RESET lock_timeout');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${INDEX}`);
    await runner.query('ALTER TABLE delivery_attempt DROP COLUMN IF EXISTS response_headers');
  }
}
