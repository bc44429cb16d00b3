import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Coverage in the archive. A judgement that changes an hour of a past day is noted as late trades are, with the venue in place of an outcome:
 * `token_id` is 0, which no outcome has, so that a process of the former release finds no day in it. A judgement that finds the same again
 * is not noted.
 *
 * `witness` has the venue's totals of the day of a file of trades, or the reason why there are none. A process of the former release leaves
 * it null.
 */
const STATED = [
  ...['class', 'stored', 'total', 'missing', 'tolerance', 'cause', 'reason', 'pause_ms', 'from_at', 'to_at'],
  ...['markets', 'markets_gap', 'markets_unknown'],
];
const rowOf = (name: string) => `(${STATED.map((column) => `${name}.${column}`).join(', ')})`;
const IS_PAST = `NEW.checked_at IS NOT NULL AND (NEW.hour AT TIME ZONE 'UTC')::date < (now() AT TIME ZONE 'UTC')::date`;

const UP = [
  'ALTER TABLE archive_change ADD COLUMN venue text COLLATE "C"',
  'ALTER TABLE archive_file ADD COLUMN witness jsonb',
  `CREATE FUNCTION note_late_coverage() RETURNS trigger LANGUAGE plpgsql AS $$
   DECLARE
     day date := (NEW.hour AT TIME ZONE 'UTC')::date;
   BEGIN
     IF EXISTS (SELECT FROM archive_switch s WHERE s.kind = 'coverage') AND NOT EXISTS (
       SELECT FROM archive_change c WHERE c.kind = 'coverage' AND c.date = day AND c.token_id = 0 AND c.xid = pg_current_xact_id()
         AND c.venue = NEW.venue) THEN
       INSERT INTO archive_change (kind, token_id, venue, date, xid) VALUES ('coverage', 0, NEW.venue, day, pg_current_xact_id());
     END IF;
     RETURN NULL;
   END $$`,
  `CREATE TRIGGER note_new_coverage AFTER INSERT ON coverage FOR EACH ROW WHEN (${IS_PAST}) EXECUTE FUNCTION note_late_coverage()`,
  `CREATE TRIGGER note_late_coverage AFTER UPDATE ON coverage FOR EACH ROW
   WHEN (${IS_PAST} AND (OLD.checked_at IS NULL OR ${rowOf('NEW')} IS DISTINCT FROM ${rowOf('OLD')})) EXECUTE FUNCTION note_late_coverage()`,
] as const;

const DOWN = [
  'DROP TRIGGER note_late_coverage ON coverage',
  'DROP TRIGGER note_new_coverage ON coverage',
  'DROP FUNCTION note_late_coverage',
  `DELETE FROM archive_change WHERE kind = 'coverage'`,
  `DELETE FROM archive_switch WHERE kind = 'coverage'`,
  'ALTER TABLE archive_file DROP COLUMN witness',
  'ALTER TABLE archive_change DROP COLUMN venue',
] as const;

export class ArchiveCoverage0052 implements MigrationInterface {
  readonly name = 'ArchiveCoverage1798500000052';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
