import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The venues' events, each a group of markets, and the fields of a market that name it within its group. The migration writes no rows, so
 * that its locks on `market` end soon; `reconcileEvents` adds the events of stored markets.
 */
const UP = [
  // Bounded, because a btree refuses keys of more than a third of a page. A filter has at most 200 characters.
  `CREATE INDEX market_by_event ON market (venue, event_id, status, id) WHERE length(event_id) <= 200`,
  // Everything but `url` derives from the markets of the event. No index on `id` alone, because the planner would walk it
  // through all events that a filter excludes.
  `CREATE TABLE market_event (
     id bigint GENERATED ALWAYS AS IDENTITY,
     venue text COLLATE "C" NOT NULL,
     event_id text NOT NULL,
     title text,
     category text,
     url text,
     status text COLLATE "C" NOT NULL,
     updated_at timestamptz NOT NULL,
     PRIMARY KEY (venue, event_id)
   )`,
  `CREATE INDEX market_event_by_status ON market_event (venue, status, id)`,
  `CREATE INDEX market_event_by_category ON market_event (category, venue, status, id) WHERE length(category) <= 200`,
  `CREATE INDEX market_event_words ON market_event USING gin (to_tsvector('simple', left(title, 2000)))`,
  `ALTER TABLE market ADD COLUMN event_title text, ADD COLUMN sibling_label text`,
  // Partial: markets without an event add nothing to it.
  `CREATE INDEX market_names ON market USING gin (to_tsvector('simple',
     left(title, 2000) || ' ' || left(coalesce(event_title, ''), 2000) || ' ' || left(coalesce(sibling_label, ''), 2000)))
     WHERE event_title IS NOT NULL OR sibling_label IS NOT NULL`,
] as const;

const DOWN = [
  `DROP INDEX market_names`,
  `ALTER TABLE market DROP COLUMN event_title, DROP COLUMN sibling_label`,
  `DROP TABLE market_event`,
  `DROP INDEX market_by_event`,
] as const;

export class Events0009 implements MigrationInterface {
  readonly name = 'Events1795280400009';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
