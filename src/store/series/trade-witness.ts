import type { MarketRecord } from '../../domain/markets/market.ts';
import {
  compareTotal,
  measuredUnit,
  SUM_ERROR_SCALE,
  type UnitCounts,
  type VolumeRule,
  type VolumeUnit,
  type WitnessState,
} from '../../domain/markets/volume-witness.ts';
import { type Decimal, decimal, ZERO } from '../../domain/values/decimal.ts';
import { judgeAllCoverageAgain, judgeCoverageAgain, keepCalmTotals } from '../coverage/totals.ts';
import { epochMs, sql, type Tx } from '../db/tx.ts';
import { insertFactsSql } from '../marks/publish-marks.ts';
import { noteFault, type StoredFault, suspectFrom } from './feed-faults.ts';

/** A comparison reaches back this long, then it begins anew at the next total. */
const WINDOW_DAYS = 7;
/** Markets of one run; the others follow in the next run. */
const MAX_COMPARED = 1_000;
/** Every tape begins hours before its first poll, so the trades just before it are stored too. */
const LOOKBACK_SECONDS = 600;
/** A walk over the tape that works and does not end in this time counts as ended: a broken feed can make it endless. */
const ENDLESS_SECONDS = 300;

/** Tokens whose candles may lack trades of a minute before `bound`, epoch seconds. */
const UNFOLDED = (bound: string) =>
  `SELECT key FROM mark WHERE stage = 'fold-candles' AND detail < ${bound}
   UNION ALL SELECT key FROM parked_mark WHERE stage = 'fold-candles'`;

const MINUTE_OF = (moment: string) => `floor(extract(epoch FROM ${moment}) / 60)::bigint * 60`;

/** Folded amounts of one outcome, from `first` to the bucket before `end`. */
const CANDLES = (seconds: number, first: string, end: string) =>
  `SELECT 'folded' AS part, CASE WHEN $6 THEN k.volume ELSE k.notional END AS amount, CASE WHEN $6 THEN k.notional ELSE k.volume END AS other
   FROM candle k WHERE k.token_id = o.token_id AND k.interval_seconds = ${seconds} AND k.bucket >= ${first} AND k.bucket < ${end}`;

/** Stored amounts of one outcome: hours and minutes from candles, which are an exact fold, and the last minutes from trades. */
const PARTS = `
  ${CANDLES(60, 'a.origin', 'least(a.minute, h.first)')}
  UNION ALL
  ${CANDLES(3600, 'h.first', 'h.last')}
  UNION ALL
  ${CANDLES(60, 'greatest(h.first, h.last)', 'a.minute')}
  UNION ALL
  SELECT CASE WHEN t.ts <= a.from_at THEN 'edge' ELSE 'recent' END, CASE WHEN $6 THEN t.size ELSE t.price * t.size END,
    CASE WHEN $6 THEN t.price * t.size ELSE t.size END
  FROM trade t
  WHERE t.token_id = o.token_id AND t.ts >= to_timestamp(a.minute) AND t.ts <= a.until_at`;

/**
 * The latest settled total of each market with a changed total, and the compared total of each market with missing trades, because late
 * trades may cover it now. Then also the total that proves most of the loss (`is_proof`). A total is settled when the tape was read up
 * to a later state. A market with unfolded trades waits for the next run.
 * $1 venue, $2 now, $3 delay, $4 lead, $5 settled (milliseconds), $6 whether the unit is contracts.
 */
