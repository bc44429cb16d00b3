import type { BesideTotal, HistoryEnd, HourEvidence } from '../../domain/markets/coverage.ts';
import type { VolumeRule, VolumeUnit } from '../../domain/markets/volume-witness.ts';
import { decimal } from '../../domain/values/decimal.ts';
import { epochMs, type Queryable, sql } from '../db/tx.ts';
import { IS_REJECTED, SIGHTING_MS } from './totals.ts';

/** A calm total is searched in this many hours before and after an hour. */
const CALM_HOURS = 4;

const MINUTE = (moment: string) => `date_trunc('minute', ${moment})`;
const EPOCH = (moment: string) => `extract(epoch FROM ${moment})::bigint`;

/** SQL of the stored volume of market `a.market_id` in [from, to): whole minutes from candles, which are an exact fold, the rest from trades. */
function storedSql(from: string, to: string): string {
  return `(SELECT coalesce(sum(v.amount), 0) FROM (SELECT ${from} AS f, ${to} AS t) r
     CROSS JOIN LATERAL (SELECT least(r.t, ${MINUTE(`r.f + interval '59.999999 s'`)}) AS first, ${MINUTE('r.t')} AS last) m
     JOIN outcome o ON o.market_id = a.market_id
     CROSS JOIN LATERAL (
       SELECT CASE WHEN $6 THEN k.volume ELSE k.notional END AS amount FROM candle k
       WHERE k.token_id = o.token_id AND k.interval_seconds = 60 AND k.bucket >= ${EPOCH('m.first')} AND k.bucket < ${EPOCH('m.last')}
       UNION ALL
       SELECT CASE WHEN $6 THEN d.size ELSE d.price * d.size END FROM trade d
       WHERE d.token_id = o.token_id AND d.ts >= r.f AND d.ts < m.first
       UNION ALL
       SELECT CASE WHEN $6 THEN d.size ELSE d.price * d.size END FROM trade d
       WHERE d.token_id = o.token_id AND d.ts >= greatest(m.first, m.last) AND d.ts < r.t) v
     WHERE r.t > r.f)`;
}

/** Whether the walk `trade_history AS w` ended before the start of its range. */
const HAS_ENDED_EARLY = `w.status IN ('done', 'failed') AND w.last_error IS NOT NULL AND coalesce(w.reached_at, w.to_at) > w.from_at`;
/** The columns of its end; null without such a walk. */
const HISTORY_END = `${epochMs('w.from_at')} AS history_from_ms, ${epochMs('coalesce(w.reached_at, w.to_at)')} AS history_reached_ms,
  w.status = 'done' AS is_unserved`;

interface HistoryEndRow {
  historyFromMs: number | null;
  historyReachedMs: number | null;
  isUnserved: boolean | null;
}

function toHistoryEnd({ historyFromMs, historyReachedMs, isUnserved }: HistoryEndRow): HistoryEnd | undefined {
  if (historyFromMs === null || historyReachedMs === null) return undefined;
  return { fromMs: historyFromMs, reachedMs: historyReachedMs, isUnserved: isUnserved === true };
}

const ENDED = sql(
  'read_history_end',
  `SELECT ${HISTORY_END} FROM trade_history w WHERE w.market_id = $1 AND ${HAS_ENDED_EARLY}`,
);

/** The end of the walk back through the trades of a market; undefined while it has read its range, or reads it. */
export async function readHistoryEnd(db: Queryable, marketPk: bigint): Promise<HistoryEnd | undefined> {
  const [row] = await db.query<HistoryEndRow>(ENDED, [marketPk]);
  return row && toHistoryEnd(row);
}

const DELAY = `$3 * interval '1 millisecond'`;
/** Just behind the lead, because a bound excludes its moment. */
const LEAD = `($4 * interval '1 millisecond' + interval '1 microsecond')`;

/**
 * The evidence of hours of markets: a row per total before, after or (with its growth) in each hour, and at least one per hour. The third
 * total after an hour is the latest one, which was seen again, unmoved, after the hour.
 * $1 market keys, $2 hours (epoch milliseconds), $3 delay, $4 lead, $5 settled (milliseconds), $6 whether the unit is contracts, $7 venue.
 */
