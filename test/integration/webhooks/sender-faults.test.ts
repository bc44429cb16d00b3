// The certificate library uses reflect metadata, which must be loaded first.
import 'reflect-metadata';

import { webcrypto } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import * as x509 from '@peculiar/x509';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuthority } from '../../../sim/receiver-tls.ts';
import type { AttemptOutcome } from '../../../src/webhooks/attempt.ts';
import type { NameResolver } from '../../../src/webhooks/resolver.ts';
import { createSender, type Sender } from '../../../src/webhooks/sender.ts';
import { gate } from '../../support/gate.ts';
import {
  closedPort,
  type RawServer,
  startTcpServer,
  startTlsServer,
  type TlsServerOptions,
  testAuthority,
} from '../../support/tls.ts';
import { delivery, fixedResolver, LOOPBACK, testSender } from './deliveries.ts';

type SenderOptions = Parameters<typeof createSender>[0];

/** For receivers that never finish: only the deadline can end the attempt. */
const SHORT_MS = 800;
const LONG_MS = 10_000;
const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const OK_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n';

const open: { close: () => Promise<void> }[] = [];
afterEach(async () => {
  for (const thing of open.splice(0).reverse()) await thing.close();
});

function track<T extends { close: () => Promise<void> }>(thing: T): T {
  open.push(thing);
  return thing;
}

async function sender(more: Partial<SenderOptions> = {}): Promise<Sender> {
  return track(await testSender(more));
}

/** One attempt against a server that answers with the output of `answer`. */
async function attempt(
  answer: TlsServerOptions['onRequest'],
  more: Partial<SenderOptions> = {},
): Promise<{ outcome: AttemptOutcome; server: RawServer }> {
  const server = track(await startTlsServer({ onRequest: answer }));
  const sending = await sender(more);
  return { outcome: await sending.send(delivery(server.url)), server };
}

/** Repeats the attempt with a longer deadline while it times out, because a busy machine may need longer for the start of an answer. */
async function answered<T extends { outcome: AttemptOutcome }>(run: (deadlineMs: number) => Promise<T>): Promise<T> {
  for (let deadlineMs = SHORT_MS; ; deadlineMs *= 4) {
    const result = await run(deadlineMs);
    const isTooShort = result.outcome.kind === 'failed' && result.outcome.errorCode === 'timeout';
    if (!isTooShort || deadlineMs > LONG_MS) return result;
  }
}

function answerOk(socket: TLSSocket): void {
  socket.write(`${OK_HEAD}content-length: 0\r\n\r\n`);
}

/** Writes `chunk` every 20 ms until the other side disconnects. */
function drip(socket: TLSSocket, chunk: string): void {
  const timer = setInterval(() => socket.write(chunk), 20);
  socket.once('close', () => clearInterval(timer));
}

