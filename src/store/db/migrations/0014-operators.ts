import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Operators by name, and their names in sessions and in the audit log. */
const UP = [
  `CREATE TABLE ops_operator (
     name text COLLATE "C" PRIMARY KEY,
     role text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'operator')),
     password_hash text NOT NULL,
     created_at timestamptz NOT NULL DEFAULT now(),
     password_changed_at timestamptz NOT NULL DEFAULT now()
   )`,
  // Null in rows of an older release, which has the passwords of the configuration only.
  `ALTER TABLE ops_session ADD COLUMN actor text COLLATE "C"`,
  `ALTER TABLE ops_action ADD COLUMN actor text COLLATE "C"`,
] as const;

const DOWN = [
  `ALTER TABLE ops_action DROP COLUMN actor`,
  `ALTER TABLE ops_session DROP COLUMN actor`,
  `DROP TABLE ops_operator`,
] as const;

export class Operators0014 implements MigrationInterface {
  readonly name = 'Operators1795798800014';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
