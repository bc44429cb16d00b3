/**
 * Destinations that a hostile client would try. `{port}` stands for the port of a receiver that listens on
 * every address of this machine, so that a missed check results in a connection.
 */
interface HostileUrl {
  readonly kind: string;
  readonly url: string;
  /** `invalid_url` when the text itself is rejected, independent of its target. */
  readonly errorCode: 'blocked_address' | 'invalid_url';
}

/** Hosts of URLs, by kind of trick. Each is rejected at registration and again at a delivery. */
const BLOCKED_HOSTS: Readonly<Record<string, readonly string[]>> = {
  'loopback, dotted': ['127.0.0.1', '127.0.0.2', '127.0.1.1', '127.1.2.3', '127.255.255.254', '127.000.000.001'],
  'loopback, decimal': ['2130706433', '2130706434', '3232235777', '167772161', '2852039166'],
  'loopback, octal': ['017700000001', '0177.0.0.1', '0177.0.0.01', '00000177.0.0.1', '0177.1', '0377.0377.0377.0377'],
  'loopback, hexadecimal': ['0x7f000001', '0x7F000001', '0x7f.0x0.0x0.0x1', '0x7f.1', '0x7f.0.1', '0xa9fea9fe'],
  'loopback, short': ['127.1', '127.0.1', '0', '0x0', '00', '10.1', '192.168.257', '172.1048577'],
  'loopback, mixed bases': ['0x7f.0.0.01', '0177.0x0.0.1', '127.0x1', '0x7f.0377', '0xc0.0250.1', '0xA.0.0.1'],
  'a trailing dot': ['127.0.0.1.', '127.1.', '0x7f.1.', '10.0.0.1.', '169.254.169.254.'],
  'full-width and circled digits': [
    '１２７.0.0.1',
    '１２７.０.０.１',
    '①②⑦.⓪.⓪.①',
    '１６９.２５４.１６９.２５４',
    '１',
  ],
  'characters that fold away': [
    'lo\u00adcalhost',
    '\u2060localhost',
    '127.\u00ad0.0.1',
    '127.0.0.1\u200b',
    '127.0.0.1\ufe0f',
    '𝟏𝟐𝟕.0.0.1',
    'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ',
    '0x',
    '0x7f。1',
  ],
  'other full stops': ['127。0。0。1', '127．0．0．1', '127｡0｡0｡1', '10。0。0。1'],
  'percent-encoded': ['%31%32%37.0.0.1', '127%2e0%2e0%2e1', '%30x7f.1', '%6c%6f%63%61%6c%68%6f%73%74'],
  'this network': ['0.0.0.0', '0.0.0.1', '0.255.255.255'],
  private: ['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.254', '192.168.0.1', '192.168.255.254'],
  'carrier-grade NAT': ['100.64.0.1', '100.100.100.200', '100.127.255.254'],
  'link-local': ['169.254.0.1', '169.254.1.1', '169.254.255.254'],
  'cloud metadata': [
    '169.254.169.254',
    '169.254.170.2',
    '168.63.129.16',
    '192.0.0.192',
    '[fd00:ec2::254]',
    '[fd20:ce::254]',
  ],
  'protocol assignments': ['192.0.0.1', '192.0.0.8', '192.0.0.170', '192.88.99.1', '192.31.196.1', '192.175.48.1'],
  documentation: ['192.0.2.1', '198.51.100.7', '203.0.113.9', '[2001:db8::1]', '[3fff::1]'],
  benchmarking: ['198.18.0.1', '198.19.255.254', '[2001:2::1]'],
  multicast: ['224.0.0.1', '239.255.255.250', '[ff02::1]', '[ff0e::1]'],
  'reserved and broadcast': ['240.0.0.1', '254.255.255.254', '255.255.255.255', '[100::1]', '[4000::1]', '[5f00::1]'],
  'IPv6 loopback and unspecified': ['[::1]', '[::]', '[0:0:0:0:0:0:0:1]', '[0000::0001]', '[::0.0.0.1]', '[::0:1]'],
  'IPv4-mapped': [
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:ffff:127.0.0.1]',
    '[::ffff:10.0.0.1]',
    '[::ffff:a9fe:a9fe]',
    '[::FFFF:0.0.0.0]',
    '[::ffff:a83f:8110]',
  ],
  'IPv4-compatible': ['[::127.0.0.1]', '[::7f00:1]', '[::10.0.0.1]', '[::a9fe:a9fe]', '[::8.8.8.8]'],
  'IPv4-translated': ['[::ffff:0:127.0.0.1]', '[::ffff:0:7f00:1]'],
  NAT64: [
    '[64:ff9b::127.0.0.1]',
    '[64:ff9b::a9fe:a9fe]',
    '[64:ff9b::8.8.8.8]',
    '[64:ff9b:1::7f00:1]',
    '[64:ff9b:1:fffe::a00:1]',
  ],
  '6to4': ['[2002:7f00:1::]', '[2002:7f00:1::1]', '[2002:a00:1::1]', '[2002:a9fe:a9fe::]', '[2002:808:808::1]'],
  Teredo: ['[2001::1]', '[2001:0:7f00:1::]', '[2001:0:4136:e378:8000:63bf:80ff:fffe]'],
  'other IPv6 special blocks': ['[2001:10::1]', '[2001:20::1]', '[2001:3::1]', '[2001:4:112::1]', '[2620:4f:8000::1]'],
  'unique and site local': ['[fc00::1]', '[fd12:3456:789a::1]', '[fdff::1]', '[fec0::1]'],
  'IPv6 link-local': ['[fe80::1]', '[fe80::a9fe:a9fe]', '[febf::1]'],
  'names of this machine': [
    'localhost',
    'LOCALHOST',
    'LocalHost',
    'a.localhost',
    'a.b.LOCALHOST',
    'ｌｏｃａｌｈｏｓｔ',
    'localhost.localdomain',
    'ip6-localhost',
    'ip6-loopback',
  ],
  'names of an intranet': [
    'printer.local',
    'PRINTER.LOCAL',
    'db.internal',
    'metadata.google.internal',
    'redis.default.svc.cluster.local',
  ],
};