describe('an attempt at a slow receiver', () => {
  it('times out without an answer', async () => {
    const { outcome, server } = await attempt(() => undefined, { deadlineMs: SHORT_MS });
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'timeout' });
    expect(outcome).not.toHaveProperty('statusCode');
    await server.idle();
  });

  it('times out on dripping headers', async () => {
    const { outcome, server } = await attempt(
      (socket) => {
        socket.write(OK_HEAD);
        drip(socket, 'x-drip: 1\r\n');
      },
      { deadlineMs: SHORT_MS },
    );
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'timeout' });
    await server.idle();
  });

  it('times out on endless 1xx answers', async () => {
    const { outcome } = await attempt((socket) => drip(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n'), {
      deadlineMs: SHORT_MS,
    });
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'timeout' });
  });

  it('ignores a few 1xx answers before the final one', async () => {
    const { outcome } = await attempt((socket) => {
      socket.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(5));
      answerOk(socket);
    });
    expect(outcome).toMatchObject({ kind: 'delivered', statusCode: 200 });
  });

  it('succeeds on a dripping body after 200, and closes the connection', async () => {
    const drips = (socket: TLSSocket) => {
      socket.write(`${OK_HEAD}content-length: 100000\r\n\r\n.`);
      drip(socket, '.');
    };
    const { outcome, server } = await answered((deadlineMs) => attempt(drips, { deadlineMs }));
    expect(outcome).toMatchObject({ kind: 'delivered', statusCode: 200 });
    expect(Buffer.from(outcome.responseExcerpt ?? []).toString()).toMatch(/^\.+$/);
    await server.idle();
  });

  it('has the status 500 when the body stalls after it, and does not time out', async () => {
    const stalls = (socket: TLSSocket) => socket.write('HTTP/1.1 500 Oops\r\ncontent-length: 50\r\n\r\nhalf');
    const { outcome } = await answered((deadlineMs) => attempt(stalls, { deadlineMs }));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'http_status', statusCode: 500 });
  });

  it('times out on a handshake that never ends', async () => {
    const server = track(await startTcpServer(() => undefined));
    const sending = await sender({ deadlineMs: SHORT_MS });
    expect(await sending.send(delivery(server.url))).toMatchObject({ kind: 'failed', errorCode: 'timeout' });
  });

  it('has a connect timeout of 5 seconds when that is shorter', async () => {
    const server = track(await startTcpServer(() => undefined));
    const sending = track(createSender({ version: '1', rules: LOOPBACK, deadlineMs: 60_000 }));
    const outcome = await sending.send(delivery(server.url));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'connect_timeout' });
    expect(outcome.durationMs).toBeGreaterThan(4_900);
    expect(outcome.durationMs).toBeLessThan(30_000);
    await server.idle();
  });

  it('that was aborted while it waited for its connection is never sent later', async () => {
    const { outcome, server } = await answered(async (deadlineMs) => {
      const started = track(await startTlsServer({ hosts: ['slow.test'], onRequest: answerOk }));
      const names = fixedResolver({ 'slow.test': ['127.0.0.1'] });
      const known = gate();
      const resolver: NameResolver = {
        close: names.close,
        resolve: (name) => known.opened.then(() => names.resolve(name)),
      };
      const sending = await sender({ deadlineMs, resolver });
      const url = `https://slow.test:${started.port}/`;
      expect(await sending.send(delivery(url))).toMatchObject({ kind: 'failed', errorCode: 'timeout' });
      known.open();
      // The connection is established now, for an aborted request; the next request proves that it is usable.
      await expect.poll(() => started.connections()).toBe(1);
      return { outcome: await sending.send(delivery(url)), server: started };
    });
    expect(outcome).toMatchObject({ kind: 'delivered' });
    expect(server.requests()).toBe(1);
  });
});

describe('an attempt at a receiver that sends too much', () => {
  it('succeeds and ends early on an endless body', async () => {
    let writtenBytes = 0;
    const { outcome, server } = await attempt((socket) => {
      socket.write(`${OK_HEAD}\r\n`);
      const block = Buffer.alloc(64 * 1024, 'x');
      const pump = () => {
        if (socket.destroyed) return;
        writtenBytes += block.length;
        if (socket.write(block)) setImmediate(pump);
        else socket.once('drain', pump);
      };
      pump();
    });
    expect(outcome).toMatchObject({ kind: 'delivered', statusCode: 200 });
    expect(outcome.responseExcerpt).toHaveLength(4096);
    await server.idle();
    // The rest was in socket buffers of the two ends of a loopback connection.
    expect(writtenBytes).toBeLessThan(64 * 1024 * 1024);
  });

  it('waits only for the start of a long body that stalls', async () => {
    const { outcome, server } = await attempt(
      (socket) => {
        socket.write(`${OK_HEAD}content-length: 100000\r\n\r\n${'x'.repeat(40_000)}`);
      },
      { deadlineMs: 3_600_000 },
    );
    expect(outcome).toMatchObject({ kind: 'delivered', statusCode: 200 });
    await server.idle();
  });

  it('does not inflate a gzip bomb', async () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024));
    const { outcome } = await attempt((socket) => {
      socket.write(`${OK_HEAD}content-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`);
      socket.write(bomb);
    });
    expect(outcome).toMatchObject({ kind: 'delivered', statusCode: 200 });
    expect(Buffer.from(outcome.responseExcerpt ?? []).equals(bomb.subarray(0, 4096))).toBe(true);
  });

  it('keeps whole headers up to 4 KiB of hostile ones, counts the others, and hides secrets', async () => {
    const { outcome } = await attempt((socket) => {
      socket.write(
        `${OK_HEAD}content-length: 2\r\nconstructor: x\r\n__proto__: y\r\nset-cookie: sid=hidden\r\nSet-Cookie: b=hidden\r\n`,
      );
      socket.write(Buffer.from('x-utf8: caf\u00e9 \u{1f3b2}\r\n', 'utf8'));
      socket.write(Buffer.from('x-latin1: caf\u00e9\r\n', 'latin1'));
      socket.write(`${'x-many: 0123456789\r\n'.repeat(400)}x-end: 1\r\n\r\nok`);
    });
    expect(outcome).toMatchObject({ kind: 'delivered', statusCode: 200 });
    const { headers = [], removed, omitted = 0 } = outcome.responseHeaders ?? {};
    const count = (name: string) => headers.filter(([each]) => each === name).length;
    expect(headers).toEqual(
      expect.arrayContaining([
        ['constructor', 'x'],
        ['__proto__', 'y'],
        ['x-utf8', 'caf\u00e9 \u{1f3b2}'],
        ['x-latin1', 'caf\u00e9'],
      ]),
    );
    expect(removed).toBe(2);
    expect(JSON.stringify(outcome)).not.toContain('hidden');
    expect(omitted).toBeGreaterThan(200);
    expect(count('x-many') + count('x-end') + omitted).toBe(401);
  });

  it('fails with an overflow on too many headers', async () => {
    const { outcome, server } = await attempt((socket) => {
      socket.write(OK_HEAD);
      socket.write(`x-flood: ${'x'.repeat(1000)}\r\n`.repeat(40));
    });
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'header_overflow' });
    await server.idle();
  });
});

