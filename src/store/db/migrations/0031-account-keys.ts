import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Keys that accounts make themselves, with a quota, and links that sign a person in to the console once. A link stores the account and the
 * scopes of its session.
 */
const UP = [
  // Null: the default of the configuration.
  `ALTER TABLE account ADD COLUMN quota_keys int CHECK (quota_keys >= 0)`,
  // A table of some thousands of rows.
  `CREATE INDEX api_key_of_account ON api_key (account_id, created_at, id)`,
  `CREATE TABLE sign_in_link (
     token_hash bytea PRIMARY KEY,
     account_id bigint NOT NULL REFERENCES account (id),
     scopes text[] NOT NULL,
     issued_by text NOT NULL,
     created_at timestamptz NOT NULL,
     expires_at timestamptz NOT NULL
   )`,
  `CREATE INDEX sign_in_link_by_end ON sign_in_link (expires_at)`,
] as const;

const DOWN = [
  `DROP TABLE sign_in_link`,
  `DROP INDEX api_key_of_account`,
  `ALTER TABLE account DROP COLUMN quota_keys`,
] as const;

export class AccountKeys0031 implements MigrationInterface {
  readonly name = 'AccountKeys1797300000031';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
