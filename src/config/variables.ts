interface Variable {
  /** The value of an unset or empty variable. */
  default?: string;
  /** The text for the table when the default is computed elsewhere. */
  shownDefault?: string;
  meaning: string;
}

/** Every environment variable that oddswire reads, in the order of the table. */
const TABLE = {
  HOST: { default: '127.0.0.1', meaning: 'API address' },
  PORT: { default: '8080', meaning: 'API port; 0 picks a free one' },
  DRAIN_DELAY_MS: {
    default: '0',
    meaning: 'milliseconds that a stopping API keeps answering while /health/ready returns 503; at most 5000',
  },
  HTTP_MAX_CONNECTIONS: { default: '10000', meaning: 'open connections to the API; further ones are closed' },
  HTTP_MAX_CONNECTIONS_PER_ADDRESS: {
    default: '1000',
    meaning: 'open connections from one address outside TRUSTED_PROXIES',
  },
  TRUSTED_PROXIES: {
    default: '',
    meaning: 'addresses or ranges of your own proxies, comma list; X-Forwarded-For of other clients is ignored',
  },
  CORS_ORIGINS: {
    default: '',
    meaning: 'origins whose pages may call the API from a browser, comma list, or *; empty: CORS is off',
  },
  RATE_LIMIT_PER_MINUTE: { default: '600', meaning: 'requests of an account per minute; 0: no limit' },
  COLD_READS_PER_MINUTE: {
    default: '60',
    meaning: 'reads of an account per minute that cause a request to a venue (unpolled books, old trades); 0: none',
  },
  STREAM_MAX_CONNECTIONS: {
    default: '10000',
    meaning: 'open streams of an API process; HTTP_MAX_CONNECTIONS does not count them',
  },
  STREAM_CONNECTIONS_PER_ACCOUNT: { default: '100', meaning: 'open streams of an account per API process' },
  STREAM_SUBSCRIPTIONS_PER_ACCOUNT: {
    default: '1000',
    meaning: 'subscriptions on the WebSockets of an account per API process',
  },
  STREAM_MESSAGES_PER_SECOND: {
    default: '10000',
    meaning: 'messages that the streams of an account get per second and API process; 0: no limit',
  },
  STREAM_HEARTBEAT_MS: { default: '15000', meaning: 'interval of heartbeats on streams, milliseconds; at most 60000' },
  STREAM_MAX_UNSENT_MB: {
    default: '256',
    meaning:
      'unsent messages of all slow readers of streams of an API process, megabytes; beyond it the slowest streams end',
  },
  DATABASE_URL: { shownDefault: 'embedded Postgres', meaning: 'Postgres 13 or newer' },
  DATABASE_DIRECT_URL: {
    shownDefault: 'DATABASE_URL',
    meaning:
      'the same database without the pooler, when DATABASE_URL is a PgBouncer in transaction mode: for LISTEN, migrations and queues in Postgres',
  },
  DATABASE_MIGRATE_URL: {
    shownDefault: 'DATABASE_DIRECT_URL',
    meaning:
      'the same database for the role that owns its schema, used by `oddswire migrate`; a process with this variable never migrates',
  },
  DATABASE_PREPARED: {
    shownDefault: 'on, or off with DATABASE_DIRECT_URL',
    meaning:
      'on or off: prepare statements by name; behind PgBouncer this needs 1.21 or newer with max_prepared_statements',
  },
  DATA_DIR: { default: './.data', meaning: 'folder of embedded Postgres and of locally generated keys' },
  REDIS_URL: {
    shownDefault: 'none: queues in Postgres',
    meaning:
      'Redis 6.2+ or Valkey for the queues: redis://[user:password@]host:port/db, redis-sentinel://[user:password@]host:port,host:port/master[?db=n&sentinelUsername=&sentinelPassword=], redis-cluster://[user:password@]host:port,host:port; rediss, rediss-sentinel, rediss-cluster with TLS',
  },
  QUEUE_PREFIX: {
    default: 'oddswire',
    meaning: 'namespace of the queues: key prefix on Redis; ignored on Postgres',
  },
  VENUES: { default: 'polymarket,kalshi,manifold,limitless', meaning: 'venues to poll, comma list' },
  POLYMARKET_GAMMA_URL: { default: 'https://gamma-api.polymarket.com', meaning: 'Polymarket metadata host' },
  POLYMARKET_CLOB_URL: { default: 'https://clob.polymarket.com', meaning: 'Polymarket orderbook host' },
  POLYMARKET_DATA_URL: { default: 'https://data-api.polymarket.com', meaning: 'Polymarket trades host' },
  KALSHI_API_URL: { default: 'https://external-api.kalshi.com/trade-api/v2', meaning: 'Kalshi trade API' },
  MANIFOLD_API_URL: { default: 'https://api.manifold.markets/v0', meaning: 'Manifold API' },
  LIMITLESS_API_URL: { default: 'https://api.limitless.exchange', meaning: 'Limitless API' },
  LIMITLESS_REQUESTS_PER_SECOND: {
    shownDefault: '3, the rate of its own clients',
    meaning: 'requests per second to Limitless, which publishes no limit',
  },
  JUPITER_API_URL: { default: 'https://api.jup.ag', meaning: 'Jupiter: prices and symbols of the venue solana' },
  JUPITER_API_KEY: { meaning: 'key of portal.jup.ag, which the default Jupiter host may require' },
  JUPITER_REQUESTS_PER_SECOND: {
    shownDefault: '0.5 without JUPITER_API_KEY, 1 with it',
    meaning: 'requests per second that a paid Jupiter key allows',
  },
  SOLANA_RPC_URL: {
    shownDefault: 'none: wallets of the venue solana off, its token prices on',
    meaning: 'Solana JSON-RPC node for wallets; may hold a key',
  },
  FEEDS: {
    default: 'on',
    meaning:
      "on, off, or the venues whose WebSocket feeds the streamer reads, comma list; polls read every venue's data anyway",
  },
  FEED_MARKETS: {
    default: '500',
    meaning:
      'markets per venue in the feed: first those with alerts, then those that clients read, then the most traded',
  },
  POLYMARKET_FEED_URL: {
    shownDefault: 'wss://ws-subscriptions-clob.polymarket.com/ws/market, or no feed with another POLYMARKET_CLOB_URL',
    meaning: 'Polymarket market channel',
  },
  KALSHI_FEED_URL: {
    shownDefault: 'wss://external-api-ws.kalshi.com/trade-api/ws/v2, or no feed with another KALSHI_API_URL',
    meaning: 'Kalshi WebSocket',
  },
  KALSHI_API_KEY_ID: { shownDefault: 'none: the Kalshi feed is off', meaning: 'id of a Kalshi API key, for its feed' },
  KALSHI_PRIVATE_KEY_FILE: {
    shownDefault: 'none: the Kalshi feed is off',
    meaning: 'PEM file with the private key of KALSHI_API_KEY_ID, RSA',
  },
  MANIFOLD_FEED_URL: {
    shownDefault: 'wss://api.manifold.markets/ws, or no feed with another MANIFOLD_API_URL',
    meaning: 'Manifold WebSocket',
  },
  LIMITLESS_FEED_URL: {
    shownDefault:
      'wss://ws.limitless.exchange/socket.io/?EIO=4&transport=websocket, or no feed with another LIMITLESS_API_URL',
    meaning: 'Limitless WebSocket',
  },
  POLL_MARKETS_MS: { default: '60000', meaning: 'interval of the catalog poll, milliseconds' },
  POLL_PRICES_MS: { default: '5000', meaning: 'interval of the price poll, milliseconds' },
  POLL_TRADES_MS: { default: '2000', meaning: 'interval of the trade poll, milliseconds' },
  POLL_BOOKS_MS: { default: '5000', meaning: 'interval of the orderbook poll of hot markets, milliseconds' },
  POLL_WALLETS_MS: { default: '10000', meaning: 'interval of polls of each watched wallet, milliseconds' },
  BOOTSTRAP_API_KEY: {
    meaning: 'a key of the bootstrap account with every scope, 16+ characters; created at start if absent',
  },
  SECRETS_KEYS: {
    shownDefault: 'generated in DATA_DIR with embedded Postgres, else required by the API and the deliverer',
    meaning: 'kid:base64(32 bytes), comma list; the first encrypts, all decrypt',
  },
  METRICS_PORT: {
    default: '9464',
    meaning: '/metrics and /health of each process; the runner assigns the following ports to further processes',
  },
  METRICS_HOST: { default: '127.0.0.1', meaning: 'address of /metrics and /health of each process' },
  WEBHOOK_RETRY_SCHEDULE: {
    default: '5,30,120,600,1800,7200,18000,36000,36000',
    meaning: 'seconds between delivery attempts',
  },
  WEBHOOK_TIMEOUT_MS: {
    default: '15000',
    meaning: 'deadline of an attempt, milliseconds: name look-up, connection, headers and body',
  },
  WEBHOOK_ALLOW_CIDRS: { default: '', meaning: 'private ranges that deliveries may reach, comma list' },
  WEBHOOK_DENY_CIDRS: {
    default: '',
    meaning: 'public ranges that deliveries must not reach, such as your own, comma list',
  },
  WEBHOOK_PROXY_URL: {
    shownDefault: 'none: direct connections',
    meaning: 'HTTP proxy of deliveries, http:// or https://, with CONNECT: for a fixed source address',
  },
  WEBHOOK_CA_FILE: { meaning: 'PEM file with extra certificate authorities for receivers' },
  CONSOLE: {
    default: 'on',
    meaning: 'on or off: whether the API serves the console at / for the owners of keys',
  },
  CONSOLE_PUBLIC_MARKET: {
    shownDefault: 'none',
    meaning: 'a market that visitors without a key see live on the start page of the console: <venue>/<market id>',
  },
  OPS_PASSWORD: {
    shownDefault: 'none; /ops is off without a password here and without stored operators',
    meaning: 'password of the operator named ops on /ops (reads and actions); 8+ characters',
  },
  OPS_VIEWER_PASSWORD: {
    shownDefault: 'none',
    meaning: 'password of the operator named viewer on /ops (reads only); 8+ characters',
  },
  OPS_PUBLIC_URL: {
    shownDefault: 'none: plain http, for loopback',
    meaning:
      'address of /ops for browsers, such as https://ops.example.com; set it behind TLS, so that the session cookie is Secure',
  },
  OPS_HOSTS: {
    shownDefault: 'the host of OPS_PUBLIC_URL, else loopback names and IP addresses',
    meaning: 'further host names of /ops, comma list; requests for other names get 421, against DNS rebinding',
  },
  POLL_BOOKS_MARKETS: {
    default: '250',
    meaning: 'markets per venue whose books are polled: first markets that clients read, then the most traded',
  },
  QUOTA_WEBHOOKS: { default: '100', meaning: 'webhooks per account without a quota of its own' },
  QUOTA_ALERTS: { default: '10000', meaning: 'active alerts per account without a quota of its own' },
  QUOTA_WALLETS: { default: '100', meaning: 'watched wallets per account without a quota of its own' },
  QUOTA_KEYS: {
    default: '50',
    meaning: 'active API keys up to which an account without a quota of its own may make more',
  },
  RETENTION_TRADES_DAYS: { default: '3650', meaning: 'how long trades are kept; older trades are skipped' },
  RETENTION_PRICE_HISTORY_DAYS: { default: '730', meaning: 'how long price history is kept for as_of reads' },
  RETENTION_BOOK_HISTORY_DAYS: { default: '7', meaning: 'how long book history is kept for as_of reads; at most 400' },
  RETENTION_OBSERVATIONS_DAYS: { default: '7', meaning: 'how long the evidence for alerts is kept' },
  RETENTION_ATTEMPTS_DAYS: { default: '30', meaning: 'how long the attempts of finished deliveries are kept' },
  RETENTION_EVENTS_DAYS: { default: '90', meaning: 'how long events and their deliveries are kept; pending ones stay' },
  RETENTION_OPS_ACTIONS_DAYS: { default: '400', meaning: 'how long the audit trail is kept' },
  API_MEMORY_MB: {
    default: '512',
    meaning: 'memory of an API process for answers, open markets and their quotes, megabytes; from 16 to 65536',
  },
  JOURNAL_RETENTION_MINUTES: {
    default: '120',
    meaning: 'how long published changes are kept, for streams that resume; from 10 to 1440',
  },
  JOURNAL_MAX_MB: {
    default: '8192',
    meaning: 'size of the published changes, megabytes: beyond it the oldest ten minutes are dropped early',
  },
  MAINTAIN_STORAGE_MS: {
    default: '3600000',
    meaning: 'interval of storage maintenance (partitions, retention), milliseconds; at most an hour',
  },
  DECIMAL_FORMAT: { default: 'number', meaning: 'number or string: the JSON type of decimal fields' },
  LOG_LEVEL: { default: 'info', meaning: 'trace, debug, info, warn, error, fatal or silent' },
} satisfies Record<string, Variable>;

export type VariableName = keyof typeof TABLE;

/** The same table, typed as variables: each may have a default. */
export const VARIABLES: Readonly<Record<VariableName, Variable>> = TABLE;
