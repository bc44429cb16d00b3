import { z } from 'zod';
import { ARCHIVE_KIND_NAMES } from '../domain/archive/kinds.ts';
import { parseSecretsKeys } from '../domain/values/secret-keys.ts';
import { parseCidrs } from '../domain/webhooks/address-policy.ts';
import { parseFeeds } from './feeds.ts';
import {
  absolutePath,
  archiveKinds,
  checkedBy,
  databaseUrl,
  days,
  decodedUrl,
  endpointUrl,
  feedUrl,
  httpUrl,
  megabytes,
  milliseconds,
  opsPassword,
  parsedBy,
  parseHostNames,
  parseOrigins,
  parsePublicMarket,
  parseRetrySchedule,
  parseStoreUrl,
  port,
  printable,
  quota,
  readableFile,
  venues,
  wholeNumber,
  withoutSlash,
} from './formats.ts';
import { DATABASE_POOLS } from './pools.ts';
import { parseRedisUrl } from './redis-address.ts';

/** The row of a variable in the table of `npm run config`. */
interface Row {
  /** The value of an unset or empty variable. */
  readonly default?: string;
  /** The text for the table when the default is computed elsewhere. */
  readonly shownDefault?: string;
  readonly meaning: string;
  /** The processes that need the secret that it holds. Every other process ignores it, and the runner does not pass it on. */
  readonly readers?: readonly string[];
}

type Format = z.ZodType<unknown, string | undefined>;

/** An environment variable. Without a default, and with a format that is not optional, it is required. */
interface Variable extends Row {
  /** The place of its value in `Config`, keys separated by dots; absent when `Config` has only what `derived` makes of it. */
  readonly at?: string;
  readonly parse: Format;
}

const at = <const At extends string, Parse extends Format>(place: At, parse: Parse, row: Row) => ({
  at: place,
  parse,
  ...row,
});

const unplaced = <Parse extends Format>(parse: Parse, row: Row) => ({ parse, ...row });

