import {
  COVERAGE_KINDS,
  type CoverageClass,
  type CoverageKind,
  type CoverageReason,
  type CoverageResult,
  classifyPolls,
  classifyTrades,
  classifyVenueTrades,
  HOUR_MS,
  judgeAgainMs,
  type VenueHour,
} from '../../domain/markets/coverage.ts';
import { type VolumeRule, type VolumeUnit, volumeRuleOf } from '../../domain/markets/volume-witness.ts';
import { decimal } from '../../domain/values/decimal.ts';
import { type Database, epochMs, type Queryable, sql, type Tx } from '../db/tx.ts';
import { readHourEvidence } from './evidence.ts';

/** An hour settles this long after its end, when its totals and its late trades have arrived. */
const SETTLE_AFTER_MS = 15 * 60_000;
/** An hour settles without them after this time, as unknown. */
const SETTLE_ANYWAY_MS = 6 * HOUR_MS;
/** Hours of markets that one transaction judges. */
const MARKET_HOURS = 200;
/** Transactions of one run: the job has other work too. */
const MAX_BATCHES = 10;
/** Hours of a kind that one transaction settles. */
const MAX_HOURS = 200;

const SECONDS = (ms: string) => `to_timestamp(${ms}::float8 / 1000)`;
const HOUR_OF = (moment: string) => `date_trunc('hour', ${moment}, 'UTC')`;

const IS_DUE = sql(
  'is_coverage_due',
  `SELECT EXISTS (SELECT FROM coverage WHERE venue = $1 AND again_at <= ${SECONDS('$2')})
     OR (SELECT count(*) FROM coverage_settled WHERE venue = $1 AND settled_to > ${SECONDS('$2')} - interval '${HOUR_MS + SETTLE_AFTER_MS} ms') < $3
     AS is_due`,
);

const LOCK = sql('lock_coverage', `SELECT pg_advisory_xact_lock(hashtextextended('coverage ' || $1, 0))`);

const START = sql(
  'start_coverage',
  `INSERT INTO coverage_settled (venue, kind, since, settled_to)
   SELECT $1, kind, start, start FROM (
     SELECT 'trades' AS kind, ${HOUR_OF(SECONDS('$2'))} + interval '1 hour' AS start
     UNION ALL
     SELECT p.kind, ${HOUR_OF('p.counted_from')} + interval '1 hour' FROM poll_state p
     WHERE p.venue = $1 AND p.kind IN ('prices', 'books', 'markets') AND p.counted_from IS NOT NULL) s
   ON CONFLICT DO NOTHING`,
);

/** The first open hour of the trades, and whether the tape and every total of the catalog were read after it. */
const NEXT_TRADES = sql(
  'next_coverage_of_trades',
  `SELECT ${epochMs('s.settled_to')} AS start_ms, coalesce(w.began_at >= u.until_at AND p.caught_up_at >= u.until_at, false) AS is_read
   FROM coverage_settled s CROSS JOIN LATERAL (
     SELECT s.settled_to + interval '1 hour' + $2 * interval '1 millisecond' AS until_at) u
   LEFT JOIN coverage_sweep w ON w.venue = $1 LEFT JOIN poll_state p ON p.venue = $1 AND p.kind = 'trades'
   WHERE s.venue = $1 AND s.kind = 'trades'`,
);

/**
 * The markets whose totals moved since the start of the hour, with those whose total waits for its comparison. $3 is a reason for the venue,
 * null when all totals were read.
 */
const OPEN_TRADES = sql(
  'open_coverage_of_trades',
  `WITH opened AS (
     INSERT INTO coverage (venue, kind, hour, market_id, class, reason, again_at)
     SELECT $1, 'trades', ${SECONDS('$2')}, t.market_id, 'unknown', 'not_settled', ${SECONDS('$4')} FROM (
       SELECT market_id FROM coverage_total WHERE venue = $1 AND hour >= ${SECONDS('$2')}
       UNION SELECT market_id FROM volume_sample WHERE venue = $1) t JOIN market m ON m.id = t.market_id
     UNION ALL SELECT $1, 'trades', ${SECONDS('$2')}, 0, 'unknown', coalesce($3, 'not_settled'), ${SECONDS('$4')}
     ON CONFLICT DO NOTHING)
   UPDATE coverage_settled SET settled_to = ${SECONDS('$2')} + interval '1 hour' WHERE venue = $1 AND kind = 'trades'`,
);