/** Whole URLs whose text is rejected. */
const INVALID_URLS: Readonly<Record<string, readonly string[]>> = {
  'not https': [
    'http://127.0.0.1:{port}/',
    'http://example.com:{port}/',
    'ftp://127.0.0.1:{port}/',
    'file:///etc/passwd',
    'gopher://127.0.0.1:{port}/_x',
    'ws://127.0.0.1:{port}/',
    'javascript:alert(1)',
    'data:text/html,x',
    '//127.0.0.1:{port}/',
    'https:127.0.0.1:{port}',
    'https:/127.0.0.1:{port}/',
    'https:///127.0.0.1:{port}/',
  ],
  'user info': [
    'https://user@127.0.0.1:{port}/',
    'https://user:pw@127.0.0.1:{port}/',
    'https://example.com@127.0.0.1:{port}/',
    'https://example.com:443@127.0.0.1:{port}/',
    'https://@127.0.0.1:{port}/',
    'https://:@127.0.0.1:{port}/',
    'https://127.0.0.1:{port}@example.com/',
    'https://a@b@127.0.0.1:{port}/',
  ],
  'odd ports': [0, 1, 22, 23, 25, 53, 80, 110, 143, 389, 444, 445, 465, 587, 873, 993, 1023].map(
    (port) => `https://127.0.0.1:${port}/`,
  ),
  'odd ports of a name': [22, 25, 80, 442, 1023, 65536, 99999].map((port) => `https://loopback.test:${port}/`),
  'backslashes, controls and spaces': [
    'https:\\\\127.0.0.1:{port}\\',
    'https://example.com\\@127.0.0.1:{port}/',
    'https://127.0.0.1\\.example.com:{port}/',
    'https://127.0.0.1:{port}/\r\nHost: x',
    'https://127.0.0.1\t:{port}/',
    ' https://127.0.0.1:{port}/',
    'https://127.0.0.1:{port}/ ',
    'https://127.0.0.1:{port}/\u007f',
  ],
  'not an address': [
    'https://[::1:{port}/',
    'https://::1:{port}/',
    'https://1.2.3.4.5:{port}/',
    'https://127.0.0.256:{port}/',
    'https://0x100000000:{port}/',
    'https://127.0.0.1%00.example.com:{port}/',
    'https://[fe80::1%25lo]:{port}/',
    'https://[fe80::1%eth0]:{port}/',
    'https://[::1%25lo]:{port}/',
    'https://[127.0.0.1]:{port}/',
    'https://[v1.127]:{port}/',
  ],
  'names that end in a dot': [
    'https://localhost.:{port}/',
    'https://localhost。:{port}/',
    'https://loopback.test.:{port}/',
    'https://metadata.google.internal.:{port}/',
  ],
};

/** Every target that is recognisable from the URL alone. */
export const HOSTILE_URLS: readonly HostileUrl[] = [
  ...Object.entries(BLOCKED_HOSTS).flatMap(([kind, hosts]) =>
    hosts.map((host) => ({ kind, url: `https://${host}:{port}/`, errorCode: 'blocked_address' as const })),
  ),
  ...Object.entries(INVALID_URLS).flatMap(([kind, urls]) =>
    urls.map((url) => ({ kind, url, errorCode: 'invalid_url' as const })),
  ),
];

/** Answers of a hostile name server for a harmless looking name. The first address of a mixed answer is a public one. */
export const HOSTILE_ANSWERS: readonly { readonly kind: string; readonly a: string[]; readonly aaaa: string[] }[] = [
  ...[
    '127.0.0.1',
    '127.0.0.53',
    '0.0.0.0',
    '10.0.0.1',
    '10.96.0.1',
    '172.17.0.1',
    '192.168.1.1',
    '100.64.0.1',
    '169.254.169.254',
    '169.254.170.2',
    '168.63.129.16',
    '192.0.0.1',
    '192.0.2.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
  ].flatMap((address) => [
    { kind: `A ${address}`, a: [address], aaaa: [] },
    { kind: `A of a public address and ${address}`, a: ['8.8.8.8', address], aaaa: [] },
  ]),
  ...[
    '::1',
    '::',
    '::ffff:127.0.0.1',
    '::ffff:169.254.169.254',
    '::7f00:1',
    '64:ff9b::7f00:1',
    '64:ff9b:1::a9fe:a9fe',
    '2002:7f00:1::1',
    '2001::1',
    '2001:db8::1',
    'fc00::1',
    'fd00:ec2::254',
    'fe80::1',
    'fec0::1',
    'ff02::1',
    '100::1',
    '4000::1',
  ].flatMap((address) => [
    { kind: `AAAA ${address}`, a: [], aaaa: [address] },
    { kind: `a public A and AAAA ${address}`, a: ['8.8.8.8'], aaaa: [address] },
  ]),
  {
    kind: 'nine public addresses and a tenth',
    a: [...Array.from({ length: 9 }, () => '8.8.8.8'), '127.0.0.1'],
    aaaa: [],
  },
  { kind: 'public IPv6 and loopback', a: ['127.0.0.1'], aaaa: ['2606:4700:4700::1111'] },
];
