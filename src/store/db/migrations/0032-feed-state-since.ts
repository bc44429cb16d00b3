import type { MigrationInterface, QueryRunner } from 'typeorm';

/** When a streamer began to report the state of a feed. Null in reports of a process of an earlier release. */
const UP = [`ALTER TABLE feed_streamer ADD COLUMN state_since timestamptz`] as const;

const DOWN = [`ALTER TABLE feed_streamer DROP COLUMN state_since`] as const;

export class FeedStateSince0032 implements MigrationInterface {
  readonly name = 'FeedStateSince1797400000032';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
