import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ODDSWIRE } from '../integration/bin/run-command.ts';
import { eventually } from '../support/eventually.ts';
import { pageText } from '../support/markdown.ts';
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

/** The commands of the runbook in docs/operations.md, as one script. */
function runbook(): string {
  const section = pageText('docs/operations.md').split('\n## Restore\n')[1]?.split('\n## ')[0] ?? '';
  const blocks = [...section.matchAll(/^```sh restore\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text);
  if (blocks.length !== 2) throw new Error(`the runbook has ${blocks.length} blocks`);
  return blocks.join('');
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
  let tokenId: string;
  /** The event of the second alert. */
  let firedAfterDump: string;
  /** Owns the restored database, and is no superuser. */
  const owner = `owner_${randomBytes(6).toString('hex')}`;
  let fleet: Fleet | undefined;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'oddswire-backup-'));
    database = await createTestDatabase({ poolSize: 2 });
    const url = new URL(database.url);
    url.pathname = `/${restoredName}`;
    url.username = owner;
    url.password = 'restored';
    restoredUrl = url.href;
    await ask(inject('adminUrl'), `CREATE ROLE ${owner} LOGIN PASSWORD 'restored'`);
  });
  afterAll(async () => {
    await fleet?.stop();
    await database.drop();
    await ask(inject('adminUrl'), `DROP DATABASE IF EXISTS ${restoredName} WITH (FORCE)`);
    await ask(inject('adminUrl'), `DROP ROLE IF EXISTS ${owner}`);
    await rm(folder, { recursive: true, force: true });
  });

  /** Moves the market to a price; returns the id of the event of the second alert. */
  async function eventIdAt(running: Fleet, price: number): Promise<string> {
    running.exchange.forcePrice({ tokenId, price, holdMs: 600_000 });
    const requests = await eventually(
      async () => running.receiver.requests.filter(({ body }) => JSON.parse(body.toString()).data.targetPrice === 0.95),
      (found) => found.length > 0,
    );
    return String(requests[0]?.headers['webhook-id']);
  }

  it('has the rows of the dump after the runbook of the documentation', async () => {
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
    // No trader moves the price that far.
    await running.call('POST', '/v1/alerts', { ...alert, price: 0.95 });
    await eventually(
      async () => running.receiver.requests.length,
      (requests) => requests > 0,
    );
    dumped = await ask(database.url, COUNTS);
    execFileSync('pg_dump', ['--format=custom', `--file=${join(folder, 'oddswire.dump')}`, `--dbname=${database.url}`]);
    tokenId = token?.tokenId ?? '';
    firedAfterDump = await eventIdAt(running, 0.97);
    await running.stop();
    await writeFile(join(folder, 'oddswire'), `#!/bin/sh\nexec '${process.execPath}' '${ODDSWIRE}' "$@"\n`);
    await chmod(join(folder, 'oddswire'), 0o755);
    const output = execFileSync('sh', ['-e', '-c', runbook()], {
      cwd: folder,
      encoding: 'utf8',
      env: {
        PATH: [folder, dirname(process.execPath), process.env['PATH']].join(delimiter),
        ADMIN_URL: inject('adminUrl'),
        DATABASE: restoredName,
        OWNER: owner,
        DATABASE_URL: restoredUrl,
        SECRETS_KEYS: running.environment['SECRETS_KEYS'],
      },
    });
    expect(output).toMatch(/No problems\.\n$/);
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
    expect(await eventIdAt(running, 0.98)).toBe(firedAfterDump);
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
