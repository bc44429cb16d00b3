import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { AnswerCache } from '../../../../api/reads/answer-cache.ts';
import { createLiveReads } from '../../../../api/server/live-reads.ts';
import type { MarketRecord } from '../../../../src/domain/markets/market.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { createMetrics, type Metrics } from '../../../../src/observe/metrics.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { type Database, sql } from '../../../../src/store/db/tx.ts';
import { closeGaps, openGap } from '../../../../src/store/feeds/gaps.ts';
import { startPublisher } from '../../../../src/store/journal/publisher.ts';
import { followJournal, type JournalTail } from '../../../../src/store/journal/tail.ts';
import { confirmPrices } from '../../../../src/store/prices/confirmations.ts';
import { sweepPrices, type TokenPrice, writePrices } from '../../../../src/store/prices/prices.ts';
import { writeBooks } from '../../../../src/store/series/books.ts';
import { foldCandles } from '../../../../src/store/series/candles.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { claimAll } from '../../../support/drain.ts';
import { type Client, startTestApi, type TestApi } from '../api-harness.ts';

const log = createLogger({ process: 'test', level: 'silent' });

const POLLED = sql(
  'test_polled_trades',
  `INSERT INTO poll_state (venue, kind, first_success_at) VALUES ('polymarket', 'trades', now() - interval '1 hour')
   ON CONFLICT (venue, kind) DO UPDATE SET first_success_at = excluded.first_success_at`,
);
const TOKENS = sql('test_tokens_of', 'SELECT t.id, t.mint FROM token t WHERE t.mint = ANY ($1::text[]) ORDER BY t.id');
const MARKET_KEY = sql('test_market_key', 'SELECT id FROM market WHERE venue_market_id = $1');
const WITNESS = sql(
  'test_compare_market',
  `WITH compared AS (
     INSERT INTO trade_witness (market_id, venue, since, baseline_volume, lowest_baseline, sampled_at, venue_volume, stored_volume,
       other_volume, compared_at, moved_at, covered_at, missing_volume)
     SELECT id, venue, now(), 0, 0, now(), $2::numeric, $2::numeric / 2, 0, now(), now(), now(), 0 FROM market WHERE venue_market_id = $1
     ON CONFLICT (market_id) DO UPDATE SET venue_volume = excluded.venue_volume RETURNING market_id)
   INSERT INTO publish_mark (kind, key, detail, ref) SELECT 8, 0, 2, market_id::text FROM compared`,
);
const CUT = sql(
  'test_cut_tail',
  `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'oddswire-journal-tail'`,
);

/** One API process with its memory. */
export interface LiveApi {
  api: TestApi;
  client: Client;
  reads: ReturnType<typeof createLiveReads>;
  metrics: Metrics;
  tail: JournalTail;
  close(): Promise<void>;
}

/** A database with a publisher, writers of every fact, an API without memory, and APIs with memory. */
export class MemoryWorld {
  readonly reference: TestApi;
  readonly #client: Client;
  readonly #records = new Map<string, MarketRecord>();
  readonly #quotes = new Map<string, Omit<TokenPrice, 'asOfMs'>[]>();
  readonly #random: () => number;
  /** Epoch seconds of the start, at a minute. */
  readonly minute = Math.floor(Date.now() / 60_000) * 60;
  /** Holds back the answers of the database to the APIs with memory. */
  readonly held: { until: Promise<void> | undefined; count: number } = { until: undefined, count: 0 };
  #publisher: ReturnType<typeof startPublisher> | undefined;
  #asOfMs = Date.now() - 600_000;
  #serial = 0;
  readonly #openGaps = new Map<string, string>();

  private constructor(reference: TestApi, client: Client, random: () => number) {
    this.reference = reference;
    this.#client = client;
    this.#random = random;
  }

  static async start(random: () => number, marketIds: readonly string[]): Promise<MemoryWorld> {
    const reference = await startTestApi({ now: Date.now });
    const world = new MemoryWorld(reference, await reference.client(), random);
    const { db } = reference;
    await db.query(POLLED);
    const partitions = new Partitions(db);
    for (const table of ['observation', 'price_history', 'book_history'] as const)
      await partitions.ensureAroundNow(table);
    await partitions.ensure('trade', [Date.now(), Date.now() - 3_600_000]);
    for (const marketId of marketIds) {
      await world.changeMarket(marketId);
      await world.changePrice(marketId);
      await world.addTrades(marketId);
      await world.changeBook(marketId);
    }
    return world;
  }

