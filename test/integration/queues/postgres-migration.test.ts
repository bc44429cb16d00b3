import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLogger } from '../../../src/observe/logger.ts';
import { createPostgresQueues } from '../../../src/queues/postgres-backend.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';

const log = createLogger({ process: 'test', level: 'silent' });

const test = useTestDatabase();
let admin: pg.Client;
beforeAll(async () => {
  admin = new pg.Client({ connectionString: test.url });
  await admin.connect();
});
afterAll(() => admin.end());

it('migrate re-creates a queue schema that is dropped during its creation', async () => {
  const backend = createPostgresQueues({ databaseUrl: test.url, prefix: 'test', workers: 0, log });
  try {
    await admin.query('DROP SCHEMA bullmq CASCADE');
    // Drops the schema once, right after its creation: an operator's DROP or a restored backup can do this at any time.
    await admin.query(`
      CREATE SEQUENCE makings;
      CREATE FUNCTION drop_once() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
        -- A sequence counts on when the transaction is rolled back.
        IF nextval('makings') = 1 THEN DROP SCHEMA IF EXISTS bullmq CASCADE; END IF;
      END $$;
      CREATE EVENT TRIGGER drop_once ON ddl_command_end WHEN TAG IN ('CREATE SCHEMA') EXECUTE FUNCTION drop_once()`);
    await backend.migrate();
    const { rows } = await admin.query(
      `SELECT to_regclass('bullmq.job') IS NOT NULL AS is_made, last_value::int AS makings FROM makings`,
    );
    expect(rows).toEqual([{ is_made: true, makings: 2 }]);
  } finally {
    await backend.close();
  }
});
