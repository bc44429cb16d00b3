import {
  isPossible,
  type ProbeFacts,
  type ProbeRange,
  rangeOf,
  type WindowFacts,
  windowOfProbe,
} from '../../domain/alerts/probe.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { quoteBefore } from './quote-in-effect.ts';
import { HAS_SCOPES, IS_IN_SCOPE, KEYS_OF_MARKET } from './scopes.ts';

/** A rule that the new observations of an outcome may fire. */
export interface Candidate {
  alertPk: bigint;
  /** The outcome; the market for a rule on the state of markets. */
  subject: bigint;
}

/** Index entries per step: more than the rules of most outcomes. */
const STEP = 16;

/**
 * SQL of one step in an index: the next active rules with this column value behind a probe. `last` is the last probe of a full step, of
 * which more rules may exist; the next step begins behind it.
 */
function nextRules(column: 'token_id' | 'scope_key', value: string, behind: string): string {
  return `(SELECT array_agg(e.probe) AS probes, array_agg(e.target) AS targets, CASE WHEN count(*) = ${STEP} THEN max(e.probe) END AS last
     FROM (SELECT a.probe, a.target FROM alert a WHERE a.${column} = ${value} AND a.status = 'active' AND a.${column} IS NOT NULL
       AND a.probe IS NOT NULL AND a.probe > ${behind} ORDER BY a.probe, a.target LIMIT ${STEP}) e HAVING count(*) > 0)`;
}

/**
 * The probes and thresholds of active rules on these tokens, in the order of the index: most tokens have none. It steps from probe to
 * probe, so that a hundred thousand rules on an outcome cost as much as sixteen.
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
   SELECT token_id, NULL AS scope_key, probes, targets, last FROM of_token
   UNION ALL SELECT k.token_id, k.key, p.probes, p.targets, p.last FROM keyed k JOIN of_key p ON p.key = k.key`,
);

/**
 * SQL of joins for the price of token `b` right before a moment: `o` has that of the newest kept observation. These may begin later: then
 * `q` has the quote in effect. OFFSET 0 keeps Postgres from reading it in any case.
 */
const joinPriceBefore = (moment: string) => `LEFT JOIN LATERAL (
     SELECT p.price, p.received_at FROM observation p WHERE p.token_id = b.token_id AND p.received_at < ${moment} AND p.n IS NOT NULL
     ORDER BY p.received_at DESC, p.n DESC LIMIT 1) o ON true
   LEFT JOIN LATERAL (SELECT h.price FROM ${quoteBefore('b.token_id', moment)} h WHERE o.price IS NULL OFFSET 0) q ON true`;

/** The new observations, those since the first claimed moment, and the price before them. */
const FACTS = sql(
  'rule_facts',
  `SELECT b.token_id, least(f.low, o.price, q.price)::float8 AS low, greatest(f.high, o.price, q.price)::float8 AS high,
     f.least_spread::float8 AS least_spread, f.greatest_spread::float8 AS greatest_spread, f.notional::float8 AS notional,
     coalesce(f.total, 0)::float8 AS total, coalesce(extract(epoch FROM b.since - o.received_at), 0)::float8 AS quiet_seconds
   FROM unnest($1::bigint[], $2::timestamptz[]) AS b (token_id, since)
   CROSS JOIN LATERAL (
     SELECT min(o.price) AS low, max(o.price) AS high, min(o.ask - o.bid) AS least_spread, max(o.ask - o.bid) AS greatest_spread,
       max(o.price * o.size) AS notional, sum(o.price * o.size) AS total
     FROM observation o WHERE o.token_id = b.token_id AND o.received_at >= b.since AND o.n IS NOT NULL) f
   ${joinPriceBefore('b.since')}
   WHERE f.low IS NOT NULL`,
);

