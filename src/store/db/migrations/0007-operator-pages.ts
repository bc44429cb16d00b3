import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Sessions and the audit log of the operator pages, and the samples behind their overview of the last day. */
const UP = [
  `CREATE TABLE ops_session (
     token_hash bytea PRIMARY KEY,
     role text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'operator')),
     password_fingerprint bytea NOT NULL,
     address text NOT NULL,
     created_at timestamptz NOT NULL,
     last_seen_at timestamptz NOT NULL,
     expires_at timestamptz NOT NULL,
     flash text
   )`,
  `CREATE TABLE ops_action (
     pk bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     at timestamptz NOT NULL,
     role text COLLATE "C",
     session_id text,
     address text NOT NULL,
     action text COLLATE "C" NOT NULL,
     target text NOT NULL,
     status text COLLATE "C" NOT NULL CHECK (status IN ('started', 'done', 'refused', 'failed')),
     result text NOT NULL DEFAULT '',
     request_id text NOT NULL
   )`,
  // One row per minute from the first process that writes it: Postgres's row counters per table, and the last key of a mark.
  `CREATE TABLE ops_throughput (
     minute timestamptz PRIMARY KEY,
     at timestamptz NOT NULL,
     trades bigint NOT NULL,
     price_changes bigint NOT NULL,
     events bigint NOT NULL,
     attempts bigint NOT NULL,
     last_mark_id bigint NOT NULL
   )`,
  `CREATE INDEX webhook_subscription_failing ON webhook_subscription (failing_since)
     WHERE failing_since IS NOT NULL AND deleted_at IS NULL`,

  // Operators search unsent deliveries of all accounts; successful deliveries do not enter these indexes.
  `CREATE INDEX delivery_unsent ON delivery (status, pk) WHERE status IN ('failed', 'cancelled')`,
  `CREATE INDEX delivery_errors ON delivery (last_error, pk) WHERE last_error IS NOT NULL`,
  `CREATE INDEX alert_of_token ON alert (token_id, pk)`,
  `CREATE INDEX alert_by_status ON alert (status, pk)`,
] as const;

const DOWN = [
  `DROP INDEX alert_by_status`,
  `DROP INDEX alert_of_token`,
  `DROP INDEX delivery_errors`,
  `DROP INDEX delivery_unsent`,
  `DROP INDEX webhook_subscription_failing`,
  `DROP TABLE ops_throughput`,
  `DROP TABLE ops_action`,
  `DROP TABLE ops_session`,
] as const;

export class OperatorPages0007 implements MigrationInterface {
  readonly name = 'OperatorPages1795273200007';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
