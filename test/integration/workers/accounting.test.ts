import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Exchange, type FaultRequest, startExchange } from '../../../sim/exchange.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { createMetrics, type Metrics } from '../../../src/observe/metrics.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { createKalshiAdapter } from '../../../src/venues/kalshi/adapter.ts';
import { createLimitlessAdapter } from '../../../src/venues/limitless/adapter.ts';
import { createManifoldAdapter } from '../../../src/venues/manifold/adapter.ts';
import type { VenueObserver } from '../../../src/venues/observer.ts';
import { createPolymarketAdapter } from '../../../src/venues/polymarket/adapter.ts';
import { createPolymarketWallets } from '../../../src/venues/polymarket/wallet-adapter.ts';
import type { VenueAdapter } from '../../../src/venues/port.ts';
import { createSolanaTokens } from '../../../src/venues/solana/token-adapter.ts';
import { createSolanaWallets } from '../../../src/venues/solana/wallet-adapter.ts';
import type { WalletAdapter } from '../../../src/venues/wallet-port.ts';
import { backfillTrades } from '../../../workers/jobs/backfill-trades.ts';
import { fetchBook } from '../../../workers/jobs/fetch-book.ts';
import { pollBooks } from '../../../workers/jobs/poll-books.ts';
import { pollMarkets } from '../../../workers/jobs/poll-markets.ts';
import { pollPrices } from '../../../workers/jobs/poll-prices.ts';
import { pollTokens } from '../../../workers/jobs/poll-tokens.ts';
import { pollTrades } from '../../../workers/jobs/poll-trades.ts';
import { pollWallets } from '../../../workers/jobs/poll-wallets.ts';
import { venueObserver } from '../../../workers/polling/venue-observer.ts';
import { anAccount, anAlert, aSubscription } from '../../factories/alerts.ts';
import { aWatchedWallet, makeWalletsDue } from '../../factories/wallets.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { type ContextFields, jobContext, LosableDatabase, testConfig } from './worker-harness.ts';

const START_SECOND = Math.floor(Date.now() / 1000);
const HTTP = { requestsPerSecond: 10_000, burst: 1_000, retryDelayMs: 5, maxAttempts: 2 };
const ASK_HISTORY = sql(
  'test_ask_history',
  `INSERT INTO trade_history (market_id, from_at, to_at)
   SELECT id, now() - interval '1 hour', now() FROM market WHERE venue = $1 ORDER BY id LIMIT 3`,
);
const MARKETS = sql(
  'test_market_pks',
  `SELECT id FROM market WHERE venue = $1 AND has_book AND status = 'open' ORDER BY id LIMIT 5`,
);

const WATCHED_BEFORE = sql(
  'test_watched_before',
  `UPDATE wallet SET created_at = created_at - interval '1 hour' WHERE watched_pk IN (
     SELECT pk FROM watched_wallet WHERE venue = $1)`,
);

const END_LEASES = sql(
  'test_end_poll_leases',
  'UPDATE poll_state SET lease_until = NULL, lease_token = NULL WHERE venue = $1',
);

const test = useTestDatabase();
let exchange: Exchange;
const metrics = createMetrics('test', { ofNode: false });
const observer = venueObserver(metrics, createLogger({ process: 'test', level: 'silent' }));
beforeAll(async () => {
  exchange = await startExchange({
    seed: 7,
    markets: 30,
    historyHours: 0.1,
    nowSecond: START_SECOND,
    paused: true,
  });
});
afterAll(() => exchange.close());

type Counters = Readonly<Record<'received' | 'rows' | 'duplicates' | 'rejected' | 'skipped', number>>;

/** The sums of the counters of a venue and a kind. */
async function counters(venue: string, kind: string, rowKinds: readonly string[] = [kind]): Promise<Counters> {
  const sum = async (counter: Metrics['ingestedRows'], kinds: readonly string[]) => {
    const { values } = await counter.get();
    return values
      .filter(({ labels }) => labels['venue'] === venue && kinds.includes(String(labels['kind'])))
      .reduce((total, { value }) => total + value, 0);
  };
  return {
    received: await sum(metrics.receivedRecords, [kind]),
    rows: await sum(metrics.ingestedRows, rowKinds),
    duplicates: await sum(metrics.duplicateRecords, [kind]),
    rejected: await sum(metrics.rejectedRecords, [kind]),
    skipped: await sum(metrics.skippedRecords, [kind]),
  };
}

function remainder({ received, rows, duplicates, rejected, skipped }: Counters): number {
  return received - rows - duplicates - rejected - skipped;
}

