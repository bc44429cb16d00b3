import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * `archive_seam` has the moment of each kind before which its rows are in files alone: the end of the last partition that was dropped
 * because its files are in the catalog. It moves in the transaction of the drop.
 *
 * A trade before the seam goes to `archive_correction`, which reads merge with the files, until the file of its day has it. The trigger on
 * `trade` moves the trades of a process of the former release, which makes a partition for them; `maintain-storage` drops the empty
 * partition. The trigger on `archive_correction` makes the day due. No process writes the other kinds into the past.
 */
const UP = [
  `CREATE TABLE archive_seam (
     kind text COLLATE "C" PRIMARY KEY,
     until timestamptz NOT NULL)`,
  `CREATE TABLE archive_correction (
     token_id bigint NOT NULL,
     ts timestamptz NOT NULL,
     trade_id text COLLATE "C" NOT NULL,
     price numeric NOT NULL,
     size numeric NOT NULL,
     side smallint,
     ordinal int NOT NULL,
     received_at timestamptz,
     xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
     PRIMARY KEY (token_id, ts, trade_id))`,
  'CREATE INDEX archive_correction_of_time ON archive_correction (ts)',
  `CREATE FUNCTION divert_archived_trade() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     IF NEW.ts < (SELECT until FROM archive_seam WHERE kind = 'trades') THEN
       INSERT INTO archive_correction (token_id, ts, trade_id, price, size, side, ordinal, received_at)
       VALUES (NEW.token_id, NEW.ts, NEW.trade_id, NEW.price, NEW.size, NEW.side, NEW.ordinal, NEW.received_at)
       ON CONFLICT DO NOTHING;
       RETURN NULL;
     END IF;
     RETURN NEW;
   END $$`,
  `CREATE TRIGGER divert_archived_trade BEFORE INSERT ON trade FOR EACH ROW
   WHEN (NEW.ts < now() - interval '1 day') EXECUTE FUNCTION divert_archived_trade()`,
  `CREATE TRIGGER note_archive_correction AFTER INSERT ON archive_correction FOR EACH ROW EXECUTE FUNCTION note_late_trade()`,
] as const;

const DOWN = [
  'DROP TRIGGER divert_archived_trade ON trade',
  'DROP FUNCTION divert_archived_trade',
  'DROP TABLE archive_correction',
  'DROP TABLE archive_seam',
] as const;

export class ArchiveSeam0055 implements MigrationInterface {
  readonly name = 'ArchiveSeam1798200000055';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
