import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Limits of single accounts, and stored answers for repeated requests. */
const UP = [
  // Null: the default of the configuration.
  `ALTER TABLE account
     ADD COLUMN quota_webhooks int CHECK (quota_webhooks >= 0),
     ADD COLUMN quota_alerts int CHECK (quota_alerts >= 0),
     ADD COLUMN quota_wallets int CHECK (quota_wallets >= 0),
     ADD COLUMN rate_per_minute int CHECK (rate_per_minute >= 0),
     ADD COLUMN cold_reads_per_minute int CHECK (cold_reads_per_minute >= 0)`,
  // An upper bound: each creation raises it, nothing lowers it, and a count replaces it when it reaches the quota. Null: unknown.
  `ALTER TABLE account
     ADD COLUMN webhooks_at_most int, ADD COLUMN alerts_at_most int, ADD COLUMN wallets_at_most int`,
  `CREATE INDEX alert_active_of_account ON alert (account_id) WHERE status = 'active'`,
  `CREATE TABLE idempotency_key (
     account_id bigint NOT NULL REFERENCES account (id),
     key text COLLATE "C" NOT NULL,
     sealed text NOT NULL,
     created_at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (account_id, key)
   )`,
  `CREATE INDEX idempotency_key_by_age ON idempotency_key (created_at)`,
] as const;

const DOWN = [
  `DROP TABLE idempotency_key`,
  `DROP INDEX alert_active_of_account`,
  `ALTER TABLE account DROP COLUMN quota_webhooks, DROP COLUMN quota_alerts, DROP COLUMN quota_wallets,
     DROP COLUMN rate_per_minute, DROP COLUMN cold_reads_per_minute,
     DROP COLUMN webhooks_at_most, DROP COLUMN alerts_at_most, DROP COLUMN wallets_at_most`,
] as const;

export class AccountWrites0005 implements MigrationInterface {
  readonly name = 'AccountWrites1795258800005';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
