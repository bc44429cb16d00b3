import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Exchange, startExchange } from '../../../../sim/exchange.ts';
import { createMetrics } from '../../../../src/observe/metrics.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { type Statement, sql, type Tx } from '../../../../src/store/db/tx.ts';
import { createKalshiAdapter } from '../../../../src/venues/kalshi/adapter.ts';
import { createManifoldAdapter } from '../../../../src/venues/manifold/adapter.ts';
import type { VenueObserver } from '../../../../src/venues/observer.ts';
import { createPolymarketAdapter } from '../../../../src/venues/polymarket/adapter.ts';
import type { VenueAdapter } from '../../../../src/venues/port.ts';
import { pollTrades } from '../../../../workers/jobs/poll-trades.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/postgres/database.ts';
import { jobContext, LosableDatabase, testConfig } from '../worker-harness.ts';

const START_SECOND = Math.floor(Date.now() / 1000) - 600;
const HTTP = { requestsPerSecond: 10_000, burst: 1_000, retryDelayMs: 5, maxAttempts: 1 };
const TRADES = sql('test_count_trades', 'SELECT count(*)::int AS trades FROM trade');
const CLEAR = sql('test_clear_tape', 'TRUNCATE trade, mark, publish_mark, poll_state, venue_completeness');
const END_LEASES = sql('test_end_tape_leases', 'UPDATE poll_state SET lease_until = NULL, lease_token = NULL');
const LOSE_TRADES = sql(
  'test_lose_trades',
  `INSERT INTO venue_completeness (venue, unit, checked_at, markets, markets_missing, broken_until)
   VALUES ($1, 'contracts', now(), 1, 1, to_timestamp($2::float8 / 1000))
   ON CONFLICT (venue) DO UPDATE SET broken_until = excluded.broken_until`,
);
/** A tick that finds no new trade, in a process that keeps no lease. */
const QUIET = ['acquire_poll_lease', 'store_poll_news'];

/** The database of one process. It records statements, and the rows that they hand to `trade`. */
class CountingDatabase extends LosableDatabase {
  statements: string[] = [];
  rows = 0;
  /** Whether a statement stored up to when the tape is read. */
  isCaughtUp = false;

  override async query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    this.#count(statement, values);
    return super.query<Row>(statement, values);
  }

  override async transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return super.transaction((tx) =>
      work({
        em: tx.em,
        query: (statement, values = []) => {
          this.#count(statement, values);
          return tx.query(statement, values);
        },
      }),
    );
  }

  #count({ name }: Statement, values: readonly unknown[]): void {
    this.statements.push(name);
    if (name === 'advance_poll') this.isCaughtUp ||= values[5] !== null;
    if (name === 'store_poll_news') this.isCaughtUp ||= (values[8] as unknown[]).some((at) => at !== null);
    if (name === 'insert_trades') this.rows += (values[0] as unknown[]).length;
  }
}

interface Tick {
  statements: string[];
  rows: number;
  isCaughtUp: boolean;
  requests: number;
  received: number;
  written: number;
}

let test: TestDatabase;
let exchange: Exchange;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.drop());
beforeEach(async () => {
  await test.db.query(CLEAR);
  exchange = await startExchange({
    seed: 7,
    markets: 24,
    historyHours: 0.02,
    nowSecond: START_SECOND,
    paused: true,
    solanaTraffic: false,
  });
});
afterEach(() => exchange.close());

const VENUES: readonly { venue: string; create(observer: VenueObserver): VenueAdapter }[] = [
  {
    venue: 'polymarket',
    create: (observer) =>
      createPolymarketAdapter({
        urls: { gamma: exchange.gammaUrl, clob: exchange.clobUrl, data: exchange.dataUrl },
        observer,
        trades: { initialLookbackSeconds: 300 },
        http: HTTP,
      }),
  },
  {
    venue: 'kalshi',
    create: (observer) =>
      createKalshiAdapter({
        url: exchange.kalshiUrl,
        observer,
        trades: { initialLookbackSeconds: 300 },
        http: HTTP,
      }),
  },
  {
    venue: 'manifold',
    create: (observer) =>
      createManifoldAdapter({
        url: exchange.manifoldUrl,
        observer,
        trades: { initialLookbackMs: 300_000 },
        http: HTTP,
      }),
  },
];

/** Polls of one venue by processes that start and die. */
class Ticks {
  readonly venue: string;
  readonly metrics = createMetrics('test', { ofNode: false });
  readonly adapter: VenueAdapter;
  db = new CountingDatabase(test.db.dataSource);
  #partitions = new Partitions(this.db);
  #restMs = 0;
  #requests = 0;
  #received = 0;

