interface Variable {
  /** The text used when the variable is unset or empty. */
  default?: string;
  /** The text that the table shows when the default is decided elsewhere. */
  shownDefault?: string;
  meaning: string;
}

/** Every environment variable oddswire reads, in the order of the table (DESIGN section 3). */
const TABLE = {
  HOST: { default: '127.0.0.1', meaning: 'API address' },
  PORT: { default: '8080', meaning: 'API port; 0 picks a free one' },
  DRAIN_DELAY_MS: {
    default: '0',
    meaning: 'how long the API, told to stop, goes on answering while its /health/ready says 503; at most 5000',
  },
  HTTP_MAX_CONNECTIONS: { default: '10000', meaning: 'connections to the API at once; more are closed' },
  HTTP_MAX_CONNECTIONS_PER_ADDRESS: {
    default: '1000',
    meaning: 'the same from one address that is not of TRUSTED_PROXIES',
  },
  TRUSTED_PROXIES: {
    default: '',
    meaning: 'addresses or ranges of your own proxies, comma list: only of them is X-Forwarded-For believed',
  },
  CORS_ORIGINS: {
    default: '',
    meaning: 'origins whose pages may call the API from a browser, comma list, or *; none: CORS is off',
  },
  RATE_LIMIT_PER_MINUTE: { default: '600', meaning: 'requests of an account per minute; 0: no limit' },
  COLD_READS_PER_MINUTE: {
    default: '60',
    meaning: 'reads of an account per minute that make us ask a venue: books nobody polls, old trades; 0: none',
  },
  DATABASE_URL: { shownDefault: 'embedded Postgres', meaning: 'Postgres 13 or newer' },
  DATABASE_DIRECT_URL: {
    shownDefault: 'DATABASE_URL',
    meaning:
      'the same database without the pooler, when DATABASE_URL is a PgBouncer in transaction mode: for LISTEN, migrations and queues in Postgres',
  },
  DATABASE_PREPARED: {
    shownDefault: 'on, or off with DATABASE_DIRECT_URL',
    meaning: 'on or off: prepare statements by name; behind PgBouncer only from 1.21 on with max_prepared_statements',
  },
  DATA_DIR: { default: './.data', meaning: 'where embedded Postgres and locally made keys live' },
  REDIS_URL: {
    shownDefault: 'none: queues in Postgres',
    meaning:
      'Redis 6.2+ or Valkey for the queues: redis://[user:password@]host:port/db, redis-sentinel://[user:password@]host:port,host:port/master[?db=n&sentinelUsername=&sentinelPassword=], redis-cluster://[user:password@]host:port,host:port; rediss, rediss-sentinel, rediss-cluster with TLS',
  },
  QUEUE_PREFIX: {
    default: 'oddswire',
    meaning: 'namespace of the queues: key prefix on Redis; no effect on Postgres',
  },
  VENUES: { default: 'polymarket,kalshi,manifold,limitless', meaning: 'which adapters run, comma-separated' },
  POLYMARKET_GAMMA_URL: { default: 'https://gamma-api.polymarket.com', meaning: 'Polymarket metadata host' },
  POLYMARKET_CLOB_URL: { default: 'https://clob.polymarket.com', meaning: 'Polymarket orderbook host' },
  POLYMARKET_DATA_URL: { default: 'https://data-api.polymarket.com', meaning: 'Polymarket trades host' },
  KALSHI_API_URL: { default: 'https://external-api.kalshi.com/trade-api/v2', meaning: 'Kalshi trade API' },
  MANIFOLD_API_URL: { default: 'https://api.manifold.markets/v0', meaning: 'Manifold API' },
  LIMITLESS_API_URL: { default: 'https://api.limitless.exchange', meaning: 'Limitless API' },
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
  POLL_MARKETS_MS: { default: '60000', meaning: 'cadence of the catalog poll, milliseconds' },
  POLL_PRICES_MS: { default: '5000', meaning: 'cadence of the price poll, milliseconds' },
  POLL_TRADES_MS: { default: '2000', meaning: 'cadence of the trade poll, milliseconds' },
  POLL_BOOKS_MS: { default: '5000', meaning: 'cadence of the orderbook poll of hot markets, milliseconds' },
  POLL_WALLETS_MS: { default: '10000', meaning: 'how often each watched wallet is looked at, milliseconds' },
  BOOTSTRAP_API_KEY: {
    meaning:
      'any string of 16+ characters: a key of the bootstrap account with every scope, created at start if absent',
  },
  SECRETS_KEYS: {
    shownDefault: 'made once in DATA_DIR with embedded Postgres, else required',
    meaning: 'kid:base64(32 bytes), comma list; the first encrypts, all decrypt',
  },
  METRICS_PORT: { default: '9464', meaning: '/metrics and /health of each process; the runner counts up from here' },
  METRICS_HOST: { default: '127.0.0.1', meaning: 'address of /metrics and /health of each process' },
  WEBHOOK_RETRY_SCHEDULE: {
    default: '5,30,120,600,1800,7200,18000,36000,36000',
    meaning: 'seconds between delivery attempts',
  },
  WEBHOOK_TIMEOUT_MS: { default: '15000', meaning: 'one deadline over name, connect, headers and body of an attempt' },
  WEBHOOK_ALLOW_CIDRS: { default: '', meaning: 'private ranges deliveries may reach, comma list' },
  WEBHOOK_CA_FILE: { meaning: 'PEM file with extra certificate authorities for receivers' },
  OPS_PASSWORD: {
    shownDefault: 'none; without either password /ops is off',
    meaning: 'logs in to /ops as operator, who looks and acts; 8+ characters',
  },
  OPS_VIEWER_PASSWORD: { shownDefault: 'none', meaning: 'logs in to /ops as viewer, who only looks; 8+ characters' },
  OPS_PUBLIC_URL: {
    shownDefault: 'none: plain http, for loopback',
    meaning:
      'where browsers reach /ops, such as https://ops.example.com; set it behind TLS, so that the session cookie is Secure',
  },
  POLL_BOOKS_MARKETS: {
    default: '250',
    meaning: 'markets per venue whose books are kept fresh: those that clients read, then the most traded',
  },
  QUOTA_WEBHOOKS: { default: '100', meaning: 'webhooks an account may have, unless it has a quota of its own' },
  QUOTA_ALERTS: { default: '10000', meaning: 'active alerts an account may have, unless it has a quota of its own' },
  QUOTA_WALLETS: { default: '100', meaning: 'wallets an account may watch, unless it has a quota of its own' },
  RETENTION_TRADES_DAYS: { default: '3650', meaning: 'trades older than this are neither accepted nor kept' },
  RETENTION_PRICE_HISTORY_DAYS: { default: '730', meaning: 'how far back as_of reads of prices reach' },
  RETENTION_BOOK_HISTORY_DAYS: { default: '7', meaning: 'how far back as_of reads of orderbooks reach; at most 400' },
  RETENTION_OBSERVATIONS_DAYS: { default: '7', meaning: 'how long the evidence for alerts is kept' },
  RETENTION_ATTEMPTS_DAYS: { default: '30', meaning: 'how long the attempts of deliveries that are over are kept' },
  RETENTION_EVENTS_DAYS: { default: '90', meaning: 'how long events and their deliveries are kept; pending ones stay' },
  RETENTION_OPS_ACTIONS_DAYS: { default: '400', meaning: 'how long the audit log of the operator pages is kept' },
  MAINTAIN_STORAGE_MS: {
    default: '3600000',
    meaning:
      'how often partitions are made and dropped and what is past its retention is deleted, milliseconds; an hour at most',
  },
  DECIMAL_FORMAT: { default: 'number', meaning: 'number or string: how decimal fields are written' },
  LOG_LEVEL: { default: 'info', meaning: 'trace, debug, info, warn, error, fatal or silent' },
} satisfies Record<string, Variable>;

export type VariableName = keyof typeof TABLE;

/** The same, seen as variables: every one may have a default or none. */
export const VARIABLES: Readonly<Record<VariableName, Variable>> = TABLE;
