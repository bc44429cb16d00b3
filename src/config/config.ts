import { z } from 'zod';
import type { VenueName } from '../domain/markets/venue.ts';
import { OddswireError } from '../domain/values/errors.ts';
import { parseSecretsKeys, type SecretKey } from '../domain/values/secret-keys.ts';
import { type AddressRules, type Cidr, parseCidrs } from '../domain/webhooks/address-policy.ts';
import { parseRetrySchedule } from '../domain/webhooks/retry-schedule.ts';
import { type FeedsConfig, parseFeeds, readFeeds } from './feeds.ts';
import {
  checkedBy,
  databaseUrl,
  days,
  decodedUrl,
  feedUrl,
  httpUrl,
  milliseconds,
  opsPassword,
  parsedBy,
  parseHostNames,
  parseOrigins,
  parsePublicMarket,
  port,
  quota,
  readableFile,
  venues,
  wholeNumber,
  withoutSlash,
} from './formats.ts';
import { environmentOf, mayRead } from './process-secrets.ts';
import { parseRedisUrl } from './redis-address.ts';
import { VARIABLES, type VariableName } from './variables.ts';

/** An invalid configuration. `problems` names every wrong variable, never its value. */
export class ConfigError extends OddswireError {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super('invalid_config', `configuration: ${problems.join('; ')}`);
    this.problems = problems;
  }
}

