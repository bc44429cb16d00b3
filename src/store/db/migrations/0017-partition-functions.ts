import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Functions that create and drop partitions with the rights of their owner, the role that migrates. The role of the processes has no right
 * to create tables. The fixed search path ends with the temporary schema, so that no table of a caller takes the place of another one.
 */
export const partitionFunctions = (schema: string) => [
  // The name and the bounds derive from the moment, so a caller chooses neither.
  `CREATE FUNCTION create_partition(parent text, moment timestamptz) RETURNS void
   LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ${schema}, pg_temp AS $$
   DECLARE
     unit text := CASE WHEN parent IN ('trade', 'price_history') THEN 'month'
                       WHEN parent IN ('book_history', 'observation') THEN 'day' END;
     utc timestamp := date_trunc(unit, moment AT TIME ZONE 'UTC');
     part text := parent || '_' || to_char(utc, CASE unit WHEN 'month' THEN 'YYYYMM' ELSE 'YYYYMMDD' END);
   BEGIN
     IF unit IS NULL OR utc NOT BETWEEN '1970-01-01' AND '9999-01-01' THEN
       RAISE EXCEPTION 'no partition of % for %', parent, moment USING ERRCODE = 'invalid_parameter_value';
     END IF;
     -- One process at a time ("part" in ASCII).
     PERFORM pg_advisory_xact_lock(1885434484);
     IF EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                WHERE i.inhparent = parent::regclass AND c.relname = part) THEN
       RETURN;
     END IF;
     -- A table that is attached later: unlike PARTITION OF, this neither waits for readers and writers nor blocks them.
     EXECUTE format('CREATE TABLE ${schema}.%I (LIKE ${schema}.%I INCLUDING ALL)', part, parent);
     EXECUTE format('ALTER TABLE ${schema}.%I ATTACH PARTITION ${schema}.%I FOR VALUES FROM (%L) TO (%L)', parent, part,
       utc AT TIME ZONE 'UTC', (utc + ('1 ' || unit)::interval) AT TIME ZONE 'UTC');
   END $$`,
  `CREATE FUNCTION drop_partition(parent text, part text) RETURNS void
   LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, ${schema}, pg_temp AS $$
   BEGIN
     IF parent NOT IN ('trade', 'price_history', 'book_history', 'observation')
       OR NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                      WHERE i.inhparent = parent::regclass AND c.relname = part) THEN
       RAISE EXCEPTION '% is no partition of %', part, parent USING ERRCODE = 'invalid_parameter_value';
     END IF;
     EXECUTE format('DROP TABLE ${schema}.%I', part);
   END $$`,
  `REVOKE EXECUTE ON FUNCTION create_partition(text, timestamptz), drop_partition(text, text) FROM PUBLIC`,
];

const DOWN = [`DROP FUNCTION drop_partition(text, text)`, `DROP FUNCTION create_partition(text, timestamptz)`] as const;

export class PartitionFunctions0017 implements MigrationInterface {
  readonly name = 'PartitionFunctions1795968000017';

  async up(runner: QueryRunner): Promise<void> {
    const [row]: { schema: string }[] = await runner.query('SELECT quote_ident(current_schema()) AS schema');
    for (const statement of partitionFunctions(row?.schema ?? 'public')) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
