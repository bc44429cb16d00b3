import { setTimeout as delay } from 'node:timers/promises';
import { asError } from '../../src/domain/values/errors.ts';
import type { DemoApi } from './api.ts';

const LOOK_EVERY_MS = 100;
/** Markets of which one must have a price. */
const MARKETS = 25;

interface Search {
  readonly api: Pick<DemoApi, 'markets' | 'prices'>;
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
  /** Milliseconds since the start of the demo. */
  readonly nowMs: () => number;
  readonly pause?: () => Promise<unknown>;
}

/**
 * Waits, as long as the machine needs, until the API serves a market with a price, and reports the reason to wait.
 * @throws the reason of the signal when it fires first
 */
export async function findFirstPrice(search: Search): Promise<{ marketId: string; outcomeId: string }> {
  const { api, signal, say, nowMs, pause = () => delay(LOOK_EVERY_MS, undefined, { signal }) } = search;
  const progress = startProgress((text) => say(`demo: ${text}`), nowMs);
  for (;;) {
    signal.throwIfAborted();
    try {
      const markets = await api.markets(MARKETS);
      progress.waitingFor(markets.length === 0 ? 'the first markets of the exchange' : 'the first price');
      const ids = markets.map(({ market_id: marketId }) => marketId);
      const [first] = ids.length === 0 ? [] : await api.prices(ids);
      const outcome = first?.outcomes[0];
      if (first && outcome) return { marketId: first.market_id, outcomeId: outcome.outcome_id };
    } catch (error) {
      progress.waitingFor('the API', asError(error).message);
    }
    await pause();
  }
}

/** The same wait is reported again after this time. */
const REPEAT_MS = 10_000;

/** Reports the reason of a wait: when it changes, and from time to time while it stays the same. `nowMs` counts from the start. */
function startProgress(say: (text: string) => void, nowMs: () => number) {
  let shown: string | undefined;
  let shownMs = 0;
  return {
    /** `detail` is shown only when the wait is long, because a refused connection is normal during a start. */
    waitingFor(subject: string, detail?: string): void {
      const now = nowMs();
      if (subject === shown && now - shownMs < REPEAT_MS) return;
      const isLong = subject === shown && detail !== undefined;
      const seconds = Math.round(now / 1000);
      say(`waiting for ${subject} (${seconds} s)${isLong ? `: ${detail}` : ''}`);
      shown = subject;
      shownMs = now;
    },
  };
}
