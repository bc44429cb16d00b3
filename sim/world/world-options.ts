import type { DeepHistory } from './deep-history.ts';

export interface WorldOptions {
  readonly seed: number;
  /** The second at which the accelerated history ends and live time begins. */
  readonly nowSecond: number;
  readonly historySeconds: number;
  /** What some markets traded before that. */
  readonly deep: DeepHistory;
  readonly markets: number;
  /** Only the first so many markets have traders; the others show their opening quotes for ever. */
  readonly liveMarkets: number;
  /** Multiplies how often traders act in live time. */
  readonly speed: number;
  /** Length of the rolling up-or-down markets; 0 for none. */
  readonly rollingSeconds: number;
  readonly tapeCapacity: number;
  readonly perMarketCapacity: number;
}
