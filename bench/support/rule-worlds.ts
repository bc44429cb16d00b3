import { DAY_MS } from '../../src/domain/values/durations.ts';
import { Partitions } from '../../src/store/db/partitions.ts';
import { sql } from '../../src/store/db/tx.ts';
import { type AlertWorld, anAlertWorld } from './alert-worlds.ts';

/**
 * Rules of eight conditions in turns, the first half of each sixteen on outcomes and the second half on markets. A hash chooses the token,
 * so that each token has its own mix. No batch reaches their thresholds: prices move between 0.5 and 0.51.
 */
const INSERT_RULES = sql(
  'bench_rules',
  `INSERT INTO alert (id, account_id, token_id, scope, scope_key, condition, target, direction, unit, window_seconds, probe, cooldown_seconds)
   SELECT 'rule-' || $1::bigint || '-' || n, $1, CASE WHEN k.of_market THEN NULL ELSE t.id END,
     CASE WHEN k.of_market THEN jsonb_build_object('market_id', m.venue_market_id) END,
     CASE WHEN k.of_market THEN 'm:' || m.venue_market_id END,
     c.condition, c.base + (n * 7919 % 300)::numeric / 1000 * c.base, c.direction, c.unit, c.seconds, c.probe, 3600
   FROM generate_series(1, $2::bigint) n
   CROSS JOIN LATERAL (SELECT n / 8 % 2 = 1 AS of_market) k
   JOIN (VALUES
     (0, 'above', 0.6, NULL, NULL, NULL, 'above'),
     (1, 'below', 0.1, NULL, NULL, NULL, 'below'),
     (2, 'crosses_above', 0.6, NULL, NULL, NULL, 'crosses_above'),
     (3, 'change', 0.3, 'up', 'absolute', 3600, 'change_absolute:3600'),
     (4, 'change', 50, NULL, 'percent', 86400, 'change_percent:86400'),
     (5, 'spread', 0.5, 'at_least', NULL, NULL, 'spread_at_least'),
     (6, 'trade', 1000000, NULL, NULL, NULL, 'trade'),
     (7, 'volume', 1000000, NULL, NULL, 3600, 'volume:3600'))
     AS c (k, condition, base, direction, unit, seconds, probe) ON c.k = n % 8
   JOIN token t ON t.mint = 'bench-' || $4::bigint * (1 + (hashint8extended(n, 0) & 9223372036854775807) % $3::bigint)
   JOIN outcome o ON o.token_id = t.id JOIN market m ON m.id = o.market_id`,
);
/** The visibility map too, which autovacuum keeps. */
const ANALYZE = sql('bench_analyze_rules', 'VACUUM (ANALYZE) alert, observation');
const INSERT_OBSERVATIONS = sql(
  'bench_observations',
  `INSERT INTO observation (token_id, received_at, venue_at, price, size)
   SELECT $1, now() - n * $3::float8 * interval '1 second', now(), 0.5 + (n % 100)::numeric / 10000, 10 FROM generate_series(1, $2::bigint) n`,
);

/** The price of each token of two days ago, as quotes that are seldom: a batch compares its prices with them. */
const INSERT_QUOTES = sql(
  'bench_quotes',
  `WITH quote AS MATERIALIZED (SELECT id, to_timestamp($1::float8 / 1000) AS at, 0.4999 AS price FROM token),
   latest AS (INSERT INTO latest_price (token_id, received_at, as_of, price) SELECT id, at, at, price FROM quote),
   history AS (INSERT INTO price_history (token_id, received_at, as_of, price) SELECT id, at, at, price FROM quote)
   INSERT INTO observation (token_id, received_at, venue_at, price) SELECT id, at, at, price FROM quote`,
);
const ANALYZE_QUOTES = sql('bench_analyze_quotes', 'ANALYZE latest_price, price_history, observation');

/** Tokens 1, 2, ..., `count`; with `step` 16 those of one shard. */
interface Spread {
  count: number;
  step?: number;
}

/** Adds rules of an account on these tokens and their markets. */
export async function addRules(
  { test }: AlertWorld,
  accountId: bigint,
  rules: number,
  { count, step = 1 }: Spread,
): Promise<void> {
  await test.db.query(INSERT_RULES, [accountId, rules, count, step]);
  await test.db.query(ANALYZE);
}

/** A database with this many active rules on outcomes and markets. Compared worlds have as many tokens. */
export async function aRuleWorld({
  rules,
  tokens,
  on = { count: tokens },
}: {
  rules: number;
  tokens: number;
  on?: Spread;
}): Promise<AlertWorld> {
  const world = await anAlertWorld({ alerts: 0, tokens });
  const { db } = world.test;
  const quotedMs = Date.now() - 2 * DAY_MS;
  for (const table of ['observation', 'price_history'] as const) await new Partitions(db).ensure(table, [quotedMs]);
  await db.query(INSERT_QUOTES, [quotedMs]);
  await db.query(ANALYZE_QUOTES);
  await addRules(world, world.accountId, rules, on);
  return world;
}

/** Adds trades of the last day of an outcome, spread evenly; the first one precedes the windows of a day. */
export async function addTrades({ test }: AlertWorld, tokenId: bigint, trades: number): Promise<void> {
  await new Partitions(test.db).ensure('observation', [Date.now() - 86_400_000, Date.now()]);
  await test.db.query(INSERT_OBSERVATIONS, [tokenId, trades, 86_400 / trades]);
  await test.db.query(ANALYZE);
}
