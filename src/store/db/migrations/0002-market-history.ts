import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Tables for point-in-time reads, cold reads and large catalogs: superseded market versions, book history, reads of markets, missing
 * markets, and the walks back through a market's trades.
 */
const UP = [
  // Trusted since Postgres 13, so the owner of the database may create it.
  `CREATE EXTENSION IF NOT EXISTS pg_trgm`,
  `CREATE INDEX market_title_trigrams ON market USING gin (lower(title) gin_trgm_ops)`,
  // A separate index although `search` contains the title, because it gives the planner the frequency of a word in titles.
  `CREATE INDEX market_title_words ON market USING gin (to_tsvector('simple', left(title, 2000)))`,
  // Bounded, because a btree refuses keys of more than a third of a page. A search and a category filter have at most 200 characters.
  `CREATE INDEX market_by_title ON market (lower(left(title, 200)), id)`,
  `CREATE INDEX market_by_category ON market (category, venue, status, id) WHERE length(category) <= 200`,

  // Superseded versions of a market. The market row itself is the current version, known since its updated_at.
  `CREATE TABLE market_version (
     market_id bigint NOT NULL REFERENCES market (id) ON DELETE CASCADE,
     known_until timestamptz NOT NULL,
     known_from timestamptz NOT NULL,
     facts jsonb NOT NULL,
     PRIMARY KEY (market_id, known_until)
   )`,
  // The venue neither lists the market nor answers a look-up by its id.
  `ALTER TABLE market ADD COLUMN gone_at timestamptz`,
  // Not on the market row, whose text index would make each sighting expensive. No index on seen_at: it would prevent HOT updates.
  `ALTER TABLE market_stats ADD COLUMN seen_at timestamptz, ADD COLUMN missing_since timestamptz`,
  `CREATE INDEX market_missing ON market_stats (market_id) WHERE missing_since IS NOT NULL`,
  // Markets that clients read, whose books and prices are polled first. Pruned every hour, so it stays small.
  `CREATE TABLE market_read (
     market_id bigint PRIMARY KEY REFERENCES market (id) ON DELETE CASCADE,
     read_at timestamptz NOT NULL
   ) WITH (fillfactor = 70)`,

  // The last time a poll saw this book, changed or not.
  `ALTER TABLE book_latest ADD COLUMN received_at timestamptz NOT NULL DEFAULT now()`,
  `CREATE TABLE book_history (
     token_id bigint NOT NULL,
     received_at timestamptz NOT NULL,
     as_of timestamptz NOT NULL,
     bids jsonb NOT NULL,
     asks jsonb NOT NULL,
     PRIMARY KEY (token_id, received_at)
   ) PARTITION BY RANGE (received_at)`,

  // The start of live polling of the venue's tape; older trades are fetched per market on demand.
  `ALTER TABLE poll_state ADD COLUMN first_success_at timestamptz`,
  `CREATE TABLE trade_history (
     market_id bigint PRIMARY KEY REFERENCES market (id) ON DELETE CASCADE,
     status text COLLATE "C" NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'walking', 'done', 'failed')),
     from_at timestamptz NOT NULL,
     to_at timestamptz NOT NULL,
     reached_at timestamptz,
     position jsonb,
     pages int NOT NULL DEFAULT 0,
     trades bigint NOT NULL DEFAULT 0,
     failures int NOT NULL DEFAULT 0,
     last_error text,
     requested_at timestamptz NOT NULL DEFAULT now(),
     touched_at timestamptz,
     finished_at timestamptz
   )`,
  `CREATE INDEX trade_history_open ON trade_history (touched_at NULLS FIRST, requested_at)
     WHERE status IN ('queued', 'walking')`,
] as const;

const DOWN = [
  `DROP TABLE trade_history`,
  `ALTER TABLE poll_state DROP COLUMN first_success_at`,
  `DROP TABLE book_history`,
  `ALTER TABLE book_latest DROP COLUMN received_at`,
  `DROP TABLE market_read`,
  `DROP INDEX market_missing`,
  `ALTER TABLE market_stats DROP COLUMN seen_at, DROP COLUMN missing_since`,
  `ALTER TABLE market DROP COLUMN gone_at`,
  `DROP TABLE market_version`,
  `DROP INDEX market_by_category`,
  `DROP INDEX market_by_title`,
  `DROP INDEX market_title_words`,
  `DROP INDEX market_title_trigrams`,
] as const;

export class MarketHistory0002 implements MigrationInterface {
  readonly name = 'MarketHistory1795255200002';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
