import {
  addDecimals,
  compareDecimals,
  type Decimal,
  decimal,
  multiplyDecimals,
  subtractDecimals,
  ZERO,
} from '../values/decimal.ts';
import type { VolumeRule } from './volume-witness.ts';

/** Coverage is stated for hours of UTC. */
export const HOUR_MS = 3_600_000;

/** The kinds of data with a coverage. Candles follow trades. */
export const COVERAGE_KINDS = ['trades', 'prices', 'books', 'markets'] as const;
export type CoverageKind = (typeof COVERAGE_KINDS)[number];

/** docs/coverage.md states the meaning of each class and each reason. */
export const COVERAGE_CLASSES = ['complete', 'quiet', 'observed', 'gap', 'unknown'] as const;
export type CoverageClass = (typeof COVERAGE_CLASSES)[number];

export const COVERAGE_CAUSES = ['missing_trades', 'poll_pause', 'feed_gap'] as const;
export type CoverageCause = (typeof COVERAGE_CAUSES)[number];

export const COVERAGE_REASONS = [
  'not_settled',
  'not_observed',
  'not_listed',
  'not_recorded',
  'no_total',
  'no_earlier_total',
  'no_later_total',
  'total_behind',
  'beside_gap',
  'imprecise',
  'not_folded',
  'not_compared',
  'records_rejected',
  'history_not_served',
  'history_not_read',
  'markets_without_total',
  'markets_unknown',
] as const;
export type CoverageReason = (typeof COVERAGE_REASONS)[number];

/** A total of a venue beside an hour, with the stored volume between both. */
export interface BesideTotal {
  /** When the venue made it, epoch milliseconds. */
  atMs: number;
  volume: Decimal;
  /** Stored volume between the total and the hour: certainly on the side of the hour. */
  sure: Decimal;
  /** The same with the trades around the total, which it may contain or not. */
  most: Decimal;
}

/** What is known about the trades of a market in an hour. */
export interface HourEvidence {
  startMs: number;
  /** Stored volume of the hour. */
  stored: Decimal;
  /** Totals that contain no trade of the hour or later, the nearest one first. */
  before: readonly BesideTotal[];
  /** Totals that contain every trade of the hour and before, the nearest one first. */
  after: readonly BesideTotal[];
  /** The first and the last total inside the hour: the growth, and the stored volume that can explain it. */
  inside?: { fromMs: number; toMs: number; growth: Decimal; stored: Decimal };
  /** When the market was created, epoch milliseconds: its volume was 0 then. */
  createdMs?: number;
  history?: HistoryEnd;
}

/** The end of a walk back through the older trades of a market, before the start of its range. Epoch milliseconds. */
export interface HistoryEnd {
  fromMs: number;
  /** The walk read everything from here to the end of its range, and nothing before. */
  reachedMs: number;
  /** The venue does not serve the rest; otherwise the walk failed for another reason. */
  isUnserved: boolean;
}

/** What a walk that ended early says about an hour that it did not read; undefined for any other hour. */
export function classifyHistory(end: HistoryEnd | undefined, startMs: number): CoverageResult | undefined {
  if (end === undefined || startMs >= end.reachedMs || startMs + HOUR_MS <= end.fromMs) return undefined;
  const reason = end.isUnserved ? 'history_not_served' : 'history_not_read';
  return { class: 'unknown', reason, fromMs: end.fromMs, toMs: end.reachedMs };
}

export interface CoverageResult {
  class: CoverageClass;
  /** The venue's volume of the hour is at most this. */
  total?: Decimal;
  /** Missing for certain between the bounds. */
  missing?: Decimal;
  /** At most this much can be missing in the hour. */
  tolerance?: Decimal;
  cause?: CoverageCause;
  reason?: CoverageReason;
  /** The evidence concerns the time between these moments, epoch milliseconds. */
  fromMs?: number;
  toMs?: number;
}

/** An hour is complete when at most this share of its stored volume can be missing, or at most the tolerance of the venue. */
const IMPRECISION = decimal('0.05');

/**
 * The class of an hour of a market. A total before the hour contains at least every trade that is older than the delay of the venue, and a
 * total after it no trade that is newer than its lead. So of two totals, the volume of the hour is at most their difference less the
 * stored volume that certainly lies between them and outside the hour (`possible` is that bound less the stored volume of the hour), and
 * a difference above the stored volume that may lie between them proves a loss.
 */
