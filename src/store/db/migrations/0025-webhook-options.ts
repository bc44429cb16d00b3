import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Options of webhooks. Older processes ignore them, and insert deliveries without a key. */
const UP = [
  `ALTER TABLE webhook_subscription
     ADD COLUMN order_by text COLLATE "C" CHECK (order_by IN ('market', 'alert', 'wallet')),
     ADD COLUMN filter jsonb`,
  `ALTER TABLE delivery
     ADD COLUMN order_key text COLLATE "C",
     ADD COLUMN is_skip_unreported boolean`,
] as const;

const DOWN = [
  `ALTER TABLE delivery DROP COLUMN is_skip_unreported, DROP COLUMN order_key`,
  `ALTER TABLE webhook_subscription DROP COLUMN filter, DROP COLUMN order_by`,
] as const;

export class WebhookOptions0025 implements MigrationInterface {
  readonly name = 'WebhookOptions1796900000025';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