/** Every environment variable that oddswire reads, in the order of the table. */
const TABLE = {
  HOST: at('http.host', z.string().min(1), { default: '127.0.0.1', meaning: 'API address' }),
  PORT: at('http.port', port, { default: '8080', meaning: 'API port; 0 picks a free one' }),
  DRAIN_DELAY_MS: at(
    'drainDelayMs',
    wholeNumber(0, 5_000, 'a whole number from 0 to 5000: a process must be able to stop within 20 s'),
    {
      default: '0',
      meaning: 'milliseconds that a stopping API keeps answering while /health/ready returns 503; at most 5000',
    },
  ),
  HTTP_MAX_CONNECTIONS: at('http.maxConnections', wholeNumber(1, 1_000_000), {
    default: '10000',
    meaning: 'open connections to the API; further ones are closed',
  }),
  HTTP_MAX_CONNECTIONS_PER_ADDRESS: at('http.maxConnectionsPerAddress', wholeNumber(1, 1_000_000), {
    default: '1000',
    meaning: 'open connections from one address outside TRUSTED_PROXIES',
  }),
  TRUSTED_PROXIES: at('http.trustedProxies', parsedBy(parseCidrs), {
    default: '',
    meaning: 'addresses or ranges of your own proxies, comma list; X-Forwarded-For of other clients is ignored',
  }),
  CORS_ORIGINS: at('http.corsOrigins', parsedBy(parseOrigins), {
    default: '',
    meaning: 'origins whose pages may call the API from a browser, comma list, or *; empty: CORS is off',
  }),
  RATE_LIMIT_PER_MINUTE: at('perMinute.requests', quota, {
    default: '600',
    meaning: 'requests of an account per minute; 0: no limit',
  }),
  COLD_READS_PER_MINUTE: at('perMinute.coldReads', quota, {
    default: '60',
    meaning: 'reads of an account per minute that cause a request to a venue (unpolled books, old trades); 0: none',
  }),
  STREAM_MAX_CONNECTIONS: at('streams.maxConnections', wholeNumber(0, 1_000_000), {
    default: '10000',
    meaning: 'open streams of an API process; HTTP_MAX_CONNECTIONS does not count them',
  }),
  STREAM_CONNECTIONS_PER_ACCOUNT: at('streams.connectionsPerAccount', wholeNumber(0, 1_000_000), {
    default: '100',
    meaning: 'open streams of an account per API process',
  }),
  STREAM_SUBSCRIPTIONS_PER_ACCOUNT: at('streams.subscriptionsPerAccount', wholeNumber(0, 1_000_000), {
    default: '1000',
    meaning: 'subscriptions on the WebSockets of an account per API process',
  }),
  STREAM_MESSAGES_PER_SECOND: at('streams.messagesPerSecond', quota, {
    default: '10000',
    meaning: 'messages that the streams of an account get per second and API process; 0: no limit',
  }),
  // Proxies commonly close connections that are idle for a minute.
  STREAM_HEARTBEAT_MS: at('streams.heartbeatMs', wholeNumber(100, 60_000), {
    default: '15000',
    meaning: 'interval of heartbeats on streams, milliseconds; at most 60000',
  }),
  STREAM_MAX_UNSENT_MB: at('streams.maxUnsentBytes', megabytes(1, 1_000_000), {
    default: '256',
    meaning:
      'unsent messages of all slow readers of streams of an API process, megabytes; beyond it the slowest streams end',
  }),
  DATABASE_URL: at('databaseUrl', databaseUrl, { shownDefault: 'embedded Postgres', meaning: 'Postgres 13 or newer' }),
  DATABASE_DIRECT_URL: unplaced(databaseUrl.optional(), {
    shownDefault: 'DATABASE_URL',
    meaning:
      'the same database without the pooler, when DATABASE_URL is a PgBouncer in transaction mode: for LISTEN, migrations and queues in Postgres',
  }),
  DATABASE_MIGRATE_URL: at('databaseMigrateUrl', databaseUrl.optional(), {
    shownDefault: 'DATABASE_DIRECT_URL',
    meaning:
      'the same database for the role that owns its schema, used by `oddswire migrate`; a process with this variable never migrates',
  }),
  DATABASE_PREPARED: unplaced(z.enum(['on', 'off']).optional(), {
    shownDefault: 'on, or off with DATABASE_DIRECT_URL',
    meaning:
      'on or off: prepare statements by name; behind PgBouncer this needs 1.21 or newer with max_prepared_statements',
  }),
  DATABASE_POOLS: at('databasePools', z.enum(DATABASE_POOLS).optional(), {
    shownDefault: 'full; by the runner quarter with --small, and half for the embedded database on at most two cores',
    meaning: 'full, half or quarter: the connections that each process opens at most',
  }),
  DATA_DIR: at('dataDir', z.string().min(1), {
    default: './.data',
    meaning: 'folder of embedded Postgres and of locally generated keys',
  }),
  REDIS_URL: at('queues.redisUrl', z.string().superRefine(checkedBy(parseRedisUrl)).optional(), {
    shownDefault: 'none: queues in Postgres',
    meaning:
      'Redis 6.2+ or Valkey for the queues: redis://[user:password@]host:port/db, redis-sentinel://[user:password@]host:port,host:port/master[?db=n&sentinelUsername=&sentinelPassword=], redis-cluster://[user:password@]host:port,host:port; rediss, rediss-sentinel, rediss-cluster with TLS',
  }),
  QUEUE_PREFIX: at(
    'queues.prefix',
    z.string().regex(/^[a-z][a-z0-9_]{0,30}$/, 'lower-case letters, digits and _, at most 31'),
    { default: 'oddswire', meaning: 'namespace of the queues: key prefix on Redis; ignored on Postgres' },
  ),
  VENUES: at('venues', venues, {
    default: 'polymarket,kalshi,manifold,limitless',
    meaning: 'venues to poll, comma list',
  }),
  POLYMARKET_GAMMA_URL: at('venueUrls.polymarket.gamma', httpUrl, {
    default: 'https://gamma-api.polymarket.com',
    meaning: 'Polymarket metadata host',
  }),
  POLYMARKET_CLOB_URL: at('venueUrls.polymarket.clob', httpUrl, {
    default: 'https://clob.polymarket.com',
    meaning: 'Polymarket orderbook host',
  }),
  POLYMARKET_DATA_URL: at('venueUrls.polymarket.data', httpUrl, {
    default: 'https://data-api.polymarket.com',
    meaning: 'Polymarket trades host',
  }),
  KALSHI_API_URL: at('venueUrls.kalshi', httpUrl, {
    default: 'https://external-api.kalshi.com/trade-api/v2',
    meaning: 'Kalshi trade API',
  }),
  MANIFOLD_API_URL: at('venueUrls.manifold', httpUrl, {
    default: 'https://api.manifold.markets/v0',
    meaning: 'Manifold API',
  }),
  LIMITLESS_API_URL: at('venueUrls.limitless.api', httpUrl, {
    default: 'https://api.limitless.exchange',
    meaning: 'Limitless API',
  }),
  LIMITLESS_REQUESTS_PER_SECOND: at('venueUrls.limitless.perSecond', wholeNumber(1, 1_000).optional(), {
    shownDefault: '3, the rate of its own clients',
    meaning: 'requests per second to Limitless, which publishes no limit',
  }),
  JUPITER_API_URL: at('venueUrls.solana.jupiter', httpUrl, {
    default: 'https://api.jup.ag',
    meaning: 'Jupiter: prices and symbols of the venue solana',
  }),
  JUPITER_API_KEY: at('venueUrls.solana.jupiterKey', printable.optional(), {
    meaning: 'key of portal.jup.ag, which the default Jupiter host may require',
    readers: ['poller'],
  }),
  JUPITER_REQUESTS_PER_SECOND: at('venueUrls.solana.jupiterPerSecond', wholeNumber(1, 1_000).optional(), {
    shownDefault: '0.5 without JUPITER_API_KEY, 1 with it',
    meaning: 'requests per second that a paid Jupiter key allows',
  }),
  SOLANA_RPC_URL: at(
    'venueUrls.solana.rpc',
    decodedUrl(/^https?$/)
      .transform(withoutSlash)
      .optional(),
    {
      shownDefault: 'none: wallets of the venue solana off, its token prices on',
      meaning: 'Solana JSON-RPC node for wallets; may hold a key',
      // The API only reports whether wallets of Solana are on.
      readers: ['api', 'poller'],
    },
  ),
  FEEDS: at('feeds.venues', parsedBy(parseFeeds), {
    default: 'on',
    meaning:
      "on, off, or the venues whose WebSocket feeds the streamer reads, comma list; polls read every venue's data anyway",
  }),
  FEED_MARKETS: at('feeds.markets', wholeNumber(0, 10_000), {
    default: '500',
    meaning:
      'markets per venue in the feed: first those with alerts, then those that clients read, then the most traded',
  }),
  POLYMARKET_FEED_URL: unplaced(feedUrl.optional(), {
    shownDefault: 'wss://ws-subscriptions-clob.polymarket.com/ws/market, or no feed with another POLYMARKET_CLOB_URL',
    meaning: 'Polymarket market channel',
  }),
  KALSHI_FEED_URL: unplaced(feedUrl.optional(), {
    shownDefault: 'wss://external-api-ws.kalshi.com/trade-api/ws/v2, or no feed with another KALSHI_API_URL',
    meaning: 'Kalshi WebSocket',
  }),
  KALSHI_API_KEY_ID: unplaced(printable.optional(), {
    shownDefault: 'none: the Kalshi feed is off',
    meaning: 'id of a Kalshi API key, for its feed',
    // The API only reports whether the feed of Kalshi is on.
    readers: ['api', 'poller', 'streamer'],
  }),
  KALSHI_PRIVATE_KEY_FILE: unplaced(readableFile.optional(), {
    shownDefault: 'none: the Kalshi feed is off',
    meaning: 'PEM file with the private key of KALSHI_API_KEY_ID, RSA',
    readers: ['poller', 'streamer'],
  }),
  MANIFOLD_FEED_URL: unplaced(feedUrl.optional(), {
    shownDefault: 'wss://api.manifold.markets/ws, or no feed with another MANIFOLD_API_URL',
    meaning: 'Manifold WebSocket',
  }),
  LIMITLESS_FEED_URL: unplaced(feedUrl.optional(), {
    shownDefault:
      'wss://ws.limitless.exchange/socket.io/?EIO=4&transport=websocket, or no feed with another LIMITLESS_API_URL',
    meaning: 'Limitless WebSocket',
  }),
  POLL_MARKETS_MS: at('pollMs.markets', milliseconds, {
    default: '60000',
    meaning: 'interval of the catalog poll, milliseconds',
  }),
  POLL_PRICES_MS: at('pollMs.prices', milliseconds, {
    default: '5000',
    meaning: 'interval of the price poll, milliseconds',
  }),
  POLL_TRADES_MS: at('pollMs.trades', milliseconds, {
    default: '2000',
    meaning: 'interval of the trade poll, milliseconds',
  }),
  POLL_BOOKS_MS: at('pollMs.books', milliseconds, {
    default: '5000',
    meaning: 'interval of the orderbook poll of hot markets, milliseconds',
  }),
  POLL_WALLETS_MS: at('pollMs.wallets', milliseconds, {
    default: '10000',
    meaning: 'interval of polls of each watched wallet, milliseconds',
  }),
  BOOTSTRAP_API_KEY: at(
    'bootstrapApiKey',
    z
      .string()
      .min(16, 'at least 16 characters')
      .max(256)
      .regex(/^[\x21-\x7e]+$/, 'printable ASCII without spaces')
      .optional(),
    {
      meaning: 'a key of the bootstrap account with every scope, 16+ characters; created at start if absent',
      readers: ['api'],
    },
  ),
  SECRETS_KEYS: at(
    'secretsKeys',
    parsedBy(parseSecretsKeys)
      .optional()
      .transform((keys) => keys ?? []),
    {
      shownDefault: 'generated in DATA_DIR with embedded Postgres, else required by the API and the deliverer',
      meaning: 'kid:base64(32 bytes), comma list; the first encrypts, all decrypt',
      readers: ['api', 'deliverer'],
    },
  ),
  METRICS_PORT: at('metrics.port', port, {
    default: '9464',
    meaning: '/metrics and /health of each process; the runner assigns the following ports to further processes',
  }),
  METRICS_HOST: at('metrics.host', z.string().min(1), {
    default: '127.0.0.1',
    meaning: 'address of /metrics and /health of each process',
  }),
  WEBHOOK_RETRY_SCHEDULE: at('webhooks.retryScheduleSeconds', parsedBy(parseRetrySchedule), {
    default: '5,30,120,600,1800,7200,18000,36000,36000',
    meaning: 'seconds between delivery attempts',
  }),
  WEBHOOK_TIMEOUT_MS: at(
    'webhooks.timeoutMs',
    wholeNumber(100, 15_000, 'a whole number from 100 to 15000: a process must be able to stop within 20 s'),
    { default: '15000', meaning: 'deadline of an attempt, milliseconds: name look-up, connection, headers and body' },
  ),
  WEBHOOK_ALLOW_CIDRS: at('webhooks.addressRules.allow', parsedBy(parseCidrs), {
    default: '',
    meaning: 'private ranges that deliveries may reach, comma list',
  }),
  WEBHOOK_DENY_CIDRS: at('webhooks.addressRules.deny', parsedBy(parseCidrs), {
    default: '',
    meaning: 'public ranges that deliveries must not reach, such as your own, comma list',
  }),
  WEBHOOK_PROXY_URL: at('webhooks.proxyUrl', decodedUrl(/^https?$/).optional(), {
    shownDefault: 'none: direct connections',
    meaning: 'HTTP proxy of deliveries, http:// or https://, with CONNECT: for a fixed source address',
  }),
  WEBHOOK_CA_FILE: at('webhooks.caFile', readableFile.optional(), {
    meaning: 'PEM file with extra certificate authorities for receivers',
  }),
  CONSOLE: at(
    'isConsoleOn',
    z.enum(['on', 'off']).transform((text) => text === 'on'),
    { default: 'on', meaning: 'on or off: whether the API serves the console at / for the owners of keys' },
  ),
  CONSOLE_PUBLIC_MARKET: at('publicMarket', parsedBy(parsePublicMarket).optional(), {
    shownDefault: 'none',
    meaning: 'a market that visitors without a key see live on the start page of the console: <venue>/<market id>',
  }),
  OPS_PASSWORD: at('ops.passwords.operator', opsPassword, {
    shownDefault: 'none; /ops is off without a password here and without stored operators',
    meaning: 'password of the operator named ops on /ops (reads and actions); 8+ characters',
    readers: ['api'],
  }),
  OPS_VIEWER_PASSWORD: at('ops.passwords.viewer', opsPassword, {
    shownDefault: 'none',
    meaning: 'password of the operator named viewer on /ops (reads only); 8+ characters',
    readers: ['api'],
  }),
  OPS_PUBLIC_URL: at('ops.publicUrl', httpUrl.optional(), {
    shownDefault: 'none: plain http, for loopback',
    meaning:
      'address of /ops for browsers, such as https://ops.example.com; set it behind TLS, so that the session cookie is Secure',
  }),
  OPS_HOSTS: unplaced(parsedBy(parseHostNames).optional(), {
    shownDefault: 'the host of OPS_PUBLIC_URL, else loopback names and IP addresses',
    meaning: 'further host names of /ops, comma list; requests for other names get 421, against DNS rebinding',
  }),
  POLL_BOOKS_MARKETS: at('bookPollMarkets', wholeNumber(0, 10_000), {
    default: '250',
    meaning: 'markets per venue whose books are polled: first markets that clients read, then the most traded',
  }),
  QUOTA_WEBHOOKS: at('quotas.webhooks', quota, {
    default: '100',
    meaning: 'webhooks per account without a quota of its own',
  }),
  QUOTA_ALERTS: at('quotas.alerts', quota, {
    default: '10000',
    meaning: 'active alerts per account without a quota of its own',
  }),
  QUOTA_WALLETS: at('quotas.wallets', quota, {
    default: '100',
    meaning: 'watched wallets per account without a quota of its own',
  }),
  QUOTA_KEYS: at('quotas.keys', quota, {
    default: '50',
    meaning: 'active API keys up to which an account without a quota of its own may make more',
  }),
  QUOTA_ARCHIVE_MB_PER_DAY: at('quotas.archiveMbPerDay', quota, {
    default: '20000',
    meaning: 'megabytes of archive files per UTC day and account without a quota of its own; 0: none',
  }),
  RETENTION_TRADES_DAYS: at('retention.tradesDays', days, {
    default: '3650',
    meaning: 'how long trades are kept; older trades are skipped',
  }),
  RETENTION_PRICE_HISTORY_DAYS: at('retention.priceHistoryDays', days, {
    default: '730',
    meaning: 'how long price history is kept for as_of reads',
  }),
  // One partition per day: many more would slow down every read.
  RETENTION_BOOK_HISTORY_DAYS: at('retention.bookHistoryDays', wholeNumber(1, 400), {
    default: '7',
    meaning: 'how long book history is kept for as_of reads; at most 400',
  }),
  RETENTION_OBSERVATIONS_DAYS: at('retention.observationsDays', wholeNumber(1, 400), {
    default: '7',
    meaning: 'how long the evidence for alerts is kept',
  }),
  ARCHIVE_DIR: at('archive.dir', absolutePath.optional(), {
    meaning: 'absolute path of the folder of the archive; unset: no archive',
  }),
  ARCHIVE_KINDS: at('archive.kinds', archiveKinds, {
    default: ARCHIVE_KIND_NAMES.join(','),
    meaning: 'kinds that are archived, separated by commas',
  }),
  // A trade of the end of a day may arrive after it.
  ARCHIVE_AFTER_HOURS: at('archive.afterHours', wholeNumber(1, 720), {
    default: '6',
    meaning: 'hours after the end of a UTC day at which it is archived',
  }),
  // Late trades of a venue and comparisons with its totals concern the last weeks.
  ARCHIVE_KEEP_DAYS: at('archive.keepDays', wholeNumber(7, 36_500).optional(), {
    meaning:
      'days for which Postgres keeps archived trades and books, up to a week longer, and candles of 1m and 5m at least 45 days; unset: as long as the retention',
  }),
  ARCHIVE_URL: at('archive.store.url', parsedBy(parseStoreUrl).optional(), {
    shownDefault: 'none: the archive is in ARCHIVE_DIR only',
    meaning:
      'object store of the archive, s3://bucket/prefix; ARCHIVE_DIR is the folder of unfinished and fetched files then',
  }),
  ARCHIVE_S3_ENDPOINT: at('archive.store.endpoint', endpointUrl.optional(), {
    shownDefault: 'https://s3.<region>.amazonaws.com',
    meaning: 'address of the object store',
  }),
  ARCHIVE_S3_REGION: at('archive.store.region', printable, {
    default: 'us-east-1',
    meaning: 'region of the object store',
  }),
  ARCHIVE_S3_ACCESS_KEY_ID: at('archive.store.accessKeyId', printable.optional(), {
    meaning: 'id of the key of the object store',
    readers: ['api', 'aggregator'],
  }),
  ARCHIVE_S3_SECRET_ACCESS_KEY: at('archive.store.secretAccessKey', printable.optional(), {
    meaning: 'secret key of the object store',
    readers: ['api', 'aggregator'],
  }),
  ARCHIVE_CACHE_MB: at('archive.cacheBytes', megabytes(1, 100_000_000), {
    default: '20000',
    meaning: 'files that API processes fetched from the object store, megabytes; the least recently used ones go first',
  }),
  RETENTION_ATTEMPTS_DAYS: at('retention.attemptsDays', days, {
    default: '30',
    meaning: 'how long the attempts of finished deliveries are kept',
  }),
  RETENTION_EVENTS_DAYS: at('retention.eventsDays', days, {
    default: '90',
    meaning: 'how long events and their deliveries are kept; pending ones stay',
  }),
  RETENTION_OPS_ACTIONS_DAYS: at('retention.opsActionsDays', days, {
    default: '400',
    meaning: 'how long the audit trail is kept',
  }),
  // Less than this would evict answers at once; more than a process can address is a typing error.
  API_MEMORY_MB: at('apiMemoryBytes', megabytes(16, 65_536), {
    default: '512',
    meaning: 'memory of an API process for answers, open markets and their quotes, megabytes; from 16 to 65536',
  }),
  // One partition per ten minutes: many more would slow down every read.
  JOURNAL_RETENTION_MINUTES: at('journal.retentionMinutes', wholeNumber(10, 1_440), {
    default: '120',
    meaning: 'how long published changes are kept, for streams that resume; from 10 to 1440',
  }),
  JOURNAL_MAX_MB: at('journal.maxBytes', megabytes(64, 1_000_000), {
    default: '8192',
    meaning: 'size of the published changes, megabytes: beyond it the oldest ten minutes are dropped early',
  }),
  // Partitions are made two days ahead, and an alert fires after three hours without a run.
  MAINTAIN_STORAGE_MS: at('maintainStorageMs', wholeNumber(1_000, 3_600_000), {
    default: '3600000',
    meaning: 'interval of storage maintenance (partitions, retention), milliseconds; at most an hour',
  }),
  DECIMAL_FORMAT: at('decimalFormat', z.enum(['number', 'string']), {
    default: 'number',
    meaning: 'number or string: the JSON type of decimal fields',
  }),
  LOG_LEVEL: at('logLevel', z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']), {
    default: 'info',
    meaning: 'trace, debug, info, warn, error, fatal or silent',
  }),
};