const READ_TOTALS = sql(
  'read_totals',
  `WITH tape AS MATERIALIZED (
     SELECT first_success_at AS began_at, greatest(caught_up_at, last_success_at - interval '${ENDLESS_SECONDS} s')
       - $5 * interval '1 millisecond' AS settled_at
     FROM poll_state WHERE venue = $1 AND kind = 'trades'),
   settled AS MATERIALIZED (
     SELECT DISTINCT ON (s.market_id) s.market_id, s.made_at, s.volume
     FROM volume_sample s, tape WHERE s.venue = $1 AND s.made_at <= tape.settled_at ORDER BY s.market_id, s.made_at DESC),
   latest AS (
     (SELECT * FROM settled ORDER BY made_at LIMIT ${MAX_COMPARED})
     UNION ALL
     (SELECT w.market_id, w.sampled_at, w.venue_volume FROM trade_witness w
      WHERE w.venue = $1 AND w.missing_since IS NOT NULL AND NOT EXISTS (SELECT FROM settled s WHERE s.market_id = w.market_id)
      ORDER BY w.compared_at LIMIT ${MAX_COMPARED})),
   chosen AS (
     SELECT market_id, made_at, volume, false AS is_proof FROM latest
     UNION ALL
     SELECT w.market_id, w.proof_at, w.proof_volume, true FROM latest l JOIN trade_witness w ON w.market_id = l.market_id
     WHERE w.missing_since IS NOT NULL AND w.proof_at >= w.since),
   asked AS (
     SELECT c.market_id, c.made_at, c.volume, c.is_proof, d.from_at, c.made_at + $4 * interval '1 millisecond' AS until_at,
       coalesce(${MINUTE_OF('w.since')}, ${MINUTE_OF('d.from_at')}) AS origin,
       greatest(${MINUTE_OF('w.since')}, ${MINUTE_OF('d.from_at')}) AS minute,
       w.baseline_volume, w.lowest_baseline, w.venue_volume, w.sampled_at, w.moved_at, w.covered_at, w.missing_since, w.grew_at
     FROM chosen c CROSS JOIN LATERAL (SELECT c.made_at - $3 * interval '1 millisecond' AS from_at) d
     LEFT JOIN trade_witness w ON w.market_id = c.market_id
       AND (w.missing_since IS NOT NULL OR w.since > to_timestamp($2::float8 / 1000) - interval '${WINDOW_DAYS} days')
     WHERE NOT EXISTS (SELECT FROM outcome o WHERE o.market_id = c.market_id AND o.token_id IN (
       ${UNFOLDED(`${MINUTE_OF(`to_timestamp($2::float8 / 1000)`)} - ($3 + $5) / 1000`)})))
   SELECT a.market_id, a.is_proof, ${epochMs('a.made_at')} AS made_ms, a.volume AS total, a.origin::float8 * 1000 AS origin_ms,
     a.minute::float8 * 1000 AS minute_ms,
     coalesce(to_timestamp(a.minute) >= tape.began_at - interval '${LOOKBACK_SECONDS} s', false) AS is_live,
     v.folded, v.edge, v.recent, v.other, v.other_recent, a.baseline_volume AS baseline, a.lowest_baseline AS lowest,
     a.venue_volume AS compared, ${epochMs('a.sampled_at')} AS sampled_ms, ${epochMs('a.moved_at')} AS moved_ms,
     ${epochMs('a.covered_at')} AS covered_ms,
     ${epochMs('a.missing_since')} AS missing_since_ms, ${epochMs('a.grew_at')} AS grew_ms
   FROM asked a LEFT JOIN tape ON true
   CROSS JOIN LATERAL (SELECT (a.origin + 3599) / 3600 * 3600 AS first, a.minute / 3600 * 3600 AS last) h
   CROSS JOIN LATERAL (
     SELECT coalesce(sum(p.amount) FILTER (WHERE p.part = 'folded'), 0) AS folded,
       coalesce(sum(p.amount) FILTER (WHERE p.part = 'edge'), 0) AS edge,
       coalesce(sum(p.amount) FILTER (WHERE p.part = 'recent'), 0) AS recent,
       coalesce(sum(p.other), 0) AS other, coalesce(sum(p.other) FILTER (WHERE p.part <> 'folded'), 0) AS other_recent
     FROM outcome o CROSS JOIN LATERAL (${PARTS}) p WHERE o.market_id = a.market_id) v`,
);

/** A row of `READ_TOTALS`. Postgres gives `numeric` as text with zeros behind it; `exactTotal` makes decimals of it. */
interface TotalRow {
  marketId: bigint;
  isProof: boolean;
  madeMs: number;
  total: Decimal;
  originMs: number;
  minuteMs: number;
  /** The tape of the venue covers the time from `minuteMs` on. */
  isLive: boolean;
  folded: Decimal;
  edge: Decimal;
  recent: Decimal;
  /** The stored volume in the other unit, and its part after `minuteMs`. */
  other: Decimal;
  otherRecent: Decimal;
  /** The stored comparison; null for a market without one. */
  baseline: Decimal | null;
  lowest: Decimal | null;
  compared: Decimal | null;
  sampledMs: number;
  movedMs: number;
  coveredMs: number;
  missingSinceMs: number | null;
  grewMs: number | null;
}

