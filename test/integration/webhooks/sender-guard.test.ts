import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSender, type Sender } from '../../../src/webhooks/sender.ts';
import { allowing } from '../../support/address-rules.ts';
import { type RawServer, startTlsServer, testAuthority } from '../../support/tls.ts';
import { delivery, fixedResolver } from './deliveries.ts';

/** A receiver on loopback that must never be reached, with a valid certificate for every name used here. */
let server: RawServer;
let caPem: string;
const senders: Sender[] = [];

const NAMES = ['rebinding.test', 'mixed.test', 'mapped.test', 'flips.test', 'hooks.test', 'localhost', '127.0.0.1'];

beforeAll(async () => {
  ({ caPem } = await testAuthority());
  server = await startTlsServer({
    hosts: NAMES,
    onRequest: (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'),
  });
});
afterAll(async () => {
  for (const sender of senders) await sender.close();
  await server.close();
});

function guarded(names: Record<string, string[]>, allow?: string): Sender {
  const sender = createSender({
    version: '1',
    extraCaPem: caPem,
    resolver: fixedResolver(names),
    ...(allow === undefined ? {} : { rules: allowing(allow) }),
  });
  senders.push(sender);
  return sender;
}

describe('the guard, with a receiver on loopback,', () => {
  it.each([
    'https://127.0.0.1',
    'https://127.1',
    'https://0x7f.1',
    'https://2130706433',
    'https://017700000001',
    'https://１２７.0.0.1',
    'https://0.0.0.0',
    'https://[::1]',
    'https://[::ffff:127.0.0.1]',
    'https://[::127.0.0.1]',
    'https://[64:ff9b::7f00:1]',
    'https://localhost',
    'https://a.localhost',
    'https://10.0.0.1',
    'https://169.254.169.254',
    'https://168.63.129.16',
    'https://[fd00:ec2::254]',
  ])('blocks %s', async (origin) => {
    const before = server.connections();
    const outcome = await guarded({}).send(delivery(`${origin}:${server.port}/`));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'blocked_address' });
    expect(Object.keys(outcome).sort()).toEqual(['durationMs', 'errorCode', 'kind']);
    expect(server.connections()).toBe(before);
  });

  it.each([
    ['a name that answers loopback', 'rebinding.test', ['127.0.0.1']],
    ['one forbidden answer among public ones', 'mixed.test', ['8.8.8.8', '127.0.0.1']],
    ['the same in another order', 'mixed.test', ['10.0.0.1', '8.8.8.8', '2606:4700:4700::1111']],
    ['a mapped answer', 'mapped.test', ['::ffff:127.0.0.1']],
    ['an IPv4-compatible answer', 'mapped.test', ['::7f00:1']],
    ['a metadata answer', 'hooks.test', ['169.254.169.254']],
    ['an empty answer', 'hooks.test', []],
  ])('blocks %s', async (_label, name, addresses) => {
    const before = server.connections();
    const outcome = await guarded({ [name]: addresses }).send(delivery(`https://${name}:${server.port}/`));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'dns_error' });
    expect(server.connections()).toBe(before);
  });

  it('checks a name again for each connection', async () => {
    const names: Record<string, string[]> = { 'flips.test': ['127.0.0.1'] };
    const sender = guarded(names, '127.0.0.1/32');
    const url = `https://flips.test:${server.port}/`;
    expect(await sender.send(delivery(url))).toMatchObject({ kind: 'delivered' });
    const requests = server.requests();
    names['flips.test'] = ['127.0.0.2'];
    const other = guarded(names, '127.0.0.1/32');
    expect(await other.send(delivery(url))).toMatchObject({ errorCode: 'dns_error' });
    expect(server.requests()).toBe(requests);
  });

  it.each([
    ['http://127.0.0.1', 'invalid_url'],
    ['https://user:pw@hooks.test', 'invalid_url'],
    ['https://hooks.test:25', 'invalid_url'],
    ['https://hooks.test:6379@127.0.0.1', 'invalid_url'],
    ['not a url', 'invalid_url'],
    ['file:///etc/passwd', 'invalid_url'],
  ])('%s is %s', async (url, errorCode) => {
    const before = server.connections();
    expect(await guarded({}).send(delivery(url))).toMatchObject({ kind: 'failed', errorCode });
    expect(server.connections()).toBe(before);
  });
});

describe('the guard, with loopback allowed,', () => {
  it('reaches it by name, with that name in SNI and certificate check', async () => {
    const before = server.requests();
    const sender = guarded({ 'hooks.test': ['127.0.0.1'], 'unlisted.test': ['127.0.0.1'] }, '127.0.0.0/8');
    expect(await sender.send(delivery(`https://hooks.test:${server.port}/`))).toMatchObject({ kind: 'delivered' });
    expect(server.requests()).toBe(before + 1);
    const outcome = await sender.send(delivery(`https://unlisted.test:${server.port}/`));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'tls_error' });
    expect(server.requests()).toBe(before + 1);
  });

  it('still blocks all other private addresses', async () => {
    const sender = guarded({ 'hooks.test': ['127.0.0.1', '10.0.0.1'] }, '127.0.0.0/8');
    expect(await sender.send(delivery('https://hooks.test:8443/'))).toMatchObject({ errorCode: 'dns_error' });
    expect(await sender.send(delivery('https://10.0.0.1:8443/'))).toMatchObject({ errorCode: 'blocked_address' });
  });
});
