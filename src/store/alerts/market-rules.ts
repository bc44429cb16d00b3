import {
  type Correction,
  correctionsOf,
  type MarketChange,
  type MarketRule,
  marketFirings,
} from '../../domain/alerts/market-rule.ts';
import type { OutcomePayout } from '../../domain/markets/resolution.ts';
import { decimal } from '../../domain/values/decimal.ts';
import { payoutsOf } from '../catalog/market-resolutions.ts';
import { type Queryable, sql, type Tx } from '../db/tx.ts';
import {
  formerParts,
  IS_EVALUATED,
  lastFiring,
  lastFiringOf,
  OF_MARKETS,
  OF_TOKENS,
  RULE_FIELDS,
  RULE_WEBHOOK,
  type RuleFields,
  STARTS,
  wholeMs,
} from './rules.ts';
import { IS_IN_SCOPE, KEYS_OF_MARKET, MARKETS_IN_SCOPE } from './scopes.ts';

/** A rule on the state of one market. */
export interface MarketRuleRow extends RuleFields {
  /** The key of the market. */
  subject: bigint;
  tokenMint: string | null;
  venue: string;
  venueMarketId: string;
  title: string;
  lastN: bigint | null;
  lastMs: bigint | null;
}

export interface MarketFiring {
  row: MarketRuleRow;
  change: MarketChange;
}

/** A change of a result that an event of the alert has reported. */
interface MarketCorrection {
  row: MarketRuleRow;
  correction: Correction;
  /** Whether the change is a firing of its own. */
  isFiring: boolean;
}

interface MarketFirings {
  fired: MarketFiring[];
  /** The markets that `findCorrections` must look at: changed ones, and those of new rules, if a status alert fired on them before. */
  reported: bigint[];
  isCut: boolean;
}

interface MarketSearch {
  /** The first claimed moment of each changed market, epoch milliseconds. */
  changedOf: ReadonlyMap<bigint, number>;
  created: readonly bigint[];
  limit: number;
}

/**
 * Pairs of rules and markets: of changed markets by their keys and outcomes, and of new rules by their scope or token. A row without a rule
 * is one of these markets on which a status alert fired before. Firings on outcomes have a price.
 */
const PAIRS = sql(
  'market_rule_pairs',
  `WITH changed AS MATERIALIZED (SELECT unnest($1::bigint[]) AS market_id),
   pair AS MATERIALIZED (
   SELECT a.pk AS alert_pk, m.id AS market_id FROM changed c JOIN market m ON m.id = c.market_id
   CROSS JOIN LATERAL ${KEYS_OF_MARKET} k CROSS JOIN LATERAL (
     SELECT a.pk FROM alert a WHERE a.scope_key = k.key AND a.probe IN ${OF_MARKETS} AND a.status = 'active'
       AND a.scope_key IS NOT NULL AND ${IS_IN_SCOPE}) a
   UNION
   SELECT a.pk, c.market_id FROM changed c JOIN outcome o ON o.market_id = c.market_id CROSS JOIN LATERAL (
     SELECT a.pk FROM alert a WHERE a.token_id = o.token_id AND a.probe IN ${OF_TOKENS} AND a.status = 'active' AND a.probe IS NOT NULL) a
   UNION
   SELECT a.pk, o.market_id FROM alert a JOIN outcome o ON o.token_id = a.token_id
   WHERE a.pk = ANY ($2::bigint[]) AND ${IS_EVALUATED} AND a.probe IN ${OF_TOKENS}
   UNION
   SELECT a.pk, m.id FROM alert a CROSS JOIN LATERAL ${MARKETS_IN_SCOPE} m JOIN market u ON u.id = m.id
   WHERE a.pk = ANY ($2::bigint[]) AND ${IS_EVALUATED} AND a.probe IN ${OF_MARKETS} AND a.scope_key IS NOT NULL
     AND u.updated_at >= ${STARTS}
   UNION
   SELECT a.pk, m.id FROM alert a CROSS JOIN changed c JOIN market m ON m.id = c.market_id
   WHERE a.former IS NOT NULL AND ${IS_EVALUATED} AND a.probe IN ${OF_MARKETS}
     AND (a.scope_key IS NOT NULL AND ${IS_IN_SCOPE} OR EXISTS (SELECT FROM outcome o WHERE o.market_id = m.id AND o.token_id = a.token_id)))
   SELECT alert_pk, market_id FROM pair
   UNION ALL
   SELECT NULL, s.market_id FROM (SELECT market_id FROM changed UNION SELECT market_id FROM pair) s WHERE EXISTS (
     SELECT FROM alert_firing f JOIN alert a ON a.pk = f.alert_pk WHERE f.subject = s.market_id AND f.price IS NULL AND a.condition = 'status')`,
);

