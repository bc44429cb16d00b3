import type { OrderSide } from '../../../src/domain/markets/executable.ts';
import type { Decimal } from '../../../src/domain/values/decimal.ts';

interface WatchedOutcome {
  readonly venue: string;
  readonly marketId: string;
  readonly outcomeId: string;
}

/** The orders of a subscription: each size on each side of each outcome. */
export interface WatchedOrders {
  readonly outcomes: readonly WatchedOutcome[];
  readonly sides: readonly OrderSide[];
  readonly sizes: readonly Decimal[];
}

export function countOf({ outcomes, sides, sizes }: WatchedOrders): number {
  return outcomes.length * sides.length * sizes.length;
}