  /** Every kind of write that answers depend on. */
  readonly writes = [
    (id: string) => this.changePrice(id),
    (id: string) => this.changePrice(id),
    (id: string) => this.seeAgain(id),
    (id: string) => this.confirm(id),
    (id: string) => this.changeMarket(id),
    (id: string) => this.changeVolume(id),
    (id: string) => this.addTrades(id),
    (id: string) => this.changeBook(id),
    (id: string) => this.compare(id),
    (id: string) => this.changeGap(id),
    (id: string) => this.changeFee(id),
  ];

  /** The routes of a market, and a list. Ranges end in the past, so that time alone changes no answer. */
  pathsOf(marketId: string): string[] {
    const market = `/v1/polymarket/markets/${marketId}`;
    const range = `start=${this.minute - 3_600}&end=${this.minute - 120}`;
    return [
      market,
      `${market}/prices`,
      `${market}/candles?interval=1m&${range}`,
      `${market}/volume?window=1h&${range}`,
      `${market}/trades?limit=5`,
      `${market}/orderbook`,
      `${market}/fees`,
      `${market}/executable?side=sell&size=7`,
      `/v1/polymarket/executable?outcome_ids=${marketId}:yes,${marketId}:no&side=sell&size=7`,
      `/v1/compare?buy_venue=polymarket&buy_outcome_id=${marketId}:yes&sell_venue=polymarket&sell_outcome_id=${marketId}:yes&size=7`,
      `/v1/all/markets/${marketId}`,
      `/v1/polymarket/prices?market_ids=${marketId}`,
      '/v1/polymarket/markets?limit=20',
    ];
  }

