import { isPossible, type ProbeFacts, type ProbeRange, rangeOf, type WindowFacts } from '../../domain/alerts/probe.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { observationBefore, quoteBefore } from './quote-in-effect.ts';
import { IS_IN_SCOPE } from './scopes.ts';
import { type ProbeRow, readTokenRules, type TokenRules } from './token-rules.ts';

/** A rule that the new observations of an outcome may fire. */
export interface Candidate {
  alertPk: bigint;
  /** The outcome; the market for a rule on the state of markets. */
  subject: bigint;
}

/**
 * SQL of joins: the newest kept observation of token `b` before a moment, as `o`; without one the quote in effect, as `q`. OFFSET 0 keeps
 * Postgres from reading them in any case.
 */
const joinPriceBefore = (o: string, q: string, moment: string, condition = 'true') =>
  `LEFT JOIN LATERAL (
     SELECT i.price FROM ${observationBefore('b.token_id', moment)} i WHERE ${condition} OFFSET 0) ${o} ON true
   LEFT JOIN LATERAL (
     SELECT h.price FROM ${quoteBefore('b.token_id', moment)} h WHERE ${o}.price IS NULL AND ${condition} OFFSET 0) ${q} ON true`;

/** SQL of the start of a window of `seconds` that ends with the new observations of `b`. */
const startOf = (seconds: string) => `(b.since - ${seconds} * interval '1 second')`;

/** SQL of the relation `b` of tokens ($1) with the first claimed moment ($2, epoch milliseconds), and with further columns ($3, ...). */
const observedSince = (...columns: { name: string; type: string }[]) => {
  const names = columns.map(({ name }) => name).join(', ');
  return `FROM (
     SELECT token_id, timestamptz 'epoch' + since_ms * interval '1 millisecond' AS since, ${names}
     FROM unnest($1::bigint[], $2::bigint[], ${columns.map(({ type }, index) => `$${index + 3}::${type}[]`).join(', ')})
       AS u (token_id, since_ms, ${names})) b`;
};

/** SQL of whether a threshold of `crosses_above` or `crosses_below` is on this side of the new prices `f`. Few outcomes have one. */
const MAY_CROSS = '(f.high >= b.least_above OR f.low <= b.greatest_below)';

/**
 * The new observations, those since the first claimed moment, with the price before them when a rule may be crossed; and those of the
 * longest window of the outcome, with the price before it: `trade_seconds` when a trade is among the new ones, else `seconds`. Postgres
 * converts `numeric` to `float8` through a text, so that the text is sent.
 */
const FACTS = sql(
  'rule_facts',
  `SELECT b.token_id, f.low, f.high, coalesce(o.price, q.price) AS before, f.least_spread, f.greatest_spread, f.notional,
     least(f.low, h.low, wo.price, wq.price) AS window_low, greatest(f.high, h.high, wo.price, wq.price) AS window_high,
     coalesce(f.total + h.total, f.total, h.total, 0) AS window_notional, wo.price IS NOT NULL AS is_observed
   ${observedSince(
     { name: 'seconds', type: 'int' },
     { name: 'trade_seconds', type: 'int' },
     { name: 'least_above', type: 'float8' },
     { name: 'greatest_below', type: 'float8' },
   )}
   CROSS JOIN LATERAL (
     SELECT min(o.price) AS low, max(o.price) AS high, min(o.ask - o.bid) AS least_spread, max(o.ask - o.bid) AS greatest_spread,
       max(o.price * o.size) AS notional, sum(o.price * o.size) AS total
     FROM observation o WHERE o.token_id = b.token_id AND o.received_at >= b.since AND o.n IS NOT NULL) f
   CROSS JOIN LATERAL (SELECT CASE WHEN f.notional IS NULL THEN b.seconds ELSE b.trade_seconds END AS seconds) w
   ${joinPriceBefore('o', 'q', 'b.since', MAY_CROSS)}
   LEFT JOIN LATERAL (
     SELECT * FROM (
       SELECT min(o.price) AS low, max(o.price) AS high, sum(o.price * o.size) AS total FROM observation o
       WHERE o.token_id = b.token_id AND o.received_at >= ${startOf('w.seconds')} AND o.received_at < b.since
         AND o.n IS NOT NULL) s
     WHERE w.seconds > 0 OFFSET 0) h ON true
   ${joinPriceBefore('wo', 'wq', startOf('w.seconds'), 'w.seconds > 0')}
   WHERE f.low IS NOT NULL`,
);

