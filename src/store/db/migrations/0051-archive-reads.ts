import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Reads of the archive: a scope, and bytes per account and day. A key with every former scope gets the new one, because an operator made it
 * for everything, and it reads the same market data by the other routes.
 *
 * `archive_use` has a row per account: the bytes of its last day with a download.
 */
const UP = [
  // Null: the default of the configuration.
  'ALTER TABLE account ADD COLUMN quota_archive_mb_per_day int CHECK (quota_archive_mb_per_day >= 0)',
  `CREATE TABLE archive_use (
     account_id bigint PRIMARY KEY REFERENCES account (id),
     date date NOT NULL,
     bytes bigint NOT NULL)`,
  `UPDATE api_key SET scopes = scopes || 'archive'::text
   WHERE scopes @> ARRAY['markets:read', 'webhooks', 'alerts', 'wallets', 'keys'] AND NOT scopes @> ARRAY['archive']`,
] as const;

const DOWN = [
  `UPDATE api_key SET scopes = array_remove(scopes, 'archive') WHERE scopes @> ARRAY['archive']`,
  'DROP TABLE archive_use',
  'ALTER TABLE account DROP COLUMN quota_archive_mb_per_day',
] as const;

export class ArchiveReads0051 implements MigrationInterface {
  readonly name = 'ArchiveReads1798200000051';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
