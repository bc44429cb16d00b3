import { Partitions } from '../../src/store/db/partitions.ts';
import { sql } from '../../src/store/db/tx.ts';
import { type AlertWorld, anAlertWorld } from './alert-worlds.ts';

/**
 * Rules of eight conditions in turns, the first half of each sixteen on outcomes and the second half on markets. No batch reaches their
 * thresholds: prices move between 0.5 and 0.51.
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
   -- Multiples of 7 spread the conditions over all tokens.
   JOIN token t ON t.mint = 'bench-' || (CASE WHEN $4::bigint IS NULL THEN n * 7 % $3::bigint + 1 ELSE $4 END)
   JOIN outcome o ON o.token_id = t.id JOIN market m ON m.id = o.market_id`,
);
const ANALYZE = sql('bench_analyze_rules', 'ANALYZE alert, observation');
const INSERT_OBSERVATIONS = sql(
  'bench_observations',
  `INSERT INTO observation (token_id, received_at, venue_at, price, size)
   SELECT $1, now() - n * $3::float8 * interval '1 second', now(), 0.5 + (n % 100)::numeric / 10000, 10 FROM generate_series(1, $2::bigint) n`,
);

/** Adds rules of an account, spread over all tokens, or all of them on the token `only` and its market. */
export async function addRules(
  { test, tokens }: AlertWorld,
  accountId: bigint,
  rules: number,
  only?: number,
): Promise<void> {
  await test.db.query(INSERT_RULES, [accountId, rules, tokens, only ?? null]);
  await test.db.query(ANALYZE);
}

/** A database with this many active rules on outcomes and markets. Compared worlds have as many tokens. */
export async function aRuleWorld({ rules, tokens }: { rules: number; tokens: number }): Promise<AlertWorld> {
  const world = await anAlertWorld({ alerts: 0, tokens });
  await addRules(world, world.accountId, rules);
  return world;
}

/** Adds trades of the last day of an outcome, spread evenly. */
export async function addTrades({ test }: AlertWorld, tokenId: bigint, trades: number): Promise<void> {
  await new Partitions(test.db).ensure('observation', [Date.now() - 86_400_000, Date.now()]);
  await test.db.query(INSERT_OBSERVATIONS, [tokenId, trades, 86_400 / (trades + 1)]);
  await test.db.query(ANALYZE);
}