export function classifyTrades(evidence: HourEvidence, rule: VolumeRule): CoverageResult {
  const { startMs, stored, inside } = evidence;
  const endMs = startMs + HOUR_MS;
  const { createdMs } = evidence;
  if (createdMs !== undefined && createdMs >= endMs && stored === ZERO)
    return { class: 'unknown', reason: 'not_listed' };
  const lossInside = inside && subtractDecimals(inside.growth, inside.stored);
  if (inside && lossInside && isAbove(lossInside, toleranceOf(rule, inside.growth))) {
    return lossOf(lossInside, inside.fromMs - rule.delayMs, inside.toMs + rule.leadMs);
  }
  const unread = classifyHistory(evidence.history, startMs);
  if (unread !== undefined) return unread;
  const [known] = evidence.before;
  const isNew = known === undefined && createdMs !== undefined && createdMs >= startMs;
  const before = isNew ? [{ atMs: startMs - rule.leadMs, volume: ZERO, sure: ZERO, most: ZERO }] : evidence.before;
  const [earlier] = before;
  const [later] = evidence.after;
  if (earlier === undefined) return { class: 'unknown', reason: 'no_earlier_total' };
  if (later === undefined) return { class: 'unknown', reason: 'no_later_total' };
  const bounds = { fromMs: earlier.atMs - rule.delayMs, toMs: later.atMs + rule.leadMs };
  const growth = subtractDecimals(later.volume, earlier.volume);
  const tolerance = toleranceOf(rule, growth);
  const latest = least(evidence.after.map(({ volume, sure }) => subtractDecimals(volume, sure)));
  const first = greatest(before.map(({ volume, sure }) => addDecimals(volume, sure)));
  const total = subtractDecimals(latest, first);
  const possible = subtractDecimals(total, stored);
  // A venue that states less than its own trades has not counted all of them: its total proves nothing.
  if (isAbove(subtractDecimals(ZERO, possible), tolerance))
    return { class: 'unknown', reason: 'total_behind', ...bounds };
  if (stored === ZERO && !isAbove(total, ZERO)) return { class: 'quiet', total: ZERO, ...bounds };
  const between = addDecimals(addDecimals(earlier.most, stored), later.most);
  const proven = subtractDecimals(growth, between);
  if (isAbove(proven, tolerance) && isAbove(possible, tolerance)) {
    if (isNew) return { class: 'unknown', reason: 'no_earlier_total', ...bounds };
    // All of the loss can lie beside an hour without a trade.
    if (stored === ZERO) return { class: 'unknown', reason: 'beside_gap', missing: proven, ...bounds };
    return lossOf(proven, bounds.fromMs, bounds.toMs);
  }
  const figures = { total: greatest([total, ZERO]), tolerance: greatest([possible, tolerance]), ...bounds };
  const isPrecise = !isAbove(possible, tolerance) || !isAbove(possible, multiplyDecimals(IMPRECISION, stored));
  return isPrecise ? { class: 'complete', ...figures } : { class: 'unknown', reason: 'imprecise', ...figures };
}

function lossOf(missing: Decimal, fromMs: number, toMs: number): CoverageResult {
  return { class: 'gap', missing, cause: 'missing_trades', fromMs, toMs };
}

/** The market hours of a venue, in sums. */
export interface VenueHour {
  stored: Decimal;
  /** Sum of what can be missing in each market. */
  tolerance: Decimal;
  /** The part of it in markets whose hour is unknown because of it. */
  imprecise: Decimal;
  missing: Decimal;
  markets: number;
  moved: number;
  gaps: number;
  /** Markets without a bound of what can be missing. */
  unbounded: number;
  /** Why the totals do not concern all trades of the venue. */
  reason?: CoverageReason;
}

/** The class of an hour of a venue, of the classes of its markets. */
export function classifyVenueTrades(hour: VenueHour): CoverageResult {
  const { stored, tolerance, imprecise, missing, gaps, moved, unbounded, reason } = hour;
  if (gaps > 0) return { class: 'gap', cause: 'missing_trades', missing };
  if (reason !== undefined) return { class: 'unknown', reason };
  if (unbounded > 0) return { class: 'unknown', reason: 'markets_unknown' };
  if (moved === 0) return { class: 'quiet' };
  if (isAbove(imprecise, multiplyDecimals(IMPRECISION, stored)))
    return { class: 'unknown', reason: 'imprecise', tolerance };
  return { class: 'complete', tolerance };
}

/** The polls of a kind in an hour. */
interface PollHour {
  /** The longest pause between two successes that touches the hour, epoch milliseconds. */
  pause?: { fromMs: number; toMs: number };
  /** A feed lost changes between these moments, epoch milliseconds. */
  feedGap?: { fromMs: number; toMs: number };
}

/** The longest pause between two successful polls that counts as within their interval: a missed poll is one too many. */
function allowedPauseMs(everyMs: number): number {
  return 2 * everyMs + 30_000;
}

/** The class of an hour of prices, books or markets. They have no total, so an hour is observed and never complete. */
export function classifyPolls({ pause, feedGap }: PollHour, everyMs: number): CoverageResult {
  if (pause === undefined) return { class: 'unknown', reason: 'not_observed' };
  if (pause.toMs - pause.fromMs > allowedPauseMs(everyMs)) return { class: 'gap', cause: 'poll_pause', ...pause };
  return feedGap === undefined ? { class: 'observed' } : { class: 'gap', cause: 'feed_gap', ...feedGap };
}

const FIRST_AGAIN_MS = 300_000;
const GAP_AGAIN_MS = 6 * HOUR_MS;
/** Evidence is kept for longer. */
const JUDGED_MS = 35 * 24 * HOUR_MS;

/**
 * When an hour is judged again, epoch milliseconds; null for the last time. A complete one a day later, for late trades; an unknown one at
 * growing intervals, and a gap at most six hours later, for repairs. A loss or a recovery that a comparison finds asks at once.
 */
export function judgeAgainMs(judged: CoverageClass, startMs: number, nowMs: number): number | null {
  const endMs = startMs + HOUR_MS;
  const ageMs = nowMs - endMs;
  if (judged !== 'gap' && judged !== 'unknown') return ageMs < 24 * HOUR_MS ? endMs + 24 * HOUR_MS : null;
  if (ageMs >= JUDGED_MS) return null;
  const waitMs = Math.max(FIRST_AGAIN_MS, ageMs / 2);
  return nowMs + (judged === 'gap' ? Math.min(waitMs, GAP_AGAIN_MS) : waitMs);
}

function toleranceOf({ relative, absolute }: VolumeRule, volume: Decimal): Decimal {
  return addDecimals(decimal(absolute), multiplyDecimals(decimal(relative), greatest([volume, ZERO])));
}

function isAbove(a: Decimal, b: Decimal): boolean {
  return compareDecimals(a, b) > 0;
}

function least(values: readonly Decimal[]): Decimal {
  return values.reduce((a, b) => (isAbove(a, b) ? b : a));
}

function greatest(values: readonly Decimal[]): Decimal {
  return values.reduce((a, b) => (isAbove(a, b) ? a : b));
}
