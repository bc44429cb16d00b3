import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXIT_CONFIG } from '../../src/runtime/lifecycle.ts';
import { oddswire } from '../integration/bin/run-command.ts';
import { eventually } from '../support/eventually.ts';
import { createRestrictedDatabase, type RestrictedDatabase } from '../support/postgres/roles.ts';
import { type Fleet, ofEach, startFleet } from '../support/processes/fleet.ts';
import { hasProgram } from '../support/processes/has-program.ts';
import { OddswireProcess } from '../support/processes/system.ts';
import { spawnRedis, type TestRedis } from '../support/redis/redis.ts';

const DAY_MS = 86_400_000;
const BACKENDS = ['postgres', ...(hasProgram('redis-server', 'a restricted role with Redis') ? ['redis'] : [])];

let database: RestrictedDatabase;
let app: pg.Pool;
beforeAll(async () => {
  database = await createRestrictedDatabase();
  app = new pg.Pool({ connectionString: database.appUrl, max: 2 });
});
afterAll(async () => {
  await app?.end();
  await database?.drop();
});

const rows = async <Row extends pg.QueryResultRow>(text: string, values: unknown[] = []) =>
  (await app.query<Row>(text, values)).rows;

const NAMES = `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = $1::regclass ORDER BY 1`;
const partitionsOf = async (table: string) => (await rows<{ name: string }>(NAMES, [table])).map(({ name }) => name);

describe('an empty database with the roles of `oddswire roles`', () => {
  it('fails the start of a process until the migrator has migrated', async () => {
    const early = new OddswireProcess('aggregator', { DATABASE_URL: database.appUrl, METRICS_PORT: '0' });
    await expect(early.start()).rejects.toThrow(`ended (${EXIT_CONFIG})`);
    expect(early.lines.join('\n')).toMatch(
      /the database lacks migrations .*: run `oddswire migrate` with DATABASE_MIGRATE_URL/,
    );

    const asApp = await oddswire(['migrate'], { DATABASE_URL: database.appUrl });
    expect(asApp).toMatchObject({ code: 1, stderr: expect.stringContaining('set DATABASE_MIGRATE_URL') });
    const place = { DATABASE_URL: database.appUrl, DATABASE_MIGRATE_URL: database.migrateUrl };
    expect(await oddswire(['migrate'], place)).toMatchObject({ code: 0, stderr: '' });
    expect((await oddswire(['migrate'], place)).stdout).toBe('The database is up to date.\n');
  });

  it('fails the start of a process whose queues lack a migration', async () => {
    const admin = new pg.Client({ connectionString: database.adminUrl });
    await admin.connect();
    const { rows: last } = await admin.query(
      'DELETE FROM bullmq.migration WHERE version = (SELECT max(version) FROM bullmq.migration) RETURNING *',
    );
    const behind = new OddswireProcess('aggregator', { DATABASE_URL: database.appUrl, METRICS_PORT: '0' });
    await expect(behind.start()).rejects.toThrow(`ended (${EXIT_CONFIG})`);
    expect(behind.lines.join('\n')).toMatch(/the queues in the schema bullmq .*: run `oddswire migrate`/);
    const { version, name, min_client_version: minimum } = last[0];
    await admin.query('INSERT INTO bullmq.migration VALUES ($1, $2, $3)', [version, name, minimum]);
    await admin.end();
  });

  it('fails the start of a process with DATABASE_MIGRATE_URL instead of migrating, also for the owner', async () => {
    const admin = new pg.Client({ connectionString: database.adminUrl });
    await admin.connect();
    await admin.query(`UPDATE schema_migration SET name = 'x' || name WHERE id = 1`);
    const owner = { DATABASE_URL: database.migrateUrl, DATABASE_MIGRATE_URL: database.migrateUrl, METRICS_PORT: '0' };
    const behind = new OddswireProcess('aggregator', owner);
    await expect(behind.start()).rejects.toThrow(`ended (${EXIT_CONFIG})`);
    expect(behind.lines.join('\n')).toContain('the database lacks migrations of this release (Initial');
    await admin.query(`UPDATE schema_migration SET name = substr(name, 2) WHERE id = 1`);
    await admin.end();
  });

  it.each([
    'CREATE TABLE mine ()',
    'CREATE TABLE bullmq.mine ()',
    'CREATE SCHEMA mine',
    'CREATE TEMPORARY TABLE mine ()',
    'ALTER TABLE account ADD COLUMN mine int',
    'TRUNCATE account',
    'DROP TABLE account',
    'DROP FUNCTION drop_partition(text, text)',
    'ALTER TABLE audit_trail DISABLE TRIGGER USER',
    'SET session_replication_role = replica',
  ])('refuses the role of the processes: %s', async (statement) => {
    await expect(app.query(statement)).rejects.toMatchObject({ code: '42501' });
  });

  it.each([
    `SELECT create_partition('account', now())`,
    `SELECT create_partition('trade; DROP TABLE account', now())`,
    `SELECT create_partition('trade', 'infinity')`,
    `SELECT create_partition(NULL, now())`,
    `SELECT drop_partition('trade', 'account')`,
    `SELECT drop_partition('account', 'account')`,
    `SELECT drop_partition('trade', NULL)`,
    `SELECT drop_partition(NULL, 'account')`,
  ])('refuses other uses of the partition functions: %s', async (statement) => {
    await expect(app.query(statement)).rejects.toMatchObject({ code: '22023' });
  });

  it('lets the role of the processes add to the audit trail, and prune it by age', async () => {
    await app.query(`INSERT INTO audit_trail (at, address, action, target, status, request_id)
      SELECT now() - n * interval '3 days', '', 'a', 't', 'done', 'r' FROM generate_series(0, 1) AS n`);
    expect(await rows(`SELECT prune_audit_trail(now() - interval '1 day', 10) AS pruned`)).toEqual([{ pruned: 1 }]);
    await expect(app.query('SELECT prune_audit_trail(now(), 10)')).rejects.toMatchObject({ code: '22023' });
    for (const statement of [
      'DELETE FROM audit_trail',
      `SET LOCAL oddswire.prunes_audit_trail = 'on'; DELETE FROM audit_trail`,
      'UPDATE audit_trail SET target = NULL',
    ]) {
      await expect(app.query(statement)).rejects.toMatchObject({ code: '42501' });
    }
  });

  it('creates the partition of a moment in UTC, once, in any time zone', async () => {
    await app.query(`SET timezone = 'Asia/Tokyo'; SELECT create_partition('observation', '2001-02-03T20:00Z');
      SELECT create_partition('observation', '2001-02-03T20:00Z'); RESET timezone`);
    expect(await partitionsOf('observation')).toContain('observation_20010203');
    await app.query(`SELECT drop_partition('observation', 'observation_20010203')`);
    expect(await partitionsOf('observation')).not.toContain('observation_20010203');
  });
});

