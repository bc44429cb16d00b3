import { describe, expect, it } from 'vitest';
import { KEYS_USAGE, parseKeysArguments } from '../../../bin/keys/arguments.ts';
import { accountsJson, accountsText, keysJson, keysText, quotasJson, quotasText } from '../../../bin/keys/report.ts';
import { SCOPES } from '../../../src/domain/values/api-key.ts';
import type { ListedApiKey } from '../../../src/store/accounts/key-lists.ts';
import { problemsIn } from '../../support/problems-in.ts';

const NOW_MS = Date.UTC(2026, 10, 20, 12);
const parse = (...argv: string[]) => parseKeysArguments(argv, NOW_MS);
const problemsOf = (...argv: string[]) => problemsIn(() => parse(...argv));
const CREATE = ['create', '--account', 'acme', '--name', 'laptop'] as const;

describe('the arguments of keys', () => {
  it('create a key with every scope and no expiry by default', () => {
    expect(parse(...CREATE)).toEqual({
      verb: 'create',
      json: false,
      account: 'acme',
      name: 'laptop',
      scopes: [...SCOPES],
    });
    expect(parse(...CREATE, '--scopes', 'wallets, markets:read,wallets', '--expires=90d', '--json')).toEqual({
      verb: 'create',
      json: true,
      account: 'acme',
      name: 'laptop',
      scopes: ['markets:read', 'wallets'],
      expiresAt: new Date(NOW_MS + 90 * 86_400_000),
    });
    expect(parse('create', '--account', ' two words ', '--name', 'é')).toMatchObject({
      account: 'two words',
      name: 'é',
    });
  });

  it('accept the other commands', () => {
    expect(parse('list')).toEqual({ verb: 'list', json: false });
    expect(parse('list', '--account', 'acme', '--json')).toEqual({ verb: 'list', json: true, account: 'acme' });
    expect(parse('revoke', 'chosen-00ff')).toEqual({ verb: 'revoke', json: false, id: 'chosen-00ff' });
    expect(parse('accounts')).toEqual({ verb: 'accounts', json: false });
    expect(parse('sealed', '--json')).toEqual({ verb: 'sealed', json: true });
    expect(parse('reseal')).toEqual({ verb: 'reseal', json: false });
    expect(parse('quota', '--account', 'acme')).toEqual({ verb: 'quota', json: false, account: 'acme', change: {} });
    const all = '--webhooks 0 --alerts default --wallets 2147483647 --rate 1 --cold-reads default'.split(' ');
    expect(parse('quota', '--account', 'acme', ...all)).toMatchObject({
      change: { webhooks: 0, alerts: null, wallets: 2_147_483_647, ratePerMinute: 1, coldReadsPerMinute: null },
    });
  });

  it('report every problem at once, by field', () => {
    expect(
      problemsOf('create', '--account', ' ', '--scopes', 'markets,,alerts', '--expires', '0d', '--x', 'y'),
    ).toEqual([
      'unknown option --x',
      'unknown argument y',
      '--account must not be empty',
      '--name must not be empty',
      '--expires must not be in the past',
      `--scopes: markets is not one of ${SCOPES.join(', ')}`,
      `--scopes: (empty) is not one of ${SCOPES.join(', ')}`,
    ]);
    expect(problemsOf('quota', '--webhooks', '-1', '--rate', '1e3', '--alerts', '2147483648')).toHaveLength(4);
  });

  it.each([
    [[], 'name a command: create, list, link, revoke, quota, accounts, sealed, reseal'],
    [['drop'], 'name a command: create, list, link, revoke, quota, accounts, sealed, reseal'],
    [[...CREATE, '--expires', '2026-11-20T12:00Z'], '--expires must not be in the past'],
    [[...CREATE, '--expires', '999999999999'], '--expires must be before the year 10000'],
    [
      ['create', '--account', 'a'.repeat(101), '--name', 'n'],
      '--account must have at most 100 characters, none of them control characters',
    ],
    [
      ['create', '--account', 'a', '--name', 'a\nb'],
      '--name must have at most 100 characters, none of them control characters',
    ],
    [['list', '--name=n'], 'unknown option --name'],
    [['revoke'], 'revoke takes the id of a key, as `list` shows it'],
    [['revoke', "a'b"], 'revoke takes the id of a key, as `list` shows it'],
    [['revoke', 'a', 'b'], 'unknown argument b'],
    [['revoke', 'ow_live_abc_def'], 'revoke takes the id of a key, not the key'],
    [['quota', '--rate', '5'], '--account must not be empty'],
  ])('%j: %s', (argv, problem) => {
    expect(problemsOf(...argv)).toEqual([problem]);
  });

  it('are all listed in the help', () => {
    for (const word of [
      'create',
      'list',
      'link',
      'revoke',
      'accounts',
      'quota',
      'sealed',
      'reseal',
      '--expires',
      '--cold-reads',
      ...SCOPES,
    ]) {
      expect(KEYS_USAGE).toContain(word);
    }
  });
});