const READ = sql(
  'read_hour_evidence',
  `WITH tape AS MATERIALIZED (
     SELECT caught_up_at - $5 * interval '1 millisecond' AS settled_at FROM poll_state WHERE venue = $7 AND kind = 'trades'),
   unfolded AS MATERIALIZED (
     SELECT o.market_id FROM outcome o WHERE o.token_id IN (
       SELECT k.key FROM mark k, tape WHERE k.stage = 'fold-candles' AND k.detail < ${EPOCH(MINUTE(`tape.settled_at + ${LEAD}`))}
       UNION ALL SELECT key FROM parked_mark WHERE stage = 'fold-candles')),
   asked AS (
     SELECT DISTINCT market_id, to_timestamp(ms / 1000) AS start, to_timestamp(ms / 1000) + interval '1 hour' AS until
     FROM unnest($1::bigint[], $2::float8[]) AS u (market_id, ms))
   SELECT a.market_id, ${epochMs('a.start')} AS start_ms, ${epochMs('m.created_at')} AS created_ms, h.stored, h.is_folded,
     ${HISTORY_END},
     c.role, ${epochMs('c.at')} AS at_ms, ${epochMs('c.to_at')} AS to_ms, c.volume,
     CASE c.role WHEN 'before' THEN ${storedSql(`c.at + ${LEAD}`, 'a.start')} WHEN 'after' THEN ${storedSql('a.until', `c.at - ${DELAY}`)} END AS sure,
     CASE c.role WHEN 'before' THEN ${storedSql(`c.at - ${DELAY}`, 'a.start')} WHEN 'after' THEN ${storedSql('a.until', `c.at + ${LEAD}`)}
       WHEN 'inside' THEN ${storedSql(`c.at - ${DELAY}`, `c.to_at + ${LEAD}`)} END AS most
   FROM asked a JOIN market m ON m.id = a.market_id LEFT JOIN trade_history w ON w.market_id = a.market_id AND ${HAS_ENDED_EARLY}
   CROSS JOIN LATERAL (
     SELECT coalesce(sum(CASE WHEN $6 THEN k.volume ELSE k.notional END), 0) AS stored,
       NOT EXISTS (SELECT FROM unfolded u WHERE u.market_id = a.market_id) AS is_folded
     FROM outcome o JOIN candle k ON k.token_id = o.token_id AND k.interval_seconds = 3600 AND k.bucket = ${EPOCH('a.start')}
     WHERE o.market_id = a.market_id) h
   LEFT JOIN LATERAL (
     (SELECT 'before' AS role, 1 AS place, e.last_at AS at, NULL::timestamptz AS to_at, e.last_volume AS volume FROM coverage_total e
      WHERE e.market_id = a.market_id AND e.hour < a.start AND e.last_at IS NOT NULL ORDER BY e.hour DESC LIMIT 1)
     UNION ALL
     (SELECT 'before', 2, e.calm_at, NULL, e.calm_volume FROM coverage_total e
      WHERE e.market_id = a.market_id AND e.hour < a.start AND e.hour >= a.start - interval '${CALM_HOURS} hours'
        AND e.calm_at <= a.start - ${LEAD} ORDER BY e.calm_blur, e.hour DESC LIMIT 1)
     UNION ALL
     (SELECT 'after', 1, e.first_at, NULL, e.first_volume FROM coverage_total e, tape
      WHERE e.market_id = a.market_id AND e.hour >= a.until AND e.first_at IS NOT NULL AND e.first_at <= tape.settled_at
      ORDER BY e.hour LIMIT 1)
     UNION ALL
     (SELECT 'after', 2, e.calm_at, NULL, e.calm_volume FROM coverage_total e, tape
      WHERE e.market_id = a.market_id AND e.hour >= a.until AND e.hour < a.until + interval '${CALM_HOURS} hours'
        AND e.calm_at - ${DELAY} >= a.until AND e.calm_at <= tape.settled_at ORDER BY e.calm_blur, e.hour LIMIT 1)
     UNION ALL
     (SELECT 'after', 3, s.seen_at - interval '${SIGHTING_MS} ms', NULL, s.volume FROM tape, market_stats s
      CROSS JOIN LATERAL (
        SELECT e.hour, e.last_at, e.last_volume FROM coverage_total e
        WHERE e.market_id = s.market_id AND e.last_at IS NOT NULL ORDER BY e.hour DESC LIMIT 1) e
      WHERE s.market_id = a.market_id AND s.volume = e.last_volume AND s.seen_at - interval '${SIGHTING_MS} ms' - ${DELAY} >= a.until
        AND e.last_at < s.seen_at - interval '${SIGHTING_MS} ms' AND s.seen_at - interval '${SIGHTING_MS} ms' <= tape.settled_at
        AND NOT ${IS_REJECTED('m', 'e.last_at')})
     UNION ALL
     (SELECT 'inside', 1, e.first_at, e.last_at, e.last_volume - e.first_volume FROM coverage_total e, tape
      WHERE e.market_id = a.market_id AND e.hour = a.start AND e.last_at > e.first_at AND e.last_at <= tape.settled_at)) c ON true
   ORDER BY a.market_id, a.start, c.role, c.place`,
);

