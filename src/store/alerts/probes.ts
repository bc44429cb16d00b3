import type { ProbeFacts, ProbeRange, WindowFacts } from '../../domain/alerts/condition.ts';
import { isPossible, rangeOf } from '../../domain/alerts/conditions.ts';
import { MAX_DIGITS } from '../../domain/values/decimal.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { type Candidate, observationBefore, quoteBefore } from './rules.ts';
import { IS_IN_SCOPE } from './scopes.ts';
import { type ProbeRow, readTokenRules, type TokenRules } from './token-rules.ts';
import { firstUnknownMs, type KnownPrices, type KnownWindows, type WindowMemory } from './windows.ts';

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

/** SQL of a time of `b` in epoch milliseconds. */
const timeOf = (ms: string) => `(timestamptz 'epoch' + ${ms} * interval '1 millisecond')`;

/**
 * The new observations, those since the first claimed moment, with the price before them when a rule may be crossed; and those of a window
 * since `from_ms`, with the price before it when `reads_before` is 1. With a trade among the new ones it is the window since
 * `trade_from_ms`, unless that is 0. Postgres converts `numeric` to `float8` through a text, so that the text is sent.
 */
const FACTS = sql(
  'rule_facts',
  `SELECT b.token_id, f.low, f.high, coalesce(o.price, q.price) AS before, f.least_spread, f.greatest_spread, f.notional,
     least(f.low, h.low, wo.price, wq.price) AS window_low, greatest(f.high, h.high, wo.price, wq.price) AS window_high,
     coalesce(f.total + h.total, f.total, h.total, 0) AS window_notional, wo.price IS NOT NULL AS is_observed
   ${observedSince(
     { name: 'from_ms', type: 'bigint' },
     { name: 'reads_before', type: 'int' },
     { name: 'trade_from_ms', type: 'bigint' },
     { name: 'least_above', type: 'float8' },
     { name: 'greatest_below', type: 'float8' },
   )}
   CROSS JOIN LATERAL (
     SELECT min(o.price) AS low, max(o.price) AS high, min(o.ask - o.bid) AS least_spread, max(o.ask - o.bid) AS greatest_spread,
       max(o.price * o.size) AS notional, sum(o.price * o.size) AS total
     FROM observation o WHERE o.token_id = b.token_id AND o.received_at >= b.since AND o.n IS NOT NULL) f
   CROSS JOIN LATERAL (SELECT f.notional IS NOT NULL AND b.trade_from_ms > 0 AS is_trade) t
   CROSS JOIN LATERAL (
     SELECT ${timeOf('(CASE WHEN t.is_trade THEN b.trade_from_ms ELSE b.from_ms END)')} AS start,
       t.is_trade OR b.reads_before = 1 AS reads_before) w
   ${joinPriceBefore('o', 'q', 'b.since', MAY_CROSS)}
   LEFT JOIN LATERAL (
     SELECT * FROM (
       SELECT min(o.price) AS low, max(o.price) AS high, sum(o.price * o.size) AS total FROM observation o
       WHERE o.token_id = b.token_id AND o.received_at >= w.start AND o.received_at < b.since AND o.n IS NOT NULL) s
     WHERE w.start < b.since OFFSET 0) h ON true
   ${joinPriceBefore('wo', 'wq', 'w.start', 'w.reads_before')}
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

/** SQL of the condition that the threshold of alert `a` is in the range `c`. Old versions of Postgres have no infinite `numeric`. */
const IS_IN_RANGE = `a.target BETWEEN c.low::numeric AND CASE WHEN c.high < 'infinity' THEN c.high::numeric ELSE 1e${MAX_DIGITS} END`;

const CANDIDATES = sql(
  'rule_candidates',
  `WITH probed AS MATERIALIZED (
     SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::float8[], $5::float8[])
       AS c (token_id, scope_key, probe, low, high))
   SELECT a.pk AS alert_pk, c.token_id AS subject FROM probed c CROSS JOIN LATERAL (
     SELECT a.pk FROM alert a WHERE a.token_id = c.token_id AND a.probe = c.probe
       AND ${IS_IN_RANGE} AND a.status = 'active' AND a.probe IS NOT NULL) a
   WHERE c.scope_key IS NULL
   UNION ALL
   SELECT a.pk, c.token_id FROM probed c JOIN outcome o ON o.token_id = c.token_id JOIN market m ON m.id = o.market_id
   CROSS JOIN LATERAL (
     SELECT a.pk FROM alert a WHERE a.scope_key = c.scope_key AND a.probe = c.probe
       AND ${IS_IN_RANGE} AND a.status = 'active' AND a.scope_key IS NOT NULL
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

/** The reading of a token. Times are epoch milliseconds. */
interface TokenRead {
  tokenId: bigint;
  rules: TokenRules;
  claimedMs: number;
  /** The first claimed moment, or an earlier one at which the known prices end. */
  sinceMs: number;
  /** The begin of its longest window of prices that needs reading. */
  startMs: number;
  /** The prices of this window that need no reading. */
  known: KnownPrices | undefined;
}

/** A rule of a token that is near its threshold. */
interface NearRow {
  tokenId: bigint;
  row: ProbeRow;
  facts: ProbeFacts;
  /** The longest window of the token, and its seconds; 0 when older prices are among them. */
  longest: WindowFacts;
  longestSeconds: number;
}

/**
 * The rules that observations since these moments may fire, epoch milliseconds by token: by their present conditions, or perhaps by former
 * ones. It takes no lock. The memory is that of this process for this database.
 */
export async function findByProbes(
  db: Queryable,
  sinceOf: ReadonlyMap<bigint, number>,
  memory: WindowMemory,
): Promise<Candidate[]> {
  if (sinceOf.size === 0) return [];
  const { rulesOf, former } = await readTokenRules(db, [...sinceOf.keys()]);
  if (rulesOf.size === 0) return former;
  const windows = await memory.windowsOf(db);
  const readOf = new Map<bigint, TokenRead>();
  for (const [tokenId, rules] of rulesOf) {
    const claimedMs = sinceOf.get(tokenId) ?? 0;
    const startMs = claimedMs - rules.seconds * 1_000;
    const known = rules.seconds === 0 ? undefined : windows.find(tokenId, startMs, rules.seconds);
    const sinceMs = known ? Math.min(claimedMs, firstUnknownMs(known)) : claimedMs;
    readOf.set(tokenId, { tokenId, rules, claimedMs, sinceMs, startMs: known ? sinceMs : startMs, known });
  }
  const reads = [...readOf.values()];
  const found = await db.query<FactsRow>(FACTS, [
    reads.map(({ tokenId }) => tokenId),
    reads.map(({ sinceMs }) => sinceMs),
    reads.map(({ startMs }) => startMs),
    reads.map(({ rules, known }) => (rules.seconds > 0 && !known ? 1 : 0)),
    reads.map(({ rules, claimedMs }) => (rules.volumeSeconds > 0 ? claimedMs - secondsOfTrade(rules) * 1_000 : 0)),
    reads.map(({ rules }) => rules.leastAbove),
    reads.map(({ rules }) => rules.greatestBelow),
  ]);
  const near: NearRow[] = [];
  for (const row of found) {
    const read = readOf.get(row.tokenId);
    if (read) addNear(near, row, read, windows);
  }
  const windowOf = await readWindows(db, near, sinceOf);
  const ranges = near.flatMap(({ tokenId, facts, row }) => {
    const range = metRange(row, facts, windowOf.get(windowKey(tokenId, row.probe.seconds)));
    return range ? [{ tokenId, scopeKey: row.scopeKey, probe: row.probe.text, ...range }] : [];
  });
  if (ranges.length === 0) return former;
  const met = await db.query<Candidate>(CANDIDATES, [
    ranges.map(({ tokenId }) => tokenId),
    ranges.map(({ scopeKey }) => scopeKey),
    ranges.map(({ probe }) => probe),
    ranges.map(({ from }) => from),
    ranges.map(({ to }) => to),
  ]);
  return [...former, ...met];
}

const secondsOfTrade = ({ seconds, volumeSeconds }: TokenRules) => Math.max(seconds, volumeSeconds);

const numberOf = (text: string | null) => (text === null ? null : Number(text));

function addNear(near: NearRow[], row: FactsRow, read: TokenRead, windows: KnownWindows): void {
  const { tokenId, rules, claimedMs, startMs } = read;
  const facts: ProbeFacts = {
    low: Number(row.low),
    high: Number(row.high),
    before: numberOf(row.before),
    leastSpread: numberOf(row.leastSpread),
    greatestSpread: numberOf(row.greatestSpread),
    notional: numberOf(row.notional),
  };
  const longest = { low: Number(row.windowLow), high: Number(row.windowHigh), notional: Number(row.windowNotional) };
  const isTrade = facts.notional !== null && rules.volumeSeconds > 0;
  const known = isTrade ? undefined : read.known;
  if (known) {
    longest.low = known.low = Math.min(known.low, longest.low);
    longest.high = known.high = Math.max(known.high, longest.high);
    known.untilMs = Math.max(known.untilMs, claimedMs);
  } else if (row.isObserved && !isTrade) {
    windows.keep(tokenId, { fromMs: startMs, untilMs: claimedMs, low: longest.low, high: longest.high });
  }
  const isObserved = known !== undefined || row.isObserved;
  const longestSeconds = read.known ? 0 : isTrade ? secondsOfTrade(rules) : rules.seconds;
  for (const rule of rules.rows) {
    if (!isPossible(rule.probe, facts)) continue;
    // The longest window contains the prices and trades of the shorter ones, unless their prices before are no observations.
    const isUnknown = rule.probe.seconds > 0 && !isObserved;
    if (isUnknown || metRange(rule, facts, longest)) near.push({ tokenId, row: rule, facts, longest, longestSeconds });
  }
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