type Table = typeof TABLE;
export type VariableName = keyof Table;

type Formats = { [Name in VariableName]: Table[Name]['parse'] };

export const SCHEMA = z.object(
  Object.fromEntries(Object.entries(TABLE).map(([name, { parse }]) => [name, parse])) as Formats,
);

/** The value of each variable. */
export type Values = z.output<typeof SCHEMA>;

type Fixed<T> = T extends readonly (infer Item)[] ? readonly Item[] : T;
type Nested<At extends string, T> = At extends `${infer Head}.${infer Rest}`
  ? { readonly [Key in Head]: Nested<Rest, T> }
  : undefined extends T
    ? { readonly [Key in At]?: Fixed<Exclude<T, undefined>> }
    : { readonly [Key in At]: Fixed<T> };
type Placed = {
  [Name in VariableName]: Table[Name] extends { at: infer At extends string } ? Nested<At, Values[Name]> : never;
}[VariableName];
type Intersected<Union> = (Union extends unknown ? (part: Union) => void : never) extends (all: infer All) => void
  ? All
  : never;

/** The values that have a place of their own in `Config`. */
export type Settings = Intersected<Placed>;

/** The same table, typed as variables: each may have a default. */
export const VARIABLES: Readonly<Record<VariableName, Variable>> = TABLE;
