import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { parseSecretsKeys } from '../../../src/domain/values/secret-keys.ts';
import { startEmbeddedPostgres } from '../../../src/embedded/postgres.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { migrateSchema } from '../../../src/runtime/migrate-database.ts';
import { findApiKeys } from '../../../src/store/accounts/accounts.ts';
import { checkKeyRing } from '../../../src/store/accounts/key-ring.ts';
import { findSignInLink } from '../../../src/store/accounts/sign-in-links.ts';
import { listActions } from '../../../src/store/ops/actions.ts';
import { createSecretBox } from '../../../src/webhooks/secret-box.ts';
import { isListening } from '../../support/is-listening.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { copyCluster, openFolder, removeCluster } from '../../support/postgres/made-cluster.ts';
import { oddswire } from './run-command.ts';

const log = createLogger({ process: 'test', level: 'silent' });

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.drop());

type Place = { DATABASE_URL: string; SECRETS_KEYS?: string } | { DATA_DIR: string };

const keys = (place: Place, ...argv: string[]) =>
  oddswire(['keys', ...argv], { DATA_DIR: resolve('no-such-folder'), ...place });

it('oddswire keys creates, lists, limits and revokes keys', async () => {
  const place = { DATABASE_URL: test.url };
  const made = await keys(place, 'create', '--account', 'acme', '--name', 'laptop', '--scopes', 'alerts');
  expect(made).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^key \w+ of acme: alerts; never expires\n.*only once/),
  });
  expect(made.stdout).toMatch(/^ow_live_[0-9A-Za-z]{12}_[0-9A-Za-z]{36}\n$/);
  const key = made.stdout.trim();
  expect(await findApiKeys(test.db, [key])).toMatchObject([{ scopes: ['alerts'], revokedAt: null }]);

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
  expect(await findApiKeys(test.db, [key])).toMatchObject([{ ratePerMinute: 5 }]);

  const id = key.split('_')[2] ?? '';
  expect(await keys(place, 'revoke', id)).toMatchObject({ code: 0, stdout: `revoked ${id}\n` });
  expect(await findApiKeys(test.db, [key])).toMatchObject([{ revokedAt: expect.any(Date) }]);
  const [listed, accounts] = await Promise.all([keys(place, 'list'), keys(place, 'accounts', '--json')]);
  expect(listed.stdout).toMatch(/laptop .*revoked[\s\S]*ci .*active/);
  expect(listed.stdout).not.toContain(key.split('_')[3]);
  expect(JSON.parse(accounts.stdout)).toMatchObject([{ name: 'acme', keys: 1, webhooks: 0, alerts: 0, wallets: 0 }]);
});

it('oddswire keys link prints an address that signs in once, and records it', async () => {
  const place = { DATABASE_URL: test.url };
  const argv = ['link', '--account', 'link account', '--scopes', 'alerts,keys', '--url', 'https://odds.example.com'];
  const made = await keys(place, ...argv);
  expect(made).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^https:\/\/odds\.example\.com\/console\/sign-in\/[\w-]{43}\n$/),
    stderr: expect.stringMatching(/^a sign-in to link account: alerts, keys; works once, until /),
  });
  const token = made.stdout.trim().split('/').at(-1) ?? '';
  expect(await findSignInLink(test.db, token, Date.now())).toMatchObject({
    accountName: 'link account',
    scopes: ['alerts', 'keys'],
  });
  const { actions } = await listActions(test.db, 1);
  expect(actions).toMatchObject([{ action: 'key.link', source: 'command', target: 'account link account' }]);
  expect(await keys(place, 'link', '--account', 'x', '--url', 'odds.example.com')).toMatchObject({ code: 2 });
});

it('oddswire keys names a missing key or account', async () => {
  expect(await keys({ DATABASE_URL: test.url }, 'quota', '--account', 'nobody')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: 'oddswire keys: no account has the name nobody\n',
  });
});