const schema = z.object({
  HOST: z.string().min(1),
  PORT: port,
  DRAIN_DELAY_MS: wholeNumber(0, 5_000, 'a whole number from 0 to 5000: a process must be able to stop within 20 s'),
  METRICS_PORT: port,
  METRICS_HOST: z.string().min(1),
  HTTP_MAX_CONNECTIONS: wholeNumber(1, 1_000_000),
  HTTP_MAX_CONNECTIONS_PER_ADDRESS: wholeNumber(1, 1_000_000),
  TRUSTED_PROXIES: parsedBy(parseCidrs),
  CORS_ORIGINS: parsedBy(parseOrigins),
  RATE_LIMIT_PER_MINUTE: quota,
  COLD_READS_PER_MINUTE: quota,
  STREAM_MAX_CONNECTIONS: wholeNumber(0, 1_000_000),
  STREAM_CONNECTIONS_PER_ACCOUNT: wholeNumber(0, 1_000_000),
  STREAM_SUBSCRIPTIONS_PER_ACCOUNT: wholeNumber(0, 1_000_000),
  STREAM_MESSAGES_PER_SECOND: quota,
  // Proxies commonly close connections that are idle for a minute.
  STREAM_HEARTBEAT_MS: wholeNumber(100, 60_000),
  STREAM_MAX_UNSENT_MB: wholeNumber(1, 1_000_000),
  DATABASE_URL: databaseUrl,
  DATABASE_DIRECT_URL: databaseUrl.optional(),
  DATABASE_MIGRATE_URL: databaseUrl.optional(),
  DATABASE_PREPARED: z.enum(['on', 'off']).optional(),
  DATA_DIR: z.string().min(1),
  REDIS_URL: z.string().superRefine(checkedBy(parseRedisUrl)).optional(),
  QUEUE_PREFIX: z.string().regex(/^[a-z][a-z0-9_]{0,30}$/, 'lower-case letters, digits and _, at most 31'),
  VENUES: venues,
  POLYMARKET_GAMMA_URL: httpUrl,
  POLYMARKET_CLOB_URL: httpUrl,
  POLYMARKET_DATA_URL: httpUrl,
  KALSHI_API_URL: httpUrl,
  MANIFOLD_API_URL: httpUrl,
  LIMITLESS_API_URL: httpUrl,
  LIMITLESS_REQUESTS_PER_SECOND: wholeNumber(1, 1_000).optional(),
  JUPITER_API_URL: httpUrl,
  JUPITER_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]{1,512}$/, 'printable ASCII without spaces')
    .optional(),
  JUPITER_REQUESTS_PER_SECOND: wholeNumber(1, 1_000).optional(),
  SOLANA_RPC_URL: decodedUrl(/^https?$/)
    .transform(withoutSlash)
    .optional(),
  FEEDS: parsedBy(parseFeeds),
  FEED_MARKETS: wholeNumber(0, 10_000),
  POLYMARKET_FEED_URL: feedUrl.optional(),
  KALSHI_FEED_URL: feedUrl.optional(),
  KALSHI_API_KEY_ID: z
    .string()
    .regex(/^[\x21-\x7e]{1,512}$/, 'printable ASCII without spaces')
    .optional(),
  KALSHI_PRIVATE_KEY_FILE: readableFile.optional(),
  MANIFOLD_FEED_URL: feedUrl.optional(),
  LIMITLESS_FEED_URL: feedUrl.optional(),
  POLL_MARKETS_MS: milliseconds,
  POLL_PRICES_MS: milliseconds,
  POLL_TRADES_MS: milliseconds,
  POLL_BOOKS_MS: milliseconds,
  POLL_WALLETS_MS: milliseconds,
  BOOTSTRAP_API_KEY: z
    .string()
    .min(16, 'at least 16 characters')
    .max(256)
    .regex(/^[\x21-\x7e]+$/, 'printable ASCII without spaces')
    .optional(),
  SECRETS_KEYS: parsedBy(parseSecretsKeys).optional(),
  WEBHOOK_RETRY_SCHEDULE: parsedBy(parseRetrySchedule),
  WEBHOOK_TIMEOUT_MS: wholeNumber(
    100,
    15_000,
    'a whole number from 100 to 15000: a process must be able to stop within 20 s',
  ),
  WEBHOOK_ALLOW_CIDRS: parsedBy(parseCidrs),
  WEBHOOK_DENY_CIDRS: parsedBy(parseCidrs),
  WEBHOOK_PROXY_URL: decodedUrl(/^https?$/).optional(),
  WEBHOOK_CA_FILE: readableFile.optional(),
  CONSOLE: z.enum(['on', 'off']),
  CONSOLE_PUBLIC_MARKET: parsedBy(parsePublicMarket).optional(),
  OPS_PASSWORD: opsPassword,
  OPS_VIEWER_PASSWORD: opsPassword,
  OPS_PUBLIC_URL: httpUrl.optional(),
  OPS_HOSTS: parsedBy(parseHostNames).optional(),
  POLL_BOOKS_MARKETS: wholeNumber(0, 10_000),
  QUOTA_WEBHOOKS: quota,
  QUOTA_ALERTS: quota,
  QUOTA_WALLETS: quota,
  QUOTA_KEYS: quota,
  RETENTION_TRADES_DAYS: days,
  RETENTION_PRICE_HISTORY_DAYS: days,
  // One partition per day: many more would slow down every read.
  RETENTION_BOOK_HISTORY_DAYS: wholeNumber(1, 400),
  RETENTION_OBSERVATIONS_DAYS: wholeNumber(1, 400),
  RETENTION_ATTEMPTS_DAYS: days,
  RETENTION_EVENTS_DAYS: days,
  RETENTION_OPS_ACTIONS_DAYS: days,
  // Less than this would evict answers at once; more than a process can address is a typing error.
  API_MEMORY_MB: wholeNumber(16, 65_536),
  // One partition per ten minutes: many more would slow down every read.
  JOURNAL_RETENTION_MINUTES: wholeNumber(10, 1_440),
  JOURNAL_MAX_MB: wholeNumber(64, 1_000_000),
  // Partitions are made two days ahead, and an alert fires after three hours without a run.
  MAINTAIN_STORAGE_MS: wholeNumber(1_000, 3_600_000),
  DECIMAL_FORMAT: z.enum(['number', 'string']),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
});

/** Rules over two variables. */
const wholeSchema = schema
  // With one password for both roles, every login would have the role of operator.
  .refine(({ OPS_PASSWORD: operator, OPS_VIEWER_PASSWORD: viewer }) => operator === undefined || operator !== viewer, {
    path: ['OPS_VIEWER_PASSWORD'],
    message: 'must not be the same as OPS_PASSWORD',
  })
  .refine(({ CONSOLE_PUBLIC_MARKET: market, VENUES: enabled }) => !market || enabled.includes(market.venue), {
    path: ['CONSOLE_PUBLIC_MARKET'],
    message: 'names a venue that VENUES does not enable',
  });

type Environment = Readonly<Record<string, string | undefined>>;

