import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The time at which an unchanged price was last seen. A sweep confirms thousands of prices for each one that changed, so their times are
 * in arrays of 256 outcomes: one row of a kilobyte instead of 256 rows. A block is created without times when it is needed. An older
 * process ignores the times, and prices only look older to it.
 */
const UP = [
  // Half of each page stays free, so that updates stay in place. Element `token_id % 256 + 1` is in epoch seconds; 0 means never.
  `CREATE TABLE price_check (
     block bigint PRIMARY KEY,
     checked int4[] NOT NULL DEFAULT array_fill(0, ARRAY[256])
   ) WITH (fillfactor = 50)`,
  `CREATE VIEW current_price AS
   SELECT l.token_id, l.price, l.bid, l.ask,
     greatest(l.as_of, to_timestamp(c.checked[(l.token_id % 256)::int + 1])) AS as_of, l.received_at
   FROM latest_price l LEFT JOIN price_check c ON c.block = l.token_id / 256`,
  `CREATE TABLE venue_freshness (
     venue text COLLATE "C" PRIMARY KEY,
     measured_at timestamptz NOT NULL,
     markets int NOT NULL,
     unpriced int NOT NULL,
     p50_ms bigint,
     p99_ms bigint,
     max_ms bigint
   )`,
] as const;

export class PriceCheck0011 implements MigrationInterface {
  readonly name = 'PriceCheck1795370400011';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE venue_freshness');
    await runner.query('DROP VIEW current_price');
    await runner.query('DROP TABLE price_check');
  }
}
