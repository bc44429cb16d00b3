import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The source of the result of a market, and when a record with all texts of a market was last stored. Null in rows that only the former
 * release has written.
 */
const UP = [
  'ALTER TABLE market ADD COLUMN settlement_source text',
  'ALTER TABLE market_stats ADD COLUMN full_seen_at timestamptz',
];
const DOWN = ['ALTER TABLE market_stats DROP COLUMN full_seen_at', 'ALTER TABLE market DROP COLUMN settlement_source'];

export class MarketRules0042 implements MigrationInterface {
  readonly name = 'MarketRules1798200000042';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
