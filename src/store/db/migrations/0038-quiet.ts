import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The takes of reserved turns of a budget, one entry per turn, and a notification when a budget slows down or pauses, so that no process
 * uses turns that it reserved before. The trigger serves the changes of processes of the former release too, which reserve nothing.
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
] as const;

const DOWN = [
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
