import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Exchange, startExchange } from '../../../sim/exchange.ts';
import { HOUR_MS } from '../../../src/domain/markets/coverage.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { venueQueue } from '../../../src/queues/jobs.ts';
import { hoursOf, readMarketHours } from '../../../src/store/coverage/reads.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { createPresence, type Presence } from '../../../src/store/db/presence.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { requestTradeHistory } from '../../../src/store/series/trade-history.ts';
import { createKalshiAdapter } from '../../../src/venues/kalshi/adapter.ts';
import { createLimitlessAdapter } from '../../../src/venues/limitless/adapter.ts';
import { createManifoldAdapter } from '../../../src/venues/manifold/adapter.ts';
import { createPolymarketAdapter } from '../../../src/venues/polymarket/adapter.ts';
import type { HistoryRequest, VenueAdapter } from '../../../src/venues/port.ts';
import { backfillTrades } from '../../../workers/jobs/backfill-trades.ts';
import { pollMarkets } from '../../../workers/jobs/poll-markets.ts';
import { pollTrades } from '../../../workers/jobs/poll-trades.ts';
import { aStoredMarket, type TestMarket } from '../../factories/stored-market.ts';
import { scriptedAdapter } from '../../factories/venue-adapter.ts';
import { eventually } from '../../support/eventually.ts';
import { type TestDatabase, useTestDatabase } from '../../support/postgres/database.ts';
import { historyOf, idsOf, LIVE, MINUTE_MS, NOW, tapeOf } from '../workers/backfill-harness.ts';
import { jobContext, testConfig } from '../workers/worker-harness.ts';
import { ODDSWIRE, oddswire } from './run-command.ts';

const SET_LIVE = sql(
  'test_backfill_live',
  `INSERT INTO poll_state (venue, kind, first_success_at) VALUES ($1, 'trades', to_timestamp($2::bigint / 1000))
   ON CONFLICT (venue, kind) DO UPDATE SET first_success_at = excluded.first_success_at`,
);
const TRADES = sql(
  'test_backfilled_trades',
  `SELECT t.mint || '/' || d.trade_id AS id FROM trade d JOIN token t ON t.id = d.token_id
   JOIN outcome o ON o.token_id = t.id JOIN market m ON m.id = o.market_id WHERE m.venue = $1 AND d.ts < to_timestamp($2::bigint / 1000)`,
);
const MARKETS = sql(
  'test_backfilled_markets',
  `SELECT m.id AS pk, m.venue_market_id AS market_id, least(m.created_at, m.open_at) AS opened_at,
     array_agg(t.mint ORDER BY o.ordinal) AS outcome_ids
   FROM market m JOIN outcome o ON o.market_id = m.id JOIN token t ON t.id = o.token_id WHERE m.venue = $1 GROUP BY m.id`,
);
const WALKS = sql(
  'test_backfill_walks',
  `SELECT count(*)::int AS walks, count(*) FILTER (WHERE h.status IN ('queued', 'walking'))::int AS open,
     count(*) FILTER (WHERE h.status = 'done')::int AS done, sum(pages)::int AS pages
   FROM trade_history h JOIN market m ON m.id = h.market_id WHERE m.venue = $1`,
);

const log = createLogger({ process: 'test', level: 'silent' });
const since = (ms: number) => ['--since', new Date(ms).toISOString().slice(0, 19)];
const callOf = (venue: string, sinceMs: number, ...more: string[]) => [
  'backfill',
  '--venue',
  venue,
  ...since(sinceMs),
  ...more,
];

interface Summary {
  markets: number;
  served: number;
  not_served: number;
  failed: number;
  trades: number;
  markets_not_served: { market_id: string; stored_from: string; reason: string }[];
}

/** A poller of a venue that only walks back through history, until it is closed. */
async function aPoller(test: TestDatabase, adapter: VenueAdapter, now: () => number) {
  const { venue } = adapter;
  const presence: Presence = createPresence({ databaseUrl: test.url, log });
  await presence.register({ [venueQueue(venue)]: 'worker' }, async () => undefined);
  const config = testConfig(test.url, { VENUES: venue });
  const context = jobContext({ db: test.db, config, adapter, now });
  const stopping = new AbortController();
  const running = (async () => {
    while (!stopping.signal.aborted) {
      await backfillTrades.run({ venue }, context);
      await delay(10);
    }
  })();
  return {
    async close() {
      stopping.abort();
      await running;
      await presence.close();
    },
  };
}

