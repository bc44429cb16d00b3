import { ALERT_CONDITIONS, type AlertCondition } from '../../domain/alerts/conditions.ts';
import { decimal } from '../../domain/values/decimal.ts';
import { IS_READ } from '../catalog/market-heat.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { findByProbes } from './probes.ts';
import {
  activeAlerts,
  type Candidate,
  comparisonOf,
  finalSince,
  firstMoment,
  IS_EVALUATED,
  OF_MARKETS,
  OF_TOKENS,
  quoteBefore,
  SPECIFIED_START,
  STARTS,
  sideOf,
  wholeMs,
} from './rules.ts';
import { HAS_SCOPES, IS_IN_SCOPE, KEYS_OF_MARKET, MARKETS_IN_SCOPE } from './scopes.ts';
import type { WindowMemory } from './windows.ts';

/*
 * Finds the alerts on outcomes that an evaluation judges: new ones, the ones with a probe that new observations may meet, and the alerts
 * of the specification, which have no probe. Of these there may be a hundred thousand on one outcome that one price meets, so their search
 * has a limit, and names none that does not fire: each search then makes progress.
 */

/** The limits of one evaluation. The remaining tokens keep their marks for the next claim. */
interface CandidateLimits {
  fired: number;
  firedPerToken: number;
}

interface CandidateSearch {
  /** Claimed moments of observations by token, epoch milliseconds. */
  observed: readonly { key: bigint; atMs: bigint }[];
  /** The first one of each token. */
  sinceOf: ReadonlyMap<bigint, number>;
  /** Keys of new or changed alerts. */
  created: readonly bigint[];
  /** Tokens whose market may have become final. */
  perhapsFinal: readonly bigint[];
  limits: CandidateLimits;
  memory: WindowMemory;
}

interface Candidates {
  /** Each alert once per outcome. */
  candidates: Candidate[];
  /** Tokens that may have further ones. */
  unfinished: ReadonlySet<bigint> | 'all';
}

/** Alerts that claimed observations may meet: one index range per token, so cost follows tokens and firings. */
function ofObservations(condition: AlertCondition): string {
  const isInRange = `${sideOf(condition) === 'at_least' ? 'b.high' : 'b.low'} ${comparisonOf(sideOf(condition))} a.target`;
  return `SELECT a.pk, b.token_id, '${condition}', a.start, a.met FROM bound b CROSS JOIN LATERAL (
     SELECT a.pk, ${SPECIFIED_START} AS start, f.met FROM alert a
     CROSS JOIN LATERAL (SELECT ${firstMoment(condition, { since: 'b.since', until: 'b.final_since' })} AS met OFFSET 0) f
     WHERE ${activeAlerts(condition, 'b.token_id')} AND ${isInRange} AND f.met IS NOT NULL LIMIT $5) a`;
}

/** Alerts of a market that became final: an earlier price still counts, in any order of claims. */
function ofFinal(condition: AlertCondition): string {
  return `SELECT a.pk, d.token_id, '${condition}', a.start, a.met FROM decided d CROSS JOIN LATERAL (
     SELECT a.pk, ${SPECIFIED_START} AS start, f.met FROM alert a
     CROSS JOIN LATERAL (SELECT ${firstMoment(condition, { since: `'-infinity'`, until: 'd.final_since' })} AS met OFFSET 0) f
     WHERE ${activeAlerts(condition, 'd.token_id')} AND f.met IS NOT NULL LIMIT $5) a`;
}

function ofNew(condition: AlertCondition): string {
  return `SELECT a.pk, a.token_id, a.condition, ${SPECIFIED_START} AS start, f.met FROM (
     SELECT n.*, ${finalSince('n.token_id')} AS final_since FROM alert n
     WHERE n.pk = ANY ($3::bigint[]) AND n.status = 'active' AND n.condition = '${condition}' AND n.probe IS NULL OFFSET 0) a
   CROSS JOIN LATERAL (SELECT ${firstMoment(condition, { since: `'-infinity'`, until: 'a.final_since' })} AS met OFFSET 0) f
   WHERE f.met IS NOT NULL`;
}

/**
 * SQL of whether a token has an active alert with a condition of the specification, with or without a probe: the first one in the index
 * counts. The conditions are literals, because the partial indexes of active alerts fit only then.
 */
function hasSpecifiedAlert(token: string): string {
  return ALERT_CONDITIONS.map(
    (condition) =>
      `EXISTS (SELECT FROM alert a WHERE a.token_id = ${token} AND a.status = 'active' AND a.condition = '${condition}' OFFSET 0)`,
  ).join(' OR ');
}

const eachCondition = (part: (condition: AlertCondition) => string) => ALERT_CONDITIONS.map(part).join(' UNION ALL ');

const SPECIFIED = sql(
  'alert_candidates',
  `WITH bound AS MATERIALIZED (
     SELECT c.token_id, max(o.high) AS high, min(o.low) AS low, min(c.at) AS since, ${finalSince('c.token_id')} AS final_since
     FROM (SELECT token_id, timestamptz 'epoch' + at_ms * interval '1 millisecond' AS at
           FROM unnest($1::bigint[], $2::bigint[]) AS m (token_id, at_ms) WHERE ${hasSpecifiedAlert('m.token_id')}) c
     CROSS JOIN LATERAL (
       SELECT max(s.price) AS high, min(s.price) AS low FROM observation s WHERE s.token_id = c.token_id AND s.received_at = c.at) o
     GROUP BY c.token_id),
   decided AS MATERIALIZED (
     SELECT * FROM (SELECT token_id, ${finalSince('i.token_id')} AS final_since FROM unnest($4::bigint[]) AS i (token_id) OFFSET 0) t
     WHERE final_since IS NOT NULL)
   SELECT pk AS alert_pk, token_id AS subject, condition, CASE WHEN met > start THEN ${wholeMs('met')} END AS since_ms,
     ${wholeMs('met')} + 1 AS until_ms,
     CASE WHEN met = start THEN (SELECT h.price FROM ${quoteBefore('found.token_id', 'found.start')} h) END AS start_price
   FROM (${eachCondition(ofNew)} UNION ALL ${eachCondition(ofFinal)} UNION ALL ${eachCondition(ofObservations)}) found LIMIT $6`,
);