/** All settings of a process from its environment, parsed once and frozen. */
export interface Config {
  readonly http: {
    readonly host: string;
    readonly port: number;
    readonly maxConnections: number;
    readonly maxConnectionsPerAddress: number;
    readonly trustedProxies: readonly Cidr[];
    readonly corsOrigins: readonly string[];
  };
  /** The limits per minute of an account without limits of its own. Requests 0: no limit. */
  readonly perMinute: { readonly requests: number; readonly coldReads: number };
  /** The limits of streams in one API process. */
  readonly streams: {
    readonly maxConnections: number;
    readonly connectionsPerAccount: number;
    readonly subscriptionsPerAccount: number;
    /** 0: no limit. */
    readonly messagesPerSecond: number;
    readonly heartbeatMs: number;
    readonly maxUnsentBytes: number;
  };
  readonly metrics: { readonly host: string; readonly port: number };
  /** How long the API keeps answering, with readiness off, after the signal to stop. */
  readonly drainDelayMs: number;
  readonly databaseUrl: string;
  /** The same database past any pooler, for uses that need a whole session: LISTEN, migrations, the Postgres queues. */
  readonly databaseDirectUrl: string;
  /** The same database for the role that migrates, past any pooler; absent when the role of the processes migrates. */
  readonly databaseMigrateUrl?: string;
  /** Whether statements are prepared by name. A pooler in transaction mode must support this. */
  readonly hasPreparedStatements: boolean;
  readonly dataDir: string;
  readonly queues: { readonly redisUrl?: string; readonly prefix: string };
  readonly venues: readonly VenueName[];
  readonly venueUrls: {
    readonly polymarket: { readonly gamma: string; readonly clob: string; readonly data: string };
    readonly kalshi: string;
    readonly manifold: string;
    readonly limitless: { readonly api: string; readonly perSecond?: number };
    readonly solana: {
      readonly jupiter: string;
      readonly jupiterKey?: string;
      readonly jupiterPerSecond?: number;
      readonly rpc?: string;
    };
  };
  readonly feeds: FeedsConfig;
  readonly pollMs: {
    readonly markets: number;
    readonly prices: number;
    readonly books: number;
    readonly trades: number;
    readonly wallets: number;
  };
  readonly bootstrapApiKey?: string;
  /** Empty in a process that seals and opens nothing. */
  readonly secretsKeys: readonly SecretKey[];
  readonly webhooks: {
    /** Seconds between attempts: N delays make N + 1 attempts. */
    readonly retryScheduleSeconds: readonly number[];
    readonly timeoutMs: number;
    readonly addressRules: AddressRules;
    readonly caFile?: string;
    /** An HTTP proxy with CONNECT. */
    readonly proxyUrl?: string;
  };
  /** Whether the console is served at `/`. */
  readonly isConsoleOn: boolean;
  /** The market that visitors without a key see; absent: none. */
  readonly publicMarket?: { readonly venue: VenueName; readonly marketId: string };
  /** The operator pages. */
  readonly ops: {
    /** The two are never equal. */
    readonly passwords: { readonly operator?: string; readonly viewer?: string };
    /** The address of the pages for browsers, without a slash at the end. */
    readonly publicUrl?: string;
    /** The host names that the pages accept. Empty: loopback names and IP addresses. */
    readonly hosts: readonly string[];
  };
  /** Markets per venue whose books are polled. */
  readonly bookPollMarkets: number;
  /** The quotas of an account without quotas of its own. */
  readonly quotas: Readonly<Record<'webhooks' | 'alerts' | 'wallets' | 'keys', number>>;
  readonly retention: {
    readonly tradesDays: number;
    readonly priceHistoryDays: number;
    readonly bookHistoryDays: number;
    readonly observationsDays: number;
    readonly attemptsDays: number;
    readonly eventsDays: number;
    readonly opsActionsDays: number;
  };
  /** The memory of an API process for answers, markets and quotes. */
  readonly apiMemoryBytes: number;
  /** The published changes: how long they are kept, and their size at most. */
  readonly journal: { readonly retentionMinutes: number; readonly maxBytes: number };
  readonly maintainStorageMs: number;
  readonly decimalFormat: 'number' | 'string';
  readonly logLevel: string;
}

/**
 * Parses the environment. An empty variable counts as unset, and so does a secret that the process of the given name does not need.
 * @throws ConfigError naming every problem at once.
 */
