import {
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

/** SQL of the first probe of the active rules with this column value, behind another one: one step in an index. */
function nextProbe(column: 'token_id' | 'scope_key', value: string, behind = ''): string {
  return `(SELECT a.probe FROM alert a WHERE a.${column} = ${value} AND a.status = 'active' AND a.${column} IS NOT NULL
     AND a.probe IS NOT NULL ${behind === '' ? '' : `AND a.probe > ${behind}`} ORDER BY a.probe LIMIT 1)`;
}

/**
 * The probes that active rules on these tokens have: most tokens have none. It steps from one probe to the next, so that a hundred thousand
 * rules on an outcome cost as much as one.
 */
const PROBES = sql(
  'rule_probes',
  `WITH RECURSIVE observed AS MATERIALIZED (SELECT unnest($1::bigint[]) AS token_id),
   keyed AS MATERIALIZED (
     SELECT t.token_id, k.key FROM observed t JOIN outcome o ON o.token_id = t.token_id JOIN market m ON m.id = o.market_id
     CROSS JOIN LATERAL ${KEYS_OF_MARKET} k WHERE ${HAS_SCOPES} AND k.key IS NOT NULL),
   of_token AS (
     SELECT t.token_id, f.probe FROM observed t CROSS JOIN LATERAL ${nextProbe('token_id', 't.token_id')} f
     UNION ALL
     SELECT p.token_id, f.probe FROM of_token p CROSS JOIN LATERAL ${nextProbe('token_id', 'p.token_id', 'p.probe')} f),
   of_key AS (
     SELECT k.key, f.probe FROM (SELECT DISTINCT key FROM keyed) k CROSS JOIN LATERAL ${nextProbe('scope_key', 'k.key')} f
     UNION ALL
     SELECT p.key, f.probe FROM of_key p CROSS JOIN LATERAL ${nextProbe('scope_key', 'p.key', 'p.probe')} f)
   SELECT token_id, NULL AS scope_key, probe FROM of_token
   UNION ALL SELECT k.token_id, k.key, p.probe FROM keyed k JOIN of_key p ON p.key = k.key`,
);

/** SQL of the price of a token right before a moment. The kept observations may begin later: then it is that of the quote in effect. */
const priceBefore = (moment: string) => `coalesce(
     (SELECT o.price FROM observation o WHERE o.token_id = b.token_id AND o.received_at < ${moment} AND o.n IS NOT NULL
      ORDER BY o.received_at DESC, o.n DESC LIMIT 1),
     (SELECT q.price FROM ${quoteBefore('b.token_id', moment)} q))`;

/** The new observations, those since the first claimed moment, and the price before them. */
const FACTS = sql(
  'rule_facts',
  `SELECT b.token_id, least(f.low, p.price)::float8 AS low, greatest(f.high, p.price)::float8 AS high,
     f.least_spread::float8 AS least_spread, f.greatest_spread::float8 AS greatest_spread, f.notional::float8 AS notional
   FROM unnest($1::bigint[], $2::timestamptz[]) AS b (token_id, since)
   CROSS JOIN LATERAL (
     SELECT min(o.price) AS low, max(o.price) AS high, min(o.ask - o.bid) AS least_spread, max(o.ask - o.bid) AS greatest_spread,
       max(o.price * o.size) AS notional
     FROM observation o WHERE o.token_id = b.token_id AND o.received_at >= b.since AND o.n IS NOT NULL) f
   CROSS JOIN LATERAL (SELECT ${priceBefore('b.since')} AS price) p
   WHERE f.low IS NOT NULL`,
);

const WINDOWS = sql(
  'rule_windows',
  `SELECT b.token_id, b.seconds, least(f.low, p.price)::float8 AS low, greatest(f.high, p.price)::float8 AS high,
     coalesce(f.notional, 0)::float8 AS notional
   FROM unnest($1::bigint[], $2::timestamptz[], $3::int[]) AS b (token_id, since, seconds)
   CROSS JOIN LATERAL (
     SELECT min(o.price) AS low, max(o.price) AS high, sum(o.price * o.size) AS notional FROM observation o
     WHERE o.token_id = b.token_id AND o.received_at >= b.since - b.seconds * interval '1 second' AND o.n IS NOT NULL) f
   CROSS JOIN LATERAL (SELECT ${priceBefore(`(b.since - b.seconds * interval '1 second')`)} AS price) p
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

interface ProbeRow {
  tokenId: bigint;
  scopeKey: string | null;
  probe: string;
}

/** The rules that observations since these moments may fire, epoch milliseconds by token. It takes no lock. */
export async function findCandidates(db: Queryable, sinceOf: ReadonlyMap<bigint, number>): Promise<Candidate[]> {
  const probes = sinceOf.size === 0 ? [] : await db.query<ProbeRow>(PROBES, [[...sinceOf.keys()]]);
  if (probes.length === 0) return [];
  const since = (tokenId: bigint) => new Date(sinceOf.get(tokenId) ?? 0).toISOString();
  const tokenIds = [...new Set(probes.map(({ tokenId }) => tokenId))];
  const facts = await db.query<ProbeFacts & { tokenId: bigint }>(FACTS, [tokenIds, tokenIds.map(since)]);
  const factsOf = new Map(facts.map((row) => [row.tokenId, row]));
  const windowOf = await readWindows(db, probes, since);
  const ranges = probes.flatMap((row): (ProbeRow & ProbeRange)[] => {
    const known = factsOf.get(row.tokenId);
    const range = known && rangeOf(row.probe, known, windowOf.get(`${row.tokenId} ${windowOfProbe(row.probe)}`));
    return range ? [{ ...row, ...range }] : [];
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

/** The facts of each window that a probe has, by token and seconds. */
async function readWindows(
  db: Queryable,
  probes: readonly ProbeRow[],
  since: (tokenId: bigint) => string,
): Promise<Map<string, WindowFacts>> {
  const wanted = new Map<string, { tokenId: bigint; seconds: number }>();
  for (const { tokenId, probe } of probes) {
    const seconds = windowOfProbe(probe);
    if (seconds > 0) wanted.set(`${tokenId} ${seconds}`, { tokenId, seconds });
  }
  if (wanted.size === 0) return new Map();
  const windows = [...wanted.values()];
  const rows = await db.query<WindowFacts & { tokenId: bigint; seconds: number }>(WINDOWS, [
    windows.map(({ tokenId }) => tokenId),
    windows.map(({ tokenId }) => since(tokenId)),
    windows.map(({ seconds }) => seconds),
  ]);
  return new Map(rows.map((row) => [`${row.tokenId} ${row.seconds}`, row]));
}
