import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What venues stated about the fees of markets, and when oddswire learned it. `market.fee_hash` is the digest of the last statement; null:
 * none is known. A process of the former release neither reads nor writes it.
 */
const UP = [
  `CREATE TABLE market_fee (
     market_id bigint NOT NULL REFERENCES market (id),
     known_at timestamptz NOT NULL,
     statement jsonb NOT NULL,
     PRIMARY KEY (market_id, known_at))`,
  'ALTER TABLE market ADD COLUMN fee_hash bytea',
] as const;

const DOWN = ['ALTER TABLE market DROP COLUMN fee_hash', 'DROP TABLE market_fee'] as const;

export class MarketFees0046 implements MigrationInterface {
  readonly name = 'MarketFees1798200000046';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
