import { type MarketChange, type MarketRule, marketFirings } from '../../domain/alerts/market-rule.ts';
import { type Queryable, sql, type Tx } from '../db/tx.ts';
import {
  lastFiring,
  lastFiringOf,
  OF_MARKETS,
  RULE_FIELDS,
  RULE_WEBHOOK,
  type RuleFields,
  wholeMs,
} from './rule-rows.ts';
import { IS_IN_SCOPE, KEYS_OF_MARKET, MARKETS_IN_SCOPE } from './scopes.ts';

/** A rule on the state of one market. */
export interface MarketRuleRow extends RuleFields {
  /** The key of the market. */
  subject: bigint;
  tokenMint: string | null;
  venue: string;
  venueMarketId: string;
  title: string;
  winningOutcomeId: string | null;
  lastN: bigint | null;
  lastMs: bigint | null;
}

export interface MarketFiring {
  row: MarketRuleRow;
  change: MarketChange;
}

interface MarketSearch {
  /** The first claimed moment of each changed market, epoch milliseconds. */
  changedOf: ReadonlyMap<bigint, number>;
  created: readonly bigint[];
  limit: number;
}

/** Pairs of rules and markets: of changed markets by their keys and outcomes, and of new rules by their scope or token. */
const PAIRS = sql(
  'market_rule_pairs',
  `WITH changed AS MATERIALIZED (SELECT unnest($1::bigint[]) AS market_id)
   SELECT a.pk AS alert_pk, m.id AS market_id FROM changed c JOIN market m ON m.id = c.market_id
   CROSS JOIN LATERAL ${KEYS_OF_MARKET} k CROSS JOIN LATERAL (
     SELECT a.pk FROM alert a WHERE a.scope_key = k.key AND a.probe IN ${OF_MARKETS} AND a.status = 'active'
       AND a.scope_key IS NOT NULL AND ${IS_IN_SCOPE}) a
   UNION
   SELECT a.pk, c.market_id FROM changed c JOIN outcome o ON o.market_id = c.market_id CROSS JOIN LATERAL (
     SELECT a.pk FROM alert a WHERE a.token_id = o.token_id AND a.probe = 'status' AND a.status = 'active' AND a.probe IS NOT NULL) a
   UNION
   SELECT a.pk, o.market_id FROM alert a JOIN outcome o ON o.token_id = a.token_id
   WHERE a.pk = ANY ($2::bigint[]) AND a.status = 'active' AND a.probe = 'status'
   UNION
   SELECT a.pk, m.id FROM alert a CROSS JOIN LATERAL ${MARKETS_IN_SCOPE} m JOIN market u ON u.id = m.id
   WHERE a.pk = ANY ($2::bigint[]) AND a.status = 'active' AND a.probe IN ${OF_MARKETS} AND a.scope_key IS NOT NULL
     AND u.updated_at >= date_trunc('milliseconds', coalesce(a.changed_at, a.created_at))`,
);

const ROWS = sql(
  'market_rule_rows',
  `SELECT ${RULE_FIELDS}, m.id AS subject, t.mint AS token_mint, m.venue, m.venue_market_id, m.title, m.winning_outcome_id,
     f.n AS last_n, ${wholeMs('f.at')} AS last_ms
   FROM unnest($1::bigint[], $2::bigint[]) AS c (alert_pk, market_id) JOIN alert a ON a.pk = c.alert_pk
   JOIN market m ON m.id = c.market_id LEFT JOIN token t ON t.id = a.token_id ${RULE_WEBHOOK}
   ${lastFiring('c.market_id')}
   WHERE a.status = 'active' AND (f.n IS NULL OR a.cooldown_seconds IS NOT NULL)`,
);

/** The states of markets, in order, each with the one before it. */
const CHANGES = sql(
  'market_changes',
  `SELECT s.market_id, (extract(epoch FROM s.at) * 1000000)::bigint AS n, ${wholeMs('s.at')} AS at_ms, s.status,
     lag(s.status) OVER (PARTITION BY s.market_id ORDER BY s.at) AS former
   FROM (
     SELECT v.market_id, v.known_from AS at, v.facts ->> 'status' AS status FROM market_version v WHERE v.market_id = ANY ($1::bigint[])
     UNION ALL SELECT m.id, m.updated_at, m.status FROM market m WHERE m.id = ANY ($1::bigint[])) s
   ORDER BY s.market_id, s.at`,
);

type ChangeRow = Omit<MarketChange, 'atMs'> & { marketId: bigint; atMs: bigint };

/** The known states of each market. */
export async function readMarketChanges(
  db: Queryable,
  marketPks: readonly bigint[],
): Promise<Map<bigint, MarketChange[]>> {
  const found = new Map<bigint, MarketChange[]>();
  if (marketPks.length === 0) return found;
  for (const { marketId, atMs, ...row } of await db.query<ChangeRow>(CHANGES, [marketPks])) {
    const list = found.get(marketId) ?? [];
    found.set(marketId, list);
    list.push({ ...row, atMs: Number(atMs) });
  }
  return found;
}

/** Finds the firings of rules on the state of markets. New rules are evaluated from their start. */
export async function findMarketFirings(
  tx: Tx,
  { changedOf, created, limit }: MarketSearch,
): Promise<{ fired: MarketFiring[]; isCut: boolean }> {
  if (changedOf.size === 0 && created.length === 0) return { fired: [], isCut: false };
  const pairs = await tx.query<{ alertPk: bigint; marketId: bigint }>(PAIRS, [[...changedOf.keys()], created]);
  if (pairs.length === 0) return { fired: [], isCut: false };
  const rows = await tx.query<MarketRuleRow>(ROWS, [
    pairs.map(({ alertPk }) => alertPk),
    pairs.map(({ marketId }) => marketId),
  ]);
  const changes = await readMarketChanges(tx, [...new Set(rows.map(({ subject }) => subject))]);
  const isNew = new Set(created);
  const fired = rows.flatMap((row) => {
    // Changes before the claimed ones may belong to a time in which the market was not in the scope.
    const sinceMs = row.isArmed && !isNew.has(row.pk) ? changedOf.get(row.subject) : undefined;
    const found = marketFirings(toMarketRule(row, sinceMs), changes.get(row.subject) ?? [], lastFiringOf(row));
    return found.map((change) => ({ row, change }));
  });
  return { fired: fired.slice(0, limit), isCut: fired.length > limit };
}

/** `sinceMs` omits changes that an earlier evaluation has judged. */
function toMarketRule(row: RuleFields, sinceMs = Number.NEGATIVE_INFINITY): MarketRule {
  return {
    condition: row.condition as MarketRule['condition'],
    startMs: Math.max(Number(row.startMs), sinceMs),
    endMs: row.expiresMs === null ? Number.POSITIVE_INFINITY : Number(row.expiresMs),
    cooldownMs: row.cooldownSeconds === null ? null : row.cooldownSeconds * 1_000,
  };
}
