import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Indexes on large tables: the orders of the list of markets, and the rows that accounts leave behind. Also the time at which an alert
 * expired, and the last poll that had nothing to request.
 */
const INDEXES: readonly { name: string; on: string }[] = [
  { name: 'market_by_created', on: `market (venue, status, coalesce(created_at, '-infinity'::timestamptz), id)` },
  { name: 'market_by_close', on: `market (venue, status, coalesce(close_at, 'infinity'::timestamptz), id)` },
  { name: 'market_by_update', on: `market (venue, status, updated_at, id)` },
  {
    name: 'market_by_category_created',
    on: `market (category, venue, status, coalesce(created_at, '-infinity'::timestamptz), id) WHERE length(category) <= 200`,
  },
  // Most markets have no volume, and a row without a change of its volume keeps its updates in place.
  { name: 'market_stats_by_volume', on: `market_stats (volume_24h, market_id) WHERE volume_24h > 0` },
  // Only test events have no dedupe key.
  { name: 'event_test', on: `event (account_id, pk) WHERE dedupe_key IS NULL` },
  { name: 'webhook_subscription_deleted', on: `webhook_subscription (deleted_at) WHERE deleted_at IS NOT NULL` },
  { name: 'wallet_deleted', on: `wallet (deleted_at) WHERE deleted_at IS NOT NULL` },
  // For the foreign keys of deleted rows.
  { name: 'alert_of_webhook', on: `alert (webhook_pk) WHERE webhook_pk IS NOT NULL` },
  { name: 'wallet_of_watched', on: `wallet (watched_pk)` },
];

export class OnlineIndexes0018 implements MigrationInterface {
  readonly name = 'OnlineIndexes1796227200018';
  /** An index is built without blocking writes only outside a transaction. After an interruption every statement runs again. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE alert ADD COLUMN IF NOT EXISTS expired_at timestamptz`);
    await runner.query(`ALTER TABLE poll_state ADD COLUMN IF NOT EXISTS idle_at timestamptz`);
    // A build waits for older transactions, such as a dump, and blocks no statement meanwhile.
    await runner.query('SET lock_timeout = 0');
    for (const { name, on } of INDEXES) {
      // An interrupted build leaves an invalid index.
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${name} ON ${on}`);
    }
    // The list of markets was its only reader.
    await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS market_by_category`);
    await runner.query('RESET lock_timeout');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS market_by_category`);
    await runner.query(
      `CREATE INDEX CONCURRENTLY market_by_category ON market (category, venue, status, id) WHERE length(category) <= 200`,
    );
    for (const { name } of INDEXES) await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
    await runner.query(`ALTER TABLE poll_state DROP COLUMN IF EXISTS idle_at`);
    await runner.query(`ALTER TABLE alert DROP COLUMN IF EXISTS expired_at`);
  }
}