async function skips(venue: string, reason: string): Promise<number> {
  const { values } = await metrics.skippedRecords.get();
  return values
    .filter(({ labels }) => labels['venue'] === venue && labels['reason'] === reason)
    .reduce((total, { value }) => total + value, 0);
}

interface Case {
  venue: 'polymarket' | 'kalshi' | 'manifold' | 'limitless';
  create(observer: VenueObserver): VenueAdapter;
  faults: readonly FaultRequest[];
  kinds: readonly string[];
}

const bad = (host: FaultRequest['host'], field: string, value: unknown, every: number): FaultRequest => ({
  host,
  kind: 'set_field',
  set: { field, value, every },
});

const CASES: readonly Case[] = [
  {
    venue: 'polymarket',
    create: (own) =>
      createPolymarketAdapter({
        urls: { gamma: exchange.gammaUrl, clob: exchange.clobUrl, data: exchange.dataUrl },
        observer: own,
        // The size of a page follows the clock: even the smallest one must hold enough places for a bad record.
        trades: { pageSize: 1_000, initialLookbackSeconds: 3_600 },
        http: HTTP,
      }),
    faults: [bad('data', 'size', 'many', 9), bad('gamma', 'question', 7, 5), bad('clob', 'timestamp', 'today', 7)],
    kinds: ['markets', 'trades', 'prices', 'books'],
  },
  {
    venue: 'kalshi',
    create: (own) =>
      createKalshiAdapter({
        url: exchange.kalshiUrl,
        observer: own,
        // Each poll lists everything again, so that unchanged markets are among it.
        markets: { fullWalkEveryMs: 1 },
        trades: { pageSize: 40, initialLookbackSeconds: 3_600 },
        http: HTTP,
      }),
    faults: [
      bad('kalshi', 'count_fp', 'many', 9),
      bad('kalshi', 'yes_bid_dollars', '1.5', 7),
      bad('kalshi', 'yes_dollars', 7, 5),
      bad('kalshi', 'status', 7, 9),
    ],
    kinds: ['markets', 'trades', 'prices', 'books'],
  },
  {
    venue: 'manifold',
    create: (own) =>
      createManifoldAdapter({
        url: exchange.manifoldUrl,
        observer: own,
        markets: { pageSize: 7 },
        trades: { pageSize: 40, initialLookbackMs: 3_600_000 },
        http: HTTP,
      }),
    faults: [bad('manifold', 'shares', 'many', 9), bad('manifold', 'question', 7, 5), bad('manifold', 'prob', 2, 4)],
    kinds: ['markets', 'trades', 'prices'],
  },
  {
    venue: 'limitless',
    create: (own) =>
      createLimitlessAdapter({
        url: exchange.limitlessUrl,
        observer: own,
        markets: { pageSize: 10 },
        trades: { listingPageSize: 10, pageSize: 40, initialLookbackMs: 3_600_000 },
        http: HTTP,
      }),
    faults: [
      bad('limitless', 'matchedSize', 'many', 9),
      bad('limitless', 'title', 7, 5),
      bad('limitless', 'tradePrices', 7, 4),
      bad('limitless', 'asks', 7, 1),
    ],
    kinds: ['markets', 'trades', 'prices', 'books'],
  },
];