describe('an attempt at a broken receiver', () => {
  it('is refused by a closed port', async () => {
    const sending = await sender();
    const outcome = await sending.send(delivery(`https://127.0.0.1:${await closedPort()}/`));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'connection_refused' });
  });

  it('is refused by a closed port behind several addresses', async () => {
    const resolver = fixedResolver({ 'hooks.test': ['127.0.0.1', '127.0.0.2'] });
    const sending = await sender({ resolver });
    const outcome = await sending.send(delivery(`https://hooks.test:${await closedPort()}/`));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'connection_refused' });
  });

  it('reaches a live second address after a dead first one', async () => {
    const server = track(
      await startTlsServer({
        hosts: ['hooks.test'],
        onRequest: answerOk,
      }),
    );
    const sending = await sender({ resolver: fixedResolver({ 'hooks.test': ['127.0.0.2', '127.0.0.1'] }) });
    const outcome = await sending.send(delivery(`https://hooks.test:${server.port}/`));
    expect(outcome).toMatchObject({ kind: 'delivered' });
  });

  it.each<[string, TlsServerOptions['onRequest']]>([
    ['a reset', (_socket, reset) => reset()],
    ['a hang-up', (socket) => socket.destroy()],
    ['an unsolicited 100', (socket) => socket.write('HTTP/1.1 100 Continue\r\n\r\n')],
    [
      'an unsolicited upgrade',
      (socket) => socket.write('HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    ],
  ])('is connection_reset on %s instead of an answer', async (_name, onRequest) => {
    const { outcome } = await attempt(onRequest);
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'connection_reset' });
  });

  it('is connection_reset on a reset in the handshake', async () => {
    const server = track(await startTcpServer((socket) => socket.resetAndDestroy()));
    const sending = await sender();
    expect(await sending.send(delivery(server.url))).toMatchObject({ errorCode: 'connection_reset' });
  });

  it('keeps the status 200 on a reset in the middle of the body', async () => {
    const { outcome } = await attempt((socket) =>
      socket.write(`${OK_HEAD}content-length: 10\r\n\r\nhal`, () => socket.destroy()),
    );
    expect(outcome).toMatchObject({ kind: 'delivered', statusCode: 200 });
    expect(Buffer.from(outcome.responseExcerpt ?? []).toString()).toBe('hal');
  });

  it.each([
    ['garbage', 'this is no HTTP\r\n\r\n'],
    ['a bad status', 'HTTP/1.1 abc OK\r\n\r\n'],
    ['no status', 'HTTP/1.1\r\n\r\n'],
    ['another protocol', '220 mail.test ESMTP\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
    ['a bad chunk', `${OK_HEAD.replace('200', '9')}\r\n\r\n`],
  ])('is a protocol error on %s', async (_name, answer) => {
    const { outcome } = await attempt((socket) => socket.write(answer));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'protocol_error' });
  });

  it('is a DNS error for a name without an address', async () => {
    const sending = await sender({ resolver: fixedResolver({}) });
    expect(await sending.send(delivery('https://nowhere.test/'))).toMatchObject({ errorCode: 'dns_error' });
  });

  it('does not delay attempts at other receivers when one is dead', async () => {
    const dead = track(await startTlsServer({ onRequest: () => undefined }));
    const alive = track(await startTlsServer({ onRequest: answerOk }));
    const sending = await sender();
    let deadEnded = 0;
    const stuck = Array.from({ length: 64 }, () =>
      sending.send(delivery(dead.url)).finally(() => {
        deadEnded += 1;
      }),
    );
    const outcomes = await Promise.all(Array.from({ length: 50 }, () => sending.send(delivery(alive.url))));
    expect(outcomes.every(({ kind }) => kind === 'delivered')).toBe(true);
    expect(deadEnded).toBe(0);
    await dead.close();
    open.splice(open.indexOf(dead), 1);
    await Promise.all(stuck);
  });
});

