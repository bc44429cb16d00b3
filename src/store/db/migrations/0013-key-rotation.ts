import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The keys of sealed values: a check value per key of a ring, and indexes that find the keys in use. */
const UP = [
  // A key id always stands for the same bytes: a process whose key differs fails at its start, before it seals anything.
  `CREATE TABLE ring_key (
     kid text COLLATE "C" PRIMARY KEY,
     sealed text NOT NULL,
     created_at timestamptz NOT NULL DEFAULT now()
   )`,
  // A sealed text is v1.<kid>.…: few different kids, which a skip scan finds at every start.
  `CREATE INDEX IF NOT EXISTS webhook_subscription_by_kid ON webhook_subscription (split_part(sealed_secret, '.', 2))`,
  `CREATE INDEX IF NOT EXISTS webhook_subscription_by_previous_kid
     ON webhook_subscription (split_part(previous_sealed_secret, '.', 2))`,
  `CREATE INDEX IF NOT EXISTS idempotency_key_by_kid ON idempotency_key (split_part(sealed, '.', 2))`,
] as const;

const DOWN = [
  `DROP INDEX idempotency_key_by_kid`,
  `DROP INDEX webhook_subscription_by_previous_kid`,
  `DROP INDEX webhook_subscription_by_kid`,
  `DROP TABLE ring_key`,
] as const;

export class KeyRotation0013 implements MigrationInterface {
  readonly name = 'KeyRotation1795795200013';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
