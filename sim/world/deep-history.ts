import type { RandomStream } from '../random.ts';
import type { Market } from './market.ts';

/** Some markets that trade for days before the history begins, which is simulated second by second. */
export interface DeepHistory {
  readonly markets: number;
  /** The minimum of prints of each of them. */
  readonly prints: number;
  readonly seconds: number;
}

interface DeepDesk {
  readonly market: Market;
  readonly random: RandomStream;
}

/** A trader may find no counterparty: after this many attempts the market is skipped until its next turn. */
const MAX_TRIES = 20;

/**
 * Trades on the first markets that were open all the time, evenly over the deep past and never backwards in time.
 * `act` is one turn of a trader on one market at that second.
 */
export function playDeepHistory<D extends DeepDesk>(
  deep: DeepHistory,
  startSecond: number,
  desks: readonly D[],
  act: (desk: D, second: number) => void,
): void {
  const chosen = desks
    .filter(({ market }) => market.isTrading && market.spec.stopSecond === undefined)
    .slice(0, deep.markets);
  for (let turn = 0; turn < deep.prints; turn += 1) {
    const second = startSecond + Math.floor((turn * deep.seconds) / deep.prints);
    for (const desk of chosen) {
      for (let tries = 0; tries < MAX_TRIES && desk.market.tradeCount <= turn; tries += 1) act(desk, second);
    }
  }
}
