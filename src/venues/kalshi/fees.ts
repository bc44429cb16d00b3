import type { FeePeriod, FeeRule } from '../../domain/markets/fee.ts';
import type { MarketRecord } from '../../domain/markets/market.ts';
import { compareDecimals, type Decimal, decimal, multiplyDecimals, parseDecimal } from '../../domain/values/decimal.ts';
import { isStorableText } from '../../domain/values/text.ts';
import type { UnknownValue } from '../parsed-batch.ts';
import { parseVenueTimeMs } from '../venue-time.ts';
import type { KalshiFeeChange, KalshiMarket } from './models.ts';

/** The fee schedule of July 2026: takers pay multiplier × 0.07 × contracts × price × (1 − price). */
const TAKER = decimal('0.07');
/** The rates of makers by the type of a series. `flat` has a table that no route states. */
const MAKERS: ReadonlyMap<string, Decimal> = new Map([
  ['quadratic', decimal('0')],
  ['quadratic_with_maker_fees', decimal('0.0175')],
  ['quadratic_with_combo_maker_fees', decimal('0.035')],
]);
/** Words of a fee without a known formula that need no operator. */
const KNOWN_WORDS: ReadonlySet<string> = new Set(['flat', ...MAKERS.keys()]);
/** A greater multiplier, or one with more digits, is no fee. */
const MAX_MULTIPLIER = decimal('100');
const MAX_MULTIPLIER_LENGTH = 12;

/** A type with its multiplier; either may come from the event, the other from its series. */
interface Terms {
  type?: string | null | undefined;
  multiplier?: string | number | null | undefined;
}

/** The changes that the venue states for a series and for an event, in the order of their times. */
export interface FeeChanges {
  /** The time of the read, epoch milliseconds. */
  readAtMs: number;
  /** Past ones too. */
  ofSeries: readonly KalshiFeeChange[];
  /** Those that lay ahead when they were first read. */
  ofEvent: readonly KalshiFeeChange[];
}

/**
 * The statement of Kalshi about the fee of a market; nothing while its series is not known. The last change of a series that applies replaces the
 * value in the series, which may have been read before the change.
 */
export function kalshiFees(
  market: KalshiMarket,
  nowMs: number,
  unknowns: UnknownValue[],
): Pick<MarketRecord, 'fees' | 'feesAgeMs'> {
  const { series, event, fee_changes: changes } = market;
  if (!series || !event) return {};
  const eventReadMs = event.read_at_ms ?? nowMs;
  const waivedUntilMs = parseVenueTimeMs(market.fee_waiver_expiration_time) ?? Number.NEGATIVE_INFINITY;
  let isStated = true;

  function ruleOf(ofSeries: Terms, ofEvent: Terms, atMs: number): FeeRule | null {
    // The venue does not name the fee under a waiver.
    if (atMs < waivedUntilMs) return null;
    const type = ofEvent.type ?? ofSeries.type;
    if (type === null || type === undefined) isStated = false;
    else if (!KNOWN_WORDS.has(type) && isStorableText(type)) unknowns.push({ field: 'fee_type', value: type });
    return curveOf(type, ofEvent.multiplier ?? ofSeries.multiplier);
  }

  let ofSeries: Terms = { type: series.fee_type, multiplier: series.fee_multiplier };
  let ofEvent: Terms = { type: event.fee_type_override, multiplier: event.fee_multiplier_override };
  let fromMs: number | undefined;
  const past = changes?.ofSeries.findLast(({ atMs }) => atMs <= nowMs);
  if (past) [ofSeries, fromMs] = [past, past.atMs];
  // The facts of an event contain its changes up to their read.
  const pastOfEvent = changes?.ofEvent.findLast(({ atMs }) => atMs > eventReadMs && atMs <= nowMs);
  if (pastOfEvent) [ofEvent, fromMs] = [pastOfEvent, Math.max(fromMs ?? pastOfEvent.atMs, pastOfEvent.atMs)];

  const periods: FeePeriod[] = [{ ...(fromMs !== undefined && { fromMs }), rule: ruleOf(ofSeries, ofEvent, nowMs) }];
  const later = [
    ...(changes?.ofSeries ?? []).map((change) => ({ ...change, isOfEvent: false })),
    ...(changes?.ofEvent ?? []).map((change) => ({ ...change, isOfEvent: true })),
    ...(waivedUntilMs > nowMs ? [{ atMs: waivedUntilMs, isOfEvent: undefined }] : []),
  ].filter(({ atMs }) => atMs > nowMs);
  later.sort((a, b) => a.atMs - b.atMs);
  for (const [place, change] of later.entries()) {
    if (change.isOfEvent === true) ofEvent = change;
    else if (change.isOfEvent === false) ofSeries = change;
    const { atMs } = change;
    if (later[place + 1]?.atMs !== atMs) periods.push({ fromMs: atMs, rule: ruleOf(ofSeries, ofEvent, atMs) });
  }
  const ageMs = nowMs - Math.min(changes?.readAtMs ?? nowMs, eventReadMs);
  return {
    fees: {
      periods,
      ...(periods.some(({ rule }) => rule === null) && { reason: isStated ? 'unknown_rule' : 'not_stated' }),
      ...(changes === undefined && { isPresentOnly: true }),
    },
    // Facts of the same page are as new as its markets.
    ...(ageMs >= 1_000 && { feesAgeMs: ageMs }),
  };
}

function curveOf(type: string | null | undefined, multiplier: Terms['multiplier']): FeeRule | null {
  const maker = MAKERS.get(type ?? '');
  const factor = parseDecimal(multiplier);
  if (maker === undefined || factor === null || factor.startsWith('-')) return null;
  if (factor.length > MAX_MULTIPLIER_LENGTH || compareDecimals(factor, MAX_MULTIPLIER) > 0) return null;
  return {
    model: 'price_curve',
    takerRate: multiplyDecimals(TAKER, factor),
    makerRate: multiplyDecimals(maker, factor),
    exponent: 1,
    // The rounding of direct members. Others pay up to a cent more for an order.
    digits: 6,
    rounding: 'up',
    balanceDigits: 4,
  };
}
