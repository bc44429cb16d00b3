/** The names of two roles and their database. */
export interface RoleNames {
  /** Owns the schema: DATABASE_MIGRATE_URL. */
  migrator: string;
  /** Reads and writes rows: DATABASE_URL. */
  app: string;
  database: string;
}

/**
 * SQL that creates both roles and their rights; it can run again. Default privileges give `app` its rights on each table that `migrator`
 * creates later: those of new releases, new partitions and the queues.
 */
export function rolesSql({ migrator, app, database }: RoleNames): string {
  const [owner, role, base] = [migrator, app, database].map(identifier);
  const defaults = `ALTER DEFAULT PRIVILEGES FOR ROLE ${owner} GRANT`;
  return `-- The roles of oddswire. Run it in the database ${base} as a superuser, before the first migration or after any.
DO $$ BEGIN
${[migrator, app].map(createRole).join('\n')}
END $$;

-- ${migrator} migrates: it creates the schema "bullmq" and the extension pg_trgm.
GRANT CONNECT, CREATE ON DATABASE ${base} TO ${owner};
GRANT USAGE, CREATE ON SCHEMA public TO ${owner};

-- ${app} reads and writes rows. It creates nothing, in no schema.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
REVOKE TEMPORARY ON DATABASE ${base} FROM PUBLIC;
GRANT CONNECT ON DATABASE ${base} TO ${role};
GRANT USAGE ON SCHEMA public TO ${role};
${defaults} USAGE ON SCHEMAS TO ${role};
${defaults} SELECT, INSERT, UPDATE, DELETE ON TABLES TO ${role};
${defaults} SELECT, UPDATE, USAGE ON SEQUENCES TO ${role};
${defaults} EXECUTE ON FUNCTIONS TO ${role};

-- The same rights on everything that exists.
DO $$
DECLARE name text;
BEGIN
  FOR name IN SELECT nspname FROM pg_namespace WHERE nspname IN ('public', 'bullmq') LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', name, ${literal(app)});
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I TO %I', name, ${literal(app)});
    EXECUTE format('GRANT SELECT, UPDATE, USAGE ON ALL SEQUENCES IN SCHEMA %I TO %I', name, ${literal(app)});
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %I TO %I', name, ${literal(app)});
  END LOOP;
END $$;
`;
}

/** Passwords are set afterwards, so that the script contains none. */
function createRole(name: string): string {
  return `  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = ${literal(name)}) THEN CREATE ROLE ${identifier(name)} LOGIN; END IF;`;
}

function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
