import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  isLoopbackAddress,
  isPublicAddress,
  networkOf,
  parseCidrs,
} from '../../../../src/domain/webhooks/address-policy.ts';
import { anyCharacters } from '../../../factories/texts.ts';
import { allowing } from '../../../support/address-rules.ts';

const FORBIDDEN: Record<string, string[]> = {
  'this network': ['0.0.0.0', '0.1.2.3', '::'],
  loopback: ['127.0.0.1', '127.0.0.53', '127.255.255.254', '::1', '0:0:0:0:0:0:0:1'],
  private: ['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', '192.168.255.255'],
  'link-local': ['169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'febf::1'],
  metadata: ['169.254.169.254', '168.63.129.16', '100.100.100.200', '192.0.0.192', 'fd00:ec2::254', 'fd20:ce::254'],
  'carrier-grade NAT': ['100.64.0.1', '100.127.255.255'],
  'protocol assignments and documentation': [
    '192.0.0.1',
    '192.0.2.1',
    '198.51.100.7',
    '203.0.113.9',
    '2001:db8::1',
    '3fff::1',
  ],
  benchmarking: ['198.18.0.1', '198.19.255.255', '2001:2::1'],
  'relay anycast and AS112': ['192.88.99.1', '192.175.48.1', '192.31.196.1', '192.52.193.1', '2620:4f:8000::1'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
  reserved: ['240.0.0.1', '255.255.255.255', '4000::1', '5f00::1', '100::1', '1::1'],
  'unique and site local': ['fc00::1', 'fdff::1', 'fec0::1'],
  'IPv4-mapped': [
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:10.0.0.1',
    '::ffff:169.254.169.254',
    '::ffff:168.63.129.16',
  ],
  'IPv4-compatible': ['::127.0.0.1', '::7f00:1', '::a00:1', '::8.8.8.8'],
  'IPv4-translated': ['::ffff:0:127.0.0.1'],
  NAT64: ['64:ff9b::127.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b::8.8.8.8', '64:ff9b:1::7f00:1'],
  '6to4': ['2002:7f00:1::1', '2002:a9fe:a9fe::', '2002:808:808::1'],
  Teredo: ['2001::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  '6bone': ['3ffe::1', '3ffe:ffff::1'],
  ISATAP: ['2606:4700::5efe:10.0.0.1', '2606:4700::200:5efe:8.8.8.8', '2606:4700:0:0:0:5efe:a9fe:a9fe'],
  ORCHID: ['2001:10::1', '2001:20::1'],
  'other spellings': ['0x7f.1', '0x7f000001', '017700000001', '2130706433', '127.1', '0177.0.0.1', '0xa9fea9fe'],
  'not addresses': [
    '',
    ' ',
    'localhost',
    'example.com',
    '1.2.3.4.5',
    '256.1.1.1',
    '::1::',
    '[::1]',
    '1.2.3.4/8',
    '１２７.0.0.1',
  ],
};

const PUBLIC = [
  '8.8.8.8',
  '1.1.1.1',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.1',
  '168.63.129.15',
  '168.63.129.17',
  '169.253.255.255',
  '172.15.255.255',
  '172.32.0.0',
  '192.167.255.255',
  '198.17.255.255',
  '223.255.255.255',
  '::ffff:8.8.8.8',
  '2606:4700:4700::1111',
  '2a00:1450:4001:80f::200e',
  '2606:4700::8.8.8.8',
];

describe('isPublicAddress', () => {
  const rows = Object.entries(FORBIDDEN).flatMap(([kind, addresses]) => addresses.map((address) => [kind, address]));
  it.each(rows)('forbids %s: %j', (_kind, address) => expect(isPublicAddress(address ?? '')).toBe(false));
  it('is tested with at least sixty hostile addresses', () => expect(rows.length).toBeGreaterThanOrEqual(60));
  it.each(PUBLIC)('allows %s', (address) => expect(isPublicAddress(address)).toBe(true));

  it('law: gives mapped IPv4 addresses the same result, and never allows more in another embedding', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        expect(isPublicAddress(`::ffff:${address}`)).toBe(isPublicAddress(address));
        expect(isPublicAddress(`::${address}`)).toBe(false);
        expect(isPublicAddress(`64:ff9b::${address}`)).toBe(false);
      }),
    );
  });

  it('law: never throws', () => {
    fc.assert(
      fc.property(fc.oneof(anyCharacters(), fc.ipV6(), fc.webAuthority()), (text) => {
        expect(typeof isPublicAddress(text, allowing('10.0.0.0/8,fd00::/8'))).toBe('boolean');
      }),
    );
  });
});

