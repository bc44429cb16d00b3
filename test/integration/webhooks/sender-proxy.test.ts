import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Receiver, startReceiver } from '../../../sim/receiver.ts';
import { SenderFaultError } from '../../../src/webhooks/attempt.ts';
import { createSender, type Sender } from '../../../src/webhooks/sender.ts';
import { delivery, fixedResolver, LOOPBACK, PATIENT_MS } from './deliveries.ts';

type SenderOptions = Parameters<typeof createSender>[0];

type Answer = 'tunnel' | 'silence' | 'close' | 'late tunnel to silence' | number;
/** More than half of `CONNECT_TIMEOUT_MS`. */
const LATE_MS = 600;
const CONNECT_TIMEOUT_MS = 1_000;

let receiver: Receiver;
let proxy: Server;
let proxyUrl: string;
let answer: Answer = 'tunnel';
const asked: { authority: string; login: string | undefined }[] = [];
const sockets = new Set<Socket>();
const senders: Sender[] = [];

beforeAll(async () => {
  receiver = await startReceiver();
  proxy = createServer();
  proxy.on('connect', (request: IncomingMessage, client: Socket) => {
    sockets.add(client);
    client.on('error', () => client.destroy());
    asked.push({ authority: request.url ?? '', login: request.headers['proxy-authorization'] });
    if (answer === 'silence') return;
    if (answer === 'late tunnel to silence') {
      setTimeout(() => client.write('HTTP/1.1 200 Connection established\r\n\r\n'), LATE_MS);
      return;
    }
    if (answer === 'close') return void client.destroy();
    if (answer !== 'tunnel') return void client.end(`HTTP/1.1 ${answer} no\r\ncontent-length: 0\r\n\r\n`);
    const [host, port] = (request.url ?? '').split(':');
    const upstream = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(client);
      client.pipe(upstream);
    });
    upstream.on('error', () => client.destroy());
    client.on('close', () => upstream.destroy());
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
});
afterEach(async () => {
  answer = 'tunnel';
  asked.length = 0;
  for (const sender of senders.splice(0)) await sender.close();
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  proxy.close();
  await receiver.close();
});

function proxied(more: Partial<SenderOptions> = {}): Sender {
  const sender = createSender({ version: '1', rules: LOOPBACK, extraCaPem: receiver.caPem, proxyUrl, ...more });
  senders.push(sender);
  return sender;
}
const resolver = fixedResolver({ 'hooks.test': ['127.0.0.1'], 'mixed.test': ['93.184.216.34', '10.0.0.1'] });

describe('a sender with a proxy', () => {
  it('asks it for the checked address, keeps the connection, and verifies the receiver', async () => {
    const sender = proxied({ proxyUrl: proxyUrl.replace('//', '//user:pass%20word@') });
    const url = `${receiver.url.replace('127.0.0.1', 'localhost')}/proxied`;
    for (let count = 0; count < 5; count += 1) {
      expect(await sender.send(delivery(url))).toMatchObject({ kind: 'delivered', statusCode: 200 });
    }
    const login = `Basic ${Buffer.from('user:pass word').toString('base64')}`;
    expect(asked.length).toBeLessThan(5);
    for (const request of asked) expect(request).toEqual({ authority: `127.0.0.1:${receiver.port}`, login });
  });

  it('rejects a receiver whose certificate has another name', async () => {
    const outcome = await proxied({ resolver }).send(delivery(`https://hooks.test:${receiver.port}/`));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'tls_error' });
  });

  it.each([
    ['https://127.0.0.1', 'blocked_address'],
    ['https://10.0.0.1', 'blocked_address'],
    ['https://hooks.test', 'dns_error'],
    ['https://mixed.test', 'dns_error'],
    ['https://missing.test', 'dns_error'],
  ])('does not ask it for %s', async (url, errorCode) => {
    const sender = createSender({ version: '1', extraCaPem: receiver.caPem, proxyUrl, resolver });
    senders.push(sender);
    expect(await sender.send(delivery(url))).toMatchObject({ kind: 'failed', errorCode });
    expect(asked).toEqual([]);
  });

  it.each<[Answer, string]>([
    [502, 'connection_refused'],
    [403, 'connection_refused'],
    ['close', 'connection_refused'],
    ['silence', 'connect_timeout'],
  ])('fails the attempt when the proxy answers with %s', async (given, errorCode) => {
    answer = given;
    const sender = proxied({ connectTimeoutMs: given === 'silence' ? 500 : PATIENT_MS, deadlineMs: PATIENT_MS });
    const outcome = await sender.send(delivery(receiver.url));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode });
  });

  it('gives the tunnel and the TLS handshake one timeout together', async () => {
    answer = 'late tunnel to silence';
    const connectTimeoutMs = CONNECT_TIMEOUT_MS;
    // With a timeout each, the deadline of the attempt would pass first.
    const sender = proxied({ connectTimeoutMs, deadlineMs: CONNECT_TIMEOUT_MS + LATE_MS - 100 });
    expect(await sender.send(delivery(receiver.url))).toMatchObject({ kind: 'failed', errorCode: 'connect_timeout' });
  });

  it('counts no attempt when the proxy refuses its credentials or is unreachable', async () => {
    answer = 407;
    await expect(proxied().send(delivery(receiver.url))).rejects.toThrow(SenderFaultError);
    const gone = createServer().listen(0, '127.0.0.1');
    await once(gone, 'listening');
    const { port } = gone.address() as AddressInfo;
    gone.close();
    await once(gone, 'close');
    const sender = proxied({ proxyUrl: `http://127.0.0.1:${port}` });
    await expect(sender.send(delivery(receiver.url))).rejects.toThrow(SenderFaultError);
  });
});
