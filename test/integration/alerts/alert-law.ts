/*
 * The reference model of alerts over a history that a test wrote, to compare the evaluator with. Moments are
 * ticks: the test does one thing per tick. The order of evaluation of two transactions is open here too.
 */

/** One price that was written: stamped when it was written, visible from its commit on. */
export interface SeenPrice {
  token: number;
  /** Tenths. */
  price: number;
  /** A polled price stays in effect until the next; a trade print does not. */
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
  /** The last time before its deletion at which nothing was left to evaluate. */
  drainedAt: number;
}

interface Verdict {
  /** It has to fire. */
  must: boolean;
  /** The prices that it may have fired on; empty when it must not fire. */
  may: Set<number>;
}

/** `finalAt`: when the market of the alert's token had its final outcome, else Infinity. */
export function judge(alert: MadeAlert, seen: readonly SeenPrice[], finalAt: number): Verdict {
  // Touching counts.
  const meets = ({ price }: SeenPrice) => (alert.condition === 'above' ? price >= alert.target : price <= alert.target);
  const ofToken = seen.filter(({ token }) => token === alert.token);
  const polled = ofToken.filter(({ isPolled, stampedAt }) => isPolled && stampedAt < alert.madeAt);
  const inEffect = polled.at(-1);
  const since = ofToken.filter(({ stampedAt }) => stampedAt >= alert.madeAt);
  const counts = (price: SeenPrice) => alert.madeAt < finalAt && price.stampedAt < finalAt && meets(price);
  const law = [...(inEffect ? [inEffect] : []), ...since].filter(counts);
  // Before the commit of the price in effect, readers saw the previous price.
  const before = polled.filter(
    (_, i) => i < polled.length - 1 && polled.slice(i + 1).every((q) => q.committedAt > alert.committedAt),
  );
  const open = [...law, ...before.filter(counts)].filter(({ committedAt }) => committedAt < alert.deletedAt);
  const known = Math.min(finalAt, alert.drainedAt);
  // The first one counts when no reader could see the later one without it.
  const isFirst = (price: SeenPrice) =>
    alert.committedAt > price.stampedAt ||
    !law.some((other) => other.stampedAt < price.stampedAt && other.committedAt < price.committedAt);
  return {
    must: alert.committedAt < alert.drainedAt && law.some(({ committedAt }) => committedAt < known),
    may: new Set(open.filter(isFirst).map(({ price }) => price)),
  };
}
