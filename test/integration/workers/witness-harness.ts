import type { Config } from '../../../src/config/config.ts';
import type { TradeRecord } from '../../../src/domain/markets/market.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { foldCandles } from '../../../src/store/series/candles.ts';
import { readVenueCompleteness } from '../../../src/store/series/completeness.ts';
import { readMarketCompleteness } from '../../../src/store/series/trade-repairs.ts';
import { writeTrades } from '../../../src/store/series/trades.ts';
import { backfillTrades } from '../../../workers/jobs/backfill-trades.ts';
import { pollMarkets } from '../../../workers/jobs/poll-markets.ts';
import { witnessTrades } from '../../../workers/jobs/witness-trades.ts';
import type { DefinedJob, JobReport } from '../../../workers/process/define.ts';
import { aMarketRecord } from '../../factories/markets.ts';
import { aTrade } from '../../factories/trades.ts';
import { lastPage, type Script, type ScriptedAdapter, scriptedAdapter } from '../../factories/venue-adapter.ts';
import { drain } from '../../support/drain.ts';
import type { TestDatabase } from '../../support/postgres/database.ts';
import { historyOf } from './backfill-harness.ts';
import { type ContextFields, capturedLog, jobContext, testConfig } from './worker-harness.ts';

const SET_TAPE = sql(
  'test_set_tape',
  `INSERT INTO poll_state (venue, kind, first_success_at, last_success_at, caught_up_at) VALUES ($1, 'trades', $2, $3, $3)
   ON CONFLICT (venue, kind) DO UPDATE SET last_success_at = excluded.last_success_at, caught_up_at = excluded.caught_up_at`,
);
const STORED = sql(
  'test_witness_trades',
  `SELECT trade_id FROM trade d JOIN token t ON t.id = d.token_id WHERE t.mint LIKE $1 ORDER BY 1`,
);
/** The database's clock stamps the end of a walk; this clock is ahead of it. */
const FINISHED_NOW = sql(
  'test_finished_now',
  'UPDATE trade_repair SET finished_at = $1 WHERE missing_after IS NULL AND finished_at IS NOT NULL',
);
const MARKET_PK = sql('test_witness_pk', 'SELECT id FROM market WHERE venue = $1 AND venue_market_id = $2');
const SAMPLES = sql('test_samples', 'SELECT count(*)::int AS samples FROM volume_sample WHERE venue = $1');
const REPAIR = sql(
  'test_repair',
  `SELECT r.status, r.attempts, r.trades::int AS trades, r.missing_before::float8 AS missing_before, r.missing_after::float8 AS missing_after,
     extract(epoch FROM r.from_at)::float8 * 1000 AS from_ms FROM trade_repair r JOIN market m ON m.id = r.market_id
   WHERE m.venue = $1 AND m.venue_market_id = $2`,
);

export interface StoredRepair {
  status: string;
  attempts: number;
  trades: number;
  missingBefore: number;
  missingAfter: number | null;
  fromMs: number;
}

/**
 * A venue with markets, trades and totals, and a clock. Trades reach the database through `deliver`, totals through the jobs. The tape
 * counts as read at each moment, unless `breakTape` says otherwise.
 */
export class WitnessedVenue {
  readonly venue: string;
  readonly trades: TradeRecord[] = [];
  readonly log = capturedLog();
  readonly adapter: ScriptedAdapter;
  nowMs = Math.floor(Date.now() / 60_000) * 60_000;
  /** The volume before the first trade of the test. */
  volumeBefore = 1_000;
  /** The venue adds a trade to its total this much later. */
  totalLagMs = 0;
  isTapeBroken = false;
  #test: TestDatabase;
  readonly #config: Config;
  #markets: readonly string[];
  #partitions: Partitions;

