import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ConfigError, configTable, loadConfig, secretsOf } from '../../../src/config/config.ts';
import { DATABASE_POOL_SIZE, poolSizeOf } from '../../../src/config/pools.ts';
import { mayRead } from '../../../src/config/process-secrets.ts';
import { VARIABLES, type VariableName } from '../../../src/config/variables.ts';
import { VERSION } from '../../../src/config/version.ts';
import { ROLES, STREAMER } from '../../../src/queues/jobs.ts';

const KEY = Buffer.alloc(32, 7).toString('base64');
const NEEDED = { DATABASE_URL: 'postgres://u@127.0.0.1:5432/db', SECRETS_KEYS: `k1:${KEY}` };
const NAMES = Object.keys(VARIABLES) as VariableName[];

function problemsOf(environment: Record<string, string | undefined>): readonly string[] {
  try {
    loadConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('loadConfig', () => {
  it('needs only a database and a key ring, and documents every default that it uses', () => {
    const config = loadConfig(NEEDED);
    expect(config).toMatchObject({
      http: { host: '127.0.0.1', port: 8080 },
      metrics: { host: '127.0.0.1', port: 9464 },
      dataDir: './.data',
      queues: { prefix: 'oddswire' },
      venues: ['polymarket', 'kalshi', 'manifold', 'limitless'],
      webhooks: {
        retryScheduleSeconds: [5, 30, 120, 600, 1800, 7200, 18_000, 36_000, 36_000],
        timeoutMs: 15_000,
        addressRules: { allow: [], deny: [] },
      },
      decimalFormat: 'number',
      logLevel: 'info',
    });
    expect(config.queues).not.toHaveProperty('redisUrl');
    expect(config).not.toHaveProperty('bootstrapApiKey');
    expect(config.ops).toEqual({ passwords: {}, hosts: [] });
  });

  it('counts an empty variable as unset', () => {
    const empty = Object.fromEntries(NAMES.map((name) => [name, '']));
    expect(loadConfig({ ...empty, ...NEEDED })).toEqual(loadConfig(NEEDED));
    expect(problemsOf(empty)).toEqual(['DATABASE_URL is required', 'SECRETS_KEYS is required']);
  });

  it('reads a secret only in the processes that need it', () => {
    const secrets = {
      SECRETS_KEYS: NEEDED.SECRETS_KEYS,
      BOOTSTRAP_API_KEY: 'a key of sixteen characters'.replaceAll(' ', '-'),
      OPS_PASSWORD: 'the operator',
      OPS_VIEWER_PASSWORD: 'the viewer',
      JUPITER_API_KEY: 'jupiter',
      SOLANA_RPC_URL: 'https://node.test/key',
      KALSHI_API_KEY_ID: 'key-id',
      KALSHI_PRIVATE_KEY_FILE: import.meta.filename,
      ARCHIVE_S3_ACCESS_KEY_ID: 'store-id',
      ARCHIVE_S3_SECRET_ACCESS_KEY: 'store-secret',
    };
    expect(Object.keys(secrets).sort()).toEqual(NAMES.filter((name) => !mayRead('nobody', name)).sort());
    for (const name of ['api', 'poller', 'aggregator', 'alerter', 'deliverer', 'streamer']) {
      const config = loadConfig({ DATABASE_URL: NEEDED.DATABASE_URL, ...secrets }, name);
      const isRead = {
        SECRETS_KEYS: config.secretsKeys.length > 0,
        BOOTSTRAP_API_KEY: config.bootstrapApiKey !== undefined,
        OPS_PASSWORD: config.ops?.passwords.operator !== undefined,
        OPS_VIEWER_PASSWORD: config.ops?.passwords.viewer !== undefined,
        JUPITER_API_KEY: config.venueUrls.solana.jupiterKey !== undefined,
        SOLANA_RPC_URL: config.venueUrls.solana.rpc !== undefined,
        KALSHI_API_KEY_ID: config.feeds.hasKalshiKeyId,
        KALSHI_PRIVATE_KEY_FILE: config.feeds.kalshiKey?.file !== undefined,
        ARCHIVE_S3_ACCESS_KEY_ID: config.archive.store.accessKeyId !== undefined,
        ARCHIVE_S3_SECRET_ACCESS_KEY: config.archive.store.secretAccessKey !== undefined,
      };
      const expected = Object.keys(secrets).map((variable) => [variable, mayRead(name, variable)]);
      expect([name, isRead]).toEqual([name, Object.fromEntries(expected)]);
    }
  });

  it('requires SECRETS_KEYS of the processes that seal or open values, and of no other', () => {
    const without = { DATABASE_URL: NEEDED.DATABASE_URL };
    for (const name of ['poller', 'aggregator', 'alerter', 'streamer'])
      expect(loadConfig(without, name).secretsKeys).toEqual([]);
    for (const name of ['api', 'deliverer']) {
      expect(() => loadConfig(without, name)).toThrow('configuration: SECRETS_KEYS is required');
    }
  });

  it('requires a folder and a key beside ARCHIVE_URL in the processes that use the archive', () => {
    const store = { ARCHIVE_URL: 's3://bucket/a//b', DATABASE_URL: NEEDED.DATABASE_URL };
    const missing = ['ARCHIVE_DIR', 'ARCHIVE_S3_ACCESS_KEY_ID', 'ARCHIVE_S3_SECRET_ACCESS_KEY'];
    expect(problemsOf({ ...NEEDED, ...store })).toEqual(missing.map((name) => `ARCHIVE_URL needs ${name}`));
    expect(() => loadConfig(store, 'aggregator')).toThrow('ARCHIVE_URL needs ARCHIVE_S3_SECRET_ACCESS_KEY');
    expect(loadConfig(store, 'poller').archive.store.url).toEqual({ bucket: 'bucket', prefix: 'a/b/' });
  });

  it.each([
    ['ARCHIVE_URL', 'https://bucket/prefix'],
    ['ARCHIVE_URL', 's3://Bucket'],
    ['ARCHIVE_URL', 's3://bucket/a b'],
    ['ARCHIVE_URL', 's3://bucket/../other'],
    ['ARCHIVE_S3_ENDPOINT', 'https://user:hunter2@store.test'],
    ['ARCHIVE_S3_ENDPOINT', 'https://store.test/hunter2'],
    ['ARCHIVE_S3_ENDPOINT', 's3://store.test'],
    ['ARCHIVE_CACHE_MB', '0x50'],
  ])('names %s without its value when it is %s', (name, value) => {
    const [problem, ...more] = problemsOf({ ...NEEDED, [name]: value });
    expect([problem, more.filter((each) => !each.startsWith('ARCHIVE_URL needs'))]).toEqual([
      expect.stringMatching(new RegExp(`^${name}: `)),
      [],
    ]);
    expect(problem).not.toContain(value);
  });

  it('ignores variables that are not its own', () => {
    expect(loadConfig({ ...NEEDED, PATH: '/bin', OTHER: '\u0000' })).toEqual(loadConfig(NEEDED));
  });

  it('accepts values for every variable', () => {
    const config = loadConfig({
      ...NEEDED,
      HOST: '::1',
      PORT: '0',
      REDIS_URL: 'rediss://r:6380/2',
      VENUES: ' polymarket, polymarket ,',
      POLYMARKET_CLOB_URL: 'http://127.0.0.1:9/clob//',
      BOOTSTRAP_API_KEY: 'sixteen-or-more-x',
      WEBHOOK_RETRY_SCHEDULE: '1, 2.5',
      WEBHOOK_ALLOW_CIDRS: '10.0.0.0/8, ::1/128',
      OPS_PASSWORD: 'correct horse',
      OPS_VIEWER_PASSWORD: 'battery staple',
      OPS_PUBLIC_URL: 'https://ops.example.com/',
      DECIMAL_FORMAT: 'string',
    });
    expect(config).toMatchObject({
      http: { host: '::1', port: 0 },
      queues: { redisUrl: 'rediss://r:6380/2' },
      venues: ['polymarket'],
      venueUrls: { polymarket: { clob: 'http://127.0.0.1:9/clob' } },
      bootstrapApiKey: 'sixteen-or-more-x',
      webhooks: { retryScheduleSeconds: [1, 2.5] },
      ops: {
        passwords: { operator: 'correct horse', viewer: 'battery staple' },
        publicUrl: 'https://ops.example.com',
      },
      decimalFormat: 'string',
    });
    expect(config.webhooks.addressRules.allow).toHaveLength(2);
    expect(Buffer.from(config.secretsKeys[0]?.key ?? [])).toEqual(Buffer.alloc(32, 7));
  });

  it('reads the public market of the console, and names the variable with the reason for a bad one', () => {
    const publicMarketOf = (text: string) => loadConfig({ ...NEEDED, CONSOLE_PUBLIC_MARKET: text }).publicMarket;
    expect(loadConfig(NEEDED)).not.toHaveProperty('publicMarket');
    expect(publicMarketOf('polymarket/0x51/57')).toEqual({ venue: 'polymarket', marketId: '0x51/57' });
    const problems = (text: string, more = {}) => problemsOf({ ...NEEDED, CONSOLE_PUBLIC_MARKET: text, ...more });
    const unknown = 'CONSOLE_PUBLIC_MARKET: names no venue with markets: polymarket, kalshi, manifold, limitless';
    const form = 'CONSOLE_PUBLIC_MARKET: must be a venue and a market id such as polymarket/512345';
    for (const text of ['polymarket', 'polymarket/', '/5', 'polymarket/5 6', `polymarket/${'5'.repeat(257)}`]) {
      expect(problems(text)).toEqual([form]);
    }
    expect(problems('nowhere/5')).toEqual([unknown]);
    expect(problems('solana/5')).toEqual([unknown]);
    expect(problems('kalshi/5', { VENUES: 'manifold' })).toEqual([
      'CONSOLE_PUBLIC_MARKET: names a venue that VENUES does not enable',
    ]);
  });

  it('uses the direct URL for uses that need a session, and prepares no statements behind a pooler unless configured', () => {
    expect(loadConfig(NEEDED)).toMatchObject({ databaseDirectUrl: NEEDED.DATABASE_URL, hasPreparedStatements: true });
    const pooled = { ...NEEDED, DATABASE_DIRECT_URL: 'postgres://u@127.0.0.1:5433/db' };
    expect(loadConfig(pooled)).toMatchObject({
      databaseUrl: NEEDED.DATABASE_URL,
      databaseDirectUrl: 'postgres://u@127.0.0.1:5433/db',
      hasPreparedStatements: false,
    });
    expect(loadConfig({ ...pooled, DATABASE_PREPARED: 'on' }).hasPreparedStatements).toBe(true);
    expect(loadConfig({ ...NEEDED, DATABASE_PREPARED: 'off' }).hasPreparedStatements).toBe(false);
  });

  it('opens the part of the connections that DATABASE_POOLS names, and at least one', () => {
    const sizes = (pools?: string) => {
      const { databasePools } = loadConfig({ ...NEEDED, ...(pools && { DATABASE_POOLS: pools }) });
      return (['poller', 'streamer', 'aggregator'] as const).map((name) => poolSizeOf(name, databasePools));
    };
    expect(sizes()).toEqual([8, 10, 6]);
    expect(sizes('half')).toEqual([4, 5, 4]);
    expect(sizes('quarter')).toEqual([2, 3, 4]);
    expect(() => sizes('third')).toThrow(/DATABASE_POOLS/);
  });

  it('accepts the limits of clients, and origins as browsers write them', () => {
    expect(loadConfig(NEEDED)).toMatchObject({
      http: { maxConnections: 10_000, maxConnectionsPerAddress: 1_000, trustedProxies: [], corsOrigins: [] },
      perMinute: { requests: 600, coldReads: 60 },
    });
    const given = {
      RATE_LIMIT_PER_MINUTE: '0',
      COLD_READS_PER_MINUTE: '5',
      TRUSTED_PROXIES: '10.0.0.0/8',
      CORS_ORIGINS: 'https://a.example, http://localhost:3000,https://a.example',
    };
    const { http, perMinute } = loadConfig({ ...NEEDED, ...given });
    expect(perMinute).toEqual({ requests: 0, coldReads: 5 });
    expect(http.corsOrigins).toEqual(['https://a.example', 'http://localhost:3000']);
    expect(http.trustedProxies).toHaveLength(1);
    expect(loadConfig({ ...NEEDED, CORS_ORIGINS: '*' }).http.corsOrigins).toEqual(['*']);
    for (const wrong of [
      'https://a.example/',
      'a.example',
      'https://a.example,null',
      '*,https://a.example',
      'file:///x',
    ]) {
      expect(problemsOf({ ...NEEDED, CORS_ORIGINS: wrong })).toHaveLength(1);
    }
  });

  it('accepts either password for the operator pages, but not the same one for both roles', () => {
    expect(loadConfig({ ...NEEDED, OPS_VIEWER_PASSWORD: 'only to look' }).ops).toEqual({
      passwords: { viewer: 'only to look' },
      hosts: [],
    });
    expect(problemsOf({ ...NEEDED, OPS_PASSWORD: 'same for both', OPS_VIEWER_PASSWORD: 'same for both' })).toEqual([
      'OPS_VIEWER_PASSWORD: must not be the same as OPS_PASSWORD',
    ]);
    expect(loadConfig(NEEDED).ops.passwords).toEqual({});
  });

  it('accepts the host names of the operator pages, which include the one of their public address', () => {
    const hostsOf = (environment: Record<string, string>) => loadConfig({ ...NEEDED, ...environment }).ops.hosts;
    expect(hostsOf({ OPS_PUBLIC_URL: 'https://Ops.example.com:8443/' })).toEqual(['ops.example.com']);
    expect(
      hostsOf({ OPS_HOSTS: 'api, OPS.internal.,[::1],10.0.0.1', OPS_PUBLIC_URL: 'https://ops.example.com' }),
    ).toEqual(['api', 'ops.internal', '[::1]', '10.0.0.1', 'ops.example.com']);
    for (const wrong of ['https://ops.example.com', 'ops.example.com:443', 'a b', '*', 'a/b', 'user@host']) {
      expect(problemsOf({ ...NEEDED, OPS_HOSTS: wrong }), wrong).toHaveLength(1);
    }
  });

  it('accepts a key in the address of the node, and omits unset values', () => {
    const { venueUrls } = loadConfig({ ...NEEDED, SOLANA_RPC_URL: 'https://node.test/?api-key=k', VENUES: 'solana' });
    expect(venueUrls.solana).toEqual({ jupiter: 'https://api.jup.ag', rpc: 'https://node.test/?api-key=k' });
    const without = loadConfig({ ...NEEDED, JUPITER_API_KEY: 'key' });
    expect(without.venues).not.toContain('solana');
    expect(without.venueUrls.solana).toEqual({ jupiter: 'https://api.jup.ag', jupiterKey: 'key' });
    const paid = loadConfig({ ...NEEDED, JUPITER_API_KEY: 'key', JUPITER_REQUESTS_PER_SECOND: '10' });
    expect(paid.venueUrls.solana).toMatchObject({ jupiterKey: 'key', jupiterPerSecond: 10 });
  });

  it('sets the request rate of Limitless, which is absent by default', () => {
    expect(loadConfig(NEEDED).venueUrls.limitless).toEqual({ api: 'https://api.limitless.exchange' });
    const faster = loadConfig({ ...NEEDED, LIMITLESS_REQUESTS_PER_SECOND: '10' });
    expect(faster.venueUrls.limitless).toMatchObject({ perSecond: 10 });
  });

  const BAD: Partial<Record<VariableName, string>> = {
    PORT: '65536',
    METRICS_PORT: '-1',
    DATABASE_URL: 'mysql://u:hunter2@h/db',
    DATABASE_DIRECT_URL: 'mysql://u:hunter2@h/db',
    DATABASE_PREPARED: 'hunter2',
    DRAIN_DELAY_MS: '60000',
    REDIS_URL: 'http://:hunter2@h',
    QUEUE_PREFIX: 'Hunter-2',
    VENUES: 'hunter2',
    POLYMARKET_GAMMA_URL: 'hunter2',
    POLYMARKET_CLOB_URL: 'ftp://hunter2',
    POLYMARKET_DATA_URL: 'javascript:hunter2',
    LIMITLESS_REQUESTS_PER_SECOND: '0.5',
    JUPITER_API_URL: 'hunter2',
    JUPITER_API_KEY: 'hunter 2',
    JUPITER_REQUESTS_PER_SECOND: '0',
    SOLANA_RPC_URL: 'wss://hunter2',
    POLL_MARKETS_MS: '99',
    POLL_PRICES_MS: 'hunter2',
    POLL_TRADES_MS: '1.5',
    POLL_BOOKS_MS: '86400001',
    POLL_WALLETS_MS: 'hunter2',
    BOOTSTRAP_API_KEY: 'hunter2',
    SECRETS_KEYS: 'k1:hunter2',
    WEBHOOK_RETRY_SCHEDULE: 'hunter2',
    WEBHOOK_TIMEOUT_MS: '60000',
    WEBHOOK_ALLOW_CIDRS: 'hunter2/8',
    WEBHOOK_CA_FILE: '/nowhere/hunter2.pem',
    OPS_PASSWORD: 'hunter2',
    OPS_VIEWER_PASSWORD: 'hunter2',
    OPS_PUBLIC_URL: 'hunter2',
    OPS_HOSTS: 'hunter2:80',
    QUOTA_WEBHOOKS: '-1',
    QUOTA_ALERTS: 'hunter2',
    QUOTA_WALLETS: '2147483648',
    QUOTA_KEYS: 'hunter2',
    RETENTION_TRADES_DAYS: '0',
    API_MEMORY_MB: '15',
    MAINTAIN_STORAGE_MS: '999',
    DECIMAL_FORMAT: 'hunter2',
    LOG_LEVEL: 'hunter2',
  };

  it('names every problem at once, one line each', () => {
    const problems = problemsOf(BAD);
    expect(problems.map((problem) => problem.split(':')[0]).sort()).toEqual(Object.keys(BAD).sort());
    for (const problem of problems) expect(problem).not.toContain('\n');
  });

  it.each(Object.entries(BAD))('rejects %s=%s alone too', (name, value) => {
    const problems = problemsOf({ ...NEEDED, [name]: value });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(new RegExp(`^${name}: `));
  });

  it.each([
    ['WEBHOOK_PROXY_URL', 'http://user:hunter2%@proxy.test'],
    ['WEBHOOK_PROXY_URL', 'https://hunter2%zz:password@proxy.test'],
    ['DATABASE_URL', 'postgres://u:hunter2%@h/db'],
    ['DATABASE_DIRECT_URL', 'postgres://u:hunter2%4@h/db'],
    ['DATABASE_MIGRATE_URL', 'postgres://u:hunter2%ff@h/db'],
    ['SOLANA_RPC_URL', 'https://node.test/v2/0123456789abcdef-hunter2%'],
  ] as const)('rejects %s=%s, because its percent sign encodes no character', (name, value) => {
    const problems = problemsOf({ ...NEEDED, [name]: value });
    expect(problems).toEqual([expect.stringMatching(new RegExp(`^${name}: each percent sign`))]);
    expect(problems[0]).not.toContain('hunter2');
  });

  it('accepts encoded characters in the user and password of an address', () => {
    const url = 'http://us%40er:pass%25word@proxy.test:3128';
    const config = loadConfig({ ...NEEDED, WEBHOOK_PROXY_URL: url });
    expect(config.webhooks.proxyUrl).toBe(url);
    expect(secretsOf(config)).toContain('pass%word');
  });

  // Otherwise a log could contain a URL, a password or a key from the wrong variable.
  it.each(NAMES)('never repeats the value of %s', (name) => {
    const message = problemsOf({ ...NEEDED, [name]: 'hunter2 \u0007 hunter2,hunter2:hunter2' }).join('; ');
    expect(message).not.toMatch(/hunter2/);
  });

  it.each(['   ', ' \t', '0x50', '1e3', 'Infinity', '٣'])(
    'rejects the port %j, because a port has decimal digits only',
    (port) => {
      expect(problemsOf({ ...NEEDED, PORT: port })).toHaveLength(1);
    },
  );

  it('freezes the configuration at every depth', () => {
    const config = loadConfig({ ...NEEDED, WEBHOOK_ALLOW_CIDRS: '10.0.0.0/8' });
    const seen: unknown[] = [];
    const visit = (value: unknown) => {
      if (value === null || typeof value !== 'object' || ArrayBuffer.isView(value)) return;
      seen.push(value);
      expect(Object.isFrozen(value)).toBe(true);
      for (const item of Object.values(value)) visit(item);
    };
    visit(config);
    expect(seen.length).toBeGreaterThan(10);
    expect(() => Object.assign(config.http, { port: 1 })).toThrow(TypeError);
  });
});

describe('configTable', () => {
  it('has a row with a meaning for each variable, in one order', () => {
    const table = configTable();
    expect(table.map((row) => row.name)).toEqual(NAMES);
    for (const row of table) expect(row.meaning).toMatch(/\S{3}/);
  });

  it('names only variables that are read: a bad or changed value has an effect', () => {
    const changed: Partial<Record<VariableName, string>> = {
      ...BAD_FREE_TEXT,
      HOST: '0.0.0.0',
      METRICS_HOST: '0.0.0.0',
      DATA_DIR: '/elsewhere',
    };
    const before = JSON.stringify(loadConfig(NEEDED));
    for (const name of NAMES) {
      const environment = { ...NEEDED, [name]: changed[name] ?? '!' };
      const isRefused = problemsOf(environment).length > 0;
      expect(isRefused || JSON.stringify(loadConfig(environment)) !== before, name).toBe(true);
    }
  });

  it('shows no default that the schema would reject', () => {
    const defaults = Object.fromEntries(NAMES.map((name) => [name, VARIABLES[name].default]));
    expect(problemsOf({ ...defaults, ...NEEDED })).toEqual([]);
  });
});

/** Variables that accept any text of the right length. */
const BAD_FREE_TEXT: Partial<Record<VariableName, string>> = {
  OPS_PASSWORD: 'long enough',
  BOOTSTRAP_API_KEY: 'short',
  KALSHI_API_KEY_ID: 'two words',
};

describe('constant figures', () => {
  it('have the version of package.json', () => {
    const manifest = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'));
    expect(VERSION).toBe(manifest.version);
  });

  it('have a pool for every process', () => {
    expect(Object.keys(DATABASE_POOL_SIZE).sort()).toEqual(['api', ...ROLES, STREAMER].sort());
  });
});
