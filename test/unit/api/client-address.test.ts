import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { clientNetwork } from '../../../api/access/client-address.ts';
import { parseCidrs } from '../../../src/domain/webhooks/address-policy.ts';

const PROXIES = parseCidrs('10.0.0.0/8,fd00::/8');

function network(remoteAddress: string | undefined, forwarded?: string, trusted = PROXIES): string {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress });
  const request = new IncomingMessage(socket);
  if (forwarded !== undefined) request.headers['x-forwarded-for'] = forwarded;
  return clientNetwork(request, trusted);
}

describe('the network of a client', () => {
  it.each([
    ['its own address', '203.0.113.7', undefined, '203.0.113.7'],
    ['an IPv4 address mapped to IPv6', '::ffff:203.0.113.7', undefined, '203.0.113.7'],
    ['the /64 of an IPv6 address', '2001:db8:1:2:3:4:5:6', undefined, '20010db800010002::/64'],
    ['the address from a trusted proxy', '10.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['the address from a chain of trusted proxies', '10.0.0.1', '203.0.113.7, 10.9.9.9', '203.0.113.7'],
    ['not an address from the client', '10.0.0.1', '1.2.3.4, 203.0.113.7', '203.0.113.7'],
    ['the address of a proxy without the header', '10.0.0.1', undefined, '10.0.0.1'],
    ['the address of a proxy with an invalid header', '10.0.0.1', '203.0.113.7, unknown', '10.0.0.1'],
    ['its own address despite a header', '203.0.113.7', '1.2.3.4', '203.0.113.7'],
    ['unknown after the connection closed', undefined, '1.2.3.4', 'unknown'],
  ])('is %s', (_what, remote, forwarded, expected) => {
    expect(network(remote, forwarded)).toBe(expected);
  });

  it('ignores the header without trusted proxies', () => {
    expect(network('10.0.0.1', '203.0.113.7', [])).toBe('10.0.0.1');
  });
});
