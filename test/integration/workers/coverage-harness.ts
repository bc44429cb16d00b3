import { type CoverageKind, HOUR_MS } from '../../../src/domain/markets/coverage.ts';
import type { TradeRecord } from '../../../src/domain/markets/market.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { readMarketHours, readSettledTimes, readVenueHours } from '../../../src/store/coverage/reads.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { VenueError } from '../../../src/venues/errors.ts';
import type { RejectedRecord } from '../../../src/venues/port.ts';
import { pollMarkets } from '../../../workers/jobs/poll-markets.ts';
import { aMarketRecord } from '../../factories/markets.ts';
import { lastPage } from '../../factories/venue-adapter.ts';
import type { TestDatabase } from '../../support/postgres/database.ts';
import { WitnessedVenue } from './witness-harness.ts';
import { type ContextFields, testConfig } from './worker-harness.ts';

const MARKET_PK = sql('test_covered_market', 'SELECT id FROM market WHERE venue = $1 AND venue_market_id = $2');
const SET_SINCE = sql(
  'test_set_coverage_since',
  `INSERT INTO coverage_settled (venue, kind, since, settled_to) VALUES ($1, 'trades', $2, $2)
   ON CONFLICT (venue, kind) DO UPDATE SET since = excluded.since, settled_to = excluded.settled_to`,
);

/** A venue whose hours settle on its own clock. Its catalog is swept in each poll. */
export class CoveredVenue extends WitnessedVenue {
  /** The catalog does not answer. */
  isAway = false;
  /** Records of the catalog that no adapter can read. */
  rejected: RejectedRecord[] = [];
  readonly #database: TestDatabase;
  readonly #fields: Pick<ContextFields, 'config'>;

  constructor(test: TestDatabase, venue: string, markets: readonly string[]) {
    super(test, venue, markets, {
      marketsById: async (ids) => {
        if (this.isAway) throw new VenueError(venue, 'network', 'scripted', { retryable: true });
        return { records: ids.map((id) => this.listed(id)), rejected: [] };
      },
      markets: async () => ({
        ...lastPage(markets.map((id) => this.listed(id))),
        rejected: this.rejected,
        sweep: { startedAtMs: this.nowMs, ended: true },
      }),
    });
    this.#database = test;
    this.#fields = { config: testConfig(test.url, { VENUES: venue }) };
    this.nowMs = Math.floor(this.nowMs / HOUR_MS) * HOUR_MS - HOUR_MS / 2;
  }

  listed(marketId: string) {
    const counted = this.trades.filter(
      ({ outcomeId, tsMs }: TradeRecord) => outcomeId === `${marketId}:yes` && tsMs <= this.nowMs - this.totalLagMs,
    );
    const volume = counted.reduce((sum, { size }) => sum + Number(size), this.volumeBefore);
    return aMarketRecord({ marketId, volume: decimal(String(volume)) });
  }

  /** Begins the coverage of trades with the next hour. */
  async begin(): Promise<void> {
    await this.open();
    const since = new Date(Math.ceil(this.nowMs / HOUR_MS) * HOUR_MS).toISOString();
    await this.#database.db.query(SET_SINCE, [this.venue, since]);
  }

  /** Polls the catalog, compares and settles. */
  async tick(fields: Partial<ContextFields> = {}): Promise<void> {
    await this.poll(fields);
    await this.witness({ ...this.fields(), ...fields });
  }

  /** Polls the catalog, unless it is away. */
  async poll(fields: Partial<ContextFields> = {}): Promise<void> {
    if (!this.isAway) await this.run(pollMarkets, { ...this.fields(), ...fields });
  }

  fields() {
    return this.#fields;
  }

  async hoursOf(marketId: string, kind: CoverageKind = 'trades') {
    const { db } = this.#database;
    const [row] = await db.query<{ id: bigint }>(MARKET_PK, [this.venue, marketId]);
    const settled = (await readSettledTimes(db, [this.venue], kind)).get(this.venue);
    const range = { kind, startMs: 0, endMs: Number.MAX_SAFE_INTEGER / 1000 };
    const hours = await readMarketHours(db, row?.id ?? 0n, range, settled, this.nowMs);
    return hours.toSorted((a, b) => a.startMs - b.startMs);
  }

  async venueHours(kind: CoverageKind = 'trades') {
    const hours = await readVenueHours(this.#database.db, [this.venue], { kind, startMs: 0, endMs: 8e12 });
    return hours.toSorted((a, b) => a.startMs - b.startMs);
  }
}
