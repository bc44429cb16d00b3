import { describe, expect, it } from 'vitest';
import { inspectWebhookUrl, webhookUrlProblem } from '../../../../src/domain/webhooks/url.ts';
import { allowing } from '../../../support/address-rules.ts';

const LOOPBACK = allowing('127.0.0.0/8');

describe('webhookUrlProblem accepts', () => {
  it.each([
    'https://example.com',
    'https://example.com/hooks?a=b#c',
    'HTTPS://EXAMPLE.com/',
    'https://example.com:443/',
    'https://example.com:1024/',
    'https://example.com:65535/',
    'https://8.8.8.8/hook',
    'https://[2606:4700:4700::1111]:8443/',
    'https://xn--bcher-kva.example/ü',
    'https://bücher.example/',
    'https://example.com/path@with-at',
    'https://mylocalhost.com/',
    'https://local.example.com/',
    'https://localhost.example.com/',
    'https://printer.local.example.com/',
    'https://notlocal/',
    'https://notlocalhost/',
    'https://example.com?a@b',
    'https://example.com#a@b',
    'https://10.example.com/',
    `https://example.com/${'a'.repeat(2048 - 'https://example.com/'.length)}`,
  ])('%s', (url) => expect(webhookUrlProblem(url)).toBeNull());
});

describe('webhookUrlProblem rejects as malformed', () => {
  it.each([
    ['', 'https'],
    ['http://example.com/', 'https'],
    ['ftp://example.com/', 'https'],
    ['javascript:alert(1)', 'https'],
    ['example.com', 'https'],
    ['xhttps://example.com/', 'https'],
    ['http://example.com/https://example.com/', 'https'],
    ['//example.com/', 'https'],
    ['https:example.com', 'https'],
    ['https:/example.com', 'https'],
    ['https:///example.com', 'https'],
    ['https://', 'https'],
    [' https://example.com/', 'spaces'],
    ['https://example.com/a b', 'spaces'],
    ['https://exam\tple.com/', 'control'],
    ['https://example.com/\n', 'control'],
    ['https://example.com\\@127.0.0.1/', 'backslash'],
    ['https://user@example.com/', 'user name'],
    ['https://user:pw@example.com/', 'user name'],
    ['https://@example.com/', 'user name'],
    ['https://example.com:443@127.0.0.1/', 'user name'],
    ['https://example.com:80/', 'port'],
    ['https://example.com:22/', 'port'],
    ['https://example.com:1023/', 'port'],
    ['https://example.com:0/', 'port'],
    ['https://example.com:65536/', 'valid'],
    ['https://exa mple.com/', 'spaces'],
    ['https://[::1/', 'valid'],
    ['https://1.2.3.4.5/', 'valid'],
    ['https://example.com./', 'dot'],
    ['https://localhost./', 'dot'],
    ['https://a..b.com/', 'labels'],
    ['https://.example.com/', 'labels'],
    [`https://${'a'.repeat(64)}.com/`, 'labels'],
    [`https://example.com/${'a'.repeat(2048)}`, '2048'],
    [`https://example.com/${'a/../'.repeat(500)}`, '2048'],
    [`https://example.com/${'選'.repeat(500)}`, 'percent-encoded'],
  ])('%j', (url, why) => {
    expect(inspectWebhookUrl(url)?.kind).toBe('invalid');
    expect(webhookUrlProblem(url)).toContain(why);
  });
});

describe('webhookUrlProblem rejects a host name that no domain has', () => {
  it.each([
    'https://-a.com/',
    'https://a-.com/',
    'https://a.-b.com/',
    'https://a_b/',
    'https://my_service.example.com/',
    'https://a.com-/',
    'https://a~b.example.com/',
    "https://a'b.example.com/",
    'https://a(b).example.com/',
  ])('%s', (url) => {
    expect(webhookUrlProblem(url)).toMatch(/letters, digits and hyphens/);
    // A webhook of an earlier release with this name still gets its deliveries.
    expect(inspectWebhookUrl(url)).toBeNull();
  });
});

describe('webhookUrlProblem forbids, without naming the reason', () => {
  it.each([
    'https://127.0.0.1/',
    'https://127.1/',
    'https://127.0.0.1./',
    'https://2130706433/',
    'https://0x7f000001/',
    'https://0x7f.1/',
    'https://0X7F.0.0.0x1/',
    'https://017700000001/',
    'https://0177.0.0.1/',
    'https://１２７.０.０.１/',
    'https://①②⑦.0.0.1/',
    'https://127。0。0。1/',
    'https://%31%32%37.0.0.1/',
    'https://0/',
    'https://0.0.0.0/',
    'https://10.0.0.1/',
    'https://192.168.1.1:8443/',
    'https://172.16.0.1/',
    'https://169.254.169.254/latest/meta-data',
    'https://2852039166/',
    'https://100.100.100.200/',
    'https://168.63.129.16/',
    'https://[::1]/',
    'https://[::]/',
    'https://[0:0:0:0:0:0:0:1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:7f00:1]/',
    'https://[::127.0.0.1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://[2002:7f00:1::]/',
    'https://[fe80::1]/',
    'https://[fd00:ec2::254]/',
    'https://localhost/',
    'https://LOCALHOST:8443/',
    'https://ｌｏｃａｌｈｏｓｔ/',
    'https://a.localhost/',
    'https://deep.er.localhost/',
    'https://localhost.localdomain/',
    'https://ip6-localhost/',
    'https://ip6-loopback/',
    'https://a.localhost.localdomain/',
    'https://printer.local/',
    'https://metadata.google.internal/',
  ])('%s', (url) => {
    expect(inspectWebhookUrl(url)).toEqual({ kind: 'blocked', message: 'the destination address is not allowed' });
  });
});

describe('webhookUrlProblem with exceptions of the operator', () => {
  it.each(['https://127.0.0.1:9443/x', 'https://localhost:9443/x', 'https://a.localhost:9443/', 'https://127.1:9443/'])(
    'opens %s with loopback',
    (url) => expect(webhookUrlProblem(url, LOOPBACK)).toBeNull(),
  );

  it.each(['https://10.0.0.1/', 'https://[::1]/', 'https://printer.local/', 'https://metadata.google.internal/'])(
    'does not open %s with loopback',
    (url) => expect(inspectWebhookUrl(url, LOOPBACK)?.kind).toBe('blocked'),
  );

  it('opens addresses and intranet names with an intranet range, but not loopback', () => {
    const intranet = allowing('10.0.0.0/8');
    expect(webhookUrlProblem('https://10.0.0.1/', intranet)).toBeNull();
    expect(webhookUrlProblem('https://hooks.corp.internal/', intranet)).toBeNull();
    expect(inspectWebhookUrl('https://localhost/', intranet)?.kind).toBe('blocked');
  });

  it('never relaxes the form: port, scheme and user info', () => {
    for (const url of ['https://127.0.0.1:80/', 'http://127.0.0.1:9443/', 'https://a@127.0.0.1:9443/']) {
      expect(inspectWebhookUrl(url, LOOPBACK)?.kind).toBe('invalid');
    }
  });
});