describe('the exceptions of the operator', () => {
  const allow = allowing('127.0.0.0/8, 10.1.0.0/16,fd00::/8, 192.168.7.7,::1');

  it.each(['127.0.0.1', '::ffff:127.0.0.1', '10.1.2.3', 'fd12::1', '192.168.7.7', '::1', '8.8.8.8'])(
    'allow %s',
    (address) => expect(isPublicAddress(address, allow)).toBe(true),
  );

  it.each(['10.2.0.1', '192.168.7.8', 'fc00::1', '::2', '169.254.169.254', '::127.0.0.1'])(
    'still forbid %s',
    (address) => expect(isPublicAddress(address, allow)).toBe(false),
  );

  it('may allow the Azure address too', () =>
    expect(isPublicAddress('168.63.129.16', allowing('168.63.129.16/32'))).toBe(true));

  it('forbid a denied range even where an allowed range contains it', () => {
    const rules = { allow: parseCidrs('10.0.0.0/8'), deny: parseCidrs('8.8.8.0/24,10.1.0.0/16,2a00:1450::/32') };
    for (const address of ['8.8.8.8', '::ffff:8.8.8.8', '10.1.2.3', '2a00:1450::1']) {
      expect([address, isPublicAddress(address, rules)]).toEqual([address, false]);
    }
    for (const address of ['8.8.4.4', '10.2.0.1'])
      expect([address, isPublicAddress(address, rules)]).toEqual([address, true]);
  });

  it('recognise loopback in every form', () => {
    expect(['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'].every(isLoopbackAddress)).toBe(true);
    expect(['128.0.0.1', '10.0.0.1', '::2', 'localhost', ''].some(isLoopbackAddress)).toBe(false);
  });
});

describe('networkOf', () => {
  const ours = parseCidrs('10.0.0.0/8,2001:db8:ff::/48');

  it.each([
    ['203.0.113.7', '203.0.113.7', false],
    ['::ffff:203.0.113.7', '203.0.113.7', false],
    ['10.9.9.9', '10.9.9.9', true],
    ['2001:db8:1:2:3:4:5:6', '20010db800010002::/64', false],
    ['2001:db8:1:2:ffff::1', '20010db800010002::/64', false],
    ['2001:db8:ff:2::1', '20010db800ff0002::/64', true],
    ['fe80::1%eth0', 'fe80000000000000::/64', false],
  ])('returns for %s the network %s, in the ranges: %s', (address, text, isWithin) => {
    expect(networkOf(address, ours)).toEqual({ text, isWithin });
  });

  it.each(['', 'unknown', '203.0.113.7:80', '::203.0.113.7'])('returns null for %j', (text) => {
    expect(networkOf(text, ours)).toBeNull();
  });
});

describe('parseCidrs', () => {
  it('returns no range for an empty text', () => expect([parseCidrs(''), parseCidrs(' , ')]).toEqual([[], []]));

  it('treats a bare address as a range of one', () => {
    const allow = allowing('10.0.0.5, fd00::5');
    for (const address of ['10.0.0.5', 'fd00::5']) expect(isPublicAddress(address, allow)).toBe(true);
    for (const address of ['10.0.0.4', '10.0.0.6', 'fd00::4', 'fd00::6']) {
      expect(isPublicAddress(address, allow)).toBe(false);
    }
  });

  it('requires a mapped range in its IPv4 form', () => {
    expect(() => parseCidrs('10.0.0.0/8, ::ffff:10.0.0.0/104, 10/8')).toThrow(
      expect.objectContaining({
        code: 'invalid_cidr_list',
        message:
          'entry 2 must be written as an IPv4 range; ' +
          'entry 3 is not an address range such as 10.0.0.0/8 or fd00::/8',
      }),
    );
  });

  it('lists every problem', () => {
    const bad = [
      '10.0.0.0/33',
      '10.1/8',
      'example.com',
      'fd00::/129',
      '::ffff:10.0.0.0/104',
      '0x0a.0.0.1',
      '10.0.0.0/-1',
    ];
    const problems = bad.map((_, index) => `entry ${index + 2} [^;]+`);
    expect(() => parseCidrs(`10.0.0.0/8,${bad.join(',')}`)).toThrow(new RegExp(`^${problems.join('; ')}$`));
  });
});
