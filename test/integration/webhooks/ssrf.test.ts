import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import ipaddr from 'ipaddr.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startReceiver } from '../../../sim/receiver.ts';
import { createResolver, type NameResolver, type ResolvedAddress } from '../../../src/webhooks/resolver.ts';
import { createSender, type Sender } from '../../../src/webhooks/sender.ts';
import { allowing } from '../../support/address-rules.ts';
import { startTlsServer, testAuthority } from '../../support/tls.ts';
import { type Client, startTestApi, type TestApi } from '../api/api-harness.ts';
import { delivery, testSender } from './deliveries.ts';
import { type DnsRule, type DnsServer, startDnsServer } from './dns-server.ts';
import { HOSTILE_ANSWERS, HOSTILE_URLS } from './hostile-targets.ts';

/** The victim, which no test may reach: it listens on every address of this machine and counts TCP connections. */
let victim: Server;
let connections = 0;
let port = 0;

beforeAll(async () => {
  victim = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  // Both families if the machine has both.
  victim.listen(0, '::').once('error', () => victim.listen(0, '0.0.0.0'));
  await once(victim, 'listening');
  const address = victim.address();
  port = typeof address === 'object' && address !== null ? address.port : 0;
});
afterAll(async () => {
  const closed = once(victim, 'close');
  victim.close();
  await closed;
});

const aimed = (url: string) => url.replace('{port}', String(port));

it('the list has at least 150 hostile targets', () => {
  expect(HOSTILE_URLS.length).toBeGreaterThanOrEqual(150);
  expect(new Set(HOSTILE_URLS.map(({ url }) => url)).size).toBe(HOSTILE_URLS.length);
});

describe('a recognisable hostile URL', () => {
  let sender: Sender;
  let dns: DnsServer;
  let api: TestApi;
  let client: Client;
  beforeAll(async () => {
    dns = await startDnsServer({ 'loopback.test': { a: ['127.0.0.1'] } });
    sender = createSender({ version: '1', resolver: createResolver({ servers: [dns.address] }) });
    api = await startTestApi();
    client = await api.client();
  });
  afterAll(async () => {
    await sender.close();
    await api.close();
    await dns.close();
  });

  const rows = HOSTILE_URLS.map(({ kind, url, errorCode }) => [kind, url, errorCode] as const);

  it.each(rows)('is not called (%s): %j, %s', async (_kind, url, errorCode) => {
    const outcome = await sender.send(delivery(aimed(url)));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode });
    expect(Object.keys(outcome).sort()).toEqual(['durationMs', 'errorCode', 'kind']);
    expect(dns.asked).toEqual([]);
    expect(connections).toBe(0);
  });

  it('gives 400 with field and reason at registration and at a change', async () => {
    const made = await client.account('POST', '/v1/webhooks', { url: 'https://example.com/', events: ['price_alert'] });
    const { id } = made.body.data as { id: string };
    for (const { url, errorCode } of HOSTILE_URLS) {
      for (const [method, path] of [
        ['POST', '/v1/webhooks'],
        ['PUT', `/v1/webhooks/${id}`],
      ] as const) {
        const answer = await client.account(method, path, { url: aimed(url), events: ['price_alert'] });
        expect([url, answer.status]).toEqual([url, 400]);
        expect(answer.body.error.code).toBe('invalid_request');
        const [detail] = answer.body.error.details ?? [];
        expect(detail?.path).toBe('url');
        const isVague = detail?.message === 'the destination address is not allowed';
        expect([url, isVague]).toEqual([url, errorCode === 'blocked_address']);
      }
    }
    const list = await client.account('GET', '/v1/webhooks');
    expect(list.body.data).toEqual([{ id, url: 'https://example.com/', events: ['price_alert'], status: 'active' }]);
    expect(connections).toBe(0);
  });
});

describe('a hostile name', () => {
  const named = HOSTILE_ANSWERS.map((answer, index) => ({ ...answer, name: `hooks-${index}.test` }));
  let sender: Sender;
  let dns: DnsServer;
  beforeAll(async () => {
    // In the form of the name server: every digit written out.
    const fixed = (addresses: string[]) =>
      addresses.map((address) =>
        ipaddr.IPv6.parse(address)
          .parts.map((part) => part.toString(16).padStart(4, '0'))
          .join(':'),
      );
    dns = await startDnsServer(
      Object.fromEntries(named.map(({ name, a, aaaa }) => [name, { a, aaaa: fixed(aaaa) }])) as Record<string, DnsRule>,
    );
    sender = createSender({ version: '1', resolver: createResolver({ servers: [dns.address] }) });
  });
  afterAll(async () => {
    await sender.close();
    await dns.close();
  });

  it.each(named.map(({ kind, name }) => [kind, name] as const))('is blocked with %s', async (_kind, name) => {
    const outcome = await sender.send(delivery(aimed(`https://${name}:{port}/`)));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'dns_error' });
    expect(Object.keys(outcome).sort()).toEqual(['durationMs', 'errorCode', 'kind']);
    expect(dns.asked).toContain(name);
    expect(connections).toBe(0);
  });
});

