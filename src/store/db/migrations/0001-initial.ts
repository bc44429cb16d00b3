import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The first schema. Tables use surrogate bigint keys and store the venues' own ids; every decimal is `numeric`; append-only tables are
 * partitioned by time (trades and price history by month, observations by day).
 */
const STATEMENTS = [
  // --- owners ---------------------------------------------------------------------------------------------------------
  `CREATE TABLE account (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     name text NOT NULL UNIQUE,
     created_at timestamptz NOT NULL DEFAULT now()
   )`,
  `CREATE TABLE api_key (
     id text PRIMARY KEY,
     account_id bigint NOT NULL REFERENCES account (id),
     name text NOT NULL,
     secret_hash bytea NOT NULL UNIQUE,
     scopes text[] NOT NULL,
     created_at timestamptz NOT NULL DEFAULT now(),
     expires_at timestamptz,
     revoked_at timestamptz,
     last_used_at timestamptz
   )`,

  // One value sealed with the key ring: a process with another ring fails at start, not at the first delivery.
  `CREATE TABLE key_check (
     id smallint PRIMARY KEY DEFAULT 1 CHECK (id = 1),
     sealed text NOT NULL
   )`,

  // --- tokens and markets ---------------------------------------------------------------------------------------------
  // Alerts and outcomes refer to one token row, which the first writer inserts, so that no later step that links them can race.
  `CREATE TABLE token (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     mint text COLLATE "C" NOT NULL UNIQUE,
     symbol text,
     currency text NOT NULL DEFAULT 'USD',
     created_at timestamptz NOT NULL DEFAULT now()
   )`,
  // Search covers a limited length: a market with more words than a tsvector can hold (1 MB) would stop the catalog walk.
  `CREATE TABLE market (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     venue text COLLATE "C" NOT NULL,
     venue_market_id text COLLATE "C" NOT NULL,
     event_id text,
     title text NOT NULL,
     description text NOT NULL,
     category text,
     tags text[] NOT NULL,
     status text COLLATE "C" NOT NULL,
     has_book boolean NOT NULL,
     created_at timestamptz,
     open_at timestamptz,
     close_at timestamptz,
     resolved_at timestamptz,
     resolution text,
     winning_outcome_id text,
     resolution_criteria text,
     url text,
     content_hash bytea NOT NULL,
     updated_at timestamptz NOT NULL DEFAULT now(),
     search tsvector GENERATED ALWAYS AS (
       setweight(to_tsvector('simple', left(title, 2000)), 'A') ||
       setweight(to_tsvector('simple', left(description, 50000)), 'C')
     ) STORED,
     UNIQUE (venue, venue_market_id)
   )`,
  `CREATE INDEX market_search ON market USING gin (search)`,
  `CREATE INDEX market_by_status ON market (venue, status, id)`,
  // Volumes change with every poll. They are not on the market row, because its text index would make each change expensive.
  `CREATE TABLE market_stats (
     market_id bigint PRIMARY KEY REFERENCES market (id) ON DELETE CASCADE,
     volume numeric,
     volume_24h numeric,
     liquidity numeric
   ) WITH (fillfactor = 70)`,
  `CREATE TABLE outcome (
     token_id bigint PRIMARY KEY REFERENCES token (id),
     market_id bigint NOT NULL REFERENCES market (id) ON DELETE CASCADE,
     ordinal smallint NOT NULL,
     label text NOT NULL,
     payout numeric,
     UNIQUE (market_id, ordinal) DEFERRABLE INITIALLY DEFERRED
   )`,

  // --- observed data --------------------------------------------------------------------------------------------------
  `CREATE TABLE trade (
     token_id bigint NOT NULL,
     ts timestamptz NOT NULL,
     trade_id text COLLATE "C" NOT NULL,
     price numeric NOT NULL,
     size numeric NOT NULL,
     side smallint,
     PRIMARY KEY (token_id, ts, trade_id)
   ) PARTITION BY RANGE (ts)`,
  // No second index: an index on the time would prevent HOT updates.
  `CREATE TABLE latest_price (
     token_id bigint PRIMARY KEY,
     price numeric NOT NULL,
     bid numeric,
     ask numeric,
     as_of timestamptz NOT NULL,
     received_at timestamptz NOT NULL
   ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)`,
  `CREATE TABLE price_history (
     token_id bigint NOT NULL,
     received_at timestamptz NOT NULL,
     as_of timestamptz NOT NULL,
     price numeric NOT NULL,
     bid numeric,
     ask numeric,
     PRIMARY KEY (token_id, received_at)
   ) PARTITION BY RANGE (received_at)`,
  // The input of alert evaluation: each changed price and each trade print. Read by (token, received_at) only.
  `CREATE TABLE observation (
     token_id bigint NOT NULL,
     received_at timestamptz NOT NULL,
     venue_at timestamptz NOT NULL,
     price numeric NOT NULL
   ) PARTITION BY RANGE (received_at)`,
  `CREATE INDEX observation_by_token ON observation (token_id, received_at)`,
  `CREATE TABLE book_latest (
     token_id bigint PRIMARY KEY,
     as_of timestamptz NOT NULL,
     bids jsonb NOT NULL,
     asks jsonb NOT NULL
   ) WITH (fillfactor = 50)`,

  // --- derived data ---------------------------------------------------------------------------------------------------
  `CREATE TABLE candle (
     token_id bigint NOT NULL,
     interval_seconds int NOT NULL,
     bucket bigint NOT NULL,
     open numeric NOT NULL,
     high numeric NOT NULL,
     low numeric NOT NULL,
     close numeric NOT NULL,
     volume numeric NOT NULL,
     notional numeric NOT NULL,
     trades int NOT NULL,
     PRIMARY KEY (token_id, interval_seconds, bucket)
   ) WITH (fillfactor = 85)`,
  `CREATE TABLE snapshot (
     token_id bigint NOT NULL,
     ts bigint NOT NULL,
     price numeric NOT NULL,
     bid numeric,
     ask numeric,
     PRIMARY KEY (token_id, ts)
   )`,

  // --- marks ----------------------------------------------------------------------------------------------------------
  // Append-only, without unique key or upsert. Each stage defines the meaning of `detail`.
  `CREATE TABLE mark (
     id bigint GENERATED ALWAYS AS IDENTITY,
     stage text COLLATE "C" NOT NULL,
     shard smallint NOT NULL,
     key bigint NOT NULL,
     detail bigint NOT NULL,
     PRIMARY KEY (stage, shard, id)
   ) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000)`,
  `CREATE TABLE parked_mark (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     stage text NOT NULL,
     shard smallint NOT NULL,
     key bigint NOT NULL,
     detail bigint NOT NULL,
     error text NOT NULL,
     parked_at timestamptz NOT NULL DEFAULT now()
   )`,
  `CREATE TABLE poll_state (
     venue text NOT NULL,
     kind text NOT NULL,
     position text,
     lease_token text,
     lease_until timestamptz,
     last_attempt_at timestamptz,
     last_success_at timestamptz,
     last_error text,
     consecutive_failures int NOT NULL DEFAULT 0,
     PRIMARY KEY (venue, kind)
   )`,
  `CREATE TABLE quarantine (
     venue text NOT NULL,
     kind text NOT NULL,
     reason text NOT NULL,
     record_id text NOT NULL DEFAULT '',
     detail text NOT NULL,
     sample text NOT NULL,
     times bigint NOT NULL DEFAULT 1,
     first_seen_at timestamptz NOT NULL DEFAULT now(),
     last_seen_at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (venue, kind, reason, record_id)
   )`,

  // --- alerts, events, deliveries -------------------------------------------------------------------------------------
  `CREATE TABLE webhook_subscription (
     pk bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     id text COLLATE "C" NOT NULL UNIQUE,
     account_id bigint NOT NULL REFERENCES account (id),
     url text NOT NULL,
     events text[] NOT NULL,
     sealed_secret text NOT NULL,
     status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused')),
     pause_reason text,
     failing_since timestamptz,
     exhausted_count int NOT NULL DEFAULT 0,
     created_at timestamptz NOT NULL DEFAULT now(),
     deleted_at timestamptz
   )`,
  `CREATE INDEX webhook_subscription_of_account ON webhook_subscription (account_id, pk) WHERE deleted_at IS NULL`,
  `CREATE TABLE event (
     pk bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     id text COLLATE "C" NOT NULL UNIQUE,
     account_id bigint NOT NULL REFERENCES account (id),
     type text NOT NULL,
     body text NOT NULL,
     dedupe_key text UNIQUE,
     created_at timestamptz NOT NULL DEFAULT now()
   )`,
  `CREATE TABLE alert (
     pk bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     id text COLLATE "C" NOT NULL UNIQUE,
     account_id bigint NOT NULL REFERENCES account (id),
     token_id bigint NOT NULL REFERENCES token (id),
     condition text COLLATE "C" NOT NULL CHECK (condition IN ('above', 'below')),
     target numeric NOT NULL,
     status text COLLATE "C" NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'triggered', 'expired')),
     webhook_pk bigint REFERENCES webhook_subscription (pk),
     created_at timestamptz NOT NULL DEFAULT now(),
     triggered_at timestamptz,
     triggered_price numeric,
     event_id text
   )`,
  `CREATE INDEX alert_above ON alert (token_id, target) WHERE status = 'active' AND condition = 'above'`,
  `CREATE INDEX alert_below ON alert (token_id, target) WHERE status = 'active' AND condition = 'below'`,
  `CREATE INDEX alert_of_account ON alert (account_id, pk)`,
  `CREATE TABLE delivery (
     pk bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     id text COLLATE "C" NOT NULL UNIQUE,
     event_pk bigint NOT NULL REFERENCES event (pk),
     subscription_pk bigint NOT NULL REFERENCES webhook_subscription (pk),
     is_test boolean NOT NULL DEFAULT false,
     status text COLLATE "C" NOT NULL DEFAULT 'pending'
       CHECK (status IN ('pending', 'delivered', 'failed', 'cancelled')),
     attempt_count int NOT NULL DEFAULT 0,
     next_attempt_at timestamptz NOT NULL DEFAULT now(),
     locked_until timestamptz,
     last_status_code int,
     last_error text,
     created_at timestamptz NOT NULL DEFAULT now(),
     delivered_at timestamptz,
     UNIQUE (event_pk, subscription_pk)
   )`,
  `CREATE INDEX delivery_due ON delivery (subscription_pk, (attempt_count > 0), next_attempt_at)
     WHERE status = 'pending'`,
  `CREATE INDEX delivery_overdue ON delivery (next_attempt_at) WHERE status = 'pending'`,
  `CREATE TABLE delivery_attempt (
     delivery_pk bigint NOT NULL REFERENCES delivery (pk) ON DELETE CASCADE,
     attempt_number int NOT NULL,
     started_at timestamptz NOT NULL,
     duration_ms int NOT NULL,
     outcome text NOT NULL CHECK (outcome IN ('delivered', 'failed')),
     status_code int,
     error_code text,
     response_excerpt bytea,
     PRIMARY KEY (delivery_pk, attempt_number)
   )`,
] as const;

const TABLES = [
  'delivery_attempt',
  'delivery',
  'alert',
  'event',
  'webhook_subscription',
  'quarantine',
  'poll_state',
  'parked_mark',
  'mark',
  'snapshot',
  'candle',
  'book_latest',
  'observation',
  'price_history',
  'latest_price',
  'trade',
  'outcome',
  'market_stats',
  'market',
  'token',
  'key_check',
  'api_key',
  'account',
] as const;

export class Initial0001 implements MigrationInterface {
  readonly name = 'Initial1763712000001';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of TABLES) await runner.query(`DROP TABLE ${table}`);
  }
}
