import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The takes of reserved turns of a budget, one entry per turn, and a notification when a budget slows down or pauses, so that no process
 * uses turns that it reserved before. The trigger serves the changes of processes of the former release too, which reserve nothing.
 *
 * Whether a process proves by itself that the journal is complete. One of the former release does not, and does not write the column: the
 * publisher renews the head for it.
 */
const UP = [
  `ALTER TABLE host_budget ADD COLUMN reserved float8[] NOT NULL DEFAULT '{}'`,
  `CREATE FUNCTION tell_slower_budget() RETURNS trigger LANGUAGE plpgsql AS $body$
   BEGIN
     PERFORM pg_notify('oddswire_budget', NEW.host);
     RETURN NULL;
   END $body$`,
  `CREATE TRIGGER slower AFTER UPDATE ON host_budget FOR EACH ROW
   WHEN (NEW.slowed_at <> OLD.slowed_at OR NEW.paused_until <> OLD.paused_until) EXECUTE FUNCTION tell_slower_budget()`,
  `ALTER TABLE process_heartbeat ADD COLUMN proves_journal boolean NOT NULL DEFAULT false`,
] as const;

const DOWN = [
  `ALTER TABLE process_heartbeat DROP COLUMN proves_journal`,
  `DROP TRIGGER slower ON host_budget`,
  `DROP FUNCTION tell_slower_budget()`,
  `ALTER TABLE host_budget DROP COLUMN reserved`,
] as const;

export class Quiet0038 implements MigrationInterface {
  readonly name = 'Quiet1798000000038';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
