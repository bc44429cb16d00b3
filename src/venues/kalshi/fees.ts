import type { FeePeriod, FeeRule, FeeStatement } from '../../domain/markets/fee.ts';
import { type Decimal, decimal, multiplyDecimals, parseDecimal } from '../../domain/values/decimal.ts';
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

const WAIVER = 'fee_waiver_expiration_time';
/** Words of a fee without a known formula that need no operator. */
const KNOWN_WORDS: ReadonlySet<string> = new Set(['', 'flat', WAIVER, ...MAKERS.keys()]);

/** A type with its multiplier; either may come from the event, the other from its series. */
interface Terms {
  type?: string | null | undefined;
  multiplier?: string | number | null | undefined;
}

/** The changes that the venue announces for a series and for an event; undefined: they could not be read. */
export interface AnnouncedFees {
  ofSeries: readonly KalshiFeeChange[];
  ofEvent: readonly KalshiFeeChange[];
}

/** The statement of Kalshi about the fee of a market; undefined while its series is not known. */
export function kalshiFees(market: KalshiMarket, nowMs: number, unknowns: UnknownValue[]): FeeStatement | undefined {
  const { series, event, announced } = market;
  if (!series || !event) return undefined;
  let ofSeries: Terms = { type: series.fee_type, multiplier: series.fee_multiplier };
  let ofEvent: Terms = { type: event.fee_type_override, multiplier: event.fee_multiplier_override };
  const waivedUntilMs = parseVenueTimeMs(market.fee_waiver_expiration_time) ?? Number.NEGATIVE_INFINITY;
  const raws = new Set<string>();
  const ruleAt = (atMs: number): FeeRule | null => {
    // The venue does not say what a waiver leaves of the fee.
    const isWaived = atMs < waivedUntilMs;
    const type = ofEvent.type ?? ofSeries.type;
    const rule = isWaived ? null : ruleOf(type, ofEvent.multiplier ?? ofSeries.multiplier);
    if (rule === null) raws.add(isWaived ? WAIVER : (type ?? ''));
    return rule;
  };
  const steps = [
    ...(announced?.ofSeries ?? []).map((change) => ({ change, isOfEvent: false })),
    ...(announced?.ofEvent ?? []).map((change) => ({ change, isOfEvent: true })),
  ]
    .map((step) => ({ ...step, atMs: step.change.atMs }))
    .filter(({ atMs }) => atMs > nowMs);
  const moments = [...steps.map(({ atMs }) => atMs), ...(waivedUntilMs > nowMs ? [waivedUntilMs] : [])];
  const periods: FeePeriod[] = [{ rule: ruleAt(nowMs) }];
  for (const fromMs of [...new Set(moments)].sort((a, b) => a - b)) {
    for (const { change, isOfEvent, atMs } of steps) {
      if (atMs !== fromMs) continue;
      const terms = { type: change.type, multiplier: change.multiplier };
      if (isOfEvent) ofEvent = terms;
      else ofSeries = terms;
    }
    periods.push({ fromMs, rule: ruleAt(fromMs) });
  }
  const raw = [...raws].filter((word) => word !== '').join(', ');
  for (const value of raws) if (!KNOWN_WORDS.has(value)) unknowns.push({ field: 'fee_type', value });
  return {
    periods,
    ...(raws.size > 0 && { reason: raw === '' ? ('not_stated' as const) : ('unknown_rule' as const) }),
    ...(raw !== '' && { raw: raw.slice(0, 200) }),
    ...(announced === undefined && { isPresentOnly: true as const }),
  };
}

function ruleOf(type: string | null | undefined, multiplier: Terms['multiplier']): FeeRule | null {
  const maker = MAKERS.get(type ?? '');
  const factor = parseDecimal(multiplier);
  if (maker === undefined || factor === null || factor.startsWith('-')) return null;
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