const DUE_MARKETS = sql(
  'due_coverage_of_markets',
  `SELECT market_id AS market_pk, ${epochMs('hour')} AS start_ms FROM coverage
   WHERE venue = $1 AND kind = 'trades' AND market_id > 0 AND again_at <= ${SECONDS('$2')} ORDER BY again_at, hour, market_id LIMIT ${MARKET_HOURS}`,
);

const UNIT = sql('read_coverage_unit', 'SELECT unit FROM venue_completeness WHERE venue = $1');

const WRITE = sql(
  'write_coverage',
  `INSERT INTO coverage (venue, kind, hour, market_id, class, stored, total, missing, tolerance, cause, reason, pause_ms, from_at, to_at,
     markets, markets_gap, markets_unknown, checked_at, again_at)
   SELECT $1, $2, ${SECONDS('start')}, market_id, class, stored, total, missing, tolerance, cause, reason, pause,
     ${SECONDS('from_ms')}, ${SECONDS('to_ms')}, markets, gaps, unknown, ${SECONDS('$3')}, ${SECONDS('again')}
   FROM unnest($4::float8[], $5::bigint[], $6::text[], $7::numeric[], $8::numeric[], $9::numeric[], $10::numeric[], $11::text[], $12::text[],
     $13::float8[], $14::float8[], $15::float8[], $16::int[], $17::int[], $18::int[], $19::float8[])
     AS c (start, market_id, class, stored, total, missing, tolerance, cause, reason, pause, from_ms, to_ms, markets, gaps, unknown, again)
   ON CONFLICT (venue, kind, hour, market_id) DO UPDATE SET class = excluded.class, stored = excluded.stored, total = excluded.total,
     missing = excluded.missing, tolerance = excluded.tolerance, cause = excluded.cause, reason = excluded.reason,
     pause_ms = excluded.pause_ms, from_at = excluded.from_at, to_at = excluded.to_at, markets = excluded.markets,
     markets_gap = excluded.markets_gap, markets_unknown = excluded.markets_unknown, checked_at = excluded.checked_at,
     again_at = excluded.again_at`,
);

/** The hour of the venue is summed up again when the hour of one of its markets changed. */
const VENUE_AGAIN = sql(
  'judge_coverage_of_venue_again',
  `UPDATE coverage SET again_at = ${SECONDS('$3')}
   WHERE venue = $1 AND kind = 'trades' AND market_id = 0 AND hour IN (SELECT ${SECONDS('ms')} FROM unnest($2::float8[]) AS h (ms))`,
);

const SUM_MARKETS = sql(
  'sum_coverage_of_markets',
  `WITH due AS MATERIALIZED (
     SELECT v.hour, CASE WHEN v.reason IN ('not_compared', 'records_rejected') THEN v.reason END AS kept,
       EXISTS (SELECT FROM quarantine q
         WHERE q.venue = $1 AND q.kind = 'markets' AND q.last_seen_at >= v.hour AND q.first_seen_at < v.hour + interval '75 minutes') AS has_rejected
     FROM coverage v
     WHERE v.venue = $1 AND v.kind = 'trades' AND v.market_id = 0 AND v.again_at <= ${SECONDS('$2')} AND NOT EXISTS (
       SELECT FROM coverage o WHERE o.venue = $1 AND o.kind = 'trades' AND o.hour = v.hour AND o.market_id > 0 AND o.again_at <= ${SECONDS('$2')})
     ORDER BY v.hour LIMIT ${MAX_HOURS})
   SELECT ${epochMs('d.hour')} AS start_ms, coalesce(d.kept, CASE WHEN d.has_rejected THEN 'records_rejected' END) AS reason, s.*
   FROM due d CROSS JOIN LATERAL (
     SELECT coalesce(sum(c.stored), 0) AS stored, sum(c.total) AS total, coalesce(sum(c.missing) FILTER (WHERE c.class = 'gap'), 0) AS missing,
       coalesce(sum(c.tolerance), 0) AS tolerance, coalesce(sum(c.tolerance) FILTER (WHERE c.reason = 'imprecise'), 0) AS imprecise,
       (count(*) FILTER (WHERE c.class <> 'quiet' AND c.reason IS DISTINCT FROM 'not_listed'))::int AS markets,
       (count(*) FILTER (WHERE c.class IN ('complete', 'gap') OR c.reason = 'imprecise'))::int AS moved,
       (count(*) FILTER (WHERE c.class = 'gap'))::int AS gaps,
       (count(*) FILTER (WHERE c.class = 'unknown' AND c.reason <> 'not_listed'))::int AS unknown,
       (count(*) FILTER (WHERE c.class = 'unknown' AND c.reason NOT IN ('imprecise', 'not_listed')))::int AS unbounded,
       ${epochMs(`min(c.from_at) FILTER (WHERE c.class = 'gap')`)} AS from_ms, ${epochMs(`max(c.to_at) FILTER (WHERE c.class = 'gap')`)} AS to_ms
     FROM coverage c WHERE c.venue = $1 AND c.kind = 'trades' AND c.hour = d.hour AND c.market_id > 0) s`,
);

