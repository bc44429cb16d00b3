import type { MigrationInterface, QueryRunner } from 'typeorm';
import { partitionFunctions } from './0017-partition-functions.ts';

/**
 * A month of `trade` has one partition, or five: they begin on the days 1, 8, 15, 22 and 29. It has five when no process made one of it
 * before and `archive_switch.keep_days` is set and at most 400: Postgres keeps archived trades for so many days only, so that few
 * partitions exist at a time. `maintain-storage` sets it.
 *
 * A process of the former release asks for the first moment of a month, and expects that the whole month has partitions: so does each
 * request for that moment. A request for another moment makes its own partition.
 */
const createPartition = (schema: string) => `
  CREATE OR REPLACE FUNCTION create_partition(parent text, moment timestamptz) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ${schema}, pg_temp AS $$
  DECLARE
    unit text := CASE WHEN parent IN ('trade', 'price_history') THEN 'month'
                      WHEN parent IN ('book_history', 'observation') THEN 'day' END;
    utc timestamp := date_trunc(unit, moment AT TIME ZONE 'UTC');
    month_end timestamp := utc + interval '1 month';
    piece timestamp;
    piece_end timestamp;
    has_pieces boolean;
  BEGIN
    IF unit IS NULL OR utc NOT BETWEEN '1970-01-01' AND '9999-01-01' THEN
      RAISE EXCEPTION 'no partition of % for %', parent, moment USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- One process at a time ("part" in ASCII).
    PERFORM pg_advisory_xact_lock(1885434484);
    IF parent = 'trade' AND NOT has_partition(parent, parent || '_' || to_char(utc, 'YYYYMM')) THEN
      has_pieces := EXISTS (SELECT FROM archive_switch WHERE kind = 'trades' AND keep_days <= 400)
        -- Parts of the month are gone, and their rows are in files.
        OR EXISTS (SELECT FROM archive_seam WHERE kind = 'trades' AND until > utc AT TIME ZONE 'UTC' AND until < month_end AT TIME ZONE 'UTC');
      FOR day IN 0..4 LOOP
        EXIT WHEN has_pieces;
        has_pieces := has_partition(parent, parent || '_' || to_char(utc + day * interval '7 days', 'YYYYMMDD'));
      END LOOP;
    END IF;
    IF has_pieces IS NOT TRUE THEN
      PERFORM attach_partition(parent, parent || '_' || to_char(utc, CASE unit WHEN 'month' THEN 'YYYYMM' ELSE 'YYYYMMDD' END),
        utc, utc + ('1 ' || unit)::interval);
      RETURN;
    END IF;
    FOR week IN 0..4 LOOP
      piece := utc + week * interval '7 days';
      piece_end := least(piece + interval '7 days', month_end);
      CONTINUE WHEN piece >= month_end;
      CONTINUE WHEN moment <> utc AT TIME ZONE 'UTC' AND NOT (moment AT TIME ZONE 'UTC' >= piece AND moment AT TIME ZONE 'UTC' < piece_end);
      PERFORM attach_partition(parent, parent || '_' || to_char(piece, 'YYYYMMDD'), piece, piece_end);
    END LOOP;
  END $$`;

/** Parts of `create_partition`, which alone calls them, with the rights of the owner. */
const parts = (schema: string) => [
  `CREATE FUNCTION has_partition(parent text, part text) RETURNS boolean LANGUAGE sql STABLE
   SET search_path = pg_catalog, ${schema}, pg_temp AS $$
     SELECT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = parent::regclass AND c.relname = part) $$`,
  `CREATE FUNCTION attach_partition(parent text, part text, from_utc timestamp, until_utc timestamp) RETURNS void LANGUAGE plpgsql
   SET search_path = pg_catalog, ${schema}, pg_temp AS $$
   BEGIN
     IF has_partition(parent, part) THEN RETURN; END IF;
     -- A table that is attached later: unlike PARTITION OF, this neither waits for readers and writers nor blocks them.
     EXECUTE format('CREATE TABLE ${schema}.%I (LIKE ${schema}.%I INCLUDING ALL)', part, parent);
     EXECUTE format('ALTER TABLE ${schema}.%I ATTACH PARTITION ${schema}.%I FOR VALUES FROM (%L) TO (%L)', parent, part,
       from_utc AT TIME ZONE 'UTC', until_utc AT TIME ZONE 'UTC');
   END $$`,
  `REVOKE EXECUTE ON FUNCTION has_partition(text, text), attach_partition(text, text, timestamp, timestamp) FROM PUBLIC`,
];

export class TradeWeeks0057 implements MigrationInterface {
  readonly name = 'TradeWeeks1798200000057';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE archive_switch ADD COLUMN keep_days int');
    const schema = await schemaOf(runner);
    for (const statement of [...parts(schema), createPartition(schema)]) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    const [create = ''] = partitionFunctions(await schemaOf(runner));
    await runner.query(create.replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION'));
    await runner.query('DROP FUNCTION attach_partition(text, text, timestamp, timestamp)');
    await runner.query('DROP FUNCTION has_partition(text, text)');
    await runner.query('ALTER TABLE archive_switch DROP COLUMN keep_days');
  }
}

async function schemaOf(runner: QueryRunner): Promise<string> {
  const [row]: { schema: string }[] = await runner.query('SELECT quote_ident(current_schema()) AS schema');
  return row?.schema ?? 'public';
}