const ROWS = sql(
  'market_rule_rows',
  `SELECT ${RULE_FIELDS}, m.id AS subject, t.mint AS token_mint, m.venue, m.venue_market_id, m.title,
     f.n AS last_n, ${wholeMs('f.at')} AS last_ms
   FROM unnest($1::bigint[], $2::bigint[]) AS c (alert_pk, market_id) JOIN alert a ON a.pk = c.alert_pk
   JOIN market m ON m.id = c.market_id LEFT JOIN token t ON t.id = a.token_id ${RULE_WEBHOOK}
   ${lastFiring('c.market_id')}
   WHERE ${IS_EVALUATED} AND (f.n IS NULL OR a.former IS NOT NULL OR a.cooldown_seconds IS NOT NULL)`,
);

/** SQL of the status and the result of a former version `v` of a market, and of a present row `m`. */
export const FACTS_OF_VERSION = `v.facts ->> 'status' AS status, v.facts ->> 'winning_outcome_id' AS winner, v.facts ->> 'resolution' AS resolution,
       v.facts -> 'payouts' AS payouts`;
export const FACTS_OF_MARKET = `m.status, m.winning_outcome_id, m.resolution, ${payoutsOf('m.id')}`;
/** SQL of the result of a state `s` of a market, and of the states of the resolution that the market reached with it. */
export const resultOf = (marketId: string) => `s.winner, s.resolution, s.payouts, ARRAY(
       SELECT r.state FROM market_resolution r WHERE r.market_id = ${marketId} AND r.received_at = s.at AND r.is_report ORDER BY r.n) AS reached`;

/** The states of markets, in order, each with the one before it. */
const CHANGES = sql(
  'market_changes',
  `SELECT s.market_id, (extract(epoch FROM s.at) * 1000000)::bigint AS n, ${wholeMs('s.at')} AS at_ms, s.status,
     lag(s.status) OVER (PARTITION BY s.market_id ORDER BY s.at) AS former, ${resultOf('s.market_id')}
   FROM (
     SELECT v.market_id, v.known_from AS at, ${FACTS_OF_VERSION} FROM market_version v WHERE v.market_id = ANY ($1::bigint[])
     UNION ALL SELECT m.id, m.updated_at, ${FACTS_OF_MARKET} FROM market m WHERE m.id = ANY ($1::bigint[])) s
   ORDER BY s.market_id, s.at`,
);

/** A change with its time and its payouts as Postgres sends them. */
export type SentChange<Change extends MarketChange> = Omit<Change, 'atMs' | 'payouts'> & {
  atMs: bigint;
  payouts: [outcomeId: string, payout: string][] | null;
};

type ChangeRow = SentChange<MarketChange & { marketId: bigint }>;

export function received<Change extends MarketChange>({ atMs, payouts, ...row }: SentChange<Change>) {
  const paid = payouts?.map(([outcomeId, payout]): OutcomePayout => ({ outcomeId, payout: decimal(payout) }));
  return { ...row, atMs: Number(atMs), payouts: paid ?? null };
}

/** The known states of each market. */
export async function readMarketChanges(
  db: Queryable,
  marketPks: readonly bigint[],
): Promise<Map<bigint, MarketChange[]>> {
  const found = new Map<bigint, MarketChange[]>();
  if (marketPks.length === 0) return found;
  for (const { marketId, ...row } of await db.query<ChangeRow>(CHANGES, [marketPks])) {
    const list = found.get(marketId) ?? [];
    found.set(marketId, list);
    list.push(received<MarketChange>(row));
  }
  return found;
}

