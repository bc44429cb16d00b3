import {
  type CoverageCause,
  type CoverageClass,
  type CoverageKind,
  type CoverageReason,
  classifyHistory,
  classifyTrades,
  HOUR_MS,
} from '../../domain/markets/coverage.ts';
import { isComparable, volumeRuleOf } from '../../domain/markets/volume-witness.ts';
import { type Decimal, decimal } from '../../domain/values/decimal.ts';
import { epochMs, type Queryable, sql } from '../db/tx.ts';
import { readHistoryEnd, readHourEvidence } from './evidence.ts';
import { unitOf } from './settle.ts';

/** The coverage of an hour. Volumes are in the unit of the venue's totals, times in epoch milliseconds. */
export interface CoverageHour {
  startMs: number;
  class: CoverageClass;
  stored?: Decimal;
  total?: Decimal;
  missing?: Decimal;
  tolerance?: Decimal;
  cause?: CoverageCause;
  reason?: CoverageReason;
  /** The longest pause between two successful polls. */
  pauseMs?: number;
  fromMs?: number;
  toMs?: number;
  /** Markets with something to state, those with a gap, and the unknown ones. */
  markets?: number;
  marketsGap?: number;
  marketsUnknown?: number;
  /** Absent before the hour is judged. */
  checkedMs?: number;
}

type CoverageRow = { [Name in keyof CoverageHour]-?: CoverageHour[Name] | null };

const COLUMNS = `${epochMs('c.hour')} AS start_ms, c.class, c.stored, c.total, c.missing, c.tolerance, c.cause, c.reason, c.pause_ms,
  ${epochMs('c.from_at')} AS from_ms, ${epochMs('c.to_at')} AS to_ms, c.markets, c.markets_gap, c.markets_unknown,
  ${epochMs('c.checked_at')} AS checked_ms`;

function toHour<Row extends CoverageRow>(row: Row): CoverageHour {
  const known = Object.fromEntries(
    Object.entries(row).filter(([, value]) => value !== null),
  ) as unknown as CoverageHour;
  const { stored, total, missing, tolerance } = known;
  return {
    ...known,
    ...(stored !== undefined && { stored: decimal(stored) }),
    ...(total !== undefined && { total: decimal(total) }),
    ...(missing !== undefined && { missing: decimal(missing) }),
    ...(tolerance !== undefined && { tolerance: decimal(tolerance) }),
  };
}

/** The time of which hours are settled, epoch milliseconds. */
export interface SettledTime {
  sinceMs: number;
  settledToMs: number;
}

const SETTLED = sql(
  'read_settled_coverage',
  `SELECT venue, ${epochMs('since')} AS since_ms, ${epochMs('settled_to')} AS settled_to_ms FROM coverage_settled
   WHERE venue = ANY ($1::text[]) AND kind = $2`,
);

/** The settled time of a kind, by venue; absent before the first evidence. */
export async function readSettledTimes(
  db: Queryable,
  venues: readonly string[],
  kind: CoverageKind,
): Promise<Map<string, SettledTime>> {
  const rows = await db.query<SettledTime & { venue: string }>(SETTLED, [venues, kind]);
  return new Map(rows.map((row) => [row.venue, row]));
}

const VENUE_HOURS = sql(
  'read_coverage_of_venues',
  `SELECT c.venue, ${COLUMNS} FROM coverage c
   WHERE c.venue = ANY ($1::text[]) AND c.kind = $2 AND c.market_id = 0 AND c.hour >= to_timestamp($3::float8 / 1000)
     AND c.hour < to_timestamp($4::float8 / 1000)`,
);

/** Hours of whole venues or of one market. */
interface HourRange {
  kind: CoverageKind;
  startMs: number;
  endMs: number;
}

/** The settled hours of venues, in no order. */
export async function readVenueHours(
  db: Queryable,
  venues: readonly string[],
  { kind, startMs, endMs }: HourRange,
): Promise<(CoverageHour & { venue: string })[]> {
  const rows = await db.query<CoverageRow & { venue: string }>(VENUE_HOURS, [venues, kind, startMs, endMs]);
  return rows.map((row) => ({ ...toHour(row), venue: row.venue }));
}

const MARKET_HOURS = sql(
  'read_coverage_of_market',
  `SELECT ${COLUMNS} FROM coverage c
   WHERE c.market_id = $1 AND c.market_id > 0 AND c.kind = $2 AND c.hour >= to_timestamp($3::float8 / 1000)
     AND c.hour < to_timestamp($4::float8 / 1000)`,
);

/** A market with the fields that decide its coverage. */
interface CoveredMarket {
  pk: bigint;
  venue: string;
  eventId: string | null;
  hasBook: boolean;
  createdAt: Date | null;
}

const MARKET = sql(
  'read_covered_market',
  'SELECT id AS pk, venue, event_id, has_book, created_at FROM market WHERE id = $1',
);

/**
 * The coverage of a market in the settled hours of its venue, and in earlier ones that its walk back did not read, in no order. An hour of
 * trades without a row, such as a quiet one, is judged now. The venue's polls state the hours of prices and markets; which market a poll of
 * books read is not recorded.
 */