describe('the counters of received records', () => {
  it.each(CASES)(
    'of $venue add up when records are bad and transactions are lost',
    async ({ venue, create, faults, kinds }) => {
      const adapter = create(observer);
      const db = new LosableDatabase(test.db.dataSource);
      const config = testConfig(test.url, { VENUES: venue });
      const context = (more: Partial<ContextFields> = {}) =>
        jobContext({ db, config, adapter, metrics, now: () => exchange.second() * 1000, ...more });
      const round = async () => {
        for (const job of [pollMarkets, pollTrades, pollPrices, pollBooks]) {
          expect(await job.run({ venue }, context())).not.toHaveProperty('failed');
        }
      };
      try {
        await round();
        for (const fault of faults) exchange.addFault(fault);
        exchange.step(30);
        await round();
        exchange.clearFaults();

        let transactions = 0;
        db.loseAtCommit = () => {
          transactions += 1;
          return transactions % 2 === 0;
        };
        exchange.step(30);
        for (const job of [pollMarkets, pollTrades, pollPrices, pollBooks])
          await job.run({ venue }, context()).catch(() => undefined);
        db.loseAtCommit = () => false;
        // A poll that lost its transaction holds its lease for 15 s.
        await db.query(END_LEASES, [venue]);
        await round();
        // The exchange is paused: these prices are duplicates, whichever transactions were lost before.
        await pollPrices.run({ venue }, context());

        await db.query(ASK_HISTORY, [venue]);
        await backfillTrades.run({ venue }, context());
        for (const { id } of await db.query<{ id: bigint }>(MARKETS, [venue]))
          for (const _ of ['first', 'again']) await fetchBook.run({ venue, marketPk: String(id) }, context());

        for (const kind of kinds) {
          const counted = await counters(venue, kind);
          expect({ kind, remainder: remainder(counted) }, JSON.stringify(counted)).toEqual({ kind, remainder: 0 });
          expect(counted.received, kind).toBeGreaterThan(0);
          expect(counted.rows, kind).toBeGreaterThan(0);
          expect(counted.duplicates, JSON.stringify({ kind, counted })).toBeGreaterThan(0);
          expect(counted.rejected, JSON.stringify({ kind, counted })).toBeGreaterThan(0);
        }
        expect(await skips(venue, 'not_stored')).toBeGreaterThan(0);
        const page = readFileSync('docs/venues.md', 'utf8');
        const { values } = await metrics.skippedRecords.get();
        for (const { labels } of values) expect(page, 'reason for a skip').toContain(`\`${labels['reason']}\``);
      } finally {
        exchange.clearFaults();
        await adapter.close();
      }
    },
  );

  const wallets: readonly { venue: 'polymarket' | 'solana'; create(): WalletAdapter; address(): string }[] = [
    {
      venue: 'polymarket',
      create: () => createPolymarketWallets({ url: exchange.dataUrl, observer, http: HTTP }),
      address: () => exchange.ledger().trades.at(-1)?.proxyWallet ?? '',
    },
    {
      venue: 'solana',
      create: () => createSolanaWallets({ url: exchange.solanaUrl, observer, http: HTTP }),
      address: () => exchange.solana.people()[0] ?? '',
    },
  ];
  it.each(wallets)('of wallets of $venue add up', async ({ venue, create, address }) => {
    const owner = await anAccount(test.db);
    await aSubscription(test.db, { accountId: owner, events: ['transaction', 'balance_change'] });
    await aWatchedWallet(test.db, { accountId: owner, venue, address: address() });
    await test.db.query(WATCHED_BEFORE, [venue]);
    const adapter = create();
    const config = testConfig(test.url, { VENUES: venue });
    const walletAdapters = new Map([[venue, adapter]]);
    const [me = '', friend = ''] = exchange.solana.people();
    try {
      for (const lose of [false, true, false, false]) {
        exchange.solana.transfer({ from: me, to: friend, units: '1000' });
        exchange.step(20);
        await makeWalletsDue(test.db, venue, true);
        const db = new LosableDatabase(test.db.dataSource);
        if (lose) db.loseAtCommit = (transaction) => transaction > 1;
        const now = () => Math.max(Date.now(), exchange.second() * 1000);
        const context = jobContext({ db, config, walletAdapters, metrics, now });
        await pollWallets.run({ venue }, context).catch(() => undefined);
      }
      const counted = await counters(venue, 'wallets', ['wallet_transactions']);
      expect(remainder(counted), JSON.stringify(counted)).toBe(0);
      expect(counted.rows).toBeGreaterThan(0);
    } finally {
      await adapter.close();
    }
  });

  it('of tokens of solana add up', async () => {
    const owner = await anAccount(test.db);
    const mints = exchange.solana.tokens().map(({ mint }) => mint);
    for (const mint of mints.slice(0, 6)) {
      const alert = { accountId: owner, mint, condition: 'above' as const, target: '1000000' };
      await test.db.transaction((tx) => anAlert(tx, alert));
    }
    const adapter = createSolanaTokens({ jupiter: exchange.jupiterUrl, observer, http: HTTP });
    const tokenAdapters = new Map([['solana', adapter]]);
    const config = testConfig(test.url, { VENUES: 'solana' });
    const context = () => jobContext({ db: test.db, config, tokenAdapters, metrics });
    try {
      await pollTokens.run({ venue: 'solana' }, context());
      exchange.addFault(bad('jupiter', 'usdPrice', 'dear', 3));
      await pollTokens.run({ venue: 'solana' }, context());
      const counted = await counters('solana', 'prices');
      expect(remainder(counted), JSON.stringify(counted)).toBe(0);
      expect(counted.rows).toBeGreaterThan(0);
      expect(counted.rejected).toBeGreaterThan(0);
    } finally {
      exchange.clearFaults();
      await adapter.close();
    }
  });
});
