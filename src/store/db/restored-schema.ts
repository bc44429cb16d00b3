import { appliedMigrations, RELEASE_MIGRATIONS } from './migrate.ts';
import { type Queryable, sql, sqlPlannedPerCall } from './tx.ts';

/*
 * The schema of a restored database: its version, its owner, and its sequences. `oddswire restore-check` reads them once, so a statement
 * may look at whole tables.
 */

interface SchemaVersion {
  /** Migrations that ran, in order. */
  applied: string[];
  /** Migrations of this release that the database lacks. */
  missing: string[];
  /** Migrations of the database that this release does not know: a newer release made the dump. */
  unknown: string[];
}

const HAS_SCHEMA = sql('has_schema', `SELECT to_regclass('schema_migration') IS NOT NULL AS has_schema`);

/** The version of the schema; null without one. */
export async function schemaVersion(db: Queryable): Promise<SchemaVersion | null> {
  const [found] = await db.query<{ hasSchema: boolean }>(HAS_SCHEMA);
  if (!found?.hasSchema) return null;
  const applied = await appliedMigrations(db);
  return {
    applied,
    missing: RELEASE_MIGRATIONS.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !RELEASE_MIGRATIONS.includes(name)),
  };
}

interface SchemaRights {
  /** The role of this connection. */
  role: string;
  /** The owners of tables and sequences, with a number each. */
  owners: { owner: string; things: number; mayCreate: boolean; isOurs: boolean }[];
  /** Tables and sequences that the role may not use. */
  unusable: string[];
  /** Whether the role may call the function that creates partitions in the name of the owner (migration 0017). */
  mayCreatePartitions: boolean;
}

/** Tables, views and sequences of oddswire, without those of extensions. */
const THINGS = `SELECT c.oid, c.relkind, c.relname, c.relowner FROM pg_class c
   WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')
     AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')`;

const OWNERS = sql(
  'schema_owners',
  `SELECT pg_get_userbyid(relowner)::text AS owner, count(*)::int AS things,
     has_schema_privilege(relowner, 'public', 'CREATE') AS may_create, pg_has_role(relowner, 'USAGE') AS is_ours
   FROM (${THINGS}) t GROUP BY relowner ORDER BY count(*) DESC, 1`,
);

/** Only migrations insert into `schema_migration`, maybe as another role. */
const UNUSABLE = sql(
  'unusable_tables',
  `SELECT relname::text AS name FROM (${THINGS}) t
   WHERE NOT CASE WHEN relkind = 'S' THEN has_sequence_privilege(oid, 'USAGE')
     ELSE has_table_privilege(oid, 'SELECT')
       AND (relkind = 'v' OR relname = 'schema_migration' OR has_table_privilege(oid, 'INSERT')) END
   ORDER BY 1`,
);

const ROLE = sql(
  'schema_role',
  `SELECT current_user::text AS role,
     has_function_privilege('create_partition(text, timestamptz)', 'EXECUTE') AS may_create_partitions`,
);

/** The owner of the tables, and the rights of this connection's role. */
export async function schemaRights(db: Queryable): Promise<SchemaRights> {
  const [role] = await db.query<{ role: string; mayCreatePartitions: boolean }>(ROLE);
  return {
    role: role?.role ?? '',
    mayCreatePartitions: role?.mayCreatePartitions ?? false,
    owners: await db.query<SchemaRights['owners'][number]>(OWNERS),
    unusable: (await db.query<{ name: string }>(UNUSABLE)).map(({ name }) => name),
  };
}

interface Sequence {
  name: string;
  /** Quoted for SQL. */
  tableName: string;
  columnName: string;
  lastValue: bigint;
}

const SEQUENCES = sql(
  'owned_sequences',
  `SELECT s.relname::text AS name, t.oid::regclass::text AS table_name, quote_ident(a.attname) AS column_name,
     coalesce(q.last_value, 0) AS last_value
   FROM pg_class s
   JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = s.oid AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
   JOIN pg_class t ON t.oid = d.refobjid
   JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
   JOIN pg_sequences q ON q.schemaname = 'public' AND q.sequencename = s.relname
   WHERE s.relkind = 'S' AND s.relnamespace = 'public'::regnamespace ORDER BY 1`,
);

interface LateSequence {
  name: string;
  lastValue: bigint;
  /** The highest stored key. */
  highest: bigint;
}

/** The number of sequences, and those whose next value is already a key in their table. */
export async function sequenceState(db: Queryable): Promise<{ checked: number; late: LateSequence[] }> {
  const sequences = await db.query<Sequence>(SEQUENCES);
  if (sequences.length === 0) return { checked: 0, late: [] };
  const selects = sequences.map(
    ({ tableName, columnName }, index) =>
      `SELECT ${index} AS at, (SELECT coalesce(max(${columnName}), 0)::bigint FROM ${tableName}) AS highest`,
  );
  const text = `${selects.join(' UNION ALL ')} ORDER BY 1`;
  const rows = await db.query<{ highest: bigint }>(sqlPlannedPerCall('highest_keys', text));
  const late = sequences.flatMap(({ name, lastValue }, index) => {
    const highest = rows[index]?.highest ?? 0n;
    return highest > lastValue ? [{ name, lastValue, highest }] : [];
  });
  return { checked: sequences.length, late };
}
