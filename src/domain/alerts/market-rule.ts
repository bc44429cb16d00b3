import type { OutcomePayout, ResolutionState } from '../markets/resolution.ts';
import { type Decimal, ONE, ZERO } from '../values/decimal.ts';
import { MARKET_CONDITIONS, type MarketConditionName } from './conditions.ts';
import type { LastFiring } from './rule.ts';

/** The result of a market: none while its status is not final. */
interface MarketResult {
  winner: string | null;
  /** `outcome`, or `void` when no outcome won. */
  resolution: string | null;
  /** The known payouts. Null: a release that did not keep them stored the state. */
  payouts: readonly OutcomePayout[] | null;
}

/** A change of a market that a rule may report. */
export interface MarketChange extends MarketResult {
  /** Microseconds of the change: the order of the changes of a market. */
  n: bigint;
  atMs: number;
  status: string;
  /** The status before; null for a new market. */
  former: string | null;
  /** The states that the resolution of the market reached with this change, in order. */
  reached: readonly ResolutionState[];
}

/** A condition on the state of one market. */
export interface MarketRule {
  condition: MarketConditionName;
  startMs: number;
  endMs: number;
  cooldownMs: number | null;
  /** Of a rule on the resolution. */
  states?: readonly ResolutionState[] | undefined;
}

/** Whether a market with this status has its result. */
export function isFinal(status: string): boolean {
  return status === 'resolved' || status === 'settled';
}

/** The payouts of a result that are known. */
export function knownPayouts({ status, payouts }: Pick<MarketChange, 'status' | 'payouts'>): readonly OutcomePayout[] {
  return isFinal(status) ? (payouts ?? []) : [];
}

/** The firings of a rule on the changes of one market, in order. */
export function marketFirings<Change extends Pick<MarketChange, 'n' | 'atMs' | 'status' | 'former' | 'reached'>>(
  rule: MarketRule,
  changes: readonly Change[],
  last?: LastFiring,
): Change[] {
  const { startMs, endMs, cooldownMs, states } = rule;
  const condition = MARKET_CONDITIONS[rule.condition];
  const fired: Change[] = [];
  let before = last;
  for (const change of changes) {
    if (change.atMs < startMs || change.atMs >= endMs || !condition.isReported(change, states)) continue;
    const isDue =
      before === undefined || (cooldownMs !== null && change.n > before.n && change.atMs - before.atMs >= cooldownMs);
    if (!isDue) continue;
    fired.push(change);
    before = change;
  }
  return fired;
}

/** The last of the states that a rule on the resolution names; undefined for a rule on something else. */
export function reportedState(
  { reached }: Pick<MarketChange, 'reached'>,
  states: readonly ResolutionState[] | null | undefined,
): ResolutionState | undefined {
  return reached.findLast((state) => states?.includes(state));
}

/** A reported result may be corrected until this long after the settlement of the market. */
const CORRECTED_MS = 30 * 86_400_000;

/** A change of a result that an earlier event reported. */
export interface Correction<Change extends MarketChange = MarketChange> {
  change: Change;
  /** The winner that was reported last; null for none. */
  previousWinner: string | null;
  /** The reports and corrections before, oldest first. */
  earlier: readonly Change[];
}

/**
 * The changes of winner or payouts after a report of the result of one market, in order. They end when the market has been settled for 30
 * days, and begin again with the next report. `isReport` states whether an event reported this change.
 */
export function correctionsOf<Change extends MarketChange>(
  changes: readonly Change[],
  isReport: (change: Change) => boolean,
): Correction<Change>[] {
  const found: Correction<Change>[] = [];
  let reported: Result | undefined;
  let earlier: readonly Change[] = [];
  let settledMs: number | undefined;
  for (const change of changes) {
    const result = resultOf(change);
    if (settledMs !== undefined && change.atMs >= settledMs + CORRECTED_MS) reported = undefined;
    if (reported !== undefined) {
      const isCorrection = differ(reported, result);
      if (isCorrection) found.push({ change, previousWinner: reported.winner, earlier });
      if (isCorrection || isReport(change)) earlier = [...earlier, change];
      // A state without known payouts does not hide a change between the states around it.
      reported = { winner: result.winner, paid: result.paid ?? (isCorrection ? null : reported.paid) };
    } else if (isFinal(change.status) && isReport(change)) {
      reported = result;
      earlier = [change];
    }
    settledMs = change.status === 'settled' ? (settledMs ?? change.atMs) : undefined;
  }
  return found;
}

/** A result as it is compared. A winner without known payouts takes all; `null`: the payouts are unknown. */
interface Result {
  winner: string | null;
  paid: ReadonlyMap<string, Decimal> | null;
}

function resultOf({ status, winner, payouts }: MarketChange): Result {
  if (!isFinal(status)) return { winner: null, paid: new Map() };
  if (payouts === null) return { winner, paid: null };
  if (payouts.length === 0 && winner !== null) return { winner, paid: new Map([[winner, ONE]]) };
  const paying = payouts.filter(({ payout }) => payout !== ZERO);
  return { winner, paid: new Map(paying.map(({ outcomeId, payout }) => [outcomeId, payout])) };
}

function differ(a: Result, b: Result): boolean {
  if (a.winner !== b.winner) return true;
  const [before, after] = [a.paid, b.paid];
  if (before === null || after === null) return false;
  return before.size !== after.size || [...before].some(([outcomeId, payout]) => after.get(outcomeId) !== payout);
}
