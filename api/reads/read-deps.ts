import type { CursorCodec } from '../../src/domain/values/cursor.ts';
import type { Producer } from '../../src/queues/producer.ts';
import type { Arrivals } from '../../src/store/catalog/arrivals.ts';
import type { Database } from '../../src/store/db/tx.ts';
import type { ArchiveHistory } from './archive-history.ts';
import type { MarketMemory } from './market-memory.ts';
import type { ReadTracker } from './read-tracker.ts';
import type { EnabledVenue } from './venue-catalog.ts';

/** The dependencies of reads. */
export interface ReadDeps {
  db: Database;
  cursors: CursorCodec;
  /** The enabled adapters, in the order of their answers for `all`. */
  venues: readonly EnabledVenue[];
  /** Epoch milliseconds. */
  now(): number;
}

/** The dependencies of reads of market data. */
export interface MarketReadDeps extends ReadDeps {
  /** Records the markets that clients read. */
  reads: Pick<ReadTracker, 'note'>;
  memory?: MarketMemory;
  history: ArchiveHistory;
  /** Used for wake-ups only. */
  producer: Pick<Producer, 'wake'>;
  /** Announces the results of jobs that were enqueued for a client. */
  arrivals: Pick<Arrivals, 'waitFor'>;
  /** Milliseconds. Older trades are neither accepted nor kept. */
  tradeRetentionMs: number;
}
