import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The feeds of venues: who reads which part of them, their states, and the intervals in which they lost changes (docs/feeds.md). */
const UP = [
  `CREATE TABLE feed_part (
     venue text COLLATE "C" NOT NULL,
     part int NOT NULL,
     owner text COLLATE "C",
     lease_until timestamptz,
     seen_at timestamptz,
     PRIMARY KEY (venue, part)
   )`,
  `CREATE TABLE feed_streamer (
     streamer text COLLATE "C" NOT NULL,
     venue text COLLATE "C" NOT NULL,
     state text COLLATE "C" NOT NULL,
     reason text,
     subscribed int NOT NULL,
     messages_per_second float8 NOT NULL,
     lag_ms float8,
     reported_at timestamptz NOT NULL,
     PRIMARY KEY (streamer, venue)
   )`,
  // One row per market of a gap. Rows of one loss have the same `gap`.
  `CREATE TABLE feed_gap (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     gap uuid NOT NULL,
     venue text COLLATE "C" NOT NULL,
     market_id bigint NOT NULL,
     affected text COLLATE "C" NOT NULL,
     reason text COLLATE "C" NOT NULL,
     from_at timestamptz NOT NULL,
     to_at timestamptz,
     UNIQUE (gap, market_id)
   )`,
  `CREATE INDEX feed_gap_market ON feed_gap (market_id, from_at)`,
  `CREATE INDEX feed_gap_venue ON feed_gap (venue, from_at)`,
  `CREATE INDEX feed_gap_open ON feed_gap (venue) WHERE to_at IS NULL`,
] as const;

const DOWN = [`DROP TABLE feed_gap`, `DROP TABLE feed_streamer`, `DROP TABLE feed_part`] as const;

export class Feeds0022 implements MigrationInterface {
  readonly name = 'Feeds1796700000022';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
