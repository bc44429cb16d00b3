import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * `former_result` has the markets whose result, or its withdrawal, a process of the former release wrote: it adds no row to the timeline, its
 * hash of an open market is that of this release, and listings omit most decided markets. The next write of this release removes the market.
 * The triggers of 0041 recognize such a write by `resolution_turn`.
 *
 * `process_heartbeat.conditions` are the conditions of alerts that a process knows; null: those of the former release.
 */
const UP = [
  `CREATE TABLE former_result (
     market_id bigint PRIMARY KEY REFERENCES market (id),
     venue text COLLATE "C" NOT NULL)`,
  `CREATE FUNCTION note_former_result() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     INSERT INTO former_result (market_id, venue) VALUES (NEW.id, NEW.venue) ON CONFLICT DO NOTHING;
     RETURN NULL;
   END $$`,
  `CREATE TRIGGER note_former_result AFTER UPDATE ON market FOR EACH ROW
   WHEN (NEW.resolution_turn = OLD.resolution_turn AND NEW.resolution_state IS NULL AND NEW.status IS DISTINCT FROM OLD.status
     AND (NEW.status IN ('resolved', 'settled') OR OLD.status IN ('resolved', 'settled') OR OLD.resolution_state IS NOT NULL))
   EXECUTE FUNCTION note_former_result()`,
  'ALTER TABLE process_heartbeat ADD COLUMN conditions text[]',
] as const;

const DOWN = [
  'ALTER TABLE process_heartbeat DROP COLUMN conditions',
  'DROP TRIGGER note_former_result ON market',
  'DROP FUNCTION note_former_result',
  'DROP TABLE former_result',
] as const;

export class BesideFormerRelease0048 implements MigrationInterface {
  readonly name = 'BesideFormerRelease1798200000048';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