interface EvidenceRow extends HistoryEndRow {
  marketId: bigint;
  startMs: number;
  createdMs: number | null;
  stored: string;
  isFolded: boolean;
  role: 'before' | 'after' | 'inside' | null;
  atMs: number;
  toMs: number | null;
  volume: string;
  sure: string | null;
  most: string;
}

interface MarketHour {
  marketPk: bigint;
  /** Epoch milliseconds of the start. */
  startMs: number;
}

interface MarketHourEvidence extends HourEvidence, MarketHour {
  /** All trades of the hour and around it are in candles, from which the stored volume is counted. */
  isFolded: boolean;
}

/** The evidence for the trades of these hours. Omits unknown markets. */
export async function readHourEvidence(
  db: Queryable,
  venue: string,
  hours: readonly MarketHour[],
  { rule, unit }: { rule: VolumeRule; unit: VolumeUnit },
): Promise<MarketHourEvidence[]> {
  if (hours.length === 0) return [];
  const rows = await db.query<EvidenceRow>(READ, [
    hours.map(({ marketPk }) => marketPk),
    hours.map(({ startMs }) => startMs),
    rule.delayMs,
    rule.leadMs,
    rule.settledMs,
    unit === 'contracts',
    venue,
  ]);
  const grouped = new Map<string, EvidenceRow[]>();
  for (const row of rows) {
    const key = `${row.marketId} ${row.startMs}`;
    grouped.set(key, [...(grouped.get(key) ?? []), row]);
  }
  return [...grouped.values()].flatMap((group) => toEvidence(group) ?? []);
}

function toEvidence(rows: readonly EvidenceRow[]): MarketHourEvidence | undefined {
  const [first] = rows;
  if (first === undefined) return undefined;
  const { marketId, startMs, createdMs, stored, isFolded } = first;
  const totalsOf = (role: EvidenceRow['role']) =>
    rows
      .filter((row) => row.role === role)
      .map(
        ({ atMs, volume, sure, most }): BesideTotal => ({
          atMs,
          volume: decimal(volume),
          sure: decimal(sure ?? '0'),
          most: decimal(most),
        }),
      );
  const history = toHistoryEnd(first);
  const inside = rows.find(({ role }) => role === 'inside');
  return {
    marketPk: marketId,
    startMs,
    isFolded,
    stored: decimal(stored),
    before: totalsOf('before'),
    after: totalsOf('after'),
    ...(createdMs !== null && { createdMs }),
    ...(history && { history }),
    ...(inside?.toMs != null && {
      inside: { fromMs: inside.atMs, toMs: inside.toMs, growth: decimal(inside.volume), stored: decimal(inside.most) },
    }),
  };
}
