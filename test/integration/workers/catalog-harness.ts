import { afterAll, beforeAll, expect } from 'vitest';
import type { startExchange } from '../../../sim/exchange.ts';
import type { ExchangeOptions } from '../../../sim/options.ts';
import type { VenueName } from '../../../src/domain/markets/venue.ts';
import { Database } from '../../../src/store/db/tx.ts';
import type { VenueAdapter } from '../../../src/venues/port.ts';
import { pollMarkets } from '../../../workers/jobs/poll-markets.ts';
import type { LiveVenue } from '../../conformance/venue-adapter/venue-under-test.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { jobContext, testConfig } from './worker-harness.ts';

type Exchange = Awaited<ReturnType<typeof startExchange>>;
type Simulated = LiveVenue & { exchange: Exchange };

/** The catalog of a simulated venue in a database of its own, for the tests of one file. */
interface PolledCatalog {
  readonly db: Database;
  readonly exchange: Exchange;
  /** Polls the catalog after so many seconds of the exchange. */
  poll(seconds: number): Promise<void>;
  /** The next poll is the first one of a new process. */
  restart(): void;
}

export function polledCatalog(name: VenueName, start: (options: ExchangeOptions) => Promise<Simulated>): PolledCatalog {
  let test: TestDatabase;
  let venue: Simulated;
  let adapter: VenueAdapter;
  let db: Database;
  beforeAll(async () => {
    test = await createTestDatabase();
    db = test.db;
    venue = await start({ nowSecond: Math.floor(Date.now() / 1000) });
    adapter = venue.createAdapter();
  });
  afterAll(async () => {
    await adapter.close();
    await venue.close();
    await test.drop();
  });
  return {
    get db() {
      return test.db;
    },
    get exchange() {
      return venue.exchange;
    },
    restart() {
      db = new Database(test.db.dataSource);
    },
    async poll(seconds) {
      venue.exchange.idle(seconds);
      const config = testConfig(test.url, { VENUES: name });
      const context = jobContext({ db, config, adapter, now: () => venue.now() });
      expect(await pollMarkets.run({ venue: name }, context)).not.toHaveProperty('failed');
    },
  };
}