interface SpecifiedRow {
  alertPk: bigint;
  subject: bigint;
  condition: AlertCondition;
  /** Null: the quote in effect at the start may fire it. */
  sinceMs: bigint | null;
  untilMs: bigint;
  startPrice: string | null;
}

/**
 * New alerts with a probe, and their outcomes. A scope may hold thousands of outcomes, so only those count that got an observation since
 * the start of the alert.
 */
const CREATED = sql(
  'created_rules',
  `SELECT a.pk AS alert_pk, a.token_id AS subject FROM alert a
   WHERE a.pk = ANY ($1::bigint[]) AND ${IS_EVALUATED} AND a.probe IS NOT NULL AND a.token_id IS NOT NULL AND a.condition NOT IN ${OF_TOKENS}
   UNION ALL
   SELECT a.pk, o.token_id FROM alert a CROSS JOIN LATERAL ${MARKETS_IN_SCOPE} m JOIN outcome o ON o.market_id = m.id
   WHERE a.pk = ANY ($1::bigint[]) AND ${IS_EVALUATED} AND a.scope_key IS NOT NULL AND a.condition NOT IN ${OF_MARKETS}
     AND EXISTS (SELECT FROM observation s WHERE s.token_id = o.token_id AND s.received_at >= ${STARTS} OFFSET 0)`,
);

/** Finds the alerts on outcomes that may fire. Takes no lock: an alert may be changed or deleted before the caller locks it. */
export async function findCandidates(db: Queryable, search: CandidateSearch): Promise<Candidates> {
  const { observed, sinceOf, created, perhapsFinal, limits, memory } = search;
  const specified = await db.query<SpecifiedRow>(SPECIFIED, [
    observed.map(({ key }) => key),
    observed.map(({ atMs }) => atMs),
    created,
    perhapsFinal,
    limits.firedPerToken,
    limits.fired,
  ]);
  const fromNew = created.length === 0 ? [] : await db.query<Candidate>(CREATED, [created]);
  const candidates = unique([
    ...specified.map(({ alertPk, subject, sinceMs, untilMs, startPrice }) => ({
      alertPk,
      subject,
      sinceMs: sinceMs === null ? undefined : Number(sinceMs),
      untilMs: Number(untilMs),
      startPrice: startPrice === null ? undefined : decimal(startPrice),
    })),
    ...fromNew,
    ...(await findByProbes(db, sinceOf, memory)).map((one) => ({ ...one, sinceMs: sinceOf.get(one.subject) })),
  ]);
  return { candidates, unfinished: specified.length >= limits.fired ? 'all' : crowded(specified, limits) };
}

/** The first candidate of an alert and an outcome stays: the one of a new alert, which is evaluated from its start. */
function unique(found: readonly Candidate[]): Candidate[] {
  const firstOf = new Map<string, Candidate>();
  for (const one of found) {
    const key = `${one.alertPk} ${one.subject}`;
    if (!firstOf.has(key)) firstOf.set(key, one);
  }
  return [...firstOf.values()];
}

/** The tokens with as many candidates of a condition as the search returns. */
function crowded(found: readonly SpecifiedRow[], { firedPerToken }: CandidateLimits): Set<bigint> {
  const counts = new Map<string, number>();
  const tokens = new Set<bigint>();
  for (const { subject, condition } of found) {
    const group = `${subject} ${condition}`;
    const count = (counts.get(group) ?? 0) + 1;
    counts.set(group, count);
    if (count >= firedPerToken) tokens.add(subject);
  }
  return tokens;
}

const HAS_ALERT = `EXISTS (SELECT FROM outcome o WHERE o.market_id = m.id AND (${hasSpecifiedAlert('o.token_id')} OR EXISTS (
     SELECT FROM alert a WHERE a.token_id = o.token_id AND a.status = 'active' AND a.probe IS NOT NULL OFFSET 0)
     OR EXISTS (SELECT FROM alert_book b WHERE b.token_id = o.token_id OFFSET 0)))`;

const FOLLOWED = sql(
  'followed_markets',
  `SELECT m.id FROM unnest($1::bigint[]) AS i (id) JOIN market m USING (id)
   WHERE ${IS_READ} OR ${HAS_ALERT} OR ${HAS_SCOPES} AND EXISTS (
     SELECT FROM ${KEYS_OF_MARKET} k JOIN alert a ON a.scope_key = k.key
     WHERE a.status = 'active' AND a.scope_key IS NOT NULL AND ${IS_IN_SCOPE})`,
);

/**
 * The followed markets among these: an active alert names one of their outcomes, also as the second one, or has them in its scope, a client read them within the
 * last minute, or a stream sends their books.
 */
export async function followedMarkets(db: Queryable, marketPks: readonly bigint[]): Promise<bigint[]> {
  return (await db.query<{ id: bigint }>(FOLLOWED, [marketPks])).map(({ id }) => id);
}