const WRITE_COMPARED = sql(
  'write_compared',
  `WITH compared AS (
   INSERT INTO trade_witness AS w (market_id, venue, since, baseline_volume, lowest_baseline, sampled_at, venue_volume, stored_volume,
     other_volume, compared_at, moved_at, covered_at, missing_volume, missing_since, grew_at, suspect_from, proof_at, proof_volume)
   SELECT market_id, $1, to_timestamp(since / 1000), baseline, lowest, to_timestamp(sampled / 1000), total, stored, other,
     to_timestamp($2::float8 / 1000), to_timestamp(moved / 1000), to_timestamp(covered / 1000), missing,
     to_timestamp(missing_since / 1000), to_timestamp(grew / 1000), to_timestamp(suspect / 1000), to_timestamp(proof / 1000), proof_total
   FROM unnest($3::bigint[], $4::float8[], $5::numeric[], $6::numeric[], $7::float8[], $8::numeric[], $9::numeric[], $10::numeric[],
     $11::float8[], $12::float8[], $13::numeric[], $14::float8[], $15::float8[], $16::float8[], $17::float8[], $18::numeric[])
     AS c (market_id, since, baseline, lowest, sampled, total, stored, other, moved, covered, missing, missing_since, grew, suspect, proof,
       proof_total)
   ORDER BY market_id
   ON CONFLICT (market_id) DO UPDATE SET since = excluded.since, baseline_volume = excluded.baseline_volume,
     lowest_baseline = excluded.lowest_baseline, sampled_at = excluded.sampled_at, venue_volume = excluded.venue_volume,
     stored_volume = excluded.stored_volume, other_volume = excluded.other_volume, compared_at = excluded.compared_at,
     moved_at = excluded.moved_at, covered_at = excluded.covered_at, missing_volume = excluded.missing_volume,
     missing_since = excluded.missing_since, grew_at = excluded.grew_at, suspect_from = least(w.suspect_from, excluded.suspect_from),
     proof_at = excluded.proof_at, proof_volume = excluded.proof_volume
   RETURNING w.market_id)
   ${insertFactsSql('coverage', 'SELECT market_id FROM compared')}`,
);

const DELETE_SAMPLES = sql(
  'delete_compared_samples',
  `DELETE FROM volume_sample s USING unnest($2::bigint[], $3::float8[]) AS c (market_id, made)
   WHERE s.venue = $1 AND s.market_id = c.market_id AND s.made_at <= to_timestamp(c.made / 1000)`,
);

/** A market decides the unit when its total equals the stored volume in one unit and clearly differs from it in the other. */
const SUM_UP = sql(
  'sum_up_completeness',
  `WITH w AS MATERIALIZED (
     SELECT since, missing_since, stored_volume AS stored, other_volume AS other, greatest(0, venue_volume - baseline_volume) AS volume
     FROM trade_witness WHERE venue = $1),
   summed AS (
     INSERT INTO venue_completeness AS v (venue, unit, checked_at, since, share, markets, markets_missing, missing_since)
     SELECT $1, $3, to_timestamp($2::float8 / 1000), min(since),
       round(sum(least(stored, volume)) / nullif(sum(volume), 0), ${SUM_ERROR_SCALE})::float8,
       count(*)::int, count(missing_since)::int, min(missing_since) FROM w
     ON CONFLICT (venue) DO UPDATE SET checked_at = excluded.checked_at, since = excluded.since, share = excluded.share,
       markets = excluded.markets, markets_missing = excluded.markets_missing, missing_since = excluded.missing_since)
   SELECT (count(*) FILTER (WHERE abs(volume - stored) <= t AND abs(volume - other) > 3 * t))::int AS in_unit,
     (count(*) FILTER (WHERE abs(volume - other) <= t AND abs(volume - stored) > 3 * t))::int AS in_other
   FROM w CROSS JOIN LATERAL (SELECT $4::numeric + $5::numeric * volume AS t) tolerance`,
);

const READ_VENUE = sql(
  'read_venue_witness',
  `SELECT unit, ${epochMs('broken_from')} AS from_ms, ${epochMs('broken_until')} AS until_ms, broken_markets AS markets,
     marked_at IS NOT NULL AS is_marked FROM venue_completeness WHERE venue = $1`,
);
const SET_UNIT = sql('set_volume_unit', 'UPDATE venue_completeness SET unit = $2 WHERE venue = $1');
const RESTART = sql(
  'restart_comparisons',
  `WITH gone AS (DELETE FROM trade_witness WHERE venue = $1 RETURNING market_id) ${insertFactsSql('coverage', 'SELECT market_id FROM gone')}`,
);

