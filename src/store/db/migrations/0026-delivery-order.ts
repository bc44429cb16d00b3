import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Indexes of ordered deliveries. Deliveries without a key are in none of them. */
const INDEXES: readonly { name: string; on: string }[] = [
  // The first row of a key is the one with a time, if any; otherwise the oldest one.
  {
    name: 'delivery_order',
    on: `delivery (subscription_pk, order_key, next_attempt_at, pk) WHERE status = 'pending' AND order_key IS NOT NULL`,
  },
  {
    name: 'delivery_waiting',
    on: `delivery (subscription_pk, order_key) WHERE status = 'pending' AND order_key IS NOT NULL AND next_attempt_at = 'infinity'`,
  },
  { name: 'delivery_skipped', on: `delivery (subscription_pk, order_key, pk) WHERE is_skip_unreported` },
  {
    name: 'delivery_cancelled_in_flight',
    on: `delivery (subscription_pk, order_key) WHERE status = 'cancelled' AND locked_until IS NOT NULL AND order_key IS NOT NULL`,
  },
];

export class DeliveryOrder0026 implements MigrationInterface {
  readonly name = 'DeliveryOrder1796900000026';
  /** An index is built without blocking writes only outside a transaction. After an interruption every statement runs again. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // A build waits for older transactions, such as a dump, and blocks no statement meanwhile.
    await runner.query('SET lock_timeout = 0');
    for (const { name, on } of INDEXES) {
      // An interrupted build leaves an invalid index.
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${name} ON ${on}`);
    }
    await runner.query('RESET lock_timeout');
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const { name } of INDEXES) await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
  }
}
