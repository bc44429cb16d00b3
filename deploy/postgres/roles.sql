-- The roles of oddswire. Run it in the database "oddswire" as a superuser, before the first migration or after any.
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'oddswire') THEN CREATE ROLE "oddswire" LOGIN; END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'oddswire_app') THEN CREATE ROLE "oddswire_app" LOGIN; END IF;
END $$;

-- oddswire migrates: it creates the schema "bullmq" and the extension pg_trgm.
GRANT CONNECT, CREATE ON DATABASE "oddswire" TO "oddswire";
GRANT USAGE, CREATE ON SCHEMA public TO "oddswire";

-- oddswire_app reads and writes rows. It creates nothing, in no schema.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
REVOKE TEMPORARY ON DATABASE "oddswire" FROM PUBLIC;
GRANT CONNECT ON DATABASE "oddswire" TO "oddswire_app";
GRANT USAGE ON SCHEMA public TO "oddswire_app";
ALTER DEFAULT PRIVILEGES FOR ROLE "oddswire" GRANT USAGE ON SCHEMAS TO "oddswire_app";
ALTER DEFAULT PRIVILEGES FOR ROLE "oddswire" GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO "oddswire_app";
ALTER DEFAULT PRIVILEGES FOR ROLE "oddswire" GRANT SELECT, UPDATE, USAGE ON SEQUENCES TO "oddswire_app";
ALTER DEFAULT PRIVILEGES FOR ROLE "oddswire" GRANT EXECUTE ON FUNCTIONS TO "oddswire_app";

-- The same rights on everything that exists.
DO $$
DECLARE name text;
BEGIN
  FOR name IN SELECT nspname FROM pg_namespace WHERE nspname IN ('public', 'bullmq') LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', name, 'oddswire_app');
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I TO %I', name, 'oddswire_app');
    EXECUTE format('GRANT SELECT, UPDATE, USAGE ON ALL SEQUENCES IN SCHEMA %I TO %I', name, 'oddswire_app');
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %I TO %I', name, 'oddswire_app');
  END LOOP;
END $$;
