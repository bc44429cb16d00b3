/*
 * A reference model of alerts over the history that a test wrote, for comparison with the evaluator. Moments are ticks: the test
 * performs one operation per tick. Like the service, the model does not define the evaluation order of two transactions.
 */

/** One written price: stamped at its write, visible from its commit on. */
export interface SeenPrice {
  token: number;
  /** Tenths. */
  price: number;
  /** A polled price stays in effect until the next one; a trade print has no duration. */
  isPolled: boolean;
  stampedAt: number;
  committedAt: number;
}

export interface MadeAlert {
  token: number;
  condition: 'above' | 'below';
  /** Tenths. */
  target: number;
  madeAt: number;
  committedAt: number;
  deletedAt: number;
  /** The last time before its deletion at which no mark was pending. */
  drainedAt: number;
}

interface Verdict {
  /** The alert must fire. */
  must: boolean;
  /** Prices on which the alert may fire; empty when it must not fire. */
  may: Set<number>;
}

/** `finalAt`: the tick at which the market of the alert's token got its final outcome, else Infinity. */
export function judge(alert: MadeAlert, seen: readonly SeenPrice[], finalAt: number): Verdict {
  // A price equal to the target meets the condition.
  const meets = ({ price }: SeenPrice) => (alert.condition === 'above' ? price >= alert.target : price <= alert.target);
  const ofToken = seen.filter(({ token }) => token === alert.token);
  const polled = ofToken.filter(({ isPolled, stampedAt }) => isPolled && stampedAt < alert.madeAt);
  const inEffect = polled.at(-1);
  const since = ofToken.filter(({ stampedAt }) => stampedAt >= alert.madeAt);
  const counts = (price: SeenPrice) => alert.madeAt < finalAt && price.stampedAt < finalAt && meets(price);
  const law = [...(inEffect ? [inEffect] : []), ...since].filter(counts);
  // Before the commit of the price in effect, readers see the previous price.
  const before = polled.filter(
    (_, i) => i < polled.length - 1 && polled.slice(i + 1).every((q) => q.committedAt > alert.committedAt),
  );
  const open = [...law, ...before.filter(counts)].filter(({ committedAt }) => committedAt < alert.deletedAt);
  const known = Math.min(finalAt, alert.drainedAt);
  // The first price decides, unless a reader could see a later price before it.
  const isFirst = (price: SeenPrice) =>
    alert.committedAt > price.stampedAt ||
    !law.some((other) => other.stampedAt < price.stampedAt && other.committedAt < price.committedAt);
  return {
    must: alert.committedAt < alert.drainedAt && law.some(({ committedAt }) => committedAt < known),
    may: new Set(open.filter(isFirst).map(({ price }) => price)),
  };
}
