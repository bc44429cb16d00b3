import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The request for a poll whose lease another process holds. Null in rows of a process of the former release, which holds a lease only while it
 * polls.
 */
const UP = 'ALTER TABLE poll_state ADD COLUMN requested_at timestamptz';
const DOWN = 'ALTER TABLE poll_state DROP COLUMN requested_at';

export class RequestedPolls0039 implements MigrationInterface {
  readonly name = 'RequestedPolls1798100000039';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(UP);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(DOWN);
  }
}
