import {
  addDecimals,
  compareDecimals,
  type Decimal,
  decimal,
  divideDecimals,
  multiplyDecimals,
  subtractDecimals,
  ZERO,
} from '../values/decimal.ts';
import type { MarketRecord } from './market.ts';
import type { VenueName } from './venue.ts';

/** A total is the sum of the sizes of the trades, or of price times size. */
export type VolumeUnit = 'contracts' | 'notional';

/**
 * How the lifetime volume of a venue relates to its trades. docs/venues.md states the evidence for each figure, and docs/completeness.md
 * the comparison.
 */
export interface VolumeRule {
  /** The assumed unit. The comparison measures it: see `measuredUnit`. */
  unit: VolumeUnit;
  /** A smaller loss is not reported: this share of the volume since the start of the comparison, plus `absolute` units. */
  relative: number;
  absolute: number;
  /** The total may lack trades that are this old when oddswire stores it, beyond the `Age` of its answer. Includes the request itself. */
  delayMs: number;
  /** The total may contain trades with a time this much later than its own. */
  leadMs: number;
  /** The trade feed has a trade at most this long after the total that contains it. */
  settledMs: number;
  /** Totals that the job `witness-trades` requests per run, within the budget of the host. */
  marketsPerRun: number;
  /** The markets whose totals count the stored trades, and only these. Default: all. */
  only?: 'without_event' | 'with_book';
}

const VOLUME_RULES: Readonly<Partial<Record<VenueName, VolumeRule>>> = {
  kalshi: {
    unit: 'contracts',
    relative: 0.001,
    absolute: 1,
    delayMs: 30_000,
    leadMs: 5_000,
    settledMs: 10_000,
    marketsPerRun: 100,
  },
  polymarket: {
    unit: 'notional',
    relative: 0.01,
    absolute: 1,
    delayMs: 60_000,
    leadMs: 10_000,
    settledMs: 20_000,
    marketsPerRun: 90,
  },
  manifold: {
    unit: 'notional',
    relative: 0.01,
    absolute: 1,
    delayMs: 30_000,
    leadMs: 5_000,
    settledMs: 20_000,
    marketsPerRun: 10,
    // The total of a multiple-choice market, which has an event, also counts the venue's arbitrage between its answers.
    only: 'without_event',
  },
  limitless: {
    unit: 'notional',
    relative: 0.01,
    absolute: 1,
    delayMs: 60_000,
    leadMs: 5_000,
    settledMs: 15_000,
    marketsPerRun: 8,
    // The trades of pools are not read.
    only: 'with_book',
  },
};

/** The rule of a venue; undefined for a venue without totals. */
export function volumeRuleOf(venue: string): VolumeRule | undefined {
  return VOLUME_RULES[venue as VenueName];
}

/** Whether the total of a market counts the stored trades, and only these. */
export function isComparable({ only }: VolumeRule, market: Pick<MarketRecord, 'eventId' | 'hasBook'>): boolean {
  if (only === 'without_event') return market.eventId === undefined;
  return only !== 'with_book' || market.hasBook;
}

/** A venue that counts in binary floats states its sums with an error below this share. */
export const SUM_ERROR_SCALE = 9;

/**
 * The covered share of a volume, 0 to 1, in steps of 0.0001 that never round up: a share of 1 means that nothing is missing, except for the
 * last digits of the venue's own sum.
 */
export function coveredShare(stored: Decimal, volume: Decimal): number {
  if (compareDecimals(stored, volume) >= 0) return 1;
  const share = divideDecimals(stored, volume, SUM_ERROR_SCALE);
  return share.startsWith('-') ? 0 : flooredShare(Number(share));
}

/** A share of 0 to 1 in the same steps. */
export function flooredShare(share: number): number {
  // Four digits of a double are exact: the addend repairs the error of the product.
  return Math.floor(share * 10_000 + 1e-6) / 10_000;
}

/** Markets whose totals equal the stored volume in one unit only. */
export interface UnitCounts {
  inUnit: number;
  inOther: number;
}

/** So many markets do not match a wrong unit by chance. */
const ENOUGH_MARKETS = 20;
const PER_EXCEPTION = 4;

/**
 * The unit that the totals of a venue have, by the markets that decide it. A loss of trades changes no unit: it leaves few markets whose
 * total equals the stored volume in the other one.
 */
export function measuredUnit(unit: VolumeUnit, { inUnit, inOther }: UnitCounts): VolumeUnit {
  if (inOther < ENOUGH_MARKETS || inOther < PER_EXCEPTION * inUnit) return unit;
  return unit === 'contracts' ? 'notional' : 'contracts';
}