export function loadConfig(environment: Environment, processName?: string): Config {
  const given = processName === undefined ? environment : environmentOf(processName, environment);
  const input = Object.fromEntries(
    (Object.keys(VARIABLES) as VariableName[]).map((name) => [name, given[name] || VARIABLES[name].default]),
  );
  const parsed = wholeSchema.safeParse(input);
  const problems = parsed.success ? [] : describeProblems(parsed.error, input);
  const needsKeyRing = processName === undefined || mayRead(processName, 'SECRETS_KEYS');
  if (needsKeyRing && input['SECRETS_KEYS'] === undefined) problems.push('SECRETS_KEYS is required');
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  const value = parsed.data;
  return deepFreeze({
    http: {
      host: value.HOST,
      port: value.PORT,
      maxConnections: value.HTTP_MAX_CONNECTIONS,
      maxConnectionsPerAddress: value.HTTP_MAX_CONNECTIONS_PER_ADDRESS,
      trustedProxies: value.TRUSTED_PROXIES,
      corsOrigins: value.CORS_ORIGINS,
    },
    perMinute: { requests: value.RATE_LIMIT_PER_MINUTE, coldReads: value.COLD_READS_PER_MINUTE },
    streams: {
      maxConnections: value.STREAM_MAX_CONNECTIONS,
      connectionsPerAccount: value.STREAM_CONNECTIONS_PER_ACCOUNT,
      subscriptionsPerAccount: value.STREAM_SUBSCRIPTIONS_PER_ACCOUNT,
      messagesPerSecond: value.STREAM_MESSAGES_PER_SECOND,
      heartbeatMs: value.STREAM_HEARTBEAT_MS,
      maxUnsentBytes: value.STREAM_MAX_UNSENT_MB * 1_000_000,
    },
    metrics: { host: value.METRICS_HOST, port: value.METRICS_PORT },
    drainDelayMs: value.DRAIN_DELAY_MS,
    databaseUrl: value.DATABASE_URL,
    databaseDirectUrl: value.DATABASE_DIRECT_URL ?? value.DATABASE_URL,
    ...(value.DATABASE_MIGRATE_URL !== undefined && { databaseMigrateUrl: value.DATABASE_MIGRATE_URL }),
    hasPreparedStatements:
      (value.DATABASE_PREPARED ?? (value.DATABASE_DIRECT_URL === undefined ? 'on' : 'off')) === 'on',
    dataDir: value.DATA_DIR,
    queues: { prefix: value.QUEUE_PREFIX, ...(value.REDIS_URL !== undefined && { redisUrl: value.REDIS_URL }) },
    venues: value.VENUES,
    venueUrls: {
      polymarket: {
        gamma: value.POLYMARKET_GAMMA_URL,
        clob: value.POLYMARKET_CLOB_URL,
        data: value.POLYMARKET_DATA_URL,
      },
      kalshi: value.KALSHI_API_URL,
      manifold: value.MANIFOLD_API_URL,
      limitless: {
        api: value.LIMITLESS_API_URL,
        ...(value.LIMITLESS_REQUESTS_PER_SECOND !== undefined && { perSecond: value.LIMITLESS_REQUESTS_PER_SECOND }),
      },
      solana: {
        jupiter: value.JUPITER_API_URL,
        ...(value.JUPITER_API_KEY !== undefined && { jupiterKey: value.JUPITER_API_KEY }),
        ...(value.JUPITER_REQUESTS_PER_SECOND !== undefined && {
          jupiterPerSecond: value.JUPITER_REQUESTS_PER_SECOND,
        }),
        ...(value.SOLANA_RPC_URL !== undefined && { rpc: value.SOLANA_RPC_URL }),
      },
    },
    feeds: readFeeds(value),
    pollMs: {
      markets: value.POLL_MARKETS_MS,
      prices: value.POLL_PRICES_MS,
      books: value.POLL_BOOKS_MS,
      trades: value.POLL_TRADES_MS,
      wallets: value.POLL_WALLETS_MS,
    },
    ...(value.BOOTSTRAP_API_KEY !== undefined && { bootstrapApiKey: value.BOOTSTRAP_API_KEY }),
    secretsKeys: value.SECRETS_KEYS ?? [],
    webhooks: {
      retryScheduleSeconds: value.WEBHOOK_RETRY_SCHEDULE,
      timeoutMs: value.WEBHOOK_TIMEOUT_MS,
      addressRules: { allow: value.WEBHOOK_ALLOW_CIDRS, deny: value.WEBHOOK_DENY_CIDRS },
      ...(value.WEBHOOK_CA_FILE !== undefined && { caFile: value.WEBHOOK_CA_FILE }),
      ...(value.WEBHOOK_PROXY_URL !== undefined && { proxyUrl: value.WEBHOOK_PROXY_URL }),
    },
    isConsoleOn: value.CONSOLE === 'on',
    ...(value.CONSOLE_PUBLIC_MARKET && { publicMarket: value.CONSOLE_PUBLIC_MARKET }),
    ops: opsConfig(value),
    bookPollMarkets: value.POLL_BOOKS_MARKETS,
    quotas: {
      webhooks: value.QUOTA_WEBHOOKS,
      alerts: value.QUOTA_ALERTS,
      wallets: value.QUOTA_WALLETS,
      keys: value.QUOTA_KEYS,
    },
    retention: {
      tradesDays: value.RETENTION_TRADES_DAYS,
      priceHistoryDays: value.RETENTION_PRICE_HISTORY_DAYS,
      bookHistoryDays: value.RETENTION_BOOK_HISTORY_DAYS,
      observationsDays: value.RETENTION_OBSERVATIONS_DAYS,
      attemptsDays: value.RETENTION_ATTEMPTS_DAYS,
      eventsDays: value.RETENTION_EVENTS_DAYS,
      opsActionsDays: value.RETENTION_OPS_ACTIONS_DAYS,
    },
    apiMemoryBytes: value.API_MEMORY_MB * 1_000_000,
    journal: { retentionMinutes: value.JOURNAL_RETENTION_MINUTES, maxBytes: value.JOURNAL_MAX_MB * 1_000_000 },
    maintainStorageMs: value.MAINTAIN_STORAGE_MS,
    decimalFormat: value.DECIMAL_FORMAT,
    logLevel: value.LOG_LEVEL,
  });
}

