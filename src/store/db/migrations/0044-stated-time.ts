import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The venue's time of the stored record of a market, where it sends one. A process of the former release leaves it as it is. */
export class StatedTime0044 implements MigrationInterface {
  readonly name = 'StatedTime1798200000044';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE market ADD COLUMN stated_at timestamptz');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE market DROP COLUMN stated_at');
  }
}