it('oddswire keys reseal reports the values that it sealed, and ends with 1 while values of another key are left', async () => {
  const database = await createTestDatabase();
  try {
    const [k1, k2] = ['k1', 'k2'].map((kid, index) => `${kid}:${Buffer.alloc(32, index).toString('base64')}`);
    const place = (ring: string) => ({ DATABASE_URL: database.url, SECRETS_KEYS: ring });
    expect((await keys(place(''), 'sealed')).stdout).toBe('No sealed values.\n');
    await checkKeyRing(database.db, createSecretBox(parseSecretsKeys(k1 ?? '')));

    const without = await keys({ DATABASE_URL: database.url }, 'reseal');
    expect(without).toMatchObject({ code: 78, stderr: 'oddswire keys: configuration: SECRETS_KEYS is required\n' });
    const early = await keys(place(k2 ?? ''), 'reseal', '--json');
    expect([early.code, JSON.parse(early.stdout)]).toEqual([
      1,
      { kid: 'k2', resealed: 0, unopened: 1, left: [{ kid: 'k1', table: 'key_check', column: 'sealed', rows: 1 }] },
    ]);
    expect(await keys(place(`${k2},${k1}`), 'reseal')).toEqual({
      code: 0,
      stdout: '1 values sealed with k2\n',
      stderr: '',
    });
    expect((await keys(place(''), 'sealed')).stdout).toMatch(/^key {2}table .*\nk2 {3}key_check {2}sealed +1\n$/);
    const otherBytes = await keys(place(`k1:${Buffer.alloc(32, 9).toString('base64')}`), 'reseal');
    expect(otherBytes).toMatchObject({ code: 1, stderr: expect.stringContaining('"k1" has other bytes') });
  } finally {
    await database.drop();
  }
});

it('oddswire keys works on the embedded database, running or not, also when another program has its port', async () => {
  const folder = await openFolder('oddswire-keys-');
  const dataDir = join(folder, 'data');
  const other = createServer((socket) => socket.destroy());
  try {
    await copyCluster(inject('madeCluster'), dataDir);
    const server = await startEmbeddedPostgres({ dataDir, durable: false, log });
    const place = { DATA_DIR: dataDir };
    const unmigrated = await keys(place, 'list');
    expect(unmigrated.stderr).toBe('oddswire keys: the database has another version: `oddswire migrate` migrates it\n');
    await migrateSchema(server.url, log);
    expect(await keys(place, 'create', '--account', 'home', '--name', 'n')).toMatchObject({ code: 0 });
    expect(await isListening(server.port)).toBe(true);
    await server.stop();
    const listed = await keys(place, 'list', '--json');
    expect(JSON.parse(listed.stdout)).toMatchObject([{ account: 'home', state: 'active' }]);
    // It leaves the database in the same state.
    expect(await isListening(server.port)).toBe(false);
    await once(other.listen(server.port, '127.0.0.1'), 'listening');
    expect(await keys(place, 'list', '--json')).toEqual({ code: 0, stdout: listed.stdout, stderr: '' });
  } finally {
    other.close();
    await rm(folder, { recursive: true, force: true });
  }
});

it('oddswire keys prefers a running demo to a database that does not run, unless DATA_DIR names a folder', async () => {
  const folder = await openFolder('oddswire-demo-');
  const [ours, demos] = [join(folder, '.data'), join(folder, '.data', 'demo')];
  const list = (environment: Record<string, string> = {}) => oddswire(['keys', 'list'], environment, folder);
  try {
    await copyCluster(inject('madeCluster'), ours);
    await copyCluster(inject('madeCluster'), demos);
    const server = await startEmbeddedPostgres({ dataDir: demos, durable: false, log });
    try {
      await migrateSchema(server.url, log);
      const uses = `oddswire keys: uses the database of the demo in ${demos}\n`;
      expect(await list()).toEqual({ code: 0, stdout: 'No keys.\n', stderr: uses });
      // Only the demo's database was migrated.
      expect((await list({ DATA_DIR: ours })).stderr).toMatch(/^oddswire keys: the database has another version/);
      await removeCluster(join(ours, 'postgres'));
      expect(await list({ DATA_DIR: ours })).toEqual({ code: 0, stdout: 'No keys.\n', stderr: uses });
    } finally {
      await server.stop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
