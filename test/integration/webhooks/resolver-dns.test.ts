import { afterEach, describe, expect, it } from 'vitest';
import { createResolver, type NameResolver } from '../../../src/webhooks/resolver.ts';
import { createSender } from '../../../src/webhooks/sender.ts';
import { GUARD_MS } from '../../support/eventually.ts';
import { startTlsServer, testAuthority } from '../../support/tls.ts';
import { delivery, LOOPBACK } from './deliveries.ts';
import { type DnsEntry, type DnsServer, startDnsServer } from './dns-server.ts';

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function serve(
  names: Record<string, DnsEntry>,
  timeoutMs = GUARD_MS,
): Promise<{ dns: DnsServer; resolver: NameResolver }> {
  const dns = await startDnsServer(names);
  const resolver = createResolver({ servers: [dns.address], timeoutMs });
  closers.push(dns.close, resolver.close);
  return { dns, resolver };
}

describe('the resolver with a real name server', () => {
  it('resolves A and AAAA, and asks once', async () => {
    const v6 = '2001:0db8:0000:0000:0000:0000:0000:0001';
    const { dns, resolver } = await serve({ 'both.test': { a: ['192.0.2.1', '192.0.2.2'], aaaa: [v6] } });
    const expected = ['192.0.2.1', '192.0.2.2', '2001:db8::1'];
    for (let turn = 0; turn < 3; turn += 1) {
      expect((await resolver.resolve('both.test')).map(({ address }) => address).sort()).toEqual(expected);
    }
    expect(dns.asked).toEqual(['both.test']);
  });

  it('rejects a name that does not exist, has no address, or gets no answer', async () => {
    const { resolver } = await serve({ 'none.test': {} });
    const { resolver: impatient } = await serve({ 'hole.test': 'silent' }, 300);
    await expect(resolver.resolve('missing.test')).rejects.toMatchObject({ code: 'ENOTFOUND' });
    await expect(resolver.resolve('none.test')).rejects.toMatchObject({ code: 'ENODATA' });
    await expect(impatient.resolve('hole.test')).rejects.toMatchObject({ code: 'ETIMEOUT' });
  });

  it('reports an unresponsive name server as a DNS error and delays no other name', async () => {
    const { resolver } = await serve({ 'hole.test': 'silent', 'hooks.test': { a: ['127.0.0.1'] } }, 3_000);
    const server = await startTlsServer({
      hosts: ['hooks.test'],
      onRequest: (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'),
    });
    const { caPem } = await testAuthority();
    const sender = createSender({ version: '1', rules: LOOPBACK, extraCaPem: caPem, resolver });
    closers.push(server.close, sender.close);

    let holesEnded = 0;
    const holes = Array.from({ length: 20 }, () =>
      sender.send(delivery('https://hole.test/')).finally(() => {
        holesEnded += 1;
      }),
    );
    expect(await sender.send(delivery(`https://hooks.test:${server.port}/`))).toMatchObject({ kind: 'delivered' });
    expect(holesEnded).toBe(0);
    for (const outcome of await Promise.all(holes)) {
      expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'dns_error' });
    }
  });

  it('blocks a name that rebinds to loopback, without a connection', async () => {
    const { resolver } = await serve({ 'rebind.test': { a: ['127.0.0.1'] } });
    const server = await startTlsServer({ hosts: ['rebind.test'], onRequest: (socket) => socket.destroy() });
    const { caPem } = await testAuthority();
    const sender = createSender({ version: '1', extraCaPem: caPem, resolver });
    closers.push(server.close, sender.close);
    const outcome = await sender.send(delivery(`https://rebind.test:${server.port}/`));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'dns_error' });
    expect(server.connections()).toBe(0);
  });
});