interface SummedHour extends Omit<VenueHour, 'reason'> {
  startMs: number;
  reason: CoverageReason | null;
  total: string | null;
  unknown: number;
  fromMs: number | null;
  toMs: number | null;
}

/** An hour without a row had no success: the pause of the next row contains it. The present hour has none yet. */
const DUE_POLLS = sql(
  'due_coverage_of_polls',
  `WITH state AS (
     SELECT s.settled_to, least(${HOUR_OF('p.counted_at')}, ${HOUR_OF(`${SECONDS('$3')} - interval '${SETTLE_AFTER_MS} ms'`)}) AS until,
       p.pause_from, p.pause_to, ${HOUR_OF('p.counted_at')} AS present
     FROM coverage_settled s JOIN poll_state p ON p.venue = s.venue AND p.kind = s.kind WHERE s.venue = $1 AND s.kind = $2),
   due AS (
     SELECT hour FROM (
       SELECT generate_series(settled_to, least(until - interval '1 hour', settled_to + interval '${MAX_HOURS - 1} hours'), interval '1 hour') AS hour
       FROM state
       UNION SELECT hour FROM coverage WHERE venue = $1 AND kind = $2 AND market_id = 0 AND again_at <= ${SECONDS('$3')}) h
     ORDER BY hour LIMIT ${MAX_HOURS})
   SELECT ${epochMs('d.hour')} AS start_ms, ${epochMs('p.pause_from')} AS from_ms, ${epochMs('p.pause_to')} AS to_ms,
     ${epochMs('g.from_at')} AS gap_from_ms, ${epochMs('g.to_at')} AS gap_to_ms, coalesce(g.markets, 0) AS gaps
   FROM due d LEFT JOIN LATERAL (
     SELECT pause_from, pause_to FROM (
       SELECT hour, pause_from, pause_to FROM coverage_poll WHERE venue = $1 AND kind = $2 AND hour >= d.hour
       UNION ALL SELECT present, pause_from, pause_to FROM state WHERE present > d.hour) e
     ORDER BY e.hour LIMIT 1) p ON true
   LEFT JOIN LATERAL (
     SELECT min(f.from_at) AS from_at, max(coalesce(f.to_at, ${SECONDS('$3')})) AS to_at, count(DISTINCT f.market_id)::int AS markets FROM feed_gap f
     WHERE f.venue = $1 AND f.affected = $4 AND f.from_at < d.hour + interval '1 hour' AND f.from_at > d.hour - interval '35 days'
       AND coalesce(f.to_at, 'infinity') > d.hour) g ON true
   ORDER BY d.hour`,
);

const WRITE_FEED_GAPS = sql(
  'write_coverage_of_feed_gaps',
  `INSERT INTO coverage (venue, kind, hour, market_id, class, cause, from_at, to_at, checked_at)
   SELECT $1, $2, h.hour, f.market_id, 'gap', 'feed_gap', min(f.from_at), max(coalesce(f.to_at, ${SECONDS('$4')})), ${SECONDS('$4')}
   FROM (SELECT ${SECONDS('ms')} AS hour FROM unnest($3::float8[]) AS u (ms)) h
   JOIN feed_gap f ON f.venue = $1 AND f.affected = $5 AND f.from_at < h.hour + interval '1 hour' AND f.from_at > h.hour - interval '35 days'
     AND coalesce(f.to_at, 'infinity') > h.hour
   GROUP BY h.hour, f.market_id ORDER BY h.hour, f.market_id
   ON CONFLICT (venue, kind, hour, market_id) DO UPDATE SET from_at = excluded.from_at, to_at = excluded.to_at, checked_at = excluded.checked_at`,
);

const SETTLED_POLLS = sql(
  'settle_coverage_of_polls',
  `UPDATE coverage_settled SET settled_to = greatest(settled_to, ${SECONDS('$3')} + interval '1 hour') WHERE venue = $1 AND kind = $2`,
);

interface PollRow {
  startMs: number;
  fromMs: number | null;
  toMs: number | null;
  gapFromMs: number | null;
  gapToMs: number | null;
  gaps: number;
}

