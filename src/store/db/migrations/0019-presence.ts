import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The worker processes with a connection of their own that holds an advisory lock. Claims name their process, so they end with that
 * connection. A claim of an older process names none and ends by its time.
 */
const UP = [
  // The id is the second key of the lock, which is an int.
  `CREATE TABLE presence (
     id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     workers jsonb NOT NULL,
     started_at timestamptz NOT NULL DEFAULT clock_timestamp()
   )`,
  `ALTER TABLE delivery ADD COLUMN locked_by int`,
] as const;

const DOWN = [`ALTER TABLE delivery DROP COLUMN locked_by`, `DROP TABLE presence`] as const;

export class Presence0019 implements MigrationInterface {
  readonly name = 'Presence1796400000019';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