const WINDOWS = sql(
  'rule_windows',
  `SELECT b.token_id, b.seconds, least(f.low, o.price, q.price)::float8 AS low, greatest(f.high, o.price, q.price)::float8 AS high,
     coalesce(f.notional, 0)::float8 AS notional, o.price IS NOT NULL AS is_observed
   FROM unnest($1::bigint[], $2::timestamptz[], $3::int[]) AS b (token_id, since, seconds)
   CROSS JOIN LATERAL (
     SELECT min(o.price) AS low, max(o.price) AS high, sum(o.price * o.size) AS notional FROM observation o
     WHERE o.token_id = b.token_id AND o.received_at >= b.since - b.seconds * interval '1 second' AND o.n IS NOT NULL) f
   ${joinPriceBefore(`(b.since - b.seconds * interval '1 second')`)}
   WHERE f.low IS NOT NULL`,
);

const CANDIDATES = sql(
  'rule_candidates',
  `WITH probed AS MATERIALIZED (
     SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::float8[], $5::float8[])
       AS c (token_id, scope_key, probe, low, high))
   SELECT a.pk AS alert_pk, c.token_id AS subject FROM probed c CROSS JOIN LATERAL (
     SELECT a.pk FROM alert a WHERE a.token_id = c.token_id AND a.probe = c.probe
       AND a.target BETWEEN c.low::numeric AND c.high::numeric AND a.status = 'active' AND a.probe IS NOT NULL) a
   WHERE c.scope_key IS NULL
   UNION ALL
   SELECT a.pk, c.token_id FROM probed c JOIN outcome o ON o.token_id = c.token_id JOIN market m ON m.id = o.market_id
   CROSS JOIN LATERAL (
     SELECT a.pk FROM alert a WHERE a.scope_key = c.scope_key AND a.probe = c.probe
       AND a.target BETWEEN c.low::numeric AND c.high::numeric AND a.status = 'active' AND a.scope_key IS NOT NULL
       AND ${IS_IN_SCOPE}) a
   WHERE c.scope_key IS NOT NULL`,
);

/** Rules of a token, or of a key of its market, in the order of their probes and thresholds. */
interface StepRow {
  tokenId: bigint;
  scopeKey: string | null;
  probes: string[];
  /** Approximate. Null for rules without a threshold. */
  targets: (number | null)[];
  last: string | null;
}

/** The rules of a token with one probe. */
interface ProbeRow {
  tokenId: bigint;
  scopeKey: string | null;
  probe: string;
  least: number;
  /** Infinite when it is unknown. */
  greatest: number;
}

function probesOf({ tokenId, scopeKey, probes, targets, last }: StepRow): ProbeRow[] {
  const rows: ProbeRow[] = [];
  for (const [place, probe] of probes.entries()) {
    const target = targets[place];
    if (target === null || target === undefined) continue;
    const row = rows.at(-1);
    if (row?.probe !== probe) rows.push({ tokenId, scopeKey, probe, least: target, greatest: target });
    else row.greatest = target;
  }
  const row = rows.at(-1);
  if (row !== undefined && row.probe === last) row.greatest = Number.POSITIVE_INFINITY;
  return rows;
}