/** The feed of books brings quotes too. */
const AFFECTED: Readonly<Record<Exclude<CoverageKind, 'trades'>, string>> = {
  prices: 'books',
  books: 'books',
  markets: 'markets',
};

/** A class with the figures of its row. */
interface JudgedHour extends CoverageResult {
  startMs: number;
  /** Null: the venue. */
  marketPk: bigint | null;
  stored?: string;
  sum?: string | null;
  pauseMs?: number;
  markets?: number;
  gaps?: number;
  unknown?: number;
}

/** Intervals of the polls of a venue in milliseconds; a kind that is not polled is absent. */
export type PollIntervals = Readonly<Partial<Record<CoverageKind, number>>>;

/**
 * Settles the hours of a venue that are over, and judges earlier ones again that are due. Each step is a transaction under a lock of the
 * venue, and judges stored evidence: a process that dies repeats it. Returns the number of judged hours.
 */
export async function settleCoverage(
  db: Database,
  venue: string,
  everyMs: PollIntervals,
  nowMs: number,
  signal?: AbortSignal,
): Promise<number> {
  const polled = COVERAGE_KINDS.filter((kind) => everyMs[kind] !== undefined);
  const [{ isDue } = { isDue: false }] = await db.query<{ isDue: boolean }>(IS_DUE, [venue, nowMs, polled.length]);
  if (!isDue) return 0;
  const inTurn = (step: (tx: Tx) => Promise<number>) =>
    db.transaction(async (tx) => {
      await tx.query(LOCK, [venue]);
      return step(tx);
    });
  let judged = await inTurn(async (tx) => {
    await tx.query(START, [venue, nowMs]);
    let hours = 0;
    for (const kind of polled)
      if (kind !== 'trades') hours += await settlePolls(tx, venue, kind, everyMs[kind] ?? 0, nowMs);
    return hours;
  });
  const rule = volumeRuleOf(venue);
  if (rule === undefined) return judged;
  for (let hours = 0; hours < MAX_HOURS && !signal?.aborted; hours += 1) {
    if ((await inTurn((tx) => openTrades(tx, venue, rule, nowMs))) === 0) break;
  }
  for (let batch = 0; batch < MAX_BATCHES && !signal?.aborted; batch += 1) {
    const hours = await inTurn((tx) => judgeMarkets(tx, venue, rule, nowMs));
    judged += hours;
    if (hours < MARKET_HOURS) break;
  }
  return judged + (await inTurn((tx) => judgeVenue(tx, venue, rule, nowMs)));
}

async function settlePolls(
  tx: Tx,
  venue: string,
  kind: Exclude<CoverageKind, 'trades'>,
  everyMs: number,
  nowMs: number,
): Promise<number> {
  const rows = await tx.query<PollRow>(DUE_POLLS, [venue, kind, nowMs, AFFECTED[kind]]);
  if (rows.length === 0) return 0;
  const judged = rows.map(({ startMs, fromMs, toMs, gapFromMs, gapToMs, gaps }): JudgedHour => {
    const pause = fromMs === null || toMs === null ? undefined : { fromMs, toMs };
    const feedGap = gapFromMs === null || gapToMs === null ? undefined : { fromMs: gapFromMs, toMs: gapToMs };
    const result = classifyPolls({ ...(pause && { pause }), ...(feedGap && { feedGap }) }, everyMs);
    return { ...result, startMs, marketPk: null, gaps, ...(pause && { pauseMs: pause.toMs - pause.fromMs }) };
  });
  await write(tx, venue, kind, judged, nowMs);
  const lost = judged.filter(({ gaps = 0 }) => gaps > 0).map(({ startMs }) => startMs);
  if (lost.length > 0) await tx.query(WRITE_FEED_GAPS, [venue, kind, lost, nowMs, AFFECTED[kind]]);
  await tx.query(SETTLED_POLLS, [venue, kind, judged.at(-1)?.startMs]);
  return judged.length;
}

/** Names the markets of the next hour, when it is over. Returns the hours: one or none, because many of them would take long. */
async function openTrades(tx: Tx, venue: string, rule: VolumeRule, nowMs: number): Promise<0 | 1> {
  const [next] = await tx.query<{ startMs: number; isRead: boolean }>(NEXT_TRADES, [venue, rule.delayMs]);
  if (next === undefined) return 0;
  const endMs = next.startMs + HOUR_MS;
  const isLate = nowMs >= endMs + SETTLE_ANYWAY_MS;
  if (nowMs < endMs + SETTLE_AFTER_MS || !(next.isRead || isLate)) return 0;
  await tx.query(OPEN_TRADES, [venue, next.startMs, next.isRead ? null : 'not_compared', nowMs]);
  return 1;
}