  constructor({ venue, create }: (typeof VENUES)[number]) {
    this.venue = venue;
    this.adapter = create({
      onRequest: ({ outcome }) => {
        this.#requests += outcome === 'ok' ? 1 : 0;
      },
      onReceived: ({ count }) => {
        this.#received += count;
      },
    });
  }

  nowMs(): number {
    return exchange.second() * 1000 + this.#restMs;
  }

  /** Another process goes on. */
  restart(): void {
    this.db = new CountingDatabase(test.db.dataSource);
    this.#partitions = new Partitions(this.db);
  }

  /** Two seconds later, with or without trades in between. */
  async tick({ isTrading = true, isLost = false } = {}): Promise<Tick> {
    if (isTrading) exchange.step(2);
    else this.#restMs += 2_000;
    const { db, adapter, metrics, venue } = this;
    Object.assign(db, { statements: [], rows: 0, isCaughtUp: false, loseAtCommit: () => isLost });
    [this.#requests, this.#received] = [0, 0];
    const config = testConfig(test.url, { VENUES: venue });
    const fields = { db, config, adapter, metrics, partitions: this.#partitions, now: () => this.nowMs() };
    const run = pollTrades.run({ venue }, jobContext(fields));
    const report = isLost ? await run.catch(() => ({ written: 0 })) : await run;
    if (isLost) await test.db.query(END_LEASES);
    const { statements, rows, isCaughtUp } = db;
    const written = Number((report as Record<string, unknown>)['written']);
    return { statements, rows, isCaughtUp, requests: this.#requests, received: this.#received, written };
  }

  async many(count: number, options: { isTrading?: boolean } = {}): Promise<Tick[]> {
    const ticks: Tick[] = [];
    for (let each = 0; each < count; each += 1) ticks.push(await this.tick(options));
    return ticks;
  }
}

/** Only the end of a read of the overlap proves up to when the tape is read. */
const isOverlap = ({ isCaughtUp }: Tick) => isCaughtUp;
const sum = (ticks: readonly Tick[], of: (tick: Tick) => number) => ticks.reduce((total, tick) => total + of(tick), 0);

describe.each(VENUES)('a tick of poll-trades of $venue', (of) => {
  it('hands each trade to the store once, and locks no outcome when it finds none', async () => {
    const process = new Ticks(of);
    try {
      exchange.step(120);
      await process.many(2);
      const busy = await process.many(10);
      expect(sum(busy, ({ rows }) => rows)).toBe(sum(busy, ({ written }) => written));
      expect(sum(busy, ({ rows }) => rows)).toBeGreaterThan(0);
      // The last trades arrive: a venue that counts in seconds holds the newest back.
      await process.many(3, { isTrading: false });
      const quiet = await process.many(10, { isTrading: false });
      const overlaps = quiet.filter(isOverlap);
      expect([1, 2]).toContain(overlaps.length);
      for (const { statements, rows, requests } of quiet.filter((tick) => !isOverlap(tick))) {
        expect({ statements, rows, requests }).toEqual({ statements: QUIET, rows: 0, requests: 1 });
      }
      for (const { statements } of overlaps) expect(statements).toEqual(QUIET);
      expect(Math.min(...overlaps.map(({ received }) => received))).toBeGreaterThan(20);
      const received = await process.metrics.duplicateRecords.get();
      expect(received.values.reduce((total, { value }) => total + value, 0)).toBeGreaterThan(20);
    } finally {
      await process.adapter.close();
    }
  });

  it('reads the overlap after a lost page, after a takeover and while the feed loses trades, and stores each trade once', async () => {
    const process = new Ticks(of);
    try {
      exchange.step(120);
      await process.many(3);
      expect(isOverlap(await process.tick({ isTrading: false }))).toBe(false);
      expect(isOverlap(await process.tick({ isLost: true }))).toBe(false);
      const afterLoss = await process.tick();
      expect(isOverlap(afterLoss)).toBe(true);
      expect(afterLoss.rows).toBe(afterLoss.written);
      expect(afterLoss.written).toBeGreaterThan(0);

      process.restart();
      const takeover = await process.tick({ isTrading: false });
      expect(isOverlap(takeover)).toBe(true);
      expect(takeover.rows).toBeGreaterThan(takeover.written);
      const again = await process.tick({ isTrading: false });
      expect([isOverlap(again), again.rows]).toEqual([false, 0]);

      await test.db.query(LOSE_TRADES, [of.venue, process.nowMs()]);
      const losing = await process.many(10, { isTrading: false });
      expect(losing.slice(-3).map(isOverlap)).toEqual([true, true, true]);
      expect(sum(losing, ({ rows }) => rows)).toBe(sum(losing, ({ written }) => written));
      const stored = await test.db.query<{ trades: number }>(TRADES);
      process.restart();
      await process.many(2, { isTrading: false });
      expect(await test.db.query(TRADES)).toEqual(stored);
    } finally {
      await process.adapter.close();
    }
  });
});
