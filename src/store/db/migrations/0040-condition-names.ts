import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The table of conditions in `src/domain/alerts/conditions.ts` decides which names exist, so that a new condition needs no migration. */
const constrain = (check: string) =>
  `ALTER TABLE alert DROP CONSTRAINT alert_condition_check, ADD CONSTRAINT alert_condition_check CHECK (${check}) NOT VALID`;
const UP = constrain(`condition ~ '^[a-z][a-z_]{0,39}$'`);
const DOWN = constrain(
  `condition IN ('above', 'below', 'crosses_above', 'crosses_below', 'change', 'spread', 'trade', 'volume', 'status', 'new_market')`,
);

export class ConditionNames0040 implements MigrationInterface {
  readonly name = 'ConditionNames1798100000040';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(UP);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(DOWN);
  }
}