  constructor(test: TestDatabase, venue: string, markets: readonly string[], script: Partial<Script> = {}) {
    this.#test = test;
    this.#config = testConfig(test.url);
    this.#markets = markets;
    this.#partitions = new Partitions(test.db);
    this.venue = venue;
    this.adapter = scriptedAdapter({
      venue,
      marketsById: async (ids) => ({ records: ids.map((id) => this.#record(id)), rejected: [] }),
      markets: async () => lastPage(this.#markets.map((id) => this.#record(id))),
      history: (...args) => historyOf(this.trades, 5)(...args),
      ...script,
    });
  }

  /** Lists the markets, and starts the tape an hour before. */
  async open(): Promise<void> {
    await this.readTape();
    await this.run(pollMarkets);
  }

  /** One trade of the first outcome at this moment; stored unless it is lost. */
  async trade(marketId: string, size: number, options: { isLost?: boolean } = {}): Promise<TradeRecord> {
    const trade = aTrade({
      tradeId: `${marketId}-${this.trades.length}`,
      outcomeId: `${marketId}:yes`,
      tsMs: this.nowMs,
      size: decimal(String(size)),
    });
    this.trades.push(trade);
    if (!options.isLost) await this.deliver([trade]);
    return trade;
  }

  async deliver(trades: readonly TradeRecord[]): Promise<void> {
    const times = trades.map(({ tsMs }) => tsMs);
    await this.#partitions.ensure('trade', times);
    await this.#partitions.ensureAroundNow('observation');
    await this.#test.db.transaction((tx) => writeTrades(tx, trades, 'USD'));
  }

  /** Moves the clock in steps of 15 s, with a run of the job after each step. */
  async pass(seconds: number, onStep: () => Promise<unknown> = async () => undefined): Promise<void> {
    for (let passed = 0; passed < seconds; passed += 15) {
      this.nowMs += 15_000;
      await onStep();
      await this.witness();
    }
  }

  async witness(fields: Partial<ContextFields> = {}): Promise<JobReport> {
    await this.readTape();
    await this.fold();
    return this.run(witnessTrades, fields);
  }

  /** Walks all queued repairs. */
  async repair(): Promise<JobReport> {
    const report = await this.run(backfillTrades);
    await this.#test.db.query(FINISHED_NOW, [new Date(this.nowMs).toISOString()]);
    return report;
  }

  run(job: DefinedJob, fields: Partial<ContextFields> = {}): Promise<JobReport> {
    const used = { db: this.#test.db, config: this.#config, adapter: this.adapter, ...fields };
    return job.run(
      { venue: this.venue },
      jobContext({ ...used, partitions: this.#partitions, log: this.log.log, now: () => this.nowMs }),
    );
  }

  async readTape(): Promise<void> {
    if (this.isTapeBroken) return;
    const began = new Date(this.nowMs - 3_600_000).toISOString();
    await this.#test.db.query(SET_TAPE, [this.venue, began, new Date(this.nowMs).toISOString()]);
  }

  async fold(): Promise<void> {
    await drain(this.#test.db, 'fold-candles', { limit: 500, order: 'newest' }, foldCandles);
  }

  async of(marketId: string) {
    const [row] = await this.#test.db.query<{ id: bigint }>(MARKET_PK, [this.venue, marketId]);
    const found = await readMarketCompleteness(this.#test.db, row?.id ?? 0n);
    if (!found) return found;
    const { missingVolume, storedVolume, venueVolume, ...rest } = found;
    const volumes = { missingVolume: Number(missingVolume), storedVolume: Number(storedVolume) };
    return { ...rest, ...volumes, venueVolume: Number(venueVolume) };
  }

  async summary() {
    return (await readVenueCompleteness(this.#test.db, [this.venue])).get(this.venue);
  }

  async repairOf(marketId: string): Promise<StoredRepair | undefined> {
    return (await this.#test.db.query<StoredRepair>(REPAIR, [this.venue, marketId]))[0];
  }

  async samples(): Promise<number> {
    const [row] = await this.#test.db.query<{ samples: number }>(SAMPLES, [this.venue]);
    return row?.samples ?? 0;
  }

  async storedIds(marketId: string): Promise<string[]> {
    const rows = await this.#test.db.query<{ tradeId: string }>(STORED, [`${marketId}:%`]);
    return rows.map(({ tradeId }) => tradeId);
  }

  idsOf(marketId: string): string[] {
    const ids = this.trades.filter(({ outcomeId }) => outcomeId.startsWith(`${marketId}:`));
    return ids.map(({ tradeId }) => tradeId).sort();
  }

  /** The messages of warnings and infos, in their order. */
  messages(): string[] {
    return this.log.lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
  }

  #record(marketId: string) {
    const counted = this.trades.filter(
      ({ outcomeId, tsMs }) => outcomeId.startsWith(`${marketId}:`) && tsMs <= this.nowMs - this.totalLagMs,
    );
    const volume = counted.reduce((sum, { size }) => sum + Number(size), this.volumeBefore);
    return aMarketRecord({ marketId, volume: decimal(String(volume)) });
  }
}
