import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createLogger } from '../../../../src/observe/logger.ts';
import { confirmJournal } from '../../../support/journal.ts';
import { openSocket } from '../../../support/socket.ts';
import { type Client, startTestApi, type TestApi } from '../api-harness.ts';

const TIMES = 40;

let api: TestApi;
let client: Client;
let journal: ReturnType<typeof confirmJournal>;
const lines: { level: string; msg: string; reason?: string; err?: unknown }[] = [];
beforeAll(async () => {
  const destination = { write: (text: string) => void lines.push(JSON.parse(text)) };
  api = await startTestApi({ log: createLogger({ process: 'api', level: 'info', destination }) });
  client = await api.client();
  journal = confirmJournal(api.db);
});
afterAll(async () => {
  await journal?.stop();
  await api?.close();
});
afterEach(() => void lines.splice(0));

async function open(): Promise<Socket> {
  const { port, hostname } = new URL(api.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** The head of a request with the key of the client. */
function headOf(method: string, path: string, ...headers: string[]): string {
  const { host } = new URL(api.url);
  const own = [`Host: ${host}`, `Authorization: Bearer ${client.key}`, `X-API-Key: ${client.key}`];
  return [`${method} ${path} HTTP/1.1`, ...own, ...headers, '', ''].join('\r\n');
}

/** Repeats an act of a client, one after the other. */
async function repeat(work: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < TIMES; i++) await work();
}

const cases: [what: string, act: () => Promise<unknown>][] = [
  [
    'abandons streams',
    async () => {
      const socket = await open();
      socket.write(headOf('GET', '/v1/all/stream'));
      await once(socket, 'data');
      socket.resetAndDestroy();
    },
  ],
  [
    'abandons answers',
    async () => {
      const socket = await open();
      // The server writes answers into a connection that is gone.
      socket.write(headOf('GET', '/openapi.json').repeat(20));
      await once(socket, 'data');
      socket.resetAndDestroy();
    },
  ],
  [
    'aborts uploads',
    async () => {
      const socket = await open();
      const type = 'Content-Type: application/json';
      socket.write(`${headOf('POST', '/v1/alerts', type, 'Content-Length: 1000')}{"tokenMint":`);
      await new Promise<void>((resolve) => void socket.end(() => resolve()));
      socket.resetAndDestroy();
    },
  ],
  ['sends invalid bodies', () => fetch(`${api.url}/v1/alerts`, { method: 'POST', headers: keyed(), body: '{' })],
  ['sends wrong keys', () => fetch(`${api.url}/v1/venues`, { headers: { authorization: 'Bearer ow_live_x' } })],
  ['asks for unknown paths', () => fetch(`${api.url}/nowhere`)],
  [
    'sends no HTTP',
    async () => {
      const socket = await open();
      socket.write('\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03');
      socket.resume();
      await once(socket, 'close');
    },
  ],
  [
    'sends invalid frames',
    async () => {
      const socket = await openSocket(`${api.url.replace('http', 'ws')}/v1/stream`, keyed());
      for (let i = 0; i < 30; i++) socket.send('{');
      await socket.closed;
    },
  ],
];

function keyed(): Record<string, string> {
  return { authorization: `Bearer ${client.key}`, 'x-api-key': client.key, 'content-type': 'application/json' };
}

describe('a client', () => {
  it.each(cases)('that %s causes at most a line per kind', async (_what, act) => {
    await repeat(act);
    // Answers that a client abandoned are reported before the next one is served.
    await client.market('/v1/venues');
    const kinds = lines.map(({ level, msg, reason }) => `${level} ${msg} ${reason ?? ''}`);
    expect(kinds).toEqual([...new Set(kinds)]);
    expect(lines.filter(({ level }) => level !== 'info')).toEqual([]);
    expect(lines.filter(({ err }) => err !== undefined)).toEqual([]);
  });

  it('that meets a fault of the server causes one error and one warning per route', async () => {
    const { db } = api;
    const query = db.query;
    db.query = () => Promise.reject(new TypeError('a fault'));
    try {
      await repeat(() => fetch(`${api.url}/v1/webhooks`, { headers: keyed() }));
    } finally {
      db.query = query;
    }
    expect(lines.map(({ level, msg }) => `${level} ${msg}`)).toEqual(['error request failed', 'warn request']);
  });
});
