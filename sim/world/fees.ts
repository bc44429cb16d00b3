import { SimControlError } from '../errors.ts';
import type { Market } from './market.ts';

/** The types of a fee of Kalshi, one of which has no public formula. */
const TYPES = ['quadratic', 'quadratic_with_maker_fees', 'quadratic_with_combo_maker_fees', 'flat'] as const;

/** The fee of the series of Kalshi, or with `eventNo` its replacement for an event; null ends that. */
export interface FeeChange {
  readonly id: number;
  readonly second: number;
  readonly eventNo?: number;
  readonly type: string | null;
  readonly multiplier: number | null;
}

export interface FeeRequest {
  /** The market of Polymarket whose rate changes, or whose event at Kalshi gets a fee of its own. */
  readonly conditionId?: string | undefined;
  /** The rate of takers of Polymarket; 0 means no fee. */
  readonly rate?: number | undefined;
  readonly type?: string | null | undefined;
  readonly multiplier?: number | null | undefined;
  /** The change is announced, and takes effect so many seconds later. Default 0. */
  readonly afterSeconds?: number | undefined;
}

/** The fees of all venues. Every fifth market of Polymarket has none, and every eleventh has fees without a schedule. */
export class Fees {
  private readonly changes: FeeChange[] = [
    { id: 0, second: Number.NEGATIVE_INFINITY, type: 'quadratic', multiplier: 1 },
  ];
  private readonly rates = new Map<string, number>();

  /** The last change that is in effect, of the series or of an event. */
  inEffect(second: number, eventNo?: number): FeeChange | undefined {
    return this.changes.findLast((change) => change.eventNo === eventNo && change.second <= second);
  }

  /** All changes of the series. */
  ofSeries(): readonly FeeChange[] {
    return this.changes.filter(({ eventNo, second }) => eventNo === undefined && Number.isFinite(second));
  }

  /** The announced changes of the series, or of all events. */
  announced(second: number, of: 'series' | 'events'): readonly FeeChange[] {
    return this.changes.filter(
      (change) => (change.eventNo === undefined) === (of === 'series') && change.second > second,
    );
  }

  /** The rate of takers of a market of Polymarket; undefined when the venue states none although it takes a fee. */
  rateOf(market: Market): number | undefined {
    const { no, conditionId } = market.spec;
    return this.rates.get(conditionId) ?? (no % 11 === 10 ? undefined : no % 5 === 4 ? 0 : 0.05);
  }

  /** @throws SimControlError for an unreadable request */
  change(request: FeeRequest, market: Market | undefined, nowSecond: number): void {
    const { rate, type, multiplier, afterSeconds = 0 } = request;
    const refusal = (message: string) => new SimControlError(400, 'invalid_fee', message);
    if (!Number.isInteger(afterSeconds) || afterSeconds < 0) throw refusal('afterSeconds must be a whole number');
    if (rate !== undefined) {
      if (market === undefined) throw refusal('a rate needs the conditionId of its market');
      if (typeof rate !== 'number' || !(rate >= 0 && rate <= 1)) throw refusal('rate must be a number from 0 to 1');
      this.rates.set(market.spec.conditionId, rate);
      return;
    }
    if (type !== undefined && type !== null && !TYPES.some((known) => known === type)) {
      throw refusal(`type must be one of ${TYPES.join(' ')}`);
    }
    if (multiplier !== undefined && multiplier !== null && !(typeof multiplier === 'number' && multiplier >= 0)) {
      throw refusal('multiplier must be a number of at least 0');
    }
    const before = market === undefined ? this.inEffect(nowSecond) : undefined;
    this.changes.push({
      id: this.changes.length,
      second: nowSecond + afterSeconds,
      ...(market !== undefined && { eventNo: market.event.no }),
      type: type === undefined ? (before?.type ?? null) : type,
      multiplier: multiplier === undefined ? (before?.multiplier ?? null) : multiplier,
    });
    this.changes.sort((a, b) => a.second - b.second || a.id - b.id);
  }
}
