import type { DecimalFormat } from '../../src/domain/values/api-json.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { Metrics } from '../../src/observe/metrics.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import type { JournalTail } from '../../src/store/journal/tail.ts';
import { prepare } from '../http/respond.ts';
import { type AnswerCache, createAnswerCache } from '../reads/answer-cache.ts';
import { JournalView } from '../reads/journal-view.ts';
import { MarketMemory } from '../reads/market-memory.ts';
import { presentPrices } from '../reads/present-prices.ts';
import { QuoteChecks } from '../reads/quote-checks.ts';
import type { ReadTracker } from '../reads/read-tracker.ts';
import { presentCoveredMarket } from '../routes/markets.ts';

/** The part of the memory for markets and quotes; the rest is for answers. */
const MARKETS_SHARE = 0.6;

interface LiveReadsOptions {
  /** The tail of this process. */
  tail: Pick<JournalTail, 'on' | 'staleMs'>;
  db: Queryable;
  /** The venues with markets. */
  venues: readonly string[];
  maxBytes: number;
  decimalFormat: DecimalFormat;
  reads: Pick<ReadTracker, 'note'>;
  metrics: Pick<
    Metrics,
    'cacheLookups' | 'memoryEntries' | 'memoryBytes' | 'memoryFallback' | 'memoryLoaded' | 'collectors'
  >;
  log: Logger;
  /** Milliseconds of a monotonic clock. */
  now?: () => number;
}

interface LiveReads {
  answers: AnswerCache;
  memory: MarketMemory;
  journal: JournalView;
  close(): void;
}

/** The memory of an API process: markets, quotes and answers that follow the journal (docs/live.md, "Reads from memory"). */
export function createLiveReads(options: LiveReadsOptions): LiveReads {
  const { tail, db, venues, maxBytes, decimalFormat, reads, metrics, log, now = () => performance.now() } = options;
  const journal = new JournalView(tail, now);
  const checks = new QuoteChecks({ db, journal, log, now });
  const memory = new MarketMemory({
    db,
    journal,
    checks,
    log,
    venues,
    maxBytes: maxBytes * MARKETS_SHARE,
    prepareMarket: ({ market, witness }) =>
      prepare({ data: presentCoveredMarket(market, witness), freshness: 'latest' }, { decimalFormat }),
    preparePrices: (prices) => {
      const data = presentPrices(prices);
      return data && prepare({ data, freshness: 'latest' }, { decimalFormat });
    },
    onUsed: (marketPks) => {
      metrics.cacheLookups.inc({ result: 'memory' });
      for (const pk of marketPks) reads.note(pk);
    },
  });
  const answers = createAnswerCache({
    journal,
    now,
    maxBytes: maxBytes * (1 - MARKETS_SHARE),
    onLookup: (result) => metrics.cacheLookups.inc({ result }),
  });
  metrics.collectors.add({
    name: 'read memory',
    async read() {
      for (const [part, { entries, bytes }] of [
        ['markets', memory.size],
        ['answers', answers.size],
      ] as const) {
        metrics.memoryEntries.set({ part }, entries);
        metrics.memoryBytes.set({ part }, bytes);
      }
      metrics.memoryFallback.set(journal.isConfirmed ? 0 : 1);
      metrics.memoryLoaded.set(memory.isLoaded ? 1 : 0);
    },
    forget() {
      metrics.memoryEntries.reset();
      metrics.memoryBytes.reset();
    },
  });
  return {
    answers,
    memory,
    journal,
    close() {
      memory.close();
      journal.close();
    },
  };
}