describe('the guard against rebinding', () => {
  it('connects to the checked addresses only: a name is requested once per look-up', async () => {
    const server = await startTlsServer({ hosts: ['rebind.test'], onRequest: (socket) => socket.destroy() });
    let questions = 0;
    const dns = await startDnsServer({
      // Two questions, A and AAAA, make one look-up. No process listens on 127.0.0.2.
      'rebind.test': () => {
        questions += 1;
        return { a: [questions <= 2 ? '127.0.0.2' : '127.0.0.1'] };
      },
    });
    const sender = await testSender({
      rules: allowing('127.0.0.2/32'),
      resolver: createResolver({ servers: [dns.address], cacheMs: 1 }),
    });
    const url = `https://rebind.test:${server.port}/`;
    expect(await sender.send(delivery(url))).toMatchObject({ errorCode: 'connection_refused' });
    expect(dns.asked).toEqual(['rebind.test']);
    await expect
      .poll(() => sender.send(delivery(url)).then((outcome) => 'errorCode' in outcome && outcome.errorCode))
      .toBe('dns_error');
    expect(server.connections()).toBe(0);
    await sender.close();
    await dns.close();
    await server.close();
  });

  it('checks the connected socket when an address changes after its check, and sends nothing', async () => {
    const server = await startTlsServer({ hosts: ['liar.test'], onRequest: (socket) => socket.destroy() });
    let reads = 0;
    const answer: ResolvedAddress = {
      family: 4,
      get address() {
        reads += 1;
        return reads === 1 ? '8.8.8.8' : '127.0.0.1';
      },
    };
    const resolver: NameResolver = { resolve: async () => [answer], close: () => undefined };
    const { caPem } = await testAuthority();
    const sender = createSender({ version: '1', extraCaPem: caPem, resolver });
    const outcome = await sender.send(delivery(`https://liar.test:${server.port}/`));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'dns_error' });
    // The connection proves that the first check passed; this test is about the second.
    expect(server.connections()).toBe(1);
    expect(server.requests()).toBe(0);
    await sender.close();
    await server.close();
  });
});

describe('a redirect to an internal address', () => {
  const inside = [
    'https://127.0.0.1:{port}/',
    '//127.0.0.1:{port}/',
    'http://127.0.0.1:{port}/',
    'https://[::1]:{port}/',
  ];
  const replies: [string, number, Record<string, string>, string?][] = [
    ...[301, 302, 303, 307, 308].flatMap((status) =>
      inside.map((location): [string, number, Record<string, string>] => [`to ${location}`, status, { location }]),
    ),
    ['as a choice', 300, { location: 'https://127.0.0.1:{port}/' }],
    ['through a proxy', 305, { location: 'https://127.0.0.1:{port}/' }],
    ['of a created resource', 201, { location: 'https://127.0.0.1:{port}/' }],
    ['by Refresh', 200, { refresh: '0; url=https://127.0.0.1:{port}/' }],
    ['by Alt-Svc', 200, { 'alt-svc': 'h2="127.0.0.1:{port}", h3=":{port}"' }],
    ['by Link', 200, { link: '<https://127.0.0.1:{port}/>; rel=preload' }],
    ['by misdirection', 421, { 'alt-svc': 'h2="127.0.0.1:{port}"' }],
    [
      'in a page',
      200,
      { 'content-type': 'text/html' },
      '<meta http-equiv=refresh content="0;url=https://127.0.0.1:{port}/">',
    ],
  ];

  it('is never followed, even to an allowed target', async () => {
    const receiver = await startReceiver();
    const sender = await testSender({ extraCaPem: receiver.caPem, rules: allowing('127.0.0.0/8,::1') });
    for (const [what, status, headers, body] of replies) {
      const pointed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, aimed(value)]));
      receiver.replyWith({ status, headers: pointed, ...(body !== undefined && { body: aimed(body) }) });
      for (let turn = 0; turn < 2; turn += 1) {
        const outcome = await sender.send(delivery(receiver.url));
        expect([what, outcome.statusCode]).toEqual([what, status]);
        if (status >= 300 && status < 400) expect(outcome).toMatchObject({ errorCode: 'redirect' });
      }
    }
    expect(receiver.requests).toHaveLength(2 * replies.length);
    await sender.close();
    await receiver.close();
    expect(connections).toBe(0);
  });
});

/** Last, because it ends the count: without it, an unreachable victim would make every test above pass. */
describe('the victim', () => {
  it.each([
    '127.0.0.1',
    '127.1',
    '0x7f.1',
    '2130706433',
    '017700000001',
    '１２７.0.0.1',
    '127.0.0.2',
    '0.0.0.0',
    '[::ffff:7f00:1]',
    'localhost',
  ])('is reached at https://%s by a sender without the guard', async (host) => {
    const before = connections;
    const sender = await testSender({ rules: allowing('0.0.0.0/0,::/0') });
    const outcome = await sender.send(delivery(aimed(`https://${host}:{port}/`)));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'connection_reset' });
    expect(connections).toBeGreaterThan(before);
    await sender.close();
  });
});
