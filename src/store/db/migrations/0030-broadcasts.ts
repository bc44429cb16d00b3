import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Webhooks that list broadcasts: without such a webhook the index is empty, and a look into it costs nothing. Also the age of the firings
 * of alerts, for their retention.
 */
const INDEXES: readonly { name: string; on: string }[] = [
  {
    name: 'webhook_subscription_broadcasts',
    on: `webhook_subscription (pk)
     WHERE deleted_at IS NULL AND events && ARRAY['market_status', 'new_market', 'trade', 'feed_gap']::text[]`,
  },
  { name: 'alert_firing_by_age', on: `alert_firing (at, alert_pk, subject, n)` },
];

export class Broadcasts0030 implements MigrationInterface {
  readonly name = 'Broadcasts1797000000030';
  /** An index is built without blocking writes only outside a transaction. After an interruption every statement runs again. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('SET lock_timeout = 0');
    for (const { name, on } of INDEXES) {
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${name} ON ${on}`);
    }
    await runner.query('RESET lock_timeout');
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const { name } of INDEXES) await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
  }
}