/** Finds the firings of rules on the state of markets. New rules are evaluated from their start. */
export async function findMarketFirings(tx: Tx, { changedOf, created, limit }: MarketSearch): Promise<MarketFirings> {
  if (changedOf.size === 0 && created.length === 0) return { fired: [], reported: [], isCut: false };
  const found = await tx.query<{ alertPk: bigint | null; marketId: bigint }>(PAIRS, [[...changedOf.keys()], created]);
  const reported = found.flatMap(({ alertPk, marketId }) => (alertPk === null ? [marketId] : []));
  const pairs = found.filter(({ alertPk }) => alertPk !== null);
  if (pairs.length === 0) return { fired: [], reported, isCut: false };
  const rows = await tx.query<MarketRuleRow>(ROWS, [
    pairs.map(({ alertPk }) => alertPk),
    pairs.map(({ marketId }) => marketId),
  ]);
  const changes = await readMarketChanges(tx, [...new Set(rows.map(({ subject }) => subject))]);
  const isNew = new Set(created);
  const fired = rows.flatMap((row) => {
    // Changes before the claimed ones may belong to a time in which the market was not in the scope.
    const sinceMs = row.isArmed && !isNew.has(row.pk) ? changedOf.get(row.subject) : undefined;
    const former = formerParts(row).map((part) => ({ row: part.row, rule: toMarketRule(part.row) }));
    const parts = row.isActive ? [...former, { row, rule: toMarketRule(row, sinceMs) }] : former;
    let last = lastFiringOf(row);
    return parts.flatMap((part) => {
      const firings = marketFirings(part.rule, changes.get(row.subject) ?? [], last);
      last = firings.at(-1) ?? last;
      return firings.map((change) => ({ row: part.row, change }));
    });
  });
  return { fired: fired.slice(0, limit), reported, isCut: fired.length > limit };
}

/** The status alerts that fired on these markets, in any state, because a correction ends no alert. Firings on outcomes have a price. */
const REPORTERS = sql(
  'market_rule_reporters',
  `SELECT ${RULE_FIELDS}, m.id AS subject, t.mint AS token_mint, m.venue, m.venue_market_id, m.title, NULL AS last_n, NULL AS last_ms, f.fired
   FROM (SELECT alert_pk, subject, array_agg(n) AS fired FROM alert_firing WHERE subject = ANY ($1::bigint[]) AND price IS NULL
         GROUP BY alert_pk, subject) f
   JOIN alert a ON a.pk = f.alert_pk JOIN market m ON m.id = f.subject LEFT JOIN token t ON t.id = a.token_id ${RULE_WEBHOOK}
   WHERE a.condition = 'status' ORDER BY a.pk`,
);

/**
 * The corrections on these markets for alerts that have reported a result. Call it after the insert of new firings. An earlier evaluation
 * has judged the changes before the first of `sinceMs`.
 */
export async function findCorrections(
  tx: Tx,
  marketPks: readonly bigint[],
  sinceMs: (row: MarketRuleRow) => number,
): Promise<MarketCorrection[]> {
  if (marketPks.length === 0) return [];
  const rows = await tx.query<MarketRuleRow & { fired: bigint[] }>(REPORTERS, [marketPks]);
  if (rows.length === 0) return [];
  const changes = await readMarketChanges(tx, [...new Set(rows.map(({ subject }) => subject))]);
  return rows.flatMap(({ fired, ...row }) => {
    const firings = new Set(fired);
    const fromMs = sinceMs(row);
    return correctionsOf(changes.get(row.subject) ?? [], ({ n }) => firings.has(n))
      .filter(({ change }) => change.atMs >= fromMs)
      .map((correction) => ({ row, correction, isFiring: firings.has(correction.change.n) }));
  });
}

/** `sinceMs` omits changes that an earlier evaluation has judged. */
function toMarketRule(row: RuleFields, sinceMs = Number.NEGATIVE_INFINITY): MarketRule {
  return {
    condition: row.condition as MarketRule['condition'],
    startMs: Math.max(Number(row.startMs), sinceMs),
    endMs: row.expiresMs === null ? Number.POSITIVE_INFINITY : Number(row.expiresMs),
    cooldownMs: row.cooldownSeconds === null ? null : row.cooldownSeconds * 1_000,
    states: row.states ?? undefined,
  };
}
