import type { AlertCondition } from '../../domain/alerts/conditions.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { quoteBefore } from './quote-in-effect.ts';

/*
 * Decides which alerts are met from stored data alone, independent of the time of evaluation. Every timestamp comes from the database
 * clock. An alert is met by
 *   - the price in effect at its creation, before its millisecond (`quoteBefore`), or
 *   - an observation received at or after its creation (in whole milliseconds, the precision of observations),
 * but by no price from the moment on at which its market got its final outcome, because payouts are not prices. The price in effect at
 * creation, instead of the latest price, means that neither a slow evaluator nor a slow writer loses a crossing: a price that was
 * stamped before an alert and committed after it is in effect at its creation, however soon the price changes again.
 */

const FINAL_STATUSES = `('resolved', 'settled')`;

/**
 * SQL of the time at which the market of a token got its final outcome, NULL without one. A market that was first stored as final counts
 * as final from the beginning. `tokenId` must include its table name.
 */
export function finalSince(tokenId: string): string {
  return `(SELECT coalesce((
      SELECT max(v.known_until) FROM market_version v
      WHERE v.market_id = m.id AND v.facts ->> 'status' NOT IN ${FINAL_STATUSES}), '-infinity')
    FROM outcome u JOIN market m ON m.id = u.market_id
    WHERE u.token_id = ${tokenId} AND m.status IN ${FINAL_STATUSES})`;
}

interface Window {
  /** SQL of the earliest relevant moment: older rows were evaluated when they arrived. */
  since: string;
  /** SQL of the moment from which prices no longer count, or NULL. */
  until: string;
}

/** One array value, so that `coalesce` skips the second look-up after a hit of the first. */
function priceAndTime(row: string): string {
  return `ARRAY[${row}.price, extract(epoch FROM ${row}.received_at)::numeric]`;
}

/** SQL of the first price that meets alert `a`, as `{price, time of receipt in epoch seconds}`, or NULL. */
function firstMet(condition: AlertCondition, { since, until }: Window): string {
  const meets = condition === 'above' ? '>= a.target' : '<= a.target';
  const isBefore = (end: string, moment: string) => `(${until} IS NULL OR ${moment} < ${end})`;
  // Stamps have millisecond precision: within the final millisecond, payouts are excluded and observations count.
  const wholeUntil = `date_trunc('milliseconds', ${until})`;
  return `coalesce(
    (SELECT ${priceAndTime('h')} FROM ${quoteBefore('a.token_id', `date_trunc('milliseconds', a.created_at)`)} h
     WHERE ${since} <= a.created_at AND h.price ${meets} AND ${isBefore(wholeUntil, 'h.received_at')} AND ${isBefore(until, 'a.created_at')}),
    (SELECT ${priceAndTime('o')} FROM observation o
     WHERE o.token_id = a.token_id AND o.received_at >= greatest(date_trunc('milliseconds', a.created_at), ${since})
       AND o.price ${meets} AND ${isBefore(until, 'o.received_at')}
     ORDER BY o.received_at, o.n LIMIT 1))`;
}

/** The condition must be a literal, because the partial indexes fit only then, in any plan. */
function activeAlerts(condition: AlertCondition, token: string): string {
  return `a.token_id = ${token} AND a.status = 'active' AND a.condition = '${condition}' AND a.probe IS NULL`;
}

/** Alerts that claimed observations may meet: one index range per token, so cost follows tokens and hits. */
function hitsOfObservations(condition: AlertCondition): string {
  const bound = condition === 'above' ? 'a.target <= b.high' : 'a.target >= b.low';
  return `SELECT a.pk, b.token_id, '${condition}' AS condition, a.met FROM bound b CROSS JOIN LATERAL (
     SELECT a.pk, f.met FROM alert a
     CROSS JOIN LATERAL (SELECT ${firstMet(condition, { since: 'b.since', until: 'b.final_since' })} AS met OFFSET 0) f
     WHERE ${activeAlerts(condition, 'b.token_id')} AND ${bound} AND f.met IS NOT NULL LIMIT $5) a`;
}

/** Alerts of a market that became final: an earlier price still counts, in any order of claims. */
function hitsOfFinal(condition: AlertCondition): string {
  return `SELECT a.pk, d.token_id, '${condition}', a.met FROM decided d CROSS JOIN LATERAL (
     SELECT a.pk, f.met FROM alert a
     CROSS JOIN LATERAL (SELECT ${firstMet(condition, { since: `'-infinity'`, until: 'd.final_since' })} AS met OFFSET 0) f
     WHERE ${activeAlerts(condition, 'd.token_id')} AND f.met IS NOT NULL LIMIT $5) a`;
}

function hitsOfNew(condition: AlertCondition): string {
  return `SELECT a.pk, a.token_id, a.condition, f.met FROM (
     SELECT n.*, ${finalSince('n.token_id')} AS final_since FROM alert n
     WHERE n.pk = ANY ($3::bigint[]) AND n.status = 'active' AND n.condition = '${condition}' AND n.probe IS NULL OFFSET 0) a
   CROSS JOIN LATERAL (SELECT ${firstMet(condition, { since: `'-infinity'`, until: 'a.final_since' })} AS met OFFSET 0) f
   WHERE f.met IS NOT NULL`;
}