describe('an attempt at a receiver with invalid TLS is a tls_error', () => {
  async function outcomeOf(options: Partial<TlsServerOptions>, more: Partial<SenderOptions> = {}) {
    const server = track(await startTlsServer({ onRequest: answerOk, ...options }));
    const sending = await sender(more);
    const outcome = await sending.send(delivery(server.url));
    expect(server.requests()).toBe(0);
    return outcome;
  }

  it('with an unknown authority', async () => {
    const stranger = await (await createAuthority()).issue(['127.0.0.1']);
    expect(await outcomeOf(stranger)).toMatchObject({ kind: 'failed', errorCode: 'tls_error' });
  });

  it('with a self-signed certificate', async () => {
    const keys = await webcrypto.subtle.generateKey(ECDSA, true, ['sign', 'verify']);
    const extensions = [new x509.SubjectAlternativeNameExtension([{ type: 'ip', value: '127.0.0.1' }])];
    const name = 'CN=127.0.0.1';
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      keys,
      name,
      extensions,
      signingAlgorithm: ECDSA,
    });
    const key = x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
    expect(await outcomeOf({ cert: certificate.toString('pem'), key })).toMatchObject({ errorCode: 'tls_error' });
  });

  it('with our own authority when it is not configured', async () => {
    const server = track(await startTlsServer({ onRequest: answerOk }));
    const sending = track(createSender({ version: '1', rules: LOOPBACK }));
    expect(await sending.send(delivery(server.url))).toMatchObject({ kind: 'failed', errorCode: 'tls_error' });
    expect(server.requests()).toBe(0);
  });

  it('with the wrong name', async () =>
    expect(await outcomeOf({ hosts: ['elsewhere.test', '127.0.0.2'] })).toMatchObject({ errorCode: 'tls_error' }));

  it.each([
    ['expired', '2020-01-01', '2020-02-01'],
    ['not yet valid', '2190-01-01', '2190-02-01'],
  ])('with a certificate that is %s', async (_label, notBefore, notAfter) => {
    const ca = await testAuthority();
    const validity = { notBefore: new Date(notBefore), notAfter: new Date(notAfter) };
    expect(await outcomeOf(await ca.issue(['127.0.0.1'], validity))).toMatchObject({ errorCode: 'tls_error' });
  });

  it('with TLS older than 1.2', async () =>
    expect(
      await outcomeOf({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT:@SECLEVEL=0' }),
    ).toMatchObject({ errorCode: 'tls_error' }));

  it('without TLS: nothing is sent in clear text', async () => {
    let heard = '';
    const server = track(
      await startTcpServer((socket) => {
        socket.on('data', (chunk) => {
          heard += chunk.toString('latin1');
          socket.end('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n');
        });
      }),
    );
    const sending = await sender();
    expect(await sending.send(delivery(server.url))).toMatchObject({ kind: 'failed', errorCode: 'tls_error' });
    expect(heard).not.toContain('POST');
    expect(heard).not.toContain('evt_1');
  });
});
