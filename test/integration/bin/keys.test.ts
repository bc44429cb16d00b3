import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { startEmbeddedPostgres } from '../../../src/embedded/embedded-postgres.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { findApiKey } from '../../../src/store/accounts/accounts.ts';
import { createDataSource } from '../../../src/store/db/data-source.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { copyCluster, openFolder } from '../../support/postgres/made-cluster.ts';

const log = createLogger({ process: 'test', level: 'silent' });

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.drop());

type Place = { DATABASE_URL: string } | { DATA_DIR: string };

function keys(place: Place, ...argv: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const env = { PATH: process.env['PATH'], DATA_DIR: resolve('no-such-folder'), ...place };
  return new Promise((done) => {
    execFile(process.execPath, [resolve('dist/bin/keys.js'), ...argv], { env }, (error, stdout, stderr) =>
      done({ code: error?.code ?? 0, stdout, stderr }),
    );
  });
}

it('npm run keys creates, lists, limits and revokes keys', async () => {
  const place = { DATABASE_URL: test.url };
  const made = await keys(place, 'create', '--account', 'acme', '--name', 'laptop', '--scopes', 'alerts');
  expect(made).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^key \w+ of acme: alerts; never expires\n.*only once/),
  });
  expect(made.stdout).toMatch(/^ow_live_[0-9A-Za-z]{12}_[0-9A-Za-z]{36}\n$/);
  const key = made.stdout.trim();
  expect(await findApiKey(test.db, key)).toMatchObject({ scopes: ['alerts'], revokedAt: null });

  const [second, quota] = await Promise.all([
    keys(place, 'create', '--account', 'acme', '--name', 'ci', '--expires', '90d', '--json'),
    keys(place, 'quota', '--account', 'acme', '--rate', '5', '--json'),
  ]);
  expect(JSON.parse(second.stdout)).toMatchObject({
    account: 'acme',
    name: 'ci',
    key: expect.stringMatching(/^ow_live_/),
  });
  expect(JSON.parse(quota.stdout)).toMatchObject({ account: 'acme', rate_per_minute: 5, cold_reads_per_minute: null });
  expect(await findApiKey(test.db, key)).toMatchObject({ ratePerMinute: 5 });

  const id = key.split('_')[2] ?? '';
  expect(await keys(place, 'revoke', id)).toMatchObject({ code: 0, stdout: `revoked ${id}\n` });
  expect(await findApiKey(test.db, key)).toMatchObject({ revokedAt: expect.any(Date) });
  const [listed, accounts] = await Promise.all([keys(place, 'list'), keys(place, 'accounts', '--json')]);
  expect(listed.stdout).toMatch(/laptop .*revoked[\s\S]*ci .*active/);
  expect(listed.stdout).not.toContain(key.split('_')[3]);
  expect(JSON.parse(accounts.stdout)).toMatchObject([{ name: 'acme', keys: 1, webhooks: 0, alerts: 0, wallets: 0 }]);
});

it('npm run keys names a missing key or account', async () => {
  expect(await keys({ DATABASE_URL: test.url }, 'quota', '--account', 'nobody')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: 'oddswire keys: no account has the name nobody\n',
  });
});

it('npm run keys works on the embedded database, running or not, and leaves it in the same state', async () => {
  const folder = await openFolder('oddswire-keys-');
  const dataDir = join(folder, 'data');
  try {
    await copyCluster(inject('madeCluster'), dataDir);
    const server = await startEmbeddedPostgres({ dataDir, durable: false, log });
    const place = { DATA_DIR: dataDir };
    const unmigrated = await keys(place, 'list');
    expect(unmigrated.stderr).toBe(
      'oddswire keys: the database has another version: start oddswire once to migrate it\n',
    );
    const dataSource = createDataSource({ databaseUrl: server.url, poolSize: 1, applicationName: 'test', log });
    await dataSource.initialize();
    await dataSource.runMigrations();
    await dataSource.destroy();
    expect(await keys(place, 'create', '--account', 'home', '--name', 'n')).toMatchObject({ code: 0 });
    expect(await isListening(server.port)).toBe(true);
    await server.stop();
    const listed = await keys(place, 'list', '--json');
    expect(JSON.parse(listed.stdout)).toMatchObject([{ account: 'home', state: 'active' }]);
    expect(await isListening(server.port)).toBe(false);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

function isListening(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = createConnection({ port, host: '127.0.0.1' });
    socket.once('connect', () => done(true)).once('error', () => done(false));
    socket.once('connect', () => socket.destroy());
  });
}