/** A total of a venue, with the stored volume in three parts. All of it lies behind the start of the comparison. */
interface CountedTotal {
  /** The lifetime volume that the venue states. */
  total: Decimal;
  /** Stored volume up to the last whole minute before `total` less the delay. */
  folded: Decimal;
  /** Stored volume from there to the moment of `total` less the delay: the total contains it. */
  edge: Decimal;
  /** Stored volume from there to the moment of `total` plus the lead: the total may contain it. */
  recent: Decimal;
}

/** The result of earlier comparisons of a market. */
export interface WitnessState {
  /**
   * The total at the start of the comparison lies between these bounds. Only the upper one proves a loss; a total below the lower one
   * is older than the delay allows, so it does not tighten the upper one.
   */
  baseline: Decimal;
  lowest: Decimal;
  total: Decimal;
  isMissing: boolean;
}

interface Comparison {
  /** `restarted`: the comparison begins anew at this total. */
  outcome: 'covered' | 'missing' | 'restarted';
  baseline: Decimal;
  lowest: Decimal;
  /** Stored volume since the start; with a loss, the part of the total that is stored. */
  stored: Decimal;
  /** The volume that is missing for certain; 0 unless the outcome is `missing`. */
  missing: Decimal;
  /** This total proves the greatest loss so far. */
  isProof?: true;
  /** Trades after the earlier proof are missing too. */
  hasGrown?: true;
}

/**
 * Compares a total with the stored trades. The total contains all trades that are older than the delay and no trade later than the lead,
 * so any earlier total i proves a loss when `total - total(i)` exceeds the volume stored between `moment(i) - delay` and `moment + lead`.
 * `baseline` is the least of `total(i) - stored before moment(i) - delay`, the form in which one number stands for all earlier totals.
 *
 * The proven part of a loss varies with the trades around each total. `proof` is the earlier total that proves most of it, counted again
 * with all trades that are stored now: the loss ends when late trades cover this total too, and it grows when it exceeds this total's
 * greatest possible loss.
 */
export function compareTotal(
  state: WitnessState | null,
  counted: CountedTotal,
  rule: VolumeRule,
  proof?: CountedTotal,
): Comparison {
  const { total, folded, edge, recent } = counted;
  if (state === null) return restart(counted);
  const { baseline } = state;
  const contained = addDecimals(folded, edge);
  const stored = addDecimals(contained, recent);
  const tolerance = toleranceOf(rule, subtractDecimals(total, baseline));
  // The venue took back the total that showed a loss.
  if (state.isMissing && isAbove(subtractDecimals(state.total, tolerance), total)) return restart(counted);
  const shown = provenLoss(counted, baseline);
  const known = proof === undefined ? undefined : provenLoss(proof, baseline);
  const isGreatest = known === undefined || isAbove(shown, known);
  const missing = isGreatest ? shown : known;
  if (isAbove(missing, tolerance)) {
    const possible = addDecimals(addDecimals(known ?? shown, proof?.recent ?? ZERO), decimal(rule.absolute));
    return {
      outcome: 'missing',
      baseline,
      lowest: state.lowest,
      stored: least(stored, subtractDecimals(subtractDecimals(total, baseline), missing)),
      missing,
      ...(isGreatest && { isProof: true }),
      ...((known === undefined || isAbove(shown, possible)) && { hasGrown: true }),
    };
  }
  const lowest = greatest(state.lowest, subtractDecimals(total, stored));
  const upper = subtractDecimals(total, contained);
  const tightened = isAbove(lowest, upper) ? baseline : least(baseline, upper);
  return { outcome: 'covered', baseline: tightened, lowest: least(lowest, tightened), stored, missing: ZERO };
}

function provenLoss({ total, folded, edge, recent }: CountedTotal, baseline: Decimal): Decimal {
  return subtractDecimals(total, addDecimals(addDecimals(folded, edge), addDecimals(recent, baseline)));
}

/** A comparison that begins at this total: the stored volume counts from the last whole minute on. */
function restart({ total, edge, recent }: CountedTotal): Comparison {
  const baseline = subtractDecimals(total, edge);
  const lowest = subtractDecimals(baseline, recent);
  return { outcome: 'restarted', baseline, lowest, stored: addDecimals(edge, recent), missing: ZERO };
}

/** The greatest difference that does not count as a loss. `volume`: the venue's, since the start of the comparison. */
function toleranceOf({ relative, absolute }: VolumeRule, volume: Decimal): Decimal {
  return addDecimals(decimal(absolute), multiplyDecimals(decimal(relative), greatest(ZERO, volume)));
}

function isAbove(a: Decimal, b: Decimal): boolean {
  return compareDecimals(a, b) > 0;
}

function least(a: Decimal, b: Decimal): Decimal {
  return isAbove(a, b) ? b : a;
}

function greatest(a: Decimal, b: Decimal): Decimal {
  return isAbove(a, b) ? a : b;
}