function started(test: TestDatabase, argv: readonly string[]) {
  const child = spawn(process.execPath, [ODDSWIRE, ...argv], {
    env: { PATH: process.env['PATH'], DATABASE_URL: test.url },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (bytes: Buffer) => {
      texts[name] += bytes.toString();
    });
  return { child, texts, ended: once(child, 'close') as Promise<[number | null, string | null]> };
}

describe('oddswire backfill', () => {
  const test = useTestDatabase();
  const run = (argv: readonly string[]) => oddswire(argv, { DATABASE_URL: test.url });

  it('names every problem of its options and ends with 2', async () => {
    const wrong = await run(['backfill', '--venue', 'nasdaq', '--since', '2026-13-01', '--markets', 'a,,b', '--nice']);
    expect([wrong.code, wrong.stdout]).toEqual([2, '']);
    for (const problem of [
      'unknown option --nice',
      '--venue must be one of polymarket',
      '--since must be an age such as 24h, a date',
      '--markets must be ids of markets with a comma between them',
      'usage: oddswire backfill',
    ])
      expect(wrong.stderr).toContain(problem);
  });

  it('names the unknown markets and ends with 2', async () => {
    await aStoredMarket(test.db, { venue: 'kalshi', marketId: 'K-1' });
    const { code, stderr } = await run(callOf('kalshi', NOW, '--markets', 'K-1,K-2,K-3'));
    expect(code).toBe(2);
    expect(stderr).toContain('kalshi has no market K-2');
    expect(stderr).toContain('kalshi has no market K-3');
    expect(stderr).not.toContain('K-1\n');
  });

  it('ends with an error when the venue was not polled yet', async () => {
    const { code, stderr } = await run(callOf('limitless', NOW));
    expect([code, stderr]).toEqual([1, expect.stringContaining('the trades of limitless were not polled yet')]);
  });

  it('reports that no poller runs, and what happens to its requests when it is stopped', async () => {
    await test.db.query(SET_LIVE, ['kalshi', LIVE]);
    const { child, texts, ended } = started(test, callOf('kalshi', LIVE - 60 * MINUTE_MS));
    const said = async () => texts.stderr;
    await eventually(said, (text) => text.includes('no poller of kalshi runs, so the requested walks wait'));
    child.kill('SIGINT');
    expect(await ended).toEqual([130, null]);
    expect(texts.stderr).toContain(
      'stopped. Requested walks that the pollers continue: 1. The same command continues.',
    );
    expect(texts.stdout).toBe('');
  });
});

describe('a backfill of many markets', () => {
  const test = useTestDatabase();
  const SINCE = LIVE - 600 * MINUTE_MS;
  const COUNT = 130;
  const markets: TestMarket[] = [];
  const served: HistoryRequest[] = [];
  const tape = () => markets.flatMap((market) => tapeOf(market, 4));
  const walks = async () =>
    (await test.db.query<Record<'walks' | 'open' | 'done' | 'pages', number>>(WALKS, ['kalshi']))[0];
  const doneOf = async () => (await walks())?.done ?? 0;
  let poller: { close(): Promise<void> };
  beforeAll(async () => {
    await test.db.query(SET_LIVE, ['kalshi', LIVE]);
    await new Partitions(test.db).ensure('trade', [SINCE, LIVE]);
    for (let index = 0; index < COUNT; index += 1) {
      markets.push(await aStoredMarket(test.db, { venue: 'kalshi', createdAt: new Date(SINCE - 1) }));
    }
    const serve = historyOf(tape(), 2);
    const adapter = scriptedAdapter({
      venue: 'kalshi',
      history: (request, position, call) => {
        served.push(request);
        return serve(request, position, call);
      },
    });
    poller = await aPoller(test, adapter, () => NOW);
  });
  afterAll(() => poller.close());

  it('stores every trade once when the command is killed and started again, and twice at once', async () => {
    const call = callOf('kalshi', SINCE, '--json');
    const killed = started(test, call);
    await eventually(doneOf, (done) => done > 0, { everyMs: 5 });
    killed.child.kill('SIGKILL');
    expect(await killed.ended).toEqual([null, 'SIGKILL']);
    const runs = [started(test, call), started(test, call)];
    // A client asks for a market while both run.
    await eventually(doneOf, (done) => done > 60, { everyMs: 5 });
    const late = await aStoredMarket(test.db, { venue: 'kalshi', createdAt: new Date(LIVE + 1) });
    const before = served.length;
    await requestTradeHistory(test.db, { marketPk: late.pk, fromMs: SINCE, toMs: LIVE });
    await eventually(async () => served.some(({ marketId }) => marketId === late.marketId), Boolean, { everyMs: 5 });
    // The page in flight and one more at most come before it.
    expect(served.findIndex(({ marketId }) => marketId === late.marketId) - before).toBeLessThanOrEqual(2);
    for (const { ended, texts } of runs) {
      expect([await ended, texts.stderr]).toEqual([[0, null], expect.stringContaining('kalshi: ')]);
      const summary = JSON.parse(texts.stdout) as Summary;
      expect(summary).toMatchObject({ markets: COUNT, served: COUNT, not_served: 0, failed: 0, trades: COUNT * 4 });
    }
    const stored = await test.db.query<{ id: string }>(TRADES, ['kalshi', LIVE]);
    expect(stored.map(({ id }) => id).sort()).toEqual(idsOf(tape()));
    // Each market has two pages: no run and no restart repeated a page.
    expect(await walks()).toMatchObject({ walks: COUNT + 1, open: 0, pages: 2 * COUNT + 1 });
  });

  it('requests nothing when it is repeated', async () => {
    const before = await walks();
    const again = await oddswire(callOf('kalshi', SINCE), { DATABASE_URL: test.url });
    expect(again).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('the trades of 130 markets are stored since'),
    });
    expect(await walks()).toEqual(before);
  });
});

