import type { Logger } from '../../src/observe/logger.ts';
import { noteMarketReads } from '../../src/store/catalog/market-heat.ts';
import { type Database, isDatabaseUnavailable } from '../../src/store/db/tx.ts';

/** The poller checks reads every few seconds, so a read market becomes hot within two ticks. */
const FLUSH_INTERVAL_MS = 2_000;

/** Records the markets that clients read, so that the poller polls them first. Does not write per request. */
export interface ReadTracker {
  note(marketPk: bigint): void;
  /** Writes pending reads now; failures are logged and retried. Never throws. */
  flush(): Promise<void>;
  /** Ends the timer and flushes. */
  close(): Promise<void>;
}

/** A tracker that flushes every 2 s. `monotonicMs` is its clock. */
export function createReadTracker(
  db: Database,
  log: Logger,
  monotonicMs: () => number = () => performance.now(),
): ReadTracker {
  let readAt = new Map<bigint, number>();
  let flushing = Promise.resolve();

  async function write(): Promise<void> {
    if (readAt.size === 0) return;
    const batch = readAt;
    readAt = new Map();
    try {
      const nowMs = monotonicMs();
      await noteMarketReads(db, new Map([...batch].map(([pk, atMs]) => [pk, nowMs - atMs])));
    } catch (error) {
      readAt = new Map([...batch, ...readAt]);
      const level = isDatabaseUnavailable(error) ? 'debug' : 'warn';
      log[level]({ err: error }, 'market reads not written; will retry');
    }
  }

  /** Runs flushes one after another, because a failed flush returns its reads to the next. */
  function flush(): Promise<void> {
    flushing = flushing.then(write);
    return flushing;
  }

  const timer = setInterval(() => void flush(), FLUSH_INTERVAL_MS);
  timer.unref();

  return {
    note(marketPk) {
      readAt.set(marketPk, monotonicMs());
    },
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}
