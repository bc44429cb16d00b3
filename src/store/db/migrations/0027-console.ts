import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Sign-ins of the console. A session names a key, so it has the scopes of the key and ends with it. */
const UP = [
  `CREATE TABLE console_session (
     token_hash bytea PRIMARY KEY,
     key_id text NOT NULL REFERENCES api_key ON DELETE CASCADE,
     address text NOT NULL,
     created_at timestamptz NOT NULL,
     expires_at timestamptz NOT NULL,
     flash text
   )`,
  `CREATE INDEX console_session_by_key ON console_session (key_id)`,
] as const;

const DOWN = [`DROP TABLE console_session`] as const;

export class Console0027 implements MigrationInterface {
  readonly name = 'Console1797100000027';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
