import type { ExchangeControl } from '../control.ts';
import { SimControlError } from '../errors.ts';
import type { Recordings } from './recordings.ts';

/** Recordings can be counted, not steered. */
export function recordedControl(
  recordings: Recordings,
  seed: number,
): Omit<ExchangeControl, 'addFault' | 'faults' | 'clearFaults' | 'requests'> {
  const refuse = (): never => {
    throw new SimControlError(409, 'recorded_mode', 'recordings cannot be steered: start without --recorded');
  };
  const second = () => Math.floor(Date.now() / 1000);
  return {
    state: () => ({
      mode: 'recorded',
      seed,
      paused: true,
      steps: 0,
      second: second(),
      trades: { total: recordings.trades.length, kept: recordings.trades.length, firstIndex: 0 },
      marketCount: recordings.gammaMarkets.length,
      markets: [],
    }),
    second,
    ledger: refuse,
    forcePrice: refuse,
    releasePrice: refuse,
    steer: refuse,
    changeFee: refuse,
    resolutions: () => [],
    pause: refuse,
    resume: refuse,
    step: refuse,
    idle: refuse,
  };
}