const FIND_HITS = sql(
  'alert_hits',
  `WITH bound AS MATERIALIZED (
     SELECT c.token_id, max(o.high) AS high, min(o.low) AS low, min(c.at) AS since, ${finalSince('c.token_id')} AS final_since
     FROM (SELECT token_id, timestamptz 'epoch' + at_ms * interval '1 millisecond' AS at
           FROM unnest($1::bigint[], $2::bigint[]) AS m (token_id, at_ms)) c
     CROSS JOIN LATERAL (
       SELECT max(s.price) AS high, min(s.price) AS low FROM observation s WHERE s.token_id = c.token_id AND s.received_at = c.at) o
     GROUP BY c.token_id),
   decided AS MATERIALIZED (
     SELECT * FROM (SELECT token_id, ${finalSince('i.token_id')} AS final_since FROM unnest($4::bigint[]) AS i (token_id) OFFSET 0) t
     WHERE final_since IS NOT NULL)
   SELECT pk, token_id, condition, met[1] AS price, round(met[2] * 1000)::bigint AS at_ms FROM (
   ${hitsOfNew('above')} UNION ALL ${hitsOfNew('below')} UNION ALL
   ${hitsOfFinal('above')} UNION ALL ${hitsOfFinal('below')} UNION ALL
   ${hitsOfObservations('above')} UNION ALL ${hitsOfObservations('below')}) hit LIMIT $6`,
);

function unmetOfFinal(condition: AlertCondition): string {
  return `SELECT a.pk FROM decided d CROSS JOIN LATERAL (
     SELECT a.pk FROM alert a WHERE ${activeAlerts(condition, 'd.token_id')}
       AND ${firstMet(condition, { since: `'-infinity'`, until: 'd.final_since' })} IS NULL LIMIT $2) a`;
}

/** Alerts with a probe have been evaluated by now. Alerts on the status of the market outlive its outcome, which they report. */
function rulesOfFinal(): string {
  return `SELECT a.pk FROM decided d CROSS JOIN LATERAL (
     SELECT a.pk FROM alert a WHERE a.token_id = d.token_id AND a.status = 'active' AND a.probe IS NOT NULL AND a.probe <> 'status'
       AND a.is_armed LIMIT $2) a`;
}

/** Checks again whether each alert is met: its market may have become final since the search for hits. */
const EXPIRE_ALERTS = sql(
  'expire_alerts',
  `WITH decided AS MATERIALIZED (
     SELECT * FROM (SELECT token_id, ${finalSince('i.token_id')} AS final_since FROM unnest($1::bigint[]) AS i (token_id) OFFSET 0) t
     WHERE final_since IS NOT NULL),
   unmet AS MATERIALIZED (
     SELECT pk FROM (${unmetOfFinal('above')} UNION ALL ${unmetOfFinal('below')} UNION ALL ${rulesOfFinal()}) u LIMIT $2),
   locked AS MATERIALIZED (
     SELECT pk FROM alert WHERE pk = ANY (ARRAY(SELECT pk FROM unmet)) AND status = 'active' ORDER BY pk FOR UPDATE),
   expired AS (UPDATE alert SET status = 'expired', expired_at = now() WHERE pk = ANY (ARRAY(SELECT pk FROM locked)) RETURNING id)
   SELECT id FROM expired`,
);

/** A met alert with the price that met it (`numeric` text). */
interface Hit {
  pk: bigint;
  tokenId: bigint;
  price: string;
  /** The time of receipt of that price, epoch milliseconds. */
  atMs: number;
}

/** The input of a search for met alerts. */
interface HitSearch {
  /** Claimed moments of observations, epoch milliseconds. */
  observed: readonly { tokenId: bigint; atMs: bigint }[];
  /** Keys of new alerts. */
  created: readonly bigint[];
  /** Tokens whose market may have become final. */
  perhapsFinal: readonly bigint[];
  /** Maximum number of hits in total, and per token and condition, so that a crowded token leaves room for the others. */
  limit: number;
  limitPerToken: number;
}

interface Hits {
  /** Each alert once. */
  hits: Hit[];
  /** Tokens that may have further hits. */
  unfinished: ReadonlySet<bigint> | 'all';
}

interface HitRow {
  pk: bigint;
  tokenId: bigint;
  condition: string;
  price: string;
  atMs: bigint;
}

/** Finds active alerts that are met. Takes no lock: an alert may be deleted before the caller locks it. */
export async function findHits(db: Queryable, search: HitSearch): Promise<Hits> {
  const rows = await db.query<HitRow>(FIND_HITS, [
    search.observed.map(({ tokenId }) => tokenId),
    search.observed.map(({ atMs }) => atMs),
    search.created,
    search.perhapsFinal,
    search.limitPerToken,
    search.limit,
  ]);
  const hits = new Map<bigint, Hit>();
  const counts = new Map<string, number>();
  const unfinished = new Set<bigint>();
  for (const row of rows) {
    // Hits of new alerts come first, because they contain the first price that met the alert.
    if (!hits.has(row.pk)) hits.set(row.pk, toHit(row));
    const group = `${row.tokenId} ${row.condition}`;
    const count = (counts.get(group) ?? 0) + 1;
    counts.set(group, count);
    if (count >= search.limitPerToken) unfinished.add(row.tokenId);
  }
  return { hits: [...hits.values()], unfinished: rows.length >= search.limit ? 'all' : unfinished };
}

function toHit({ pk, tokenId, price, atMs }: HitRow): Hit {
  return { pk, tokenId, price, atMs: Number(atMs) };
}

/**
 * Expires active alerts of these tokens that no price met before the final outcome of their market, at most `limit`; returns their
 * public ids.
 */
export async function expireAlerts(db: Queryable, tokenIds: readonly bigint[], limit: number): Promise<string[]> {
  const rows = await db.query<{ id: string }>(EXPIRE_ALERTS, [tokenIds, limit]);
  return rows.map((row) => row.id);
}
