import {
  isPossible,
  type Probe,
  type ProbeFacts,
  type ProbeRange,
  rangeOf,
  toProbe,
  type WindowFacts,
} from '../../domain/alerts/probe.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { observationBefore, quoteBefore } from './quote-in-effect.ts';
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
  return `(SELECT string_agg(e.probe || ' ' || e.target, ',') AS rules, CASE WHEN count(*) = ${STEP} THEN max(e.probe) END AS last
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
   SELECT token_id, NULL AS scope_key, rules, last FROM of_token
   UNION ALL SELECT k.token_id, k.key, p.rules, p.last FROM keyed k JOIN of_key p ON p.key = k.key`,
);

/** SQL of a join: the newest kept observation of token `b` before a moment, as `o`. */
const joinObserved = (o: string, moment: string) =>
  `LEFT JOIN LATERAL ${observationBefore('b.token_id', moment)} ${o} ON true`;

/** SQL of a join: without such an observation, the quote in effect, as `q`. OFFSET 0 keeps Postgres from reading it in any case. */
const joinQuote = (q: string, o: string, moment: string) =>
  `LEFT JOIN LATERAL (SELECT h.price FROM ${quoteBefore('b.token_id', moment)} h WHERE ${o}.price IS NULL OFFSET 0) ${q} ON true`;

/** SQL of the start of a window of `seconds` that ends with the new observations of `b`. */
const startOf = (seconds: string) => `(b.since - ${seconds} * interval '1 second')`;

/** SQL of the relation `b` of tokens ($1) with the first claimed moment ($2, epoch milliseconds), and with windows ($3, ...). */
const observedSince = (...windows: string[]) => `FROM (
     SELECT token_id, timestamptz 'epoch' + since_ms * interval '1 millisecond' AS since, ${windows.join(', ')}
     FROM unnest($1::bigint[], $2::bigint[], ${windows.map((_, index) => `$${index + 3}::int[]`).join(', ')})
       AS u (token_id, since_ms, ${windows.join(', ')})) b`;

/**
 * The new observations, those since the first claimed moment, with the price before them; and those of the longest window of the outcome,
 * with the price before it: `trade_seconds` when a trade is among the new ones, else `seconds`.
 */
const FACTS = sql(
  'rule_facts',
  `SELECT b.token_id, least(f.low, o.price, q.price)::float8 AS low, greatest(f.high, o.price, q.price)::float8 AS high,
     f.least_spread::float8 AS least_spread, f.greatest_spread::float8 AS greatest_spread, f.notional::float8 AS notional, w.seconds,
     least(f.low, h.low, wo.price, wq.price)::float8 AS window_low, greatest(f.high, h.high, wo.price, wq.price)::float8 AS window_high,
     (coalesce(f.total, 0) + coalesce(h.total, 0))::float8 AS window_notional, wo.price IS NOT NULL AS is_observed
   ${observedSince('seconds', 'trade_seconds')}
   CROSS JOIN LATERAL (
     SELECT min(o.price) AS low, max(o.price) AS high, min(o.ask - o.bid) AS least_spread, max(o.ask - o.bid) AS greatest_spread,
       max(o.price * o.size) AS notional, sum(o.price * o.size) AS total
     FROM observation o WHERE o.token_id = b.token_id AND o.received_at >= b.since AND o.n IS NOT NULL) f
   CROSS JOIN LATERAL (SELECT CASE WHEN f.notional IS NULL THEN b.seconds ELSE b.trade_seconds END AS seconds) w
   ${joinObserved('o', 'b.since')} ${joinQuote('q', 'o', 'b.since')}
   LEFT JOIN LATERAL (
     SELECT min(o.price) AS low, max(o.price) AS high, sum(o.price * o.size) AS total FROM observation o
     WHERE w.seconds > 0 AND o.token_id = b.token_id AND o.received_at >= ${startOf('w.seconds')} AND o.received_at < b.since
       AND o.n IS NOT NULL) h ON true
   ${joinObserved('wo', startOf('w.seconds'))} ${joinQuote('wq', 'wo', startOf('w.seconds'))}
   WHERE f.low IS NOT NULL`,
);

