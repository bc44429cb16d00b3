import type { MigrationInterface, QueryRunner } from 'typeorm';

/** When a stream last followed the books of all markets of a venue. A process of an earlier release neither writes nor reads it. */
const UP = `CREATE TABLE followed_venue (
  venue text COLLATE "C" PRIMARY KEY,
  followed_at timestamptz NOT NULL
)`;

export class FollowedVenues0037 implements MigrationInterface {
  readonly name = 'FollowedVenues1797900000037';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(UP);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE followed_venue');
  }
}
