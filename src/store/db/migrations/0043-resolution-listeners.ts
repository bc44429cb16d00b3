import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Webhooks that list broadcasts: see 0030. The former release looks with its own list of events, so its index stays until the next release. */
const NAME = 'webhook_subscription_broadcasts_2';

export class ResolutionListeners0043 implements MigrationInterface {
  readonly name = 'ResolutionListeners1798200000043';
  /** An index is built without blocking writes only outside a transaction. After an interruption every statement runs again. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('SET lock_timeout = 0');
    await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${NAME}`);
    await runner.query(
      `CREATE INDEX CONCURRENTLY ${NAME} ON webhook_subscription (pk) WHERE deleted_at IS NULL
       AND events && ARRAY['market_status', 'new_market', 'trade', 'feed_gap', 'market_resolution', 'market_rules']::text[]`,
    );
    await runner.query('RESET lock_timeout');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${NAME}`);
  }
}