const WINDOWS = sql(
  'rule_windows',
  `SELECT b.token_id, b.seconds, least(f.low, o.price, q.price)::float8 AS low, greatest(f.high, o.price, q.price)::float8 AS high,
     coalesce(f.notional, 0)::float8 AS notional
   ${observedSince('seconds')}
   CROSS JOIN LATERAL (
     SELECT min(o.price) AS low, max(o.price) AS high, sum(o.price * o.size) AS notional FROM observation o
     WHERE o.token_id = b.token_id AND o.received_at >= ${startOf('b.seconds')} AND o.n IS NOT NULL) f
   ${joinObserved('o', startOf('b.seconds'))} ${joinQuote('q', 'o', startOf('b.seconds'))}
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
  /** `probe threshold`, separated by commas; null when none has a threshold. */
  rules: string | null;
  last: string | null;
}

/** The rules of a token with one probe. */
interface ProbeRow {
  scopeKey: string | null;
  probe: Probe;
  least: number;
  /** Infinite when it is unknown. */
  greatest: number;
}

/** The new observations of a token, and its longest window. */
interface FactsRow extends ProbeFacts {
  tokenId: bigint;
  /** Of the window; 0 without one. */
  seconds: number;
  windowLow: number;
  windowHigh: number;
  windowNotional: number;
  /** Whether the price before the window is that of a kept observation. */
  isObserved: boolean;
}

type WindowRow = WindowFacts & { tokenId: bigint; seconds: number };

/** Rules of a token that are near their thresholds, and the window that decides. */
interface NearRow {
  facts: FactsRow;
  row: ProbeRow;
}

/** The rules that observations since these moments may fire, epoch milliseconds by token. It takes no lock. */
export async function findCandidates(db: Queryable, sinceOf: ReadonlyMap<bigint, number>): Promise<Candidate[]> {
  const steps = sinceOf.size === 0 ? [] : await db.query<StepRow>(PROBES, [[...sinceOf.keys()]]);
  const rulesOf = new Map<bigint, ProbeRow[]>();
  for (const step of steps) {
    const rules = rulesOf.get(step.tokenId);
    if (rules) addRules(rules, step);
    else rulesOf.set(step.tokenId, addRules([], step));
  }
  if (rulesOf.size === 0) return [];
  const tokens = [...rulesOf];
  const found = await db.query<FactsRow>(FACTS, [
    tokens.map(([tokenId]) => tokenId),
    tokens.map(([tokenId]) => sinceOf.get(tokenId) ?? 0),
    tokens.map(([, rules]) => longestOf(rules.filter(({ probe }) => isPossible(probe, { notional: null })))),
    tokens.map(([, rules]) => longestOf(rules)),
  ]);
  const near: NearRow[] = [];
  for (const facts of found) {
    const window = { low: facts.windowLow, high: facts.windowHigh, notional: facts.windowNotional };
    for (const row of rulesOf.get(facts.tokenId) ?? []) {
      if (!isPossible(row.probe, facts)) continue;
      // The longest window contains the prices and trades of the shorter ones, unless their prices before are no observations.
      const isUnknown = row.probe.seconds > 0 && !facts.isObserved;
      if (isUnknown || metRange(row, facts, window)) near.push({ facts, row });
    }
  }
  const windowOf = await readWindows(db, near, sinceOf);
  const ranges = near.flatMap(({ facts, row }) => {
    const range = metRange(row, facts, windowOf.get(windowKey(facts.tokenId, row.probe.seconds)));
    return range ? [{ tokenId: facts.tokenId, scopeKey: row.scopeKey, probe: row.probe.text, ...range }] : [];
  });
  if (ranges.length === 0) return [];
  return db.query(CANDIDATES, [
    ranges.map(({ tokenId }) => tokenId),
    ranges.map(({ scopeKey }) => scopeKey),
    ranges.map(({ probe }) => probe),
    ranges.map(({ from }) => from),
    ranges.map(({ to }) => to),
  ]);
}

function addRules(rows: ProbeRow[], { scopeKey, rules, last }: StepRow): ProbeRow[] {
  let row: ProbeRow | undefined;
  for (const rule of rules?.split(',') ?? []) {
    const [text = '', threshold = ''] = rule.split(' ');
    const target = Number(threshold);
    if (row?.probe.text !== text) {
      row = { scopeKey, probe: toProbe(text), least: target, greatest: target };
      rows.push(row);
    } else row.greatest = target;
  }
  if (row !== undefined && row.probe.text === last) row.greatest = Number.POSITIVE_INFINITY;
  return rows;
}

function longestOf(rules: readonly ProbeRow[]): number {
  return rules.reduce((longest, { probe }) => Math.max(longest, probe.seconds), 0);
}

/** The thresholds of these rules that the observations may meet; null for none. */
function metRange(row: ProbeRow, facts: ProbeFacts, window: WindowFacts | undefined): ProbeRange | null {
  const range = rangeOf(row.probe, facts, window);
  return range && range.from <= row.greatest && range.to >= row.least ? range : null;
}

const windowKey = (tokenId: bigint, seconds: number) => `${tokenId} ${seconds}`;

/** The windows of these rules; the longest one of each token is known. */
async function readWindows(
  db: Queryable,
  near: readonly NearRow[],
  sinceOf: ReadonlyMap<bigint, number>,
): Promise<Map<string, WindowFacts>> {
  const windowOf = new Map<string, WindowFacts>();
  const missing = new Map<string, { tokenId: bigint; seconds: number }>();
  for (const { facts, row } of near) {
    const { tokenId, windowLow: low, windowHigh: high, windowNotional: notional } = facts;
    const { seconds } = row.probe;
    const key = windowKey(tokenId, seconds);
    if (seconds === 0) continue;
    if (seconds === facts.seconds) windowOf.set(key, { low, high, notional });
    else missing.set(key, { tokenId, seconds });
  }
  if (missing.size === 0) return windowOf;
  const wanted = [...missing.values()];
  const rows = await db.query<WindowRow>(WINDOWS, [
    wanted.map(({ tokenId }) => tokenId),
    wanted.map(({ tokenId }) => sinceOf.get(tokenId) ?? 0),
    wanted.map(({ seconds }) => seconds),
  ]);
  for (const row of rows) windowOf.set(windowKey(row.tokenId, row.seconds), row);
  return windowOf;
}
