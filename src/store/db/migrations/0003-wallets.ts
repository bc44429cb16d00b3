import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Secret rotation, delivery lists and their retention, and the wallets that accounts watch. */
const UP = [
  // The secret before the last rotation signs `webhook-signature` until `previous_secret_until`.
  `ALTER TABLE webhook_subscription ADD COLUMN previous_sealed_secret text, ADD COLUMN previous_secret_until timestamptz`,
  // Attempts before the current retry schedule: a recovered delivery gets a complete new schedule.
  `ALTER TABLE delivery ADD COLUMN schedule_from int NOT NULL DEFAULT 0`,
  `CREATE INDEX delivery_of_subscription ON delivery (subscription_pk, pk)`,
  `CREATE INDEX event_of_account ON event (account_id, pk)`,
  // Rows are inserted in time order, so a few kilobytes of BRIN index find the old ones.
  `CREATE INDEX event_by_age ON event USING brin (created_at)`,

  // The last request for price and symbol of tokens that may be mints and belong to no market.
  `ALTER TABLE token ADD COLUMN price_asked_at timestamptz, ADD COLUMN symbol_asked_at timestamptz`,
  `CREATE INDEX token_like_mint ON token (id) WHERE mint ~ '^[1-9A-HJ-NP-Za-km-z]{32,44}$'`,

  // A wallet is polled once, regardless of the number of accounts that watch it.
  `CREATE TABLE watched_wallet (
     pk bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     venue text COLLATE "C" NOT NULL,
     address text COLLATE "C" NOT NULL,
     activity_position jsonb,
     balance_position jsonb,
     baseline_at timestamptz,
     polled_at timestamptz,
     failures int NOT NULL DEFAULT 0,
     last_error text,
     lease_token text,
     lease_until timestamptz,
     created_at timestamptz NOT NULL DEFAULT now(),
     UNIQUE (venue, address)
   )`,
  `CREATE TABLE wallet (
     pk bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     id text COLLATE "C" NOT NULL UNIQUE,
     account_id bigint NOT NULL REFERENCES account (id),
     watched_pk bigint NOT NULL REFERENCES watched_wallet (pk),
     label text,
     created_at timestamptz NOT NULL DEFAULT now(),
     deleted_at timestamptz
   )`,
  `CREATE UNIQUE INDEX wallet_once ON wallet (account_id, watched_pk) WHERE deleted_at IS NULL`,
  `CREATE INDEX wallet_watchers ON wallet (watched_pk) WHERE deleted_at IS NULL`,
  // Emitted transactions of a wallet by the venue's own identity, so that a repeated read emits nothing.
  `CREATE TABLE wallet_transaction (
     watched_pk bigint NOT NULL REFERENCES watched_wallet (pk) ON DELETE CASCADE,
     transaction_id text COLLATE "C" NOT NULL,
     at timestamptz NOT NULL,
     received_at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (watched_pk, transaction_id)
   )`,
  `CREATE TABLE wallet_balance (
     watched_pk bigint NOT NULL REFERENCES watched_wallet (pk) ON DELETE CASCADE,
     mint text COLLATE "C" NOT NULL,
     amount numeric NOT NULL,
     version bigint NOT NULL DEFAULT 1,
     symbol text,
     market_id text,
     missed smallint NOT NULL DEFAULT 0,
     changed_at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (watched_pk, mint)
   )`,
] as const;

const DOWN = [
  `DROP INDEX token_like_mint`,
  `ALTER TABLE token DROP COLUMN price_asked_at, DROP COLUMN symbol_asked_at`,
  `DROP TABLE wallet_balance`,
  `DROP TABLE wallet_transaction`,
  `DROP TABLE wallet`,
  `DROP TABLE watched_wallet`,
  `DROP INDEX event_by_age`,
  `DROP INDEX event_of_account`,
  `DROP INDEX delivery_of_subscription`,
  `ALTER TABLE delivery DROP COLUMN schedule_from`,
  `ALTER TABLE webhook_subscription DROP COLUMN previous_sealed_secret, DROP COLUMN previous_secret_until`,
] as const;

export class Wallets0003 implements MigrationInterface {
  readonly name = 'Wallets1795258800003';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