/** The rules that observations since these moments may fire, epoch milliseconds by token. It takes no lock. */
export async function findCandidates(db: Queryable, sinceOf: ReadonlyMap<bigint, number>): Promise<Candidate[]> {
  const steps = sinceOf.size === 0 ? [] : await db.query<StepRow>(PROBES, [[...sinceOf.keys()]]);
  const probes = steps.flatMap(probesOf);
  if (probes.length === 0) return [];
  const since = (tokenId: bigint) => new Date(sinceOf.get(tokenId) ?? 0).toISOString();
  const tokenIds = [...new Set(probes.map(({ tokenId }) => tokenId))];
  const facts = await db.query<FactsRow>(FACTS, [tokenIds, tokenIds.map(since)]);
  const factsOf = new Map(facts.map((row) => [row.tokenId, row]));
  const possible = probes.filter(({ tokenId, probe }) => {
    const known = factsOf.get(tokenId);
    return known !== undefined && isPossible(probe, known);
  });
  const longest = longestWindows(possible);
  const windowOf = new Map<string, WindowRow>();
  await readWindows(
    db,
    [...longest].map(([tokenId, seconds]) => ({ tokenId, seconds })),
    { since, factsOf, windowOf },
  );
  const met = (row: ProbeRow, seconds: number): (ProbeRow & ProbeRange)[] => {
    const known = factsOf.get(row.tokenId);
    const range = known && rangeOf(row.probe, known, windowOf.get(windowKey(row.tokenId, seconds)));
    return range && range.from <= row.greatest && range.to >= row.least ? [{ ...row, ...range }] : [];
  };
  // The longest window of a token contains the prices and trades of the shorter ones, unless their prices before are no observations.
  const near = possible.filter((row) => {
    const seconds = windowOfProbe(row.probe) === 0 ? 0 : (longest.get(row.tokenId) ?? 0);
    return windowOf.get(windowKey(row.tokenId, seconds))?.isObserved === false || met(row, seconds).length > 0;
  });
  const own = near.map(({ tokenId, probe }) => ({ tokenId, seconds: windowOfProbe(probe) }));
  await readWindows(db, own, { since, factsOf, windowOf });
  const ranges = near.flatMap((row) => met(row, windowOfProbe(row.probe)));
  if (ranges.length === 0) return [];
  return db.query(CANDIDATES, [
    ranges.map(({ tokenId }) => tokenId),
    ranges.map(({ scopeKey }) => scopeKey),
    ranges.map(({ probe }) => probe),
    ranges.map(({ from }) => from),
    ranges.map(({ to }) => to),
  ]);
}

type FactsRow = ProbeFacts & {
  tokenId: bigint;
  /** The notional of all new trades. */
  total: number;
  /** Since the last kept observation before the new ones; 0 without one. */
  quietSeconds: number;
};

type WindowRow = WindowFacts & {
  tokenId: bigint;
  seconds: number;
  /** Whether the price before the window is that of a kept observation. */
  isObserved: boolean;
};

const windowKey = (tokenId: bigint, seconds: number) => `${tokenId} ${seconds}`;

/** The longest window of each token in seconds; tokens without a window are absent. */
function longestWindows(rows: readonly ProbeRow[]): Map<bigint, number> {
  const longest = new Map<bigint, number>();
  for (const { tokenId, probe } of rows) {
    const seconds = windowOfProbe(probe);
    if (seconds > (longest.get(tokenId) ?? 0)) longest.set(tokenId, seconds);
  }
  return longest;
}

interface WindowSearch {
  since: (tokenId: bigint) => string;
  factsOf: ReadonlyMap<bigint, FactsRow>;
  windowOf: Map<string, WindowRow>;
}

/** Adds the facts of these windows to `windowOf`. A window in which only the new observations lie has their facts, without a look-up. */
async function readWindows(
  db: Queryable,
  windows: readonly { tokenId: bigint; seconds: number }[],
  { since, factsOf, windowOf }: WindowSearch,
): Promise<void> {
  const missing = new Map<string, { tokenId: bigint; seconds: number }>();
  for (const { tokenId, seconds } of windows) {
    const key = windowKey(tokenId, seconds);
    if (seconds === 0 || windowOf.has(key)) continue;
    const facts = factsOf.get(tokenId);
    if (facts === undefined || facts.quietSeconds <= seconds) missing.set(key, { tokenId, seconds });
    else {
      const { low, high, total } = facts;
      windowOf.set(key, { tokenId, seconds, low, high, notional: total, isObserved: true });
    }
  }
  if (missing.size === 0) return;
  const wanted = [...missing.values()];
  const rows = await db.query<WindowRow>(WINDOWS, [
    wanted.map(({ tokenId }) => tokenId),
    wanted.map(({ tokenId }) => since(tokenId)),
    wanted.map(({ seconds }) => seconds),
  ]);
  for (const row of rows) windowOf.set(windowKey(row.tokenId, row.seconds), row);
}
