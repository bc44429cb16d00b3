import type { WorldOptions } from './options.ts';

/** Chances per market and simulated second, in millionths; orders may exceed a million (several a second). */
export interface Activity {
  readonly requotesPerMillion: number;
  readonly ordersPerMillion: number;
}

/** The cost of the start depends on orders, not on market-seconds: this number keeps it under two seconds. */
const HISTORY_ORDERS = 12_000;

/** The activity of an average market. The history is thinned, so that its cost does not grow with markets or hours. */
export function activityOf(time: 'history' | 'live', options: WorldOptions): Activity {
  if (time === 'live') {
    return {
      requotesPerMillion: Math.min(1_000_000, Math.floor(200_000 * Math.max(1, options.speed))),
      ordersPerMillion: Math.floor(200_000 * options.speed),
    };
  }
  const marketSeconds = Math.max(1, Math.min(options.markets, options.liveMarkets) * options.historySeconds);
  const perMillion = Math.min(100_000, Math.floor((HISTORY_ORDERS * 1_000_000) / marketSeconds));
  return { requotesPerMillion: perMillion, ordersPerMillion: perMillion };
}