async function judgeMarkets(tx: Tx, venue: string, rule: VolumeRule, nowMs: number): Promise<number> {
  const due = await tx.query<{ marketPk: bigint; startMs: number }>(DUE_MARKETS, [venue, nowMs]);
  if (due.length === 0) return 0;
  const unit = await unitOf(tx, venue, rule);
  const evidence = await readHourEvidence(tx, venue, due, { rule, unit });
  const judged = evidence.map(({ isFolded, ...hour }): JudgedHour => {
    const { marketPk, startMs, stored } = hour;
    const result: CoverageResult = isFolded ? classifyTrades(hour, rule) : { class: 'unknown', reason: 'not_folded' };
    return { ...result, startMs, marketPk, stored };
  });
  // A market that is gone keeps the hour unknown, and is not judged again.
  const found = new Set(judged.map(({ marketPk, startMs }) => `${marketPk} ${startMs}`));
  const gone = due.filter(({ marketPk, startMs }) => !found.has(`${marketPk} ${startMs}`));
  await write(
    tx,
    venue,
    'trades',
    [...judged, ...gone.map((hour): JudgedHour => ({ ...hour, class: 'unknown', reason: 'not_listed' }))],
    nowMs,
  );
  await tx.query(VENUE_AGAIN, [venue, due.map(({ startMs }) => startMs), nowMs]);
  return due.length;
}

/** The unit in which the totals of a venue count: the measured one. */
export async function unitOf(db: Queryable, venue: string, rule: VolumeRule): Promise<VolumeUnit> {
  const [known] = await db.query<{ unit: VolumeUnit }>(UNIT, [venue]);
  return known?.unit ?? rule.unit;
}

async function judgeVenue(tx: Tx, venue: string, { only }: VolumeRule, nowMs: number): Promise<number> {
  const rows = await tx.query<SummedHour>(SUM_MARKETS, [venue, nowMs]);
  if (rows.length === 0) return 0;
  const judged = rows.map((row): JudgedHour => {
    const { startMs, total, fromMs, toMs, markets, gaps, unknown } = row;
    const reason = only === undefined ? row.reason : 'markets_without_total';
    const result = classifyVenueTrades({
      ...{ markets, moved: row.moved, gaps, unbounded: row.unbounded, ...(reason !== null && { reason }) },
      stored: decimal(row.stored),
      tolerance: decimal(row.tolerance),
      imprecise: decimal(row.imprecise),
      missing: decimal(row.missing),
    });
    return {
      ...result,
      // A gap that ends does not end the reason.
      ...(reason !== null && { reason }),
      ...{ startMs, marketPk: null, stored: decimal(row.stored), markets, gaps, unknown },
      ...(total !== null && result.class !== 'unknown' && result.class !== 'gap' && { sum: total }),
      ...(fromMs !== null && toMs !== null && { fromMs, toMs }),
    };
  });
  await write(tx, venue, 'trades', judged, nowMs);
  return judged.length;
}

async function write(
  tx: Tx,
  venue: string,
  kind: CoverageKind,
  hours: readonly JudgedHour[],
  nowMs: number,
): Promise<void> {
  const again = (judged: CoverageClass, { startMs, marketPk, reason }: JudgedHour) => {
    // The hour of a venue follows its markets.
    if (marketPk === null && kind === 'trades') return null;
    return reason === 'not_listed' ? null : judgeAgainMs(judged, startMs, nowMs);
  };
  await tx.query(WRITE, [
    venue,
    kind,
    nowMs,
    hours.map(({ startMs }) => startMs),
    hours.map(({ marketPk }) => marketPk ?? 0n),
    hours.map((hour) => hour.class),
    hours.map(({ stored }) => stored ?? null),
    hours.map(({ total, sum }) => total ?? sum ?? null),
    hours.map(({ missing }) => missing ?? null),
    hours.map(({ tolerance }) => tolerance ?? null),
    hours.map(({ cause }) => cause ?? null),
    hours.map(({ reason }) => reason ?? null),
    hours.map(({ pauseMs }) => pauseMs ?? null),
    hours.map(({ fromMs }) => fromMs ?? null),
    hours.map(({ toMs }) => toMs ?? null),
    hours.map(({ markets }) => markets ?? null),
    hours.map(({ gaps }) => gaps ?? null),
    hours.map(({ unknown }) => unknown ?? null),
    hours.map((hour) => again(hour.class, hour)),
  ]);
}
