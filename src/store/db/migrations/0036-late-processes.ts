import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The part of the last ten seconds in which a process ran late, and the next try of a feed that was given up. Null in rows of a process of an
 * earlier release, which does not measure them.
 */
const UP = [
  `ALTER TABLE process_heartbeat ADD COLUMN late_share real`,
  `ALTER TABLE feed_streamer ADD COLUMN next_try_at timestamptz`,
] as const;

const DOWN = [
  `ALTER TABLE feed_streamer DROP COLUMN next_try_at`,
  `ALTER TABLE process_heartbeat DROP COLUMN late_share`,
] as const;

export class LateProcesses0036 implements MigrationInterface {
  readonly name = 'LateProcesses1797800000036';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
