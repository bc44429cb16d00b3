import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What venues stated about the fees of markets, and when oddswire learned it. Most markets of a venue share a statement, so each different
 * one is stored once. `market.fee_id` is the last one of a market; null: none is known. A process of the former release neither reads nor
 * writes it.
 */
const UP = [
  `CREATE TABLE fee_statement (
     id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     hash bytea NOT NULL UNIQUE,
     statement jsonb NOT NULL)`,
  `CREATE TABLE market_fee (
     market_id bigint NOT NULL REFERENCES market (id),
     known_at timestamptz NOT NULL,
     fee_id int NOT NULL REFERENCES fee_statement (id),
     PRIMARY KEY (market_id, known_at))`,
  'ALTER TABLE market ADD COLUMN fee_id int',
] as const;

const DOWN = ['ALTER TABLE market DROP COLUMN fee_id', 'DROP TABLE market_fee', 'DROP TABLE fee_statement'] as const;

export class MarketFees0046 implements MigrationInterface {
  readonly name = 'MarketFees1798200000046';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