const feedSchema = schema.pick({
  VENUES: true,
  POLYMARKET_CLOB_URL: true,
  KALSHI_API_URL: true,
  MANIFOLD_API_URL: true,
  LIMITLESS_API_URL: true,
  FEEDS: true,
  FEED_MARKETS: true,
  POLYMARKET_FEED_URL: true,
  KALSHI_FEED_URL: true,
  KALSHI_API_KEY_ID: true,
  KALSHI_PRIVATE_KEY_FILE: true,
  MANIFOLD_FEED_URL: true,
  LIMITLESS_FEED_URL: true,
});

/**
 * The venues and feeds of an environment, for a command that needs no other setting. An empty variable counts as unset.
 * @throws ConfigError naming every problem at once
 */
export function loadFeeds(environment: Environment): Pick<Config, 'venues' | 'feeds'> {
  const names = Object.keys(feedSchema.shape) as VariableName[];
  const input = Object.fromEntries(names.map((name) => [name, environment[name] || VARIABLES[name].default]));
  const parsed = feedSchema.safeParse(input);
  if (!parsed.success) throw new ConfigError(describeProblems(parsed.error, input));
  return deepFreeze({ venues: parsed.data.VENUES, feeds: readFeeds(parsed.data) });
}

function opsConfig(value: z.output<typeof schema>): Config['ops'] {
  const {
    OPS_PASSWORD: operator,
    OPS_VIEWER_PASSWORD: viewer,
    OPS_PUBLIC_URL: publicUrl,
    OPS_HOSTS: hosts = [],
  } = value;
  const passwords = { ...(operator !== undefined && { operator }), ...(viewer !== undefined && { viewer }) };
  const publicHost = publicUrl === undefined ? [] : [new URL(publicUrl).hostname];
  return { passwords, hosts: [...new Set([...hosts, ...publicHost])], ...(publicUrl !== undefined && { publicUrl }) };
}

/** The table behind `npm run config`: each variable and its effect. */
export function configTable(): { name: string; default: string; meaning: string }[] {
  return Object.entries(VARIABLES).map(([name, variable]) => ({
    name,
    default: variable.shownDefault ?? variable.default ?? 'none',
    meaning: variable.meaning,
  }));
}

function describeProblems(error: z.ZodError, input: Record<string, string | undefined>): string[] {
  return error.issues.map((issue) => {
    const name = String(issue.path[0]);
    return input[name] === undefined ? `${name} is required` : `${name}: ${issue.message}`;
  });
}

function deepFreeze<T>(value: T): T {
  if (value !== null && typeof value === 'object' && !Object.isFrozen(value) && !Buffer.isBuffer(value)) {
    for (const item of Object.values(value)) deepFreeze(item);
    return ArrayBuffer.isView(value) ? value : Object.freeze(value);
  }
  return value;
}
