import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * `archive_failure` has the last failure of each kind and venue of the archive, until a day of them succeeds; an empty kind and venue mean the
 * folder. Processes of the former release do not write it: their failures are in the log only.
 */
const UP = [
  `CREATE TABLE archive_failure (
     kind text COLLATE "C" NOT NULL,
     venue text COLLATE "C" NOT NULL,
     date date,
     code text NOT NULL,
     message text NOT NULL,
     failures int NOT NULL DEFAULT 1,
     since timestamptz NOT NULL DEFAULT clock_timestamp(),
     at timestamptz NOT NULL DEFAULT clock_timestamp(),
     PRIMARY KEY (kind, venue))`,
] as const;

const DOWN = ['DROP TABLE archive_failure'] as const;

export class ArchiveState0054 implements MigrationInterface {
  readonly name = 'ArchiveState1798200000054';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
