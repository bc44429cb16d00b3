import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The journal: an ordered log of changes without holes, which every API process follows (docs/live.md).
 *
 * No row of these tables is ever updated, and a claim finds its rows at the end of an index. So old versions of rows, which a long
 * transaction keeps, do not slow it.
 */
const UP = [
  // Changes that wait for the publisher. `xid` is the transaction that wrote the mark: a claim takes the marks of transactions that ended
  // since the last claim. Slots of ten minutes take turns, so that a slot can be emptied when
  // all of its marks are published.
  `CREATE SEQUENCE publish_mark_id`,
  `CREATE TABLE publish_mark (
     xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
     id bigint NOT NULL DEFAULT nextval('publish_mark_id'),
     key bigint NOT NULL,
     detail bigint,
     until bigint,
     kind smallint NOT NULL,
     slot smallint NOT NULL DEFAULT extract(epoch FROM clock_timestamp())::bigint / 600 % 4,
     ref text COLLATE "C"
   ) PARTITION BY LIST (slot)`,
  `ALTER SEQUENCE publish_mark_id OWNED BY publish_mark.id`,
  `CREATE INDEX publish_mark_order ON publish_mark (xid, id)`,
  ...[0, 1, 2, 3].map((slot) => `CREATE TABLE publish_mark_${slot} PARTITION OF publish_mark FOR VALUES IN (${slot})`),
  `CREATE TABLE journal (
     seq bigint NOT NULL,
     at timestamptz NOT NULL,
     kind text COLLATE "C" NOT NULL,
     venue text COLLATE "C" NOT NULL,
     market_id text COLLATE "C" NOT NULL,
     outcome_id text COLLATE "C",
     body json NOT NULL,
     PRIMARY KEY (seq, at)
   ) PARTITION BY RANGE (at)`,
  // The newest row is the head. A claim adds the next turn, so of two publishers at once one fails.
  `CREATE TABLE journal_head (
     turn bigint PRIMARY KEY,
     epoch uuid NOT NULL,
     origin text NOT NULL,
     seq bigint NOT NULL,
     oldest_seq bigint NOT NULL,
     at timestamptz NOT NULL,
     checked_at timestamptz NOT NULL,
     closed_until bigint NOT NULL,
     published pg_snapshot NOT NULL,
     target pg_snapshot,
     target_at timestamptz,
     after_xid xid8,
     after_id bigint
   )`,
  // A thousand rows, as many as are kept, so that the planner never reads the whole table for the newest row.
  `INSERT INTO journal_head (turn, epoch, origin, seq, oldest_seq, at, checked_at, closed_until, published)
   SELECT turn, e.epoch, '', 0, 1, clock_timestamp(), clock_timestamp(),
     floor(extract(epoch FROM clock_timestamp()) / 60)::bigint * 60, pg_current_snapshot()
   FROM generate_series(1, 1000) turn, (SELECT gen_random_uuid() AS epoch) e`,
  // Outcomes whose published 1m candle is not closed yet.
  `CREATE TABLE open_candle (
     bucket bigint NOT NULL,
     token_id bigint NOT NULL,
     PRIMARY KEY (bucket, token_id)
   )`,
] as const;

const DOWN = [
  `DROP TABLE open_candle`,
  `DROP TABLE journal_head`,
  `DROP TABLE journal`,
  `DROP TABLE publish_mark`,
] as const;

/** The partitions of the journal, made and dropped with the rights of the role that migrates, as in migration 0017. */
const functions = (schema: string) => [
  `CREATE FUNCTION create_journal_partition(moment timestamptz) RETURNS void
   LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ${schema}, pg_temp AS $$
   DECLARE
     -- Ten minutes, so that the limit of the size can drop a small part.
     start timestamptz := to_timestamp(floor(extract(epoch FROM moment) / 600) * 600);
     part text := 'journal_' || to_char(start AT TIME ZONE 'UTC', 'YYYYMMDDHH24MI');
   BEGIN
     IF abs(extract(epoch FROM moment - clock_timestamp())) > 7200 THEN
       RAISE EXCEPTION 'no partition of journal for %', moment USING ERRCODE = 'invalid_parameter_value';
     END IF;
     PERFORM pg_advisory_xact_lock(1885434484);
     IF EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                WHERE i.inhparent = 'journal'::regclass AND c.relname = part) THEN
       RETURN;
     END IF;
     EXECUTE format('CREATE TABLE ${schema}.%I (LIKE ${schema}.journal INCLUDING ALL)', part);
     EXECUTE format('ALTER TABLE ${schema}.journal ATTACH PARTITION ${schema}.%I FOR VALUES FROM (%L) TO (%L)', part,
       start, start + interval '10 minutes');
   END $$`,
  `CREATE FUNCTION drop_journal_partition(part text) RETURNS void
   LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ${schema}, pg_temp AS $$
   BEGIN
     IF NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                    WHERE i.inhparent = 'journal'::regclass AND c.relname = part) THEN
       RAISE EXCEPTION '% is no partition of journal', part USING ERRCODE = 'invalid_parameter_value';
     END IF;
     EXECUTE format('DROP TABLE ${schema}.%I', part);
   END $$`,
  // Empties a slot of marks when every mark in it is published. The lock precedes the look, so no mark comes in between.
  `CREATE FUNCTION empty_published_marks(of_slot int) RETURNS boolean
   LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ${schema}, pg_temp AS $$
   DECLARE
     part text := 'publish_mark_' || of_slot;
     pending boolean;
   BEGIN
     IF of_slot NOT BETWEEN 0 AND 3 OR of_slot = extract(epoch FROM clock_timestamp())::bigint / 600 % 4 THEN
       RAISE EXCEPTION 'slot % is in use', of_slot USING ERRCODE = 'invalid_parameter_value';
     END IF;
     EXECUTE format('LOCK TABLE ${schema}.%I IN ACCESS EXCLUSIVE MODE', part);
     EXECUTE format('SELECT EXISTS (SELECT FROM ${schema}.%I m, (SELECT published FROM journal_head ORDER BY turn DESC LIMIT 1) h
       WHERE m.xid >= pg_snapshot_xmin(h.published) AND NOT pg_visible_in_snapshot(m.xid, h.published))', part) INTO pending;
     IF NOT pending THEN
       EXECUTE format('TRUNCATE ${schema}.%I', part);
     END IF;
     RETURN NOT pending;
   END $$`,
  `REVOKE EXECUTE ON FUNCTION create_journal_partition(timestamptz), drop_journal_partition(text), empty_published_marks(int) FROM PUBLIC`,
];

const FUNCTIONS_DOWN = [
  `DROP FUNCTION empty_published_marks(int)`,
  `DROP FUNCTION drop_journal_partition(text)`,
  `DROP FUNCTION create_journal_partition(timestamptz)`,
] as const;

export class Journal0020 implements MigrationInterface {
  readonly name = 'Journal1796500000020';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
    const [row]: { schema: string }[] = await runner.query('SELECT quote_ident(current_schema()) AS schema');
    for (const statement of functions(row?.schema ?? 'public')) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of [...FUNCTIONS_DOWN, ...DOWN]) await runner.query(statement);
  }
}