export interface ComparedTotals {
  compared: number;
  /** Markets that began to miss trades, and markets whose stored trades cover the total again. */
  began: bigint[];
  recovered: bigint[];
  /** The unit that the totals turned out to have; all comparisons of the venue begin anew. */
  newUnit?: VolumeUnit;
}

/**
 * Compares the settled totals of a venue with the stored trades, and sums up the venue. One transaction under the lease of the job, so
 * it either happened or is repeated: a sample is deleted with the result of its comparison.
 */
export async function compareTotals(tx: Tx, venue: string, rule: VolumeRule, nowMs: number): Promise<ComparedTotals> {
  const { delayMs, leadMs, settledMs } = rule;
  const [known] = await tx.query<StoredFault & { unit: VolumeUnit }>(READ_VENUE, [venue]);
  const unit = known?.unit ?? rule.unit;
  const values = [venue, nowMs, delayMs, leadMs, settledMs, unit === 'contracts'];
  const read = (await tx.query<TotalRow>(READ_TOTALS, values)).map(exactTotal);
  const rows = read.filter(({ isProof }) => !isProof);
  const proofs = new Map(read.filter(({ isProof }) => isProof).map((row) => [row.marketId, row]));
  const results = rows
    .filter(({ baseline, isLive }) => baseline !== null || isLive)
    .map((row) => judge(row, proofs.get(row.marketId), rule, nowMs, known));
  if (results.length > 0) {
    await tx.query(WRITE_COMPARED, [
      venue,
      nowMs,
      results.map(({ row }) => row.marketId),
      results.map(({ sinceMs }) => sinceMs),
      results.map(({ baseline }) => baseline),
      results.map(({ lowest }) => lowest),
      results.map(({ row }) => row.madeMs),
      results.map(({ row }) => row.total),
      results.map(({ stored }) => stored),
      results.map(({ other }) => other),
      results.map(({ movedMs }) => movedMs),
      results.map(({ coveredMs }) => coveredMs),
      results.map(({ missing }) => missing),
      results.map(({ missingSinceMs }) => missingSinceMs),
      results.map(({ grewMs }) => grewMs),
      results.map(({ suspectMs }) => suspectMs),
      results.map(({ proof }) => proof?.madeMs ?? null),
      results.map(({ proof }) => proof?.total ?? null),
    ]);
  }
  if (rows.length > 0) {
    await tx.query(DELETE_SAMPLES, [venue, rows.map(({ marketId }) => marketId), rows.map(({ madeMs }) => madeMs)]);
  }
  const calm = results.map(({ row }) => ({
    marketPk: row.marketId,
    madeMs: row.madeMs,
    volume: row.total,
    blur: row.recent,
  }));
  await keepCalmTotals(tx, venue, calm);
  const [counts] = await tx.query<UnitCounts>(SUM_UP, [venue, nowMs, unit, rule.absolute, rule.relative]);
  const measured = counts === undefined ? unit : measuredUnit(unit, counts);
  if (measured !== unit) {
    await tx.query(SET_UNIT, [venue, measured]);
    await tx.query(RESTART, [venue]);
    await judgeAllCoverageAgain(tx, venue, nowMs);
  }
  const grown = results.filter(({ grewMs }) => grewMs === nowMs).map(({ coveredMs }) => coveredMs - rule.delayMs);
  await noteFault(tx, venue, grown, known, nowMs);
  const keysOf = (isChosen: (result: Judged) => boolean) => results.filter(isChosen).map(({ row }) => row.marketId);
  const recovered = keysOf(({ row, missing }) => missing === ZERO && row.missingSinceMs !== null);
  await judgeCoverageAgain(tx, [...keysOf(({ grewMs }) => grewMs === nowMs), ...recovered], nowMs);
  return {
    compared: results.length,
    began: keysOf(({ row, missing }) => missing !== ZERO && row.missingSinceMs === null),
    recovered,
    ...(measured !== unit && { newUnit: measured }),
  };
}

function exactTotal(row: TotalRow): TotalRow {
  const { total, folded, edge, recent, other, otherRecent, baseline, lowest, compared } = row;
  const optional = (text: Decimal | null) => (text === null ? null : decimal(text));
  return {
    ...row,
    total: decimal(total),
    folded: decimal(folded),
    edge: decimal(edge),
    recent: decimal(recent),
    other: decimal(other),
    otherRecent: decimal(otherRecent),
    baseline: optional(baseline),
    lowest: optional(lowest),
    compared: optional(compared),
  };
}

