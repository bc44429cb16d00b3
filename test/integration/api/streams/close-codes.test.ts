import { connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { notReady } from '../../../../api/errors.ts';
import { revokeApiKey } from '../../../../src/store/accounts/accounts.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { GUARD_MS } from '../../../support/eventually.ts';
import type { SocketReader } from '../../../support/socket.ts';
import { type Client, startTestApi, type TestApi } from '../api-harness.ts';
import { aTrade, withStreams } from './stream-world.ts';

const world = withStreams();

const KEY_ID = sql('test_key_id_of', 'SELECT id FROM api_key WHERE account_id = $1');
const subscribe = { type: 'subscribe', id: 'a', venue: 'all', channels: ['trades'] };
const ofType =
  (type: string) =>
  (message: { type: string }): boolean =>
    message.type === type;
/** A valid frame of this size, as several of them exceed the buffers of the system. */
const LARGE_FRAME = JSON.stringify({ type: 'unsubscribe', id: 'unknown' }).padEnd(64_000);
/** Fewer than a connection may send at once, and fewer than the invalid ones that end it. */
const BURST = 15;
const TOO_MANY = 60;
const MAX_PARTS = 16 * 1024;
const LIMITS = {
  maxConnections: 1_000,
  connectionsPerAccount: 100,
  subscriptionsPerAccount: 100,
  messagesPerSecond: 0,
};

interface Place {
  api: TestApi;
  socket: SocketReader;
  client: Client;
}

interface Cause {
  code: number;
  cause: string;
  hasKey: boolean;
  streams?: NonNullable<Parameters<typeof startTestApi>[1]>['streams'];
  /** Makes the server close the connection. */
  provoke(place: Place): unknown;
  /** One frame of the flood that follows. Absent: a burst of valid frames follows. */
  flood?(socket: SocketReader): void;
}

function repeat(times: number, work: () => void): void {
  for (let i = 0; i < times; i++) work();
}

/** Writes bytes that do not form a frame of a client. */
function writeRaw({ socket }: SocketReader, bytes: Buffer): void {
  (socket as unknown as { _socket: Socket })._socket.write(bytes);
}

async function revoke({ api, client }: Place): Promise<void> {
  const [row] = await api.db.query<{ id: string }>(KEY_ID, [client.accountId]);
  await revokeApiKey(api.db, row?.id ?? '');
}

/** A cause whose every frame ends the connection. */
function offence(code: number, cause: string, flood: (socket: SocketReader) => void, times = 1): Cause {
  return { code, cause, hasKey: true, flood, provoke: ({ socket }) => repeat(times, () => flood(socket)) };
}

const CAUSES: Cause[] = [
  offence(1002, 'a frame breaks the protocol', (socket) => writeRaw(socket, Buffer.alloc(64_000, 0xff))),
  offence(1003, 'a frame is not text', ({ socket }) => socket.send(Buffer.alloc(64_000), { binary: true })),
  offence(1007, 'a frame is not UTF-8', ({ socket }) => socket.send(Buffer.alloc(64_000, 0xc3), { binary: false })),
  offence(1008, 'a frame has too many parts', ({ socket }) => socket.send('', { fin: false }), MAX_PARTS + 1),
  offence(1009, 'a frame is too large', (socket) => socket.send('x'.repeat(64 * 1024 + 1))),
  offence(4429, 'too many frames are invalid', (socket) => socket.send('{'.padEnd(64_000)), TOO_MANY),
  offence(4429, 'frames arrive too fast', (socket) => socket.send(LARGE_FRAME), TOO_MANY),
  offence(4429, 'pings arrive too fast', ({ socket }) => socket.ping(), TOO_MANY),
  {
    code: 1011,
    cause: 'the process is not ready',
    hasKey: false,
    provoke({ api, socket, client }) {
      api.streams.requireReady = () => {
        throw notReady('the journal was not read yet');
      };
      socket.send({ type: 'auth', key: client.key });
    },
  },
  { code: 1012, cause: 'the process stops', hasKey: true, provoke: ({ api }) => void api.streams.drain() },
  {
    code: 4401,
    cause: 'the key is wrong',
    hasKey: false,
    provoke: ({ socket }) => socket.send({ type: 'auth', key: 'ow_live_unknown' }),
  },
  { code: 4401, cause: 'the key is missing', hasKey: false, provoke: ({ socket }) => socket.send(subscribe) },
  { code: 4401, cause: 'the key is revoked', hasKey: true, provoke: revoke },
  {
    code: 4403,
    cause: 'the key lacks the scope',
    hasKey: false,
    provoke: async ({ api, socket }) => socket.send({ type: 'auth', key: (await api.client(['alerts'])).key }),
  },
  {
    code: 4408,
    cause: 'no key arrives in time',
    hasKey: false,
    streams: { authMs: 300 },
    provoke: ({ socket }) => repeat(BURST, () => socket.socket.ping('x'.repeat(100))),
  },
  {
    code: 4429,
    cause: 'too many connections are open',
    hasKey: false,
    streams: { limits: { ...LIMITS, maxConnections: 0 } },
    provoke: ({ socket, client }) => socket.send({ type: 'auth', key: client.key }),
  },
];

/** Opens the connection of a cause at an API of its own. */
async function withPlace(
  { hasKey, streams }: Cause,
  lastReadMs: number,
  use: (place: Place) => Promise<void>,
): Promise<void> {
  const ample = { maxUnsentBytes: 1e9, maxUnsentTotalBytes: 1e9, pingMs: 10 * GUARD_MS, lastReadMs };
  const api = await startTestApi({}, { beside: world.api, streams: { ...ample, ...streams } });
  try {
    const client = await api.client();
    const socket = await world.connect({ key: hasKey ? client.key : null, url: api.url });
    if (hasKey) {
      socket.send(subscribe);
      await socket.next(ofType('heartbeat'));
    }
    await use({ api, socket, client });
  } finally {
    await api.close();
  }
}

/** Stops reading, until the server has messages that the connection does not accept. */
async function stopReading({ api, socket }: Place, hasKey: boolean): Promise<void> {
  socket.socket.pause();
  const trade = aTrade('large');
  const large = { ...trade, body: { ...trade.body, trade_id: 'x'.repeat(40_000) } };
  while (hasKey && api.streams.usage().largestUnsentBytes < 100_000)
    await world.append(...Array.from({ length: 20 }, () => large));
}

describe('a WebSocket', () => {
  it.each(CAUSES)('closes with $code when $cause and the client floods', async (cause) => {
    await withPlace(cause, GUARD_MS, async (place) => {
      const { socket } = place;
      const { flood = () => undefined } = cause;
      await cause.provoke(place);
      if (!cause.flood && cause.code !== 4408) repeat(BURST, () => socket.send(LARGE_FRAME));
      let hasClosed = false;
      const closed = socket.closed.finally(() => {
        hasClosed = true;
      });
      while (!hasClosed) {
        if (socket.socket.bufferedAmount < 4_000_000) repeat(20, () => flood(socket));
        await nextTurn();
      }
      expect((await closed).code).toBe(cause.code);
    });
  });

  it.each(CAUSES)('closes with $code when $cause and the client reads later', async (cause) => {
    await withPlace(cause, GUARD_MS, async (place) => {
      await stopReading(place, cause.hasKey);
      await cause.provoke(place);
      await expect.poll(() => place.api.streams.usage().connections).toBe(0);
      place.socket.socket.resume();
      expect((await place.socket.closed).code).toBe(cause.code);
    });
  });

  it.each(CAUSES)('is cut when $cause and the client never reads', async (cause) => {
    await withPlace(cause, 200, async (place) => {
      await stopReading(place, cause.hasKey);
      await cause.provoke(place);
      await expect.poll(() => place.api.openConnections()).toBe(0);
    });
  });
});

describe('a refused upgrade', () => {
  it('answers with its status when the client sends frames without waiting for it', async () => {
    const { hostname, port, host } = new URL(world.api.url);
    const socket = connect(Number(port), hostname);
    const lines = ['GET /v1/stream HTTP/1.1', `Host: ${host}`, 'Connection: Upgrade', 'Upgrade: websocket'];
    const handshake = ['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='];
    socket.write([...lines, ...handshake, 'Authorization: Bearer ow_live_unknown', '', ''].join('\r\n'));
    let answer = '';
    socket.on('data', (bytes: Buffer) => {
      answer += bytes.toString();
    });
    const errors: Error[] = [];
    socket.on('error', (error) => errors.push(error));
    let hasEnded = false;
    socket.once('end', () => {
      hasEnded = true;
    });
    while (!hasEnded && errors.length === 0) {
      if (socket.writableLength < 4_000_000) socket.write(Buffer.alloc(256_000));
      await nextTurn();
    }
    socket.destroy();
    expect(errors).toEqual([]);
    expect(answer).toMatch(/^HTTP\/1\.1 401 [\s\S]*"code":"unauthorized"/);
  });
});
