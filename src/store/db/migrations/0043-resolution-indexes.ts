import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Webhooks that list broadcasts: see 0030. The former release looks with its own list of events, so its index stays until the next release.
 * Also the markets that wait for their result,
 * and the alerts on the state of markets: see 0024.
 */
const INDEXES: readonly { name: string; on: string }[] = [
  {
    name: 'webhook_subscription_broadcasts_2',
    on: `webhook_subscription (pk) WHERE deleted_at IS NULL
     AND events && ARRAY['market_status', 'new_market', 'trade', 'feed_gap', 'market_resolution', 'market_rules']::text[]`,
  },
  {
    name: 'alert_of_markets_2',
    on: `alert (probe) WHERE status = 'active' AND probe IN ('status', 'new_market', 'resolution')`,
  },
  {
    name: 'market_undecided',
    on: `market (venue, id) WHERE gone_at IS NULL
     AND (status = 'closed' OR resolution_state IN ('proposed', 'disputed') OR status = 'resolved' AND venue = 'kalshi')`,
  },
];

export class ResolutionIndexes0043 implements MigrationInterface {
  readonly name = 'ResolutionIndexes1798200000043';
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