const WINDOWS = sql(
  'rule_windows',
  `SELECT b.token_id, b.seconds, least(f.low, o.price, q.price) AS low, greatest(f.high, o.price, q.price) AS high,
     coalesce(f.notional, 0) AS notional
   ${observedSince({ name: 'seconds', type: 'int' })}
   CROSS JOIN LATERAL (
     SELECT min(o.price) AS low, max(o.price) AS high, sum(o.price * o.size) AS notional FROM observation o
     WHERE o.token_id = b.token_id AND o.received_at >= ${startOf('b.seconds')} AND o.n IS NOT NULL) f
   ${joinPriceBefore('o', 'q', startOf('b.seconds'))}
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

/** The new observations of a token, and its longest window. `numeric` as text. */
interface FactsRow {
  tokenId: bigint;
  low: string;
  high: string;
  before: string | null;
  leastSpread: string | null;
  greatestSpread: string | null;
  notional: string | null;
  windowLow: string;
  windowHigh: string;
  windowNotional: string;
  /** Whether the price before the window is that of a kept observation. */
  isObserved: boolean;
}

interface WindowRow {
  tokenId: bigint;
  seconds: number;
  low: string;
  high: string;
  notional: string;
}

/** A rule of a token that is near its threshold. */
interface NearRow {
  tokenId: bigint;
  row: ProbeRow;
  facts: ProbeFacts;
  /** The longest window of the token, and its seconds. */
  longest: WindowFacts;
  longestSeconds: number;
}

/** The rules that observations since these moments may fire, epoch milliseconds by token. It takes no lock. */
export async function findCandidates(db: Queryable, sinceOf: ReadonlyMap<bigint, number>): Promise<Candidate[]> {
  const rulesOf = sinceOf.size === 0 ? new Map<bigint, TokenRules>() : await readTokenRules(db, [...sinceOf.keys()]);
  if (rulesOf.size === 0) return [];
  const tokens = [...rulesOf];
  const found = await db.query<FactsRow>(FACTS, [
    tokens.map(([tokenId]) => tokenId),
    tokens.map(([tokenId]) => sinceOf.get(tokenId) ?? 0),
    tokens.map(([, { seconds }]) => seconds),
    tokens.map(([, { tradeSeconds }]) => tradeSeconds),
    tokens.map(([, { leastAbove }]) => leastAbove),
    tokens.map(([, { greatestBelow }]) => greatestBelow),
  ]);
  const near = found.flatMap((row) => nearRules(row, rulesOf.get(row.tokenId)));
  const windowOf = await readWindows(db, near, sinceOf);
  const ranges = near.flatMap(({ tokenId, facts, row }) => {
    const range = metRange(row, facts, windowOf.get(windowKey(tokenId, row.probe.seconds)));
    return range ? [{ tokenId, scopeKey: row.scopeKey, probe: row.probe.text, ...range }] : [];
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

const numberOf = (text: string | null) => (text === null ? null : Number(text));

function nearRules(row: FactsRow, rules: TokenRules | undefined): NearRow[] {
  if (!rules) return [];
  const { tokenId, isObserved } = row;
  const facts: ProbeFacts = {
    low: Number(row.low),
    high: Number(row.high),
    before: numberOf(row.before),
    leastSpread: numberOf(row.leastSpread),
    greatestSpread: numberOf(row.greatestSpread),
    notional: numberOf(row.notional),
  };
  const longest = { low: Number(row.windowLow), high: Number(row.windowHigh), notional: Number(row.windowNotional) };
  const longestSeconds = facts.notional === null ? rules.seconds : rules.tradeSeconds;
  const near: NearRow[] = [];
  for (const rule of rules.rows) {
    if (!isPossible(rule.probe, facts)) continue;
    // The longest window contains the prices and trades of the shorter ones, unless their prices before are no observations.
    const isUnknown = rule.probe.seconds > 0 && !isObserved;
    if (isUnknown || metRange(rule, facts, longest)) near.push({ tokenId, row: rule, facts, longest, longestSeconds });
  }
  return near;
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
  for (const { tokenId, row, longest, longestSeconds } of near) {
    const { seconds } = row.probe;
    const key = windowKey(tokenId, seconds);
    if (seconds === 0) continue;
    if (seconds === longestSeconds) windowOf.set(key, longest);
    else missing.set(key, { tokenId, seconds });
  }
  if (missing.size === 0) return windowOf;
  const wanted = [...missing.values()];
  const rows = await db.query<WindowRow>(WINDOWS, [
    wanted.map(({ tokenId }) => tokenId),
    wanted.map(({ tokenId }) => sinceOf.get(tokenId) ?? 0),
    wanted.map(({ seconds }) => seconds),
  ]);
  for (const { tokenId, seconds, low, high, notional } of rows) {
    const window = { low: Number(low), high: Number(high), notional: Number(notional) };
    windowOf.set(windowKey(tokenId, seconds), window);
  }
  return windowOf;
}
