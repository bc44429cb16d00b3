import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Makes the cost of a claim independent of the backlog: the index ends with the last key of the sort order, so that a claim reads only
 * the first few rows, and a separate index counts rows in flight. That index prevents HOT updates by claims, which costs a tenth of
 * counting through a backlog of two thousand rows.
 */
export class DeliveryClaims0004 implements MigrationInterface {
  readonly name = 'DeliveryClaims1795258800004';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE INDEX delivery_next ON delivery (subscription_pk, (attempt_count > 0), next_attempt_at, pk)
         WHERE status = 'pending'`,
    );
    await runner.query(
      `CREATE INDEX delivery_under_way ON delivery (subscription_pk, locked_until)
         WHERE status = 'pending' AND locked_until IS NOT NULL`,
    );
    await runner.query(`DROP INDEX delivery_due`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE INDEX delivery_due ON delivery (subscription_pk, (attempt_count > 0), next_attempt_at) WHERE status = 'pending'`,
    );
    await runner.query(`DROP INDEX delivery_under_way`);
    await runner.query(`DROP INDEX delivery_next`);
  }
}