interface Judged {
  row: TotalRow;
  sinceMs: number;
  baseline: Decimal;
  lowest: Decimal;
  stored: Decimal;
  /** The stored volume in the other unit. */
  other: Decimal;
  missing: Decimal;
  /** The moment of the latest total that differs from the one before. */
  movedMs: number;
  /** The moment of the latest total without a loss. */
  coveredMs: number;
  missingSinceMs: number | null;
  /** When the loss last grew. */
  grewMs: number | null;
  /** Trades from here on may be missing, although the total does not show it. */
  suspectMs: number | null;
  /** The total that proves most of the loss. */
  proof: TotalRow | undefined;
}

function judge(
  row: TotalRow,
  proof: TotalRow | undefined,
  rule: VolumeRule,
  nowMs: number,
  fault: StoredFault | undefined,
): Judged {
  const { baseline: known, lowest, compared, missingSinceMs } = row;
  const state: WitnessState | null =
    known === null || lowest === null || compared === null
      ? null
      : { baseline: known, lowest, total: compared, isMissing: missingSinceMs !== null };
  const { outcome, isProof, hasGrown, ...figures } = compareTotal(state, row, rule, proof);
  const isRestarted = outcome === 'restarted';
  const common = {
    row,
    ...figures,
    sinceMs: isRestarted ? row.minuteMs : row.originMs,
    other: isRestarted ? row.otherRecent : row.other,
    movedMs: known === null || row.total !== compared ? row.madeMs : row.movedMs,
    suspectMs: known !== null && row.total !== compared ? suspectFrom(fault, row) : null,
  };
  if (outcome !== 'missing') {
    return { ...common, coveredMs: row.madeMs, missingSinceMs: null, grewMs: null, proof: undefined };
  }
  return {
    ...common,
    coveredMs: row.coveredMs,
    missingSinceMs: missingSinceMs ?? nowMs,
    grewMs: hasGrown ? nowMs : row.grewMs,
    proof: isProof ? row : proof,
  };
}

/** A total of the answer that did not move since its comparison, when no trade since then blurs it. */
const CONFIRM = sql(
  'confirm_totals',
  `INSERT INTO volume_sample (venue, market_id, made_at, volume)
   SELECT $1, w.market_id, r.made_at, r.volume
   FROM unnest($2::text[], $3::timestamptz[], $4::numeric[]) AS r (market_id, made_at, volume)
   JOIN market m ON m.venue = $1 AND m.venue_market_id = r.market_id JOIN trade_witness w ON w.market_id = m.id
   WHERE w.venue_volume = r.volume AND w.missing_since IS NULL AND w.baseline_volume - w.lowest_baseline > $5
     AND w.sampled_at < r.made_at - $6 * interval '1 millisecond'
   ORDER BY w.market_id ON CONFLICT DO NOTHING`,
);

/**
 * Keeps unmoved totals of a page that tighten a comparison. A total moves with a trade, so a moved one always leaves open whether an
 * earlier total contained that trade. The same total after the delay of the venue contains all trades.
 */
export async function confirmTotals(
  tx: Tx,
  venue: string,
  rule: VolumeRule,
  markets: readonly MarketRecord[],
  nowMs: number,
): Promise<void> {
  const known = markets.filter(({ volume }) => volume !== undefined);
  if (known.length === 0) return;
  await tx.query(CONFIRM, [
    venue,
    known.map(({ marketId }) => marketId),
    known.map(({ ageMs = 0 }) => new Date(nowMs - ageMs).toISOString()),
    known.map(({ volume }) => volume),
    rule.absolute,
    rule.delayMs,
  ]);
}

const PRUNE = sql(
  'prune_trade_witness',
  `WITH pruned AS (
     DELETE FROM trade_witness
     WHERE sampled_at < clock_timestamp() - CASE WHEN missing_since IS NULL THEN ${WINDOW_DAYS} ELSE 30 END * interval '1 day' RETURNING market_id),
   published AS (${insertFactsSql('coverage', 'SELECT market_id FROM pruned')})
   SELECT count(*)::int AS pruned FROM pruned`,
);

/** Deletes comparisons of markets whose totals have not moved for a week, or for a month when trades are missing. Returns their number. */
export async function pruneWitness(db: Pick<Tx, 'query'>): Promise<number> {
  const [row] = await db.query<{ pruned: number }>(PRUNE);
  return row?.pruned ?? 0;
}