describe.each(BACKENDS)('the processes with the restricted role and queues on %s', (kind) => {
  let redis: TestRedis | undefined;
  let fleet: Fleet;
  const lines: string[] = [];
  beforeAll(async () => {
    redis = kind === 'redis' ? await spawnRedis() : undefined;
    const old = new Date(Date.now() - 40 * DAY_MS).toISOString();
    for (const table of ['trade', 'price_history', 'book_history', 'observation']) {
      await app.query('SELECT create_partition($1, $2)', [table, new Date(Date.now() - 100 * DAY_MS).toISOString()]);
      await app.query('SELECT create_partition($1, $2)', [table, old]);
    }
    const workers = { SECRETS_KEYS: '', BOOTSTRAP_API_KEY: '' };
    fleet = await startFleet({
      databaseUrl: database.appUrl,
      ...(redis && { redisUrl: redis.url }),
      counts: ofEach(1),
      environment: {
        MAINTAIN_STORAGE_MS: '1000',
        JOURNAL_RETENTION_MINUTES: '30',
        RETENTION_TRADES_DAYS: '60',
        RETENTION_PRICE_HISTORY_DAYS: '60',
        RETENTION_BOOK_HISTORY_DAYS: '60',
        RETENTION_OBSERVATIONS_DAYS: '60',
      },
      environmentOf: { poller: workers, aggregator: workers, alerter: workers },
      listenerOf: () => ({ line: (text) => lines.push(text) }),
    });
  });
  afterAll(async () => {
    await fleet?.stop();
    await redis?.stop();
  });

  it('fold candles and deliver webhooks; workers without sealed values need no SECRETS_KEYS', async () => {
    await eventually(
      () => rows('SELECT FROM candle WHERE interval_seconds = 60 LIMIT 1'),
      (found) => found.length > 0,
      { timeoutMs: 300_000 },
    );
    const webhook = await fleet.call<{ id: string }>('POST', '/v1/webhooks', {
      url: `${fleet.receiver.url}/roles`,
      events: ['price_alert'],
    });
    const sent = await fleet.call<{ id: string }>('POST', `/v1/webhooks/${webhook.id}/test`, {});
    await eventually(
      async () => fleet.receiver.requests.map(({ headers }) => headers['x-webhook-delivery']),
      (ids) => ids.includes(sent.id),
      { timeoutMs: 300_000 },
    );
  });

  it('create coming partitions and drop partitions past their retention', async () => {
    for (const table of ['trade', 'price_history', 'book_history', 'observation']) {
      const suffix = (ageDays: number) =>
        new Date(Date.now() - ageDays * DAY_MS)
          .toISOString()
          .slice(0, ['trade', 'price_history'].includes(table) ? 7 : 10)
          .replaceAll('-', '');
      const names = await eventually(
        () => partitionsOf(table),
        (found) => !found.includes(`${table}_${suffix(100)}`) && found.includes(`${table}_${suffix(-1)}`),
        { timeoutMs: 300_000 },
      );
      expect(names).toContain(`${table}_${suffix(40)}`);
    }
  });

  it('publish changes in the journal, and drop its old partitions', async () => {
    await app.query(`SELECT create_journal_partition(now() - interval '100 minutes')`);
    await eventually(
      () => rows('SELECT kind FROM journal GROUP BY kind ORDER BY kind'),
      (kinds) => ['candle', 'market', 'price'].every((kind) => kinds.some((row) => row['kind'] === kind)),
      { timeoutMs: 300_000 },
    );
    const ended = () => rows(`SELECT to_char(now() - interval '100 minutes', 'YYYYMMDDHH24') AS hour`);
    const [hour] = await ended();
    await eventually(
      () => partitionsOf('journal'),
      (names) => names.every((name) => !name.startsWith(`journal_${hour?.['hour']}`)),
      { timeoutMs: 300_000 },
    );
  });

  it('log no error', () => {
    expect(lines.filter((line) => /"level":"(?:error|fatal)"|permission denied/.test(line))).toEqual([]);
  });
});