describe('the report of keys', () => {
  const key: ListedApiKey = {
    id: 'k1',
    account: 'acme',
    name: 'laptop',
    scopes: ['alerts', 'wallets'],
    createdAt: new Date(NOW_MS - 3_600_000),
    expiresAt: null,
    lastUsedAt: null,
    revokedAt: null,
  };
  const keys = [
    { ...key, lastUsedAt: new Date(NOW_MS) },
    { ...key, id: 'k2', name: '\u001b[2J', expiresAt: new Date(NOW_MS) },
    { ...key, id: 'k3', name: 'x', expiresAt: new Date(NOW_MS), revokedAt: new Date(NOW_MS - 1_000) },
  ];

  it('shows the scopes and the state of a key', () => {
    expect(keysText(keys, NOW_MS)).toBe(
      [
        'id  account  name    scopes          created              expires              last used            state',
        'k1  acme     laptop  alerts,wallets  2026-11-20 11:00:00  never                2026-11-20 12:00:00  active',
        'k2  acme     \ufffd[2J    alerts,wallets  2026-11-20 11:00:00  2026-11-20 12:00:00  never                expired',
        'k3  acme     x       alerts,wallets  2026-11-20 11:00:00  2026-11-20 12:00:00  never                revoked 2026-11-20 11:59:59',
        '',
      ].join('\n'),
    );
    expect(keysText([], NOW_MS)).toBe('No keys.\n');
    expect(JSON.parse(keysJson(keys, NOW_MS))).toMatchObject([
      { id: 'k1', state: 'active', last_used_at: '2026-11-20T12:00:00.000Z', revoked_at: null },
      { id: 'k2', state: 'expired' },
      { id: 'k3', state: 'revoked', revoked_at: '2026-11-20T11:59:59.000Z' },
    ]);
  });

  it('shows the counts of accounts, and limits by their options', () => {
    const account = { name: 'acme', createdAt: new Date(NOW_MS), keys: 2, webhooks: 1, alerts: 300, wallets: 0 };
    expect(accountsText([account])).toBe(
      'account  created              keys  webhooks  alerts  wallets\nacme     2026-11-20 12:00:00     2         1     300        0\n',
    );
    expect(JSON.parse(accountsJson([account]))).toEqual([
      { ...account, createdAt: undefined, created_at: '2026-11-20T12:00:00.000Z' },
    ]);
    const quotas = {
      webhooks: 5,
      alerts: null,
      wallets: 0,
      keys: 7,
      ratePerMinute: 6_000,
      coldReadsPerMinute: null,
      archiveMbPerDay: null,
    };
    expect(quotasText(quotas)).toBe(
      'limit       value\nwebhooks    5\nalerts      default\nwallets     0\nkeys        7\nrate        6000\ncold-reads  default\narchive     default\n',
    );
    expect(JSON.parse(quotasJson('acme', quotas))).toEqual({
      account: 'acme',
      webhooks: 5,
      alerts: null,
      wallets: 0,
      keys: 7,
      rate_per_minute: 6_000,
      cold_reads_per_minute: null,
      archive_mb_per_day: null,
    });
  });
});
