import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import { type Fleet, ofEach, startFleet } from '../support/processes/fleet.ts';
import { OddswireProcess, WEBHOOK_SECRET } from '../support/processes/system.ts';
import { quotes } from './campaign/near-alerts.ts';

const COUNTS = `SELECT (SELECT count(*)::int FROM trade) AS trades, (SELECT count(*)::int FROM candle) AS candles,
  (SELECT count(*)::int FROM alert) AS alerts, (SELECT count(*)::int FROM delivery) AS deliveries`;
/** sysexits(3) EX_CONFIG. */
const EXIT_CONFIG = 78;

async function ask<Row extends object>(url: string, statement: string): Promise<Row> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(statement)).rows[0];
  } finally {
    await client.end();
  }
}

/** pg_dump must not be older than the server. */
async function canDump(): Promise<boolean> {
  const found = spawnSync('pg_dump', ['--version'], { encoding: 'utf8' });
  const dumper = Number(/(\d+)/.exec(found.stdout ?? '')?.[1] ?? 0);
  const { version } = await ask<{ version: string }>(
    inject('adminUrl'),
    "SELECT current_setting('server_version_num') AS version",
  );
  const server = Math.floor(Number(version) / 10_000);
  if (dumper >= server) return true;
  return false;
}

describe.skipIf(!(await canDump()))('a backup made by pg_dump under load', () => {
  const restoredName = `restored_${randomBytes(6).toString('hex')}`;
  let folder: string;
  let database: TestDatabase;
  let restoredUrl: string;
  let dumped: { trades: number; alerts: number };
  let fleet: Fleet | undefined;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'oddswire-backup-'));
    database = await createTestDatabase({ poolSize: 2 });
    const url = new URL(database.url);
    url.pathname = `/${restoredName}`;
    restoredUrl = url.href;
  });
  afterAll(async () => {
    await fleet?.stop();
    await database.drop();
    await ask(inject('adminUrl'), `DROP DATABASE IF EXISTS ${restoredName} WITH (FORCE)`);
    await rm(folder, { recursive: true, force: true });
  });

  it('has the rows of the dump after the restore', async () => {
    fleet = await startFleet({
      databaseUrl: database.url,
      counts: ofEach(1),
      exchange: { seed: 11, speed: 2, rollingSeconds: 0 },
    });
    const running = fleet;
    const webhook = await running.call<{ id: string }>('POST', '/v1/webhooks', {
      url: `${running.receiver.url}/hook`,
      events: ['price_alert'],
      secret: WEBHOOK_SECRET,
    });
    const [token] = await eventually(
      () => quotes(running),
      (found) => found.length >= 1,
    );
    const alert = { tokenMint: token?.tokenId, condition: 'above', webhookId: webhook.id };
    await running.call('POST', '/v1/alerts', { ...alert, price: 0.001 });
    await running.call('POST', '/v1/alerts', { ...alert, price: 0.999 });
    await eventually(
      async () => running.receiver.requests.length,
      (requests) => requests > 0,
    );
    dumped = await ask(database.url, COUNTS);
    execFileSync('pg_dump', ['--format=custom', `--file=${join(folder, 'dump')}`, `--dbname=${database.url}`]);
    await running.stop();
    await ask(inject('adminUrl'), `CREATE DATABASE ${restoredName}`);
    execFileSync('pg_restore', ['--exit-on-error', `--dbname=${restoredUrl}`, join(folder, 'dump')]);
    const restored = await ask<typeof dumped>(restoredUrl, COUNTS);
    expect(restored.trades).toBeGreaterThanOrEqual(dumped.trades);
    expect(restored.alerts).toBe(2);
  });

  it('opens with its own key ring only', async () => {
    const environment = { ...fleet?.environment, DATABASE_URL: restoredUrl };
    const wrong = new OddswireProcess('api', {
      ...environment,
      SECRETS_KEYS: `test:${randomBytes(32).toString('base64')}`,
    });
    await expect(wrong.start()).rejects.toThrow(`ended (${EXIT_CONFIG})`);
  });

  it('continues from its state, and signs with the former secret', async () => {
    fleet = await startFleet({
      databaseUrl: restoredUrl,
      counts: ofEach(1),
      exchange: { seed: 11, speed: 2, rollingSeconds: 0 },
    });
    const running = fleet;
    const [webhook] = await running.call<{ id: string }[]>('GET', '/v1/webhooks');
    const [token] = await eventually(
      () => quotes(running),
      (found) => found.length >= 1,
    );
    // The former receiver is gone: another replaces it.
    await running.call('PUT', `/v1/webhooks/${webhook?.id}`, {
      url: `${running.receiver.url}/hook`,
      events: ['price_alert'],
    });
    await running.call('POST', '/v1/alerts', {
      tokenMint: token?.tokenId,
      condition: 'above',
      price: 0.001,
      webhookId: webhook?.id,
    });
    await eventually(
      async () => running.receiver.requests.length,
      (requests) => requests > 0,
    );
    expect(running.receiver.requests[0]?.bodySignature).toBe('ok');
    const now = await ask<typeof dumped>(restoredUrl, COUNTS);
    expect(now.trades).toBeGreaterThanOrEqual(dumped.trades);
    expect(now.alerts).toBe(3);
    await running.stop();
  });
});