describe('a backfill of a simulated venue', () => {
  const test = useTestDatabase();
  const nowSecond = Math.floor(Date.now() / 1000);
  const nowMs = nowSecond * 1000;
  const http = { requestsPerSecond: 10_000, burst: 1_000, retryDelayMs: 5 };
  let exchange: Exchange;
  beforeAll(async () => {
    exchange = await startExchange({
      seed: 7,
      markets: 20,
      historyHours: 1,
      kalshiLiveHours: 0.5,
      nowSecond,
      paused: true,
    });
  });
  afterAll(() => exchange.close());

  const CREATE: Record<string, (requestsPerSecond?: number) => VenueAdapter> = {
    polymarket: () =>
      createPolymarketAdapter({
        urls: { gamma: exchange.gammaUrl, clob: exchange.clobUrl, data: exchange.dataUrl },
        trades: { pageSize: 1_000, initialLookbackSeconds: 60 },
        http,
      }),
    kalshi: (requestsPerSecond = http.requestsPerSecond) =>
      createKalshiAdapter({
        url: exchange.kalshiUrl,
        trades: { pageSize: 40, initialLookbackSeconds: 60 },
        http: { ...http, requestsPerSecond },
      }),
    manifold: () =>
      createManifoldAdapter({ url: exchange.manifoldUrl, trades: { pageSize: 40, initialLookbackMs: 60_000 }, http }),
    limitless: () =>
      createLimitlessAdapter({ url: exchange.limitlessUrl, trades: { pageSize: 40, initialLookbackMs: 60_000 }, http }),
  };

  /** The trades of all stored markets that the venue serves, read without the job. */
  async function ledgerOf(adapter: VenueAdapter, fromMs: number): Promise<string[]> {
    const ids = new Set<string>();
    const markets = await test.db.query<{ marketId: string; outcomeIds: string[] }>(MARKETS, [adapter.venue]);
    for (const market of markets) {
      let position: unknown = null;
      for (let more = true; more; ) {
        const call = { signal: new AbortController().signal, now: () => nowMs };
        const page = await adapter.pollHistory({ ...market, fromMs, toMs: nowMs }, position, call);
        for (const { outcomeId, tradeId } of page.records) ids.add(`${outcomeId}/${tradeId}`);
        ({ position, more } = page);
      }
    }
    return [...ids].sort();
  }

  /** Stores the catalog and the start of the tape. */
  async function poll(adapter: VenueAdapter): Promise<void> {
    const { venue } = adapter;
    const config = testConfig(test.url, { VENUES: venue });
    const context = jobContext({ db: test.db, config, adapter, now: () => nowMs });
    for (const job of [pollMarkets, pollTrades]) expect(await job.run({ venue }, context)).not.toHaveProperty('failed');
    await test.db.query(SET_LIVE, [venue, nowMs]);
  }

  it.each(Object.keys(CREATE))('stores the trades of %s since the date exactly', async (venue) => {
    const adapter = (CREATE[venue] as () => VenueAdapter)();
    await poll(adapter);
    const sinceMs = nowMs - 45 * MINUTE_MS;
    const poller = await aPoller(test, adapter, () => nowMs);
    const { code, stdout, stderr } = await oddswire(callOf(venue, sinceMs, '--json'), { DATABASE_URL: test.url });
    await poller.close();
    expect([code, JSON.parse(stdout)], stderr).toMatchObject([0, { venue, not_served: 0, failed: 0 }]);
    const stored = await test.db.query<{ id: string }>(TRADES, [venue, nowMs]);
    const expected = await ledgerOf(adapter, sinceMs);
    expect(expected.length).toBeGreaterThan(10);
    const ids = new Set(stored.map(({ id }) => id));
    expect([ids.size, expected.filter((id) => !ids.has(id))]).toEqual([stored.length, []]);
    await adapter.close();
  });

  it('stays within the share of the rate that history has', async () => {
    // A quarter of 40 requests per second.
    const adapter = (CREATE['kalshi'] as (rate: number) => VenueAdapter)(40);
    const fast = (CREATE['kalshi'] as () => VenueAdapter)();
    await poll(fast);
    await fast.close();
    const markets = await test.db.query<{ marketId: string }>(MARKETS, ['kalshi']);
    const some = markets.slice(0, 4).map(({ marketId }) => marketId);
    const beganMs = Date.now();
    const poller = await aPoller(test, adapter, () => nowMs);
    const runs = [1, 2].map((hours) =>
      oddswire(callOf('kalshi', nowMs - (50 + hours) * MINUTE_MS, '--markets', some.join(',')), {
        DATABASE_URL: test.url,
      }),
    );
    expect((await Promise.all(runs)).map(({ code }) => code)).toEqual([0, 0]);
    await poller.close();
    const history = exchange
      .requests()
      .filter(({ path, startedAtMs }) => startedAtMs >= beganMs && path.endsWith('/trades'));
    const seconds = ((history.at(-1)?.startedAtMs ?? 0) - (history[0]?.startedAtMs ?? 0)) / 1_000;
    expect(history.length).toBeGreaterThanOrEqual(some.length);
    expect(history.length).toBeLessThanOrEqual(10 * (seconds + 1) + 1);
    await adapter.close();
  });

  it('states the hours that the venue does not serve as unknown in the coverage', async () => {
    const adapter = (CREATE['kalshi'] as () => VenueAdapter)();
    await poll(adapter);
    const markets = await test.db.query<{ pk: bigint; marketId: string; openedAt: Date }>(MARKETS, ['kalshi']);
    const ids = markets.map(({ marketId }) => marketId);
    const path = '/trade-api/v2/historical/trades';
    exchange.addFault({ host: 'kalshi', path, kind: 'bad_member', members: { ids, status: 404 } });
    const poller = await aPoller(test, adapter, () => nowMs);
    const sinceMs = nowMs - 6 * HOUR_MS;
    const { code, stdout } = await oddswire(callOf('kalshi', sinceMs, '--json'), { DATABASE_URL: test.url });
    await poller.close();
    await adapter.close();
    const { not_served, markets_not_served: short } = JSON.parse(stdout) as Summary;
    expect([code, short.length]).toEqual([0, not_served]);
    expect(not_served).toBeGreaterThan(5);
    for (const { market_id, stored_from, reason } of short) {
      expect(reason).toContain('the archive of the venue is not available');
      const market = markets.find(({ marketId }) => marketId === market_id);
      const pk = market?.pk ?? 0n;
      // Trades of a market are wanted from its opening on.
      const openedMs = market?.openedAt.getTime() ?? 0;
      const firstMs = Math.max(sinceMs, openedMs - (openedMs % HOUR_MS));
      const range = { kind: 'trades' as const, startMs: sinceMs, endMs: nowMs };
      const hours = await readMarketHours(test.db, pk, range, undefined, nowMs);
      const servedMs = Date.parse(stored_from);
      expect(hours.map(({ startMs }) => startMs)).toEqual(hoursOf(firstMs, servedMs));
      for (const hour of hours)
        expect(hour).toMatchObject({ class: 'unknown', reason: 'history_not_served', toMs: servedMs });
    }
    const again = await oddswire(callOf('kalshi', sinceMs), { DATABASE_URL: test.url });
    expect(again.stdout).toContain(`Markets that are not served back to this time: ${not_served}.`);
  });
});