export async function readMarketHours(
  db: Queryable,
  marketPk: bigint,
  range: HourRange,
  settled: SettledTime | undefined,
  nowMs: number,
): Promise<CoverageHour[]> {
  const startMs = Math.max(range.startMs, settled?.sinceMs ?? Number.POSITIVE_INFINITY);
  const endMs = Math.min(range.endMs, settled?.settledToMs ?? 0);
  const unread =
    range.kind === 'trades' && range.startMs < startMs
      ? await unreadHours(db, marketPk, range.startMs, Math.min(range.endMs, startMs), nowMs)
      : [];
  if (startMs >= endMs) return unread;
  const [market] = await db.query<CoveredMarket>(MARKET, [marketPk]);
  if (market === undefined) return unread;
  const bounds = { kind: range.kind, startMs, endMs };
  const rows = await db.query<CoverageRow>(MARKET_HOURS, [market.pk, range.kind, startMs, endMs]);
  const own = rows.map(toHour);
  const known = new Set(own.map((hour) => hour.startMs));
  const others =
    range.kind === 'trades' ? await judged(db, market, bounds, known, nowMs) : await ofVenue(db, market, bounds, known);
  return [...unread, ...own, ...others];
}

/** The hours before the first evidence that the walk back through history did not read. */
async function unreadHours(
  db: Queryable,
  marketPk: bigint,
  startMs: number,
  endMs: number,
  nowMs: number,
): Promise<CoverageHour[]> {
  const end = await readHistoryEnd(db, marketPk);
  if (end === undefined) return [];
  const first = Math.max(startMs, Math.floor(end.fromMs / HOUR_MS) * HOUR_MS);
  return hoursOf(first, Math.min(endMs, end.reachedMs)).flatMap((each) => {
    const result = classifyHistory(end, each);
    return result ? [{ ...result, startMs: each, checkedMs: nowMs }] : [];
  });
}

async function judged(
  db: Queryable,
  market: CoveredMarket,
  { startMs, endMs }: HourRange,
  known: ReadonlySet<number>,
  nowMs: number,
): Promise<CoverageHour[]> {
  const hours = hoursOf(startMs, endMs).filter((each) => !known.has(each));
  const rule = volumeRuleOf(market.venue);
  const { eventId, hasBook } = market;
  if (rule === undefined || !isComparable(rule, { hasBook, ...(eventId !== null && { eventId }) })) {
    return hours.map((each) => ({ startMs: each, class: 'unknown', reason: 'no_total' }));
  }
  const unit = await unitOf(db, market.venue, rule);
  const asked = hours.map((each) => ({ marketPk: market.pk, startMs: each }));
  const evidence = await readHourEvidence(db, market.venue, asked, { rule, unit });
  return evidence.map(({ isFolded, ...hour }) => ({
    ...(isFolded ? classifyTrades(hour, rule) : { class: 'unknown' as const, reason: 'not_folded' as const }),
    startMs: hour.startMs,
    stored: hour.stored,
    checkedMs: nowMs,
  }));
}

async function ofVenue(
  db: Queryable,
  { venue, createdAt }: CoveredMarket,
  range: HourRange,
  known: ReadonlySet<number>,
): Promise<CoverageHour[]> {
  const hours = await readVenueHours(db, [venue], range);
  return hours
    .filter(({ startMs }) => !known.has(startMs))
    .map(({ markets: _m, marketsGap: _g, marketsUnknown: _u, venue: _v, ...hour }): CoverageHour => {
      const { startMs, cause } = hour;
      if (createdAt !== null && createdAt.getTime() >= startMs + HOUR_MS)
        return { startMs, class: 'unknown', reason: 'not_listed' };
      // A gap of a feed concerns the markets that have a row of their own.
      const { cause: _cause, fromMs: _from, toMs: _to, ...polled } = hour;
      const ofPolls: CoverageHour = cause === 'feed_gap' ? { ...polled, class: 'observed' } : hour;
      if (range.kind !== 'books' || ofPolls.class !== 'observed') return ofPolls;
      return { ...ofPolls, class: 'unknown', reason: 'not_recorded' };
    });
}

/** The starts of the hours in [start, end), epoch milliseconds. */
export function hoursOf(startMs: number, endMs: number): number[] {
  const first = Math.ceil(startMs / HOUR_MS) * HOUR_MS;
  return Array.from(
    { length: Math.max(0, Math.ceil((endMs - first) / HOUR_MS)) },
    (_, index) => first + index * HOUR_MS,
  );
}

const DAY = sql(
  'read_stated_hours',
  `SELECT m.venue_market_id AS market_id, ${COLUMNS}
   FROM coverage c JOIN market m ON m.id = c.market_id
   WHERE c.venue = $1 AND c.kind = 'trades' AND c.hour >= to_timestamp($2::float8 / 1000)
     AND c.hour < to_timestamp($2::float8 / 1000) + interval '24 hours' AND c.checked_at IS NOT NULL AND c.class IN ('complete', 'quiet')
   ORDER BY c.hour, c.market_id`,
);

interface StatedHour extends CoverageHour {
  /** The venue's id. */
  marketId: string;
}

/** The hours of trades of markets that are complete or quiet, on the UTC day that begins at `dayMs`, epoch milliseconds. */
export async function readStatedHours(db: Queryable, venue: string, dayMs: number): Promise<StatedHour[]> {
  const rows = await db.query<CoverageRow & Pick<StatedHour, 'marketId'>>(DAY, [venue, dayMs]);
  return rows.map((row) => ({ ...toHour(row), marketId: row.marketId }));
}
