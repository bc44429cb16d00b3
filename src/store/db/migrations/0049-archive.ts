import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * `archive_file` is the catalog of the archive: a row per venue, kind, UTC day and revision; an empty day has a row without a file.
 *
 * `archive_change` has the days whose rows were written after the day was over: a row per transaction, outcome and day, so that no
 * transaction waits for another one, and a reader deletes the changes of which it saw the rows. Triggers write it, because processes of
 * the former release write trades and candles too. It stays empty until `archive_switch` has the kind.
 */
const UP = [
  `CREATE TABLE archive_file (
     kind text COLLATE "C" NOT NULL,
     venue text COLLATE "C" NOT NULL,
     date date NOT NULL,
     revision int NOT NULL,
     file text COLLATE "C" UNIQUE,
     rows bigint NOT NULL,
     in_effect bigint NOT NULL,
     bytes bigint NOT NULL,
     sha256 text,
     checksum text NOT NULL,
     schema_version int NOT NULL,
     start_at timestamptz,
     end_at timestamptz,
     snapshot text NOT NULL,
     journal_seq bigint,
     made_at timestamptz NOT NULL,
     described_at timestamptz,
     superseded_at timestamptz,
     PRIMARY KEY (kind, venue, date, revision))`,
  'CREATE UNIQUE INDEX archive_file_present ON archive_file (kind, venue, date) WHERE superseded_at IS NULL',
  'CREATE INDEX archive_file_superseded ON archive_file (superseded_at) WHERE superseded_at IS NOT NULL AND file IS NOT NULL',
  'CREATE INDEX archive_file_undescribed ON archive_file (kind, venue, date) WHERE described_at IS NULL AND superseded_at IS NULL',
  `CREATE TABLE archive_switch (
     kind text COLLATE "C" PRIMARY KEY,
     xid xid8 NOT NULL)`,
  `CREATE TABLE archive_change (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     kind text COLLATE "C" NOT NULL,
     token_id bigint NOT NULL,
     date date NOT NULL,
     xid xid8 NOT NULL)`,
  'CREATE INDEX archive_change_of_day ON archive_change (kind, date, token_id, xid)',
  `CREATE FUNCTION note_archive_change(changed_kind text, changed_token bigint, changed_day date) RETURNS void LANGUAGE plpgsql AS $$
   BEGIN
     IF EXISTS (SELECT FROM archive_switch s WHERE s.kind = changed_kind) AND NOT EXISTS (
       SELECT FROM archive_change c WHERE c.kind = changed_kind AND c.date = changed_day AND c.token_id = changed_token
         AND c.xid = pg_current_xact_id()) THEN
       INSERT INTO archive_change (kind, token_id, date, xid) VALUES (changed_kind, changed_token, changed_day, pg_current_xact_id());
     END IF;
   END $$`,
  `CREATE FUNCTION note_late_trade() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN PERFORM note_archive_change('trades', NEW.token_id, (NEW.ts AT TIME ZONE 'UTC')::date); RETURN NULL; END $$`,
  `CREATE FUNCTION note_late_candle() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN PERFORM note_archive_change('candles', NEW.token_id, (to_timestamp(NEW.bucket) AT TIME ZONE 'UTC')::date); RETURN NULL; END $$`,
  `CREATE FUNCTION note_deleted_candle() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN PERFORM note_archive_change('candles', OLD.token_id, (to_timestamp(OLD.bucket) AT TIME ZONE 'UTC')::date); RETURN NULL; END $$`,
  `CREATE TRIGGER note_late_trade AFTER INSERT OR UPDATE ON trade FOR EACH ROW
   WHEN ((NEW.ts AT TIME ZONE 'UTC')::date < (now() AT TIME ZONE 'UTC')::date) EXECUTE FUNCTION note_late_trade()`,
  `CREATE TRIGGER note_late_candle AFTER INSERT OR UPDATE ON candle FOR EACH ROW
   WHEN (NEW.interval_seconds <= 300 AND NEW.bucket < extract(epoch FROM date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'))
   EXECUTE FUNCTION note_late_candle()`,
  `CREATE TRIGGER note_deleted_candle AFTER DELETE ON candle FOR EACH ROW
   WHEN (OLD.interval_seconds <= 300) EXECUTE FUNCTION note_deleted_candle()`,
  // The time at which oddswire received the trade; null for trades of the former release.
  'ALTER TABLE trade ADD COLUMN received_at timestamptz',
] as const;

const DOWN = [
  'ALTER TABLE trade DROP COLUMN received_at',
  'DROP TRIGGER note_deleted_candle ON candle',
  'DROP TRIGGER note_late_candle ON candle',
  'DROP TRIGGER note_late_trade ON trade',
  'DROP FUNCTION note_deleted_candle',
  'DROP FUNCTION note_late_candle',
  'DROP FUNCTION note_late_trade',
  'DROP FUNCTION note_archive_change',
  'DROP TABLE archive_change',
  'DROP TABLE archive_switch',
  'DROP TABLE archive_file',
] as const;

export class Archive0049 implements MigrationInterface {
  readonly name = 'Archive1798200000049';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
