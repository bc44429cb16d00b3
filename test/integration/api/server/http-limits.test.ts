import { once } from 'node:events';
import type { RequestListener, Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { pipeline, Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createHttpServer, drain } from '../../../../api/server/http-server.ts';
import { parseCidrs } from '../../../../src/domain/webhooks/address-policy.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { GUARD_MS } from '../../../support/eventually.ts';
import { startTestApi, type TestApi } from '../api-harness.ts';

const log = createLogger({ process: 'test', level: 'silent' });
const CHUNK = 'x'.repeat(64 * 1024);
/** More than the kernel buffers for a client that does not read. */
const CHUNKS = Array.from({ length: 300 }, () => CHUNK);

let servers: Server[] = [];
let sockets: Socket[] = [];
beforeEach(() => {
  servers = [];
  sockets = [];
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await Promise.all(servers.map(drain));
});

async function serve(
  limits: Parameters<typeof createHttpServer>[2],
  listener: RequestListener = (_req, res) => res.end('ok'),
) {
  const server = createHttpServer(listener, log, limits).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return server;
}

async function open(server: Server): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** All data of a connection until its end. */
async function untilEnd(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(socket, 'close');
  return Buffer.concat(chunks).toString();
}

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const LAST_GET = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
const openConnections = (server: Server) =>
  new Promise<number>((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );

describe('a slow client', () => {
  const slow = { headersMs: 100, requestMs: 200, checkEveryMs: 20 };

  it('is closed with 408 during the headers', async () => {
    const socket = await open(await serve(slow));
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    const text = await untilEnd(socket);
    expect(text).toMatch(/^HTTP\/1\.1 408 [\s\S]*"the request was too slow"/);
    expect(text).toMatch(/X-Content-Type-Options: nosniff/i);
  });

  it('is closed during the body', async () => {
    const socket = await open(await serve(slow, (req, res) => req.resume().on('end', () => res.end('ok'))));
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{');
    expect(await untilEnd(socket)).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('is closed when it sends nothing', async () => {
    expect(await untilEnd(await open(await serve(slow)))).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('is closed when it does not read its answer, but not when it reads slowly', async () => {
    const large: RequestListener = (_req, res) => void pipeline(Readable.from(CHUNKS), res, () => undefined);
    const server = await serve({ stalledMs: 100, checkEveryMs: 5 }, large);
    const stalled = await open(server);
    stalled.pause();
    stalled.write(GET);
    const reading = await open(server);
    // Reading everything takes longer than the limit for a stalled client. A slow machine has a check per pause, so a pause follows only after
    // many bytes: the buffers of the system take megabytes before the server can write again.
    let readBytes = 0;
    reading.on('data', (chunk: Buffer) => {
      readBytes += chunk.length;
      if (readBytes < 1_000_000) return;
      readBytes = 0;
      reading.pause();
      setTimeout(() => reading.resume(), 10);
    });
    reading.write(LAST_GET);
    expect((await untilEnd(reading)).length).toBeGreaterThan(CHUNKS.length * CHUNK.length);
    await vi.waitFor(async () => expect(await openConnections(server)).toBe(0), { timeout: GUARD_MS });
  });

  it('is not closed while it waits for the server', async () => {
    let answer: () => void = () => undefined;
    const server = await serve({ ...slow, stalledMs: 50 }, (_req, res) => {
      answer = () => res.end('late');
    });
    const socket = await open(server);
    const requested = once(server, 'request');
    socket.write(LAST_GET);
    await requested;
    // The server closes a silent client in this time, so it would have closed any slow client.
    await untilEnd(await open(server));
    answer();
    expect(await untilEnd(socket)).toMatch(/late$/);
  });
});

describe('connections', () => {
  it('beyond the bound per address are closed, except connections of a proxy', async () => {
    const server = await serve({ maxConnectionsPerAddress: 2 });
    const kept = [await open(server), await open(server)];
    expect(await untilEnd(await open(server))).toBe('');
    const [first] = kept as [Socket];
    first.destroy();
    await vi.waitFor(async () => expect(await openConnections(server)).toBe(1), { timeout: GUARD_MS });
    const next = await open(server);
    next.write(GET);
    expect(String(await once(next, 'data'))).toMatch(/^HTTP\/1\.1 200/);
    const behindProxy = await serve({ maxConnectionsPerAddress: 1, trustedProxies: parseCidrs('127.0.0.0/8') });
    for (let i = 0; i < 3; i++) {
      const socket = await open(behindProxy);
      socket.write(GET);
      expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1\.1 200/);
    }
  });

  it('beyond the total bound are closed', async () => {
    const server = await serve({ maxConnections: 1 });
    const first = await open(server);
    first.write(GET);
    await once(first, 'data');
    expect(await untilEnd(await open(server))).toBe('');
  });
});

describe('a header with the addresses of clients', () => {
  const linesOf = () => {
    const lines: { fields: object; message: string }[] = [];
    const warn = (fields: object, message: string) => void lines.push({ fields, message });
    return { lines, logging: Object.assign(Object.create(log), { warn }) as typeof log };
  };

  it.each(['X-Forwarded-For', 'Forwarded'])(
    '%s causes one warning when it comes from an untrusted peer',
    async (name) => {
      const { lines, logging } = linesOf();
      const server = createHttpServer((_req, res) => res.end('ok'), logging, {}).listen(0, '127.0.0.1');
      servers.push(server);
      await once(server, 'listening');
      const request = (header: string) => `GET / HTTP/1.1\r\nHost: x\r\n${header}Connection: close\r\n\r\n`;
      for (const header of ['', `${name}: 203.0.113.7\r\n`, `${name}: 203.0.113.8\r\n`]) {
        const socket = await open(server);
        socket.write(request(header));
        expect(await untilEnd(socket)).toMatch(/ok$/);
      }
      expect(lines).toEqual([
        {
          fields: { header: name.toLowerCase(), peer: '127.0.0.1', variable: 'TRUSTED_PROXIES' },
          message: expect.stringContaining('add its address to TRUSTED_PROXIES'),
        },
      ]);
    },
  );

  it('causes no warning when it comes from a trusted proxy', async () => {
    const { lines, logging } = linesOf();
    const trustedProxies = parseCidrs('127.0.0.0/8');
    const server = createHttpServer((_req, res) => res.end('ok'), logging, { trustedProxies }).listen(0, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    const socket = await open(server);
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.7\r\nConnection: close\r\n\r\n');
    expect(await untilEnd(socket)).toMatch(/ok$/);
    expect(lines).toEqual([]);
  });
});

describe('an oversized request', () => {
  let api: TestApi;
  beforeEach(async () => {
    api = await startTestApi();
  });
  afterEach(() => api.close());

  it('is rejected in the envelope for each oversized part', async () => {
    const { key } = await api.client();
    const headers = { Authorization: `Bearer ${key}` };
    const fits = await api.call(`/v1/venues?x=${'a'.repeat(8_192 - '/v1/venues?x='.length)}`, { headers });
    const long = await api.call(`/v1/venues?x=${'a'.repeat(8_193 - '/v1/venues?x='.length)}`, { headers });
    expect([fits.status, long.status, long.body.error.code]).toEqual([200, 414, 'uri_too_long']);
    const { hostname, port } = new URL(api.url);
    for (const request of [
      `GET /${'a'.repeat(17_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
      `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(17_000)}\r\n\r\n`,
    ]) {
      const socket = connect(Number(port), hostname);
      sockets.push(socket);
      socket.on('error', () => undefined);
      socket.write(request);
      expect(await untilEnd(socket)).toMatch(/^HTTP\/1\.1 431 [\s\S]*"success":false/);
    }
  });
});
