import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Candles of one and five minutes of days before the seam are in files, and Postgres has those that changed since. The row of the seam always
 * exists, so that a fold can hold it. It moves from `moves_at` on: until then API processes of the former release, which know no seam of
 * candles, have ended. `archive_file.dropped_at` says that Postgres dropped the candles of the file.
 *
 * Coarser candles of a day before the seam can be folded only beside the finer ones of its file. An aggregator of the former release does
 * not read them, so its fold is refused; `archive-day` of this release sets `oddswire.archived_candles`, also to drop candles without a note.
 */
const UP = [
  'ALTER TABLE archive_file ADD COLUMN dropped_at timestamptz',
  'ALTER TABLE archive_seam ADD COLUMN moves_at timestamptz',
  `INSERT INTO archive_seam (kind, until, moves_at)
   SELECT 'candles', '1969-12-31T00:00:00Z', now() + CASE WHEN EXISTS (SELECT FROM candle) THEN interval '1 day' ELSE interval '0' END`,
  `CREATE OR REPLACE FUNCTION note_late_candle() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     IF current_setting('oddswire.archived_candles', true) IS DISTINCT FROM 'on'
        AND to_timestamp(NEW.bucket) < (SELECT until FROM archive_seam WHERE kind = 'candles') THEN
       RAISE EXCEPTION 'files of the archive have the candles of this day' USING ERRCODE = 'object_not_in_prerequisite_state';
     END IF;
     PERFORM note_archive_change('candles', NEW.token_id, (to_timestamp(NEW.bucket) AT TIME ZONE 'UTC')::date);
     RETURN NULL;
   END $$`,
  `CREATE OR REPLACE FUNCTION note_deleted_candle() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     IF current_setting('oddswire.archived_candles', true) IS DISTINCT FROM 'on' THEN
       PERFORM note_archive_change('candles', OLD.token_id, (to_timestamp(OLD.bucket) AT TIME ZONE 'UTC')::date);
     END IF;
     RETURN NULL;
   END $$`,
] as const;

const DOWN = [
  `CREATE OR REPLACE FUNCTION note_late_candle() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN PERFORM note_archive_change('candles', NEW.token_id, (to_timestamp(NEW.bucket) AT TIME ZONE 'UTC')::date); RETURN NULL; END $$`,
  `CREATE OR REPLACE FUNCTION note_deleted_candle() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN PERFORM note_archive_change('candles', OLD.token_id, (to_timestamp(OLD.bucket) AT TIME ZONE 'UTC')::date); RETURN NULL; END $$`,
  `DELETE FROM archive_seam WHERE kind = 'candles'`,
  'ALTER TABLE archive_seam DROP COLUMN moves_at',
  'ALTER TABLE archive_file DROP COLUMN dropped_at',
] as const;

export class CandleSeam0058 implements MigrationInterface {
  readonly name = 'CandleSeam1798200000058';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
