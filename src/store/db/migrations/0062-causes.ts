import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The figures of a process about its machine at its last heartbeat; the first failure of the failures in a row of a poll; and when a program of an
 * account first followed its events.
 *
 * A process of the former release leaves `measured` and `listened_at` null: unknown. The first failure comes from a trigger, so that it is
 * also known beside pollers of the former release. It is unknown for failures that began before this migration.
 */
const UP = [
  'ALTER TABLE process_heartbeat ADD COLUMN measured jsonb',
  'ALTER TABLE account ADD COLUMN listened_at timestamptz',
  'ALTER TABLE poll_state ADD COLUMN failing_since timestamptz, ADD COLUMN first_error text',
  `CREATE FUNCTION note_first_failure() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     IF NEW.consecutive_failures = 0 THEN
       NEW.failing_since := NULL;
       NEW.first_error := NULL;
     ELSIF OLD.consecutive_failures = 0 THEN
       NEW.failing_since := clock_timestamp();
       NEW.first_error := NEW.last_error;
     END IF;
     RETURN NEW;
   END $$`,
  `CREATE TRIGGER poll_state_first_failure BEFORE UPDATE OF consecutive_failures ON poll_state FOR EACH ROW
   WHEN (OLD.consecutive_failures <> NEW.consecutive_failures) EXECUTE FUNCTION note_first_failure()`,
] as const;

const DOWN = [
  'DROP TRIGGER poll_state_first_failure ON poll_state',
  'DROP FUNCTION note_first_failure()',
  'ALTER TABLE poll_state DROP COLUMN first_error, DROP COLUMN failing_since',
  'ALTER TABLE account DROP COLUMN listened_at',
  'ALTER TABLE process_heartbeat DROP COLUMN measured',
] as const;

export class Causes0062 implements MigrationInterface {
  readonly name = 'Causes1798600000062';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
