import type { DeepHistory } from './deep-history.ts';

export interface WorldOptions {
  readonly seed: number;
  /** The second at which the accelerated history ends and live time begins. */
  readonly nowSecond: number;
  readonly historySeconds: number;
  /** Earlier trades of some markets. */
  readonly deep: DeepHistory;
  readonly markets: number;
  /** Only the first markets, this many, have traders; the others show quotes of their own. */
  readonly liveMarkets: number;
  /** The share of markets without traders whose quotes move in a minute of live time; 0 for none. */
  readonly quietMovesPerMinute: number;
  /** Multiplies the activity of traders in live time. */
  readonly speed: number;
  /** Length of the rolling up-or-down markets; 0 for none. */
  readonly rollingSeconds: number;
  readonly tapeCapacity: number;
  readonly perMarketCapacity: number;
}
