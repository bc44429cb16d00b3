import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Options of webhooks. Older processes ignore them, and insert deliveries without a key. */
const UP = [
  `ALTER TABLE webhook_subscription
     ADD COLUMN order_by text COLLATE "C" CHECK (order_by IN ('market', 'alert', 'wallet')),
     ADD COLUMN filter jsonb,
     ADD COLUMN max_per_second double precision CHECK (max_per_second > 0),
     ADD COLUMN rate_at timestamptz,
     ADD COLUMN sealed_headers text,
     ADD COLUMN header_names text[],
     ADD COLUMN description text,
     ADD COLUMN format text COLLATE "C" CHECK (format IN ('discord', 'slack', 'telegram')),
     ADD COLUMN sealed_url text,
     ADD COLUMN held_until timestamptz`,
  // A table of some thousands of rows.
  `CREATE INDEX webhook_subscription_by_headers_kid ON webhook_subscription (split_part(sealed_headers, '.', 2))`,
  `CREATE INDEX webhook_subscription_by_url_kid ON webhook_subscription (split_part(sealed_url, '.', 2))`,
  `ALTER TABLE delivery
     ADD COLUMN order_key text COLLATE "C",
     ADD COLUMN is_skip_unreported boolean`,
] as const;

const DOWN = [
  `ALTER TABLE delivery DROP COLUMN is_skip_unreported, DROP COLUMN order_key`,
  `ALTER TABLE webhook_subscription
     DROP COLUMN held_until, DROP COLUMN sealed_url, DROP COLUMN format, DROP COLUMN description,
     DROP COLUMN header_names, DROP COLUMN sealed_headers, DROP COLUMN rate_at, DROP COLUMN max_per_second,
     DROP COLUMN filter, DROP COLUMN order_by`,
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
