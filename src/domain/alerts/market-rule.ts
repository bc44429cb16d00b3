import { type MarketConditionName, marketCondition } from './conditions.ts';
import type { LastFiring } from './rule.ts';

/** A change of a market that a rule may report. */
export interface MarketChange {
  /** Microseconds of the change: the order of the changes of a market. */
  n: bigint;
  atMs: number;
  status: string;
  /** The status before; null for a new market. */
  former: string | null;
}

/** A condition on the state of one market. */
export interface MarketRule {
  condition: MarketConditionName;
  startMs: number;
  endMs: number;
  cooldownMs: number | null;
}

/** The firings of a rule on the changes of one market, in order. */
export function marketFirings(rule: MarketRule, changes: readonly MarketChange[], last?: LastFiring): MarketChange[] {
  const { condition, startMs, endMs, cooldownMs } = rule;
  const fired: MarketChange[] = [];
  let before = last;
  for (const change of changes) {
    if (change.atMs < startMs || change.atMs >= endMs || !marketCondition(condition).isReported(change)) continue;
    const isDue =
      before === undefined || (cooldownMs !== null && change.n > before.n && change.atMs - before.atMs >= cooldownMs);
    if (!isDue) continue;
    fired.push(change);
    before = change;
  }
  return fired;
}