  /** The answer of the database. */
  truth(path: string): Promise<string> {
    return contentOf(this.#client, path);
  }

  publish(): void {
    this.#publisher ??= startPublisher({
      databaseUrl: this.reference.databaseUrl,
      log,
      retentionMinutes: 120,
      maxBytes: 1_000_000_000,
    });
  }

  async stall(): Promise<void> {
    await this.#publisher?.stop();
    this.#publisher = undefined;
  }

  cutTail(): Promise<unknown> {
    return this.reference.db.query(CUT);
  }

  async live(maxBytes: number): Promise<LiveApi> {
    const { db, databaseUrl, reads: tracker } = this.reference;
    const tail = followJournal({ databaseUrl, pool: db, log });
    const metrics = createMetrics('api', { ofNode: false });
    const slow = this.#slowly(db);
    const options = {
      tail,
      db: slow,
      venues: ['polymarket'],
      maxBytes,
      decimalFormat: 'number',
      metrics,
      log,
    } as const;
    const reads = createLiveReads({ ...options, reads: tracker });
    const answers: AnswerCache = reads.answers;
    const api = await startTestApi(
      { db: slow, answers, memory: reads.memory, now: Date.now },
      { beside: { databaseUrl } },
    );
    return {
      api,
      client: await api.client(),
      reads,
      metrics,
      tail,
      async close() {
        reads.close();
        await tail.close();
        await api.close();
      },
    };
  }

  /** Some answers arrive late, so that changes are named between the snapshot of a read and its end. */
  #slowly(db: Database): Database {
    const slow: Database = Object.create(db);
    slow.query = async <Row>(...given: Parameters<Database['query']>) => {
      const rows = await db.query<Row>(...given);
      this.held.count += 1;
      await this.held.until;
      if (Math.random() < 0.3) await delay(Math.random() * 300);
      return rows;
    };
    return slow;
  }

  async close(): Promise<void> {
    await this.stall();
    await this.reference.close();
  }

  async changePrice(marketId: string): Promise<void> {
    const tokenIds = await this.#tokensOf(marketId);
    const quotes = tokenIds.map((tokenId) => ({ tokenId, price: this.#price(), bid: decimal('0.01') }));
    this.#quotes.set(marketId, quotes);
    await this.seeAgain(marketId);
  }

  /** The last quotes with a later time, outside a sweep. */
  async seeAgain(marketId: string): Promise<void> {
    const quotes = this.#laterQuotes(marketId);
    await this.reference.db.transaction((tx) => writePrices(tx, quotes));
  }

  /** A sweep that finds the last quotes unchanged. */
  async confirm(marketId: string): Promise<void> {
    const { db } = this.reference;
    const quotes = this.#laterQuotes(marketId);
    const { confirmed } = await db.transaction((tx) => sweepPrices(tx, quotes));
    await confirmPrices(db, confirmed);
  }

  async changeMarket(marketId: string): Promise<void> {
    this.#serial += 1;
    const createdAtMs = this.minute * 1_000 - 1_800_000;
    const status = this.#random() < 0.2 ? 'halted' : 'open';
    await this.#store(aMarketRecord({ marketId, title: `Version ${this.#serial}`, createdAtMs, status }));
  }

  async changeVolume(marketId: string): Promise<void> {
    const record = this.#records.get(marketId);
    this.#serial += 1;
    if (record) await this.#store({ ...record, volume: decimal(String(1_000 + this.#serial)) });
  }

  async changeFee(marketId: string): Promise<void> {
    const record = this.#records.get(marketId);
    this.#serial += 1;
    const takerRate = decimal(`0.${this.#serial}1`);
    const rule = { model: 'price_curve', takerRate, exponent: 1, digits: 5, rounding: 'half_up' } as const;
    if (record) await this.#store({ ...record, fees: { periods: [{ rule }] } });
  }

  async addTrades(marketId: string): Promise<void> {
    const { db } = this.reference;
    const trades = Array.from({ length: 3 }, () => {
      this.#serial += 1;
      const secondsAgo = 180 + Math.floor(this.#random() * 1_500);
      const tsMs = (this.minute - secondsAgo) * 1_000;
      return {
        tradeId: `t${this.#serial}`,
        outcomeId: `${marketId}:yes`,
        tsMs,
        price: this.#price(),
        size: decimal('2'),
        side: 'buy' as const,
      };
    });
    await db.transaction(async (tx) => {
      await writeTrades(tx, trades, 'USD');
      const marks = await claimAll(tx, 'fold-candles');
      if (marks.length > 0) await foldCandles(tx, marks);
    });
  }

  async changeBook(marketId: string): Promise<void> {
    const { db } = this.reference;
    const [yes] = await this.#tokensOf(marketId);
    this.#asOfMs += 1_000;
    const deeper = { price: decimal('0.01'), size: decimal(String(1 + Math.floor(this.#random() * 100))) };
    const bids = [{ price: this.#random() < 0.5 ? decimal('0.40') : this.#price(), size: decimal('5') }, deeper];
    await db.transaction((tx) => writeBooks(tx, [{ tokenId: yes ?? 0n, asOfMs: this.#asOfMs, bids, asks: [] }]));
  }

  /** Opens a gap of the feed, or ends the open one. */
  async changeGap(marketId: string): Promise<void> {
    const { db } = this.reference;
    const marketPks = (await db.query<{ id: bigint }>(MARKET_KEY, [marketId])).map(({ id }) => id);
    const gap = this.#openGaps.get(marketId) ?? randomUUID();
    if (this.#openGaps.delete(marketId)) {
      await db.transaction((tx) => closeGaps(tx, { venue: 'polymarket', marketPks, toMs: Date.now() }));
      return;
    }
    this.#openGaps.set(marketId, gap);
    const opened = { gap, venue: 'polymarket', marketPks, affected: 'books', reason: 'silent', fromMs: Date.now() };
    await db.transaction((tx) => openGap(tx, opened));
  }

  async compare(marketId: string): Promise<void> {
    this.#serial += 1;
    await this.reference.db.query(WITNESS, [marketId, String(this.#serial)]);
  }

  async #store(record: MarketRecord): Promise<void> {
    this.#records.set(record.marketId, record);
    const { db } = this.reference;
    await db.transaction((tx) => writeMarkets(tx, 'polymarket', 'USD', [record], Date.now()));
  }

  #laterQuotes(marketId: string): TokenPrice[] {
    this.#asOfMs += 2_000;
    return (this.#quotes.get(marketId) ?? []).map((quote) => ({ ...quote, asOfMs: this.#asOfMs }));
  }

  async #tokensOf(marketId: string): Promise<bigint[]> {
    const rows = await this.reference.db.query<{ id: bigint }>(TOKENS, [[`${marketId}:yes`, `${marketId}:no`]]);
    return rows.map(({ id }) => id);
  }

  #price() {
    return decimal((0.02 + Math.floor(this.#random() * 96) / 100).toFixed(2));
  }
}

/** The content of an answer without request id and time. */
export async function contentOf(client: Client, path: string): Promise<string> {
  const { status, body } = await client.market(path);
  const { request_id: _id, timestamp: _timestamp, ...meta } = body.meta;
  return JSON.stringify([status, body.data, meta]);
}
