import { createServer } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { startApi } from '../../../../api/server/start-api.ts';
import { type Config, loadConfig } from '../../../../src/config/config.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { StartupError } from '../../../../src/runtime/lifecycle.ts';
import { listen } from '../../../../src/runtime/listen.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { anOperator, removeOperator } from '../../../factories/operators.ts';
import { eventually } from '../../../support/eventually.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { steadyPort } from '../../../support/processes/steady-port.ts';

const database = useTestDatabase();
const log = createLogger({ process: 'test', level: 'silent' });
const KEY = 'a-bootstrap-key-for-tests';

function configOf(environment: Record<string, string> = {}): Config {
  return loadConfig({
    DATABASE_URL: database.url,
    PORT: '0',
    METRICS_PORT: '0',
    SECRETS_KEYS: `k1:${Buffer.alloc(32, 5).toString('base64')}`,
    BOOTSTRAP_API_KEY: KEY,
    OPS_PASSWORD: 'operators-only',
    ...environment,
  });
}

const LOCK_JOURNAL = sql('test_lock_journal', 'LOCK TABLE journal_head');

/** The first answer that reports a ready API. */
async function becomesReady(address: string): Promise<unknown> {
  const ready = await eventually(
    () => fetch(`${address}/health/ready`),
    ({ status }) => status === 200,
  );
  return ready.json();
}

describe('startApi', () => {
  it('serves the API with the bootstrap key, and probes on a separate port', async () => {
    const api = await startApi(configOf(), log);
    try {
      const venues = await fetch(`${api.address}/v1/venues`, { headers: { Authorization: `Bearer ${KEY}` } });
      expect(venues.status).toBe(200);
      await venues.text();
      expect(await becomesReady(api.address)).toEqual({ success: true, data: { status: 'ready' } });
      expect((await fetch(`${api.address}/ops/queues`)).status).toBe(401);
      expect((await fetch(`${api.address}/metrics`)).status).toBe(404);
      const metrics = await (await fetch(`${api.probeUrl}/metrics`)).text();
      const counted = /http_request_duration_seconds_count\{[^}]*route="\/v1\/venues"[^}]*status="200"\} 1$/m;
      expect(counted.test(metrics)).toBe(true);
    } finally {
      await api.stop();
    }
  });

  it('is not ready before it has read the journal, because it rejects streams until then', async () => {
    const api = await database.db.transaction(async (tx) => {
      await tx.query(LOCK_JOURNAL);
      const started = await startApi(configOf(), log);
      const ready = await fetch(`${started.address}/health/ready`);
      expect(await ready.json()).toMatchObject({ error: { code: 'not_ready', details: [{ path: 'journal' }] } });
      return started;
    });
    try {
      await becomesReady(api.address);
    } finally {
      await api.stop();
    }
  });

  it('states why the configuration turns a feed off, and that no streamer reads the others', async () => {
    const feedsOf = async (environment: Record<string, string>) => {
      const api = await startApi(configOf({ VENUES: 'polymarket,kalshi,manifold', ...environment }), log);
      try {
        const answer = await fetch(`${api.address}/v1/venues`, { headers: { Authorization: `Bearer ${KEY}` } });
        const { data } = (await answer.json()) as { data: { feed: { state: string; reason?: string } }[] };
        return data.map(({ feed: { state, reason } }) => (reason === undefined ? state : `${state}: ${reason}`));
      } finally {
        await api.stop();
      }
    };
    expect(await feedsOf({ FEEDS: 'off' })).toEqual(['off: disabled', 'off: disabled', 'off: disabled']);
    const elsewhere = { POLYMARKET_CLOB_URL: 'http://127.0.0.1:1' };
    expect(await feedsOf(elsewhere)).toEqual(['off: no_address', 'off: no_key', 'stopped']);
    expect(await feedsOf({ FEEDS: 'kalshi', KALSHI_API_KEY_ID: 'an-id' })).toEqual([
      'off: disabled',
      'stopped',
      'off: disabled',
    ]);
  });

  it('serves the operator pages with a password of the configuration or a stored operator, otherwise not', async () => {
    const statusOfPages = async (environment: Record<string, string>) => {
      const api = await startApi(configOf(environment), log);
      const { status } = await fetch(`${api.address}/ops`);
      await api.stop();
      return status;
    };
    expect(await statusOfPages({ OPS_PASSWORD: '' })).toBe(404);
    expect(await statusOfPages({ OPS_PASSWORD: '', OPS_VIEWER_PASSWORD: 'viewers-only' })).toBe(401);
    expect(await statusOfPages({ OPS_PUBLIC_URL: 'https://ops.example.com' })).toBe(421);
    await anOperator(database.db, { name: 'alice', role: 'viewer', password: 'the-password-of-alice' });
    expect(await statusOfPages({ OPS_PASSWORD: '' })).toBe(401);
    await removeOperator(database.db, 'alice');
  });

  it('starts, accepts writes and stops while the queue store is unavailable', async () => {
    const api = await startApi(configOf({ REDIS_URL: `redis://127.0.0.1:${await steadyPort()}` }), log);
    try {
      await becomesReady(api.address);
      const alert = await fetch(`${api.address}/v1/alerts`, {
        method: 'POST',
        headers: { 'X-API-Key': KEY, 'Content-Type': 'application/json' },
        body: JSON.stringify({ tokenMint: 'of-no-market', condition: 'above', price: 0.5 }),
      });
      expect(alert.status).toBe(201);
    } finally {
      await api.stop();
    }
  });

  it('finishes a request in flight before it stops, and accepts no new request', async () => {
    const api = await startApi(configOf(), log);
    const body = JSON.stringify({ tokenMint: 'slow', condition: 'above', price: 1 });
    const { hostname, port } = new URL(api.address);
    const socket = connect(Number(port), hostname);
    const received: Buffer[] = [];
    socket.on('data', (chunk) => received.push(chunk));
    const ended = new Promise((resolve) => socket.on('close', resolve));
    socket.write(
      `POST /v1/alerts HTTP/1.1\r\nHost: x\r\nX-API-Key: ${KEY}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
    );
    // The server has started the request when it asks for the body.
    await new Promise((resolve) => socket.once('data', resolve));
    const stopping = api.stop();
    await expect(fetch(`${api.address}/health/live`)).rejects.toThrow();
    socket.write(body);
    await Promise.all([stopping, ended]);
    expect(Buffer.concat(received).toString()).toMatch(/HTTP\/1\.1 201 Created/);
  });

  it('reports a port in use in one line, and leaves no resource open', async () => {
    const squatter = createServer();
    const taken = await listen(squatter, '127.0.0.1', 0);
    const { port } = new URL(taken);
    try {
      for (const name of ['PORT', 'METRICS_PORT']) {
        const failure = await startApi(configOf({ [name]: port }), log).catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(StartupError);
        expect((failure as Error).message).toBe(`port ${port} on 127.0.0.1 is taken by another program`);
      }
    } finally {
      await new Promise((resolve) => squatter.close(resolve));
    }
  });

  it('can start twice concurrently on one database', async () => {
    const both = await Promise.all([startApi(configOf(), log), startApi(configOf(), log)]);
    await Promise.all(both.map((api) => api.stop()));
  });

  it('stops waiting for a database when the signal fires', async () => {
    const signal = AbortSignal.abort();
    const config = configOf({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' });
    await expect(startApi(config, log, signal)).rejects.toMatchObject({ code: 'aborted' });
  });
});
