import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type Server } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXIT_CONFIG } from '../../../src/runtime/lifecycle.ts';
import { eventually } from '../../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { startTlsFront } from '../../support/postgres/tls-front.ts';
import { hasProgram } from '../../support/processes/has-program.ts';
import { OddswireProcess, type ProcessName } from '../../support/processes/system.ts';
import { spawnRedis, type TestRedis } from '../../support/redis/redis.ts';
import { testAuthority } from '../../support/tls.ts';
import { oddswire } from '../bin/run-command.ts';
import { RING } from '../workers/worker-harness.ts';

let database: TestDatabase;
let front: Awaited<ReturnType<typeof startTlsFront>>;
let folder: string;
let caFile: string;
beforeAll(async () => {
  const authority = await testAuthority();
  database = await createTestDatabase();
  front = await startTlsFront(database.url, await authority.issue(['127.0.0.1']));
  folder = await mkdtemp(join(tmpdir(), 'oddswire-tls-'));
  caFile = join(folder, 'ca.pem');
  await writeFile(caFile, authority.caPem);
});
afterAll(async () => {
  await front?.close();
  await database?.drop();
  await rm(folder, { recursive: true, force: true });
});

/** The address behind TLS, with these parameters. */
function throughTls(parameters: Record<string, string>, host = '127.0.0.1'): string {
  const url = new URL(database.url);
  Object.assign(url, { hostname: host, port: String(front.port) });
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

/** Starts a process that must end at once; returns its cause. The order of its output and its errors is not defined. */
async function refusalOf(name: ProcessName, environment: Record<string, string>): Promise<string> {
  const refused = new OddswireProcess(name, { ...ports, ...environment });
  await expect(refused.start()).rejects.toThrow(`ended (${EXIT_CONFIG})`);
  return (refused.lines.findLast((line) => line.startsWith('oddswire ')) ?? '').trim();
}

const ports = { PORT: '0', METRICS_PORT: '0', SECRETS_KEYS: RING };

describe('a process on a Postgres with TLS', () => {
  it('runs with sslmode=verify-full and the private authority of sslrootcert, queues included', async () => {
    const url = throughTls({ sslmode: 'verify-full', sslrootcert: caFile });
    const api = new OddswireProcess('api', { ...ports, DATABASE_URL: url });
    const { address } = await api.start();
    // The API is not ready before it has read the journal.
    await eventually(
      () => fetch(`${address}/health/ready`),
      ({ status }) => status === 200,
    );
    expect(await api.end('SIGTERM')).toBe(0);
    expect(await oddswire(['keys', 'list'], { DATABASE_URL: url })).toMatchObject({ code: 0 });
  });

  it('ends at once with the cause when it does not know the authority', async () => {
    const line = await refusalOf('aggregator', { DATABASE_URL: throughTls({ sslmode: 'verify-full' }) });
    expect(line).toMatch(
      /^oddswire aggregator: the TLS connection to the database fails: .*\(\w*(CERT|ISSUER|LEAF)\w*\)$/,
    );
  });

  it('ends at once with the cause when the certificate has another name', async () => {
    const url = throughTls({ sslmode: 'verify-full', sslrootcert: caFile }, 'localhost');
    expect(await refusalOf('aggregator', { DATABASE_URL: url })).toContain('(ERR_TLS_CERT_ALTNAME_INVALID)');
  });

  it('ends at once when the file of sslrootcert is missing', async () => {
    const missing = join(folder, 'missing.pem');
    const line = await refusalOf('api', { DATABASE_URL: throughTls({ sslrootcert: missing }) });
    expect(line).toContain(`the file ${missing} of the TLS settings cannot be read (ENOENT)`);
  });

  it('ends at once when the server has no TLS', async () => {
    const line = await refusalOf('aggregator', { DATABASE_URL: `${database.url}?sslmode=verify-full` });
    expect(line).toBe('oddswire aggregator: the TLS connection to the database fails: the server does not support TLS');
  });
});

describe.runIf(hasProgram('redis-server', 'TLS to Redis'))('a process on a Redis with TLS', () => {
  let redis: TestRedis;
  let server: Server;
  let redisUrl: string;
  const sockets = new Set<Socket>();
  beforeAll(async () => {
    redis = await spawnRedis();
    const { port } = new URL(redis.url);
    const certificate = await (await testAuthority()).issue(['127.0.0.1']);
    server = createServer(certificate, (secure) => {
      const inner = connect(Number(port), '127.0.0.1');
      for (const socket of [secure, inner]) {
        sockets.add(socket);
        socket.on('error', () => socket.destroy());
      }
      secure.pipe(inner).pipe(secure);
    });
    server.on('tlsClientError', () => undefined);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    redisUrl = `rediss://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    server?.close();
    for (const socket of sockets) socket.destroy();
    await redis?.stop();
  });

  it('runs with the private authority of NODE_EXTRA_CA_CERTS', async () => {
    const environment = { ...ports, DATABASE_URL: database.url, REDIS_URL: redisUrl, NODE_EXTRA_CA_CERTS: caFile };
    const aggregator = new OddswireProcess('aggregator', environment);
    await aggregator.start();
    expect(await aggregator.end('SIGTERM')).toBe(0);
  });

  it.each(['aggregator', 'api'] as const)(
    'ends the process %s at once with the cause when it does not know the authority',
    async (name) => {
      const line = await refusalOf(name, { DATABASE_URL: database.url, REDIS_URL: redisUrl });
      expect(line).toMatch(/the TLS connection to the queue store fails: .*\(\w*(CERT|ISSUER|LEAF)\w*\)$/);
    },
  );
});
