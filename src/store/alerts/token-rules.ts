import { isPossible, type Probe, toProbe } from '../../domain/alerts/conditions.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { type Candidate, IS_EVALUATED, OF_MARKETS } from './rules.ts';
import { HAS_SCOPES, IS_IN_SCOPE, KEYS_OF_MARKET } from './scopes.ts';

/** Index entries per step: more than the rules of most outcomes. */
const STEP = 16;

/**
 * SQL of one step in an index: the next active rules with this column value behind a probe. `last` is the last probe of a full step, of
 * which more rules may exist; the next step begins behind it.
 */
function nextRules(column: 'token_id' | 'scope_key', value: string, behind: string): string {
  return `(SELECT string_agg(e.probe || ' ' || e.target, ',') AS rules, CASE WHEN count(*) = ${STEP} THEN max(e.probe) END AS last
     FROM (SELECT a.probe, a.target FROM alert a WHERE a.${column} = ${value} AND a.status = 'active' AND a.${column} IS NOT NULL
       AND a.probe IS NOT NULL AND a.probe > ${behind} ORDER BY a.probe, a.target LIMIT ${STEP}) e HAVING count(*) > 0)`;
}

/** SQL of whether rule `a` on outcomes has former conditions that are evaluated: no index finds them by their thresholds. Few rules have one. */
const HAS_FORMER = `a.former IS NOT NULL AND ${IS_EVALUATED} AND a.condition NOT IN ${OF_MARKETS}`;

/**
 * The probes and thresholds of active rules on these tokens, in the order of the index: most tokens have none. It steps from probe to
 * probe, so that a hundred thousand rules on an outcome cost as much as sixteen. Also the rules with former conditions.
 */
const PROBES = sql(
  'rule_probes',
  `WITH RECURSIVE observed AS MATERIALIZED (SELECT unnest($1::bigint[]) AS token_id),
   keyed AS MATERIALIZED (
     SELECT t.token_id, k.key FROM observed t JOIN outcome o ON o.token_id = t.token_id JOIN market m ON m.id = o.market_id
     CROSS JOIN LATERAL ${KEYS_OF_MARKET} k WHERE ${HAS_SCOPES} AND k.key IS NOT NULL),
   of_token AS (
     SELECT t.token_id, f.* FROM observed t CROSS JOIN LATERAL ${nextRules('token_id', 't.token_id', `''`)} f
     UNION ALL
     SELECT p.token_id, f.* FROM of_token p CROSS JOIN LATERAL ${nextRules('token_id', 'p.token_id', 'p.last')} f
     WHERE p.last IS NOT NULL),
   of_key AS (
     SELECT k.key, f.* FROM (SELECT DISTINCT key FROM keyed) k CROSS JOIN LATERAL ${nextRules('scope_key', 'k.key', `''`)} f
     UNION ALL
     SELECT p.key, f.* FROM of_key p CROSS JOIN LATERAL ${nextRules('scope_key', 'p.key', 'p.last')} f WHERE p.last IS NOT NULL)
   SELECT token_id, NULL AS scope_key, rules, last, NULL::bigint AS former_pk FROM of_token
   UNION ALL SELECT k.token_id, k.key, p.rules, p.last, NULL FROM keyed k JOIN of_key p ON p.key = k.key
   UNION ALL SELECT t.token_id, NULL, NULL, NULL, a.pk FROM alert a JOIN observed t ON t.token_id = a.token_id WHERE ${HAS_FORMER}
   UNION ALL
   SELECT t.token_id, NULL, NULL, NULL, a.pk FROM alert a CROSS JOIN observed t JOIN outcome o ON o.token_id = t.token_id
   JOIN market m ON m.id = o.market_id WHERE ${HAS_FORMER} AND a.scope_key IS NOT NULL AND ${IS_IN_SCOPE}`,
);

/** Rules of a token, or of a key of its market, in the order of their probes and thresholds; or one rule with former conditions. */
interface StepRow {
  tokenId: bigint;
  formerPk: bigint | null;
  scopeKey: string | null;
  /** `probe threshold`, separated by commas; null when none has a threshold. */
  rules: string | null;
  last: string | null;
}

/** The rules of a token with one probe. */
export interface ProbeRow {
  scopeKey: string | null;
  probe: Probe;
  least: number;
  /** Infinite when it is unknown. */
  greatest: number;
}

/** The rules of a token. */
export interface TokenRules {
  rows: ProbeRow[];
  /** The longest window in seconds: of rules on prices, and of rules on volumes, which only a trade may fire. 0 without one. */
  seconds: number;
  volumeSeconds: number;
  /** The least threshold of `crosses_above`, and the greatest one of `crosses_below`. */
  leastAbove: number;
  greatestBelow: number;
}

/** The active rules with a probe on these tokens and on their markets, by token, and the rules with former conditions on them. */
export async function readTokenRules(
  db: Queryable,
  tokenIds: readonly bigint[],
): Promise<{ rulesOf: Map<bigint, TokenRules>; former: Candidate[] }> {
  const rulesOf = new Map<bigint, TokenRules>();
  const former: Candidate[] = [];
  for (const step of await db.query<StepRow>(PROBES, [tokenIds])) {
    if (step.formerPk !== null) {
      former.push({ alertPk: step.formerPk, subject: step.tokenId });
      continue;
    }
    let rules = rulesOf.get(step.tokenId);
    if (!rules) {
      rules = {
        rows: [],
        seconds: 0,
        volumeSeconds: 0,
        leastAbove: Number.POSITIVE_INFINITY,
        greatestBelow: Number.NEGATIVE_INFINITY,
      };
      rulesOf.set(step.tokenId, rules);
    }
    addRules(rules, step);
  }
  return { rulesOf, former };
}

function addRules(known: TokenRules, { scopeKey, rules, last }: StepRow): void {
  let row: ProbeRow | undefined;
  for (const rule of rules?.split(',') ?? []) {
    const space = rule.indexOf(' ');
    const text = rule.slice(0, space);
    const target = Number(rule.slice(space + 1));
    if (row?.probe.text === text) {
      row.greatest = target;
      continue;
    }
    if (row) addRow(known, row);
    row = { scopeKey, probe: toProbe(text), least: target, greatest: target };
  }
  if (!row) return;
  if (row.probe.text === last) row.greatest = Number.POSITIVE_INFINITY;
  addRow(known, row);
}

function addRow(known: TokenRules, row: ProbeRow): void {
  const { part, seconds } = row.probe;
  known.rows.push(row);
  if (isPossible(row.probe, { notional: null })) known.seconds = Math.max(known.seconds, seconds);
  else known.volumeSeconds = Math.max(known.volumeSeconds, seconds);
  if (part?.crosses === 'above') known.leastAbove = Math.min(known.leastAbove, row.least);
  if (part?.crosses === 'below') known.greatestBelow = Math.max(known.greatestBelow, row.greatest);
}
