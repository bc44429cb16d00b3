import { afterEach, describe, expect, it } from 'vitest';
import { parseCidrs } from '../../../src/domain/address-policy.ts';
import { createGuardedAgent } from '../../../src/webhooks/guarded-agent.ts';
import { startTlsServer, testAuthority } from '../../support/tls.ts';
import { fixedResolver } from './deliveries.ts';

/** The agent on its own: the sender's check of the URL text would hide a hole in it. */
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function setUp(allow?: string) {
  const server = await startTlsServer({
    hosts: ['127.0.0.1', 'hooks.test'],
    onRequest: (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'),
  });
  const agent = createGuardedAgent({
    resolver: fixedResolver({ 'hooks.test': ['127.0.0.1'] }),
    extraCaPem: (await testAuthority()).caPem,
    connectTimeoutMs: 5000,
    connectionsPerOrigin: 16,
    ...(allow === undefined ? {} : { allow: parseCidrs(allow) }),
  });
  closers.push(server.close, () => agent.destroy());
  const request = (host: string, protocol = 'https') =>
    agent.request({ origin: `${protocol}://${host}:${server.port}`, path: '/', method: 'GET' });
  return { server, request };
}

describe('guarded agent', () => {
  it.each(['127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '[::7f00:1]', '0x7f.1', 'hooks.test'])(
    'connects nothing to %s, encrypted or not',
    async (host) => {
      const { server, request } = await setUp();
      await expect(request(host)).rejects.toMatchObject({ code: 'blocked_address' });
      await expect(request(host, 'http')).rejects.toMatchObject({ code: 'blocked_address' });
      expect(server.connections()).toBe(0);
    },
  );

  it('tells nobody which address a name resolved to', async () => {
    const { request } = await setUp();
    const error: unknown = await request('hooks.test').catch((reason: unknown) => reason);
    expect(String(error)).not.toMatch(/127|hooks/);
  });

  it('connects to what the operator allows', async () => {
    const { server, request } = await setUp('127.0.0.0/8');
    for (const host of ['127.0.0.1', 'hooks.test']) {
      const response = await request(host);
      await response.body.dump();
      expect(response.statusCode).toBe(200);
    }
    expect(server.requests()).toBe(2);
  });
});
