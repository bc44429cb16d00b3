import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What point-in-time reads, cold reads and a catalog of hundreds of thousands need: superseded market versions, book history,
 * who is read, who went missing, and the walks back through a market's trades.
 */
const UP = [
  // Trusted since Postgres 13: the owner of the database may create it.
  `CREATE EXTENSION IF NOT EXISTS pg_trgm`,
  `CREATE INDEX market_title_trigrams ON market USING gin (lower(title) gin_trgm_ops)`,
  // Of its own, although `search` holds the title: only so the planner knows how common a word is in titles.
  `CREATE INDEX market_title_words ON market USING gin (to_tsvector('simple', left(title, 2000)))`,
  // Bounded: a btree refuses keys of more than a third of a page. A search has at most 200 characters, a category filter too.
  `CREATE INDEX market_by_title ON market (lower(left(title, 200)), id)`,
  `CREATE INDEX market_by_category ON market (category, venue, status, id) WHERE length(category) <= 200`,

  // What a market was before it changed; the current version is the market row itself, known since its updated_at.
  `CREATE TABLE market_version (
     market_id bigint NOT NULL REFERENCES market (id) ON DELETE CASCADE,
     known_until timestamptz NOT NULL,
     known_from timestamptz NOT NULL,
     facts jsonb NOT NULL,
     PRIMARY KEY (market_id, known_until)
   )`,
  // The venue neither lists it nor knows it by its id any more.
  `ALTER TABLE market ADD COLUMN gone_at timestamptz`,
  // Kept off the market row, whose text index would make each sighting costly. No index on seen_at: it would end HOT updates.
  `ALTER TABLE market_stats ADD COLUMN seen_at timestamptz, ADD COLUMN missing_since timestamptz`,
  `CREATE INDEX market_missing ON market_stats (market_id) WHERE missing_since IS NOT NULL`,
  // Markets that clients read: their books and prices are polled first. Pruned by the hour, so never large.
  `CREATE TABLE market_read (
     market_id bigint PRIMARY KEY REFERENCES market (id) ON DELETE CASCADE,
     read_at timestamptz NOT NULL
   ) WITH (fillfactor = 70)`,

  // When a poll last saw this book, changed or not.
  `ALTER TABLE book_latest ADD COLUMN received_at timestamptz NOT NULL DEFAULT now()`,
  `CREATE TABLE book_history (
     token_id bigint NOT NULL,
     received_at timestamptz NOT NULL,
     as_of timestamptz NOT NULL,
     bids jsonb NOT NULL,
     asks jsonb NOT NULL,
     PRIMARY KEY (token_id, received_at)
   ) PARTITION BY RANGE (received_at)`,

  // From then on the venue's tape is followed live; what lies before is fetched per market, on demand.
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
