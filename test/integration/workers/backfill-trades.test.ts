import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { QueueBackend } from '../../../src/queues/port.ts';
import { createArrivals } from '../../../src/store/catalog/arrivals.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { VenueError } from '../../../src/venues/errors.ts';
import type { HistoryPage, HistoryRequest } from '../../../src/venues/port.ts';
import { reconcile } from '../../../workers/process/reconcile.ts';
import type { TestMarket } from '../../factories/stored-market.ts';
import { aTrade } from '../../factories/trades.ts';
import { type Script, scriptedAdapter } from '../../factories/venue-adapter.ts';
import { GUARD_MS } from '../../support/eventually.ts';
import { gate } from '../../support/gate.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import {
  type Backfill,
  BEGAN,
  backfillOf,
  historyOf,
  idsOf,
  LIVE,
  MINUTE_MS,
  NOW,
  tapeOf,
} from './backfill-harness.ts';
import { capturedLog, jobContext, testConfig, wakeRecorder } from './worker-harness.ts';

const LEASE = sql(
  'test_history_lease',
  `SELECT consecutive_failures, last_error, lease_token IS NOT NULL AS is_leased FROM poll_state
   WHERE venue = $1 AND kind = 'history'`,
);
const QUARANTINED = sql(
  'test_quarantined',
  'SELECT kind, reason, record_id FROM quarantine WHERE venue = $1 ORDER BY 3',
);
const LATER = sql('test_later', `UPDATE trade_history SET touched_at = touched_at - interval '10 min'`);

const test = useTestDatabase();
let on: Backfill;
let made = 0;
beforeEach(() => {
  made += 1;
  on = backfillOf(test, `v${made}`);
});

const adapterOf = (history: NonNullable<Script['history']>) => scriptedAdapter({ venue: on.venue, history });
const lease = async () => (await test.db.query(LEASE, [on.venue]))[0];

describe('a backfill', () => {
  it('stores the trades of each market back to its start, page after page, and wakes their candles', async () => {
    const markets = [await on.aRequest(), await on.aRequest()];
    const tapes = markets.map((market) => tapeOf(market, 5));
    const adapter = adapterOf(historyOf(tapes.flat(), 2));
    const producer = wakeRecorder();
    const { log, lines } = capturedLog();
    expect(await on.run(adapter, { producer, log })).toMatchObject({ records: 10, written: 10, rejected: 0 });
    expect(await on.storedIds(...markets)).toEqual(idsOf(tapes.flat()));
    for (const market of markets) {
      expect(await on.walkOf(market)).toMatchObject({
        status: 'done',
        reachedMs: BEGAN,
        pages: 3,
        trades: 5,
        lastError: null,
      });
    }
    expect(new Set(producer.woken)).toEqual(new Set(['fold-candles']));
    const logged = lines
      .filter((line) => line.includes('trade history stored'))
      .map((line) => JSON.parse(line) as object);
    // The first market yields to the second one after its first page.
    expect(logged).toEqual(
      [...markets]
        .reverse()
        .map(({ marketId }) =>
          expect.objectContaining({ venue: on.venue, marketId, trades: 5, pages: 3, seconds: expect.any(Number) }),
        ),
    );
    expect(await lease()).toMatchObject({ isLeased: false, lastError: null });
    expect(await on.run(adapter)).toMatchObject({ records: 0 });
  });

  it('gives a second market its first page before the first market ends, and a new market its page at once', async () => {
    const [long, short] = [await on.aRequest(), await on.aRequest()];
    const tapes = [tapeOf(long, 15), tapeOf(short, 1)];
    const served: string[] = [];
    let late: TestMarket | undefined;
    const serve = historyOf(tapes.flat(), 1);
    const adapter = adapterOf(async (request, position, call) => {
      served.push(request.marketId);
      if (served.length === 5) late = await on.aRequest();
      return serve(request, position, call);
    });
    await on.run(adapter);
    expect(served.slice(0, 3)).toEqual([long.marketId, short.marketId, long.marketId]);
    expect(served[5]).toBe(late?.marketId);
    expect(served.filter((marketId) => marketId === long.marketId)).toHaveLength(15);
  });

  it('takes turns of 20 pages', async () => {
    const markets = [await on.aRequest(), await on.aRequest()];
    const served: string[] = [];
    const serve = historyOf(
      markets.flatMap((market) => tapeOf(market, 22)),
      1,
    );
    const adapter = adapterOf((request, position, call) => {
      served.push(request.marketId);
      return serve(request, position, call);
    });
    // The clock stands still, so the pages end a turn.
    const clock = vi.spyOn(performance, 'now').mockReturnValue(0);
    await on.run(adapter);
    clock.mockRestore();
    const turns = served.reduce<[string, number][]>((list, marketId) => {
      const last = list.at(-1);
      if (last?.[0] === marketId) last[1] += 1;
      else list.push([marketId, 1]);
      return list;
    }, []);
    const [a, b] = markets.map(({ marketId }) => marketId);
    expect(turns).toEqual([
      [a, 1],
      [b, 20],
      [a, 20],
      [b, 2],
      [a, 1],
    ]);
  });

  it('wakes itself when its time is up and work is left', async () => {
    const market = await on.aRequest();
    const serve = historyOf(tapeOf(market, 3), 1);
    const deadline = new AbortController();
    const adapter = adapterOf(async (request, position, call) => {
      deadline.abort();
      return serve(request, position, call);
    });
    const producer = wakeRecorder();
    await on.run(adapter, { producer, deadline: deadline.signal });
    expect(await on.walkOf(market)).toMatchObject({ status: 'walking', pages: 1 });
    expect(producer.woken).toContain('backfill-trades');
    await on.run(adapterOf(serve), { producer: wakeRecorder() });
    expect(await on.walkOf(market)).toMatchObject({ status: 'done', pages: 3 });
  });

  it('announces the first page to waiting requests', async () => {
    const arrivals = createArrivals(test.url, capturedLog().log);
    try {
      await arrivals.ready();
      const market = await on.aRequest();
      const heard = arrivals.waitFor(`history:${market.pk}`, GUARD_MS);
      await on.run(adapterOf(historyOf(tapeOf(market, 3), 1)));
      expect(await heard).toBe(true);
    } finally {
      await arrivals.close();
    }
  });

  it('requests nothing older than the retention floor, and quarantines older rows', async () => {
    const dayMs = 86_400_000;
    const market = await on.aRequest({ fromMs: NOW - 50 * dayMs });
    const asked: HistoryRequest[] = [];
    const old = aTrade({ tradeId: 'old', outcomeId: market.outcomes[0]?.outcomeId ?? '', tsMs: NOW - 31 * dayMs });
    const adapter = adapterOf(async (request) => {
      asked.push(request);
      return {
        records: [old, ...tapeOf(market, 1)],
        rejected: [],
        position: null,
        more: false,
        reachedMs: request.fromMs,
      };
    });
    const config = testConfig(test.url, { RETENTION_TRADES_DAYS: '30' });
    expect(await on.run(adapter, { config })).toMatchObject({ written: 1 });
    expect(asked).toMatchObject([{ fromMs: NOW - 30 * dayMs, toMs: LIVE }]);
    expect(await on.walkOf(market)).toMatchObject({ status: 'done', trades: 1, lastError: null });
    expect(await test.db.query(QUARANTINED, [on.venue])).toEqual([
      { kind: 'trades', reason: 'before_retention_floor', recordId: 'old' },
    ]);
  });

  it('records the range that the venue did not return', async () => {
    const market = await on.aRequest();
    const reachedMs = LIVE - 10 * MINUTE_MS;
    const page: HistoryPage = {
      records: [],
      rejected: [],
      position: null,
      more: false,
      reachedMs,
      truncated: 'too deep',
    };
    await on.run(adapterOf(async () => page));
    expect(await on.walkOf(market)).toMatchObject({ status: 'done', reachedMs, lastError: 'too deep' });
  });

  it('quarantines unstorable records, stores their neighbours and continues', async () => {
    const market = await on.aRequest();
    const tape = tapeOf(market, 5);
    const bad = aTrade({ ...tape[0], tradeId: randomBytes(6_000).toString('hex'), tsMs: LIVE - 1 });
    const rejected = [
      { kind: 'trades' as const, recordId: 'r', reason: 'price_out_of_range', detail: '7', sample: '{}' },
    ];
    const serve = historyOf(tape, 10);
    const adapter = adapterOf(async (request, position, call) => {
      const page = await serve(request, position, call);
      return { ...page, records: [bad, ...page.records], rejected };
    });
    const { log, lines } = capturedLog();
    expect(await on.run(adapter, { log })).toMatchObject({ written: 5, rejected: 2 });
    expect(lines.filter((line) => line.includes('trade history stored'))).toHaveLength(1);
    expect(await on.storedIds(market)).toEqual(idsOf(tape));
    expect(await on.walkOf(market)).toMatchObject({ status: 'done', pages: 1, trades: 5 });
    const kept = await test.db.query<{ reason: string }>(QUARANTINED, [on.venue]);
    expect(kept.map(({ reason }) => reason).sort()).toEqual(['price_out_of_range', 'refused_by_store']);
  });
});

describe('a backfill of a rejected market', () => {
  const refused = () =>
    new VenueError(on.venue, 'http_status', 'the venue answered 404', { retryable: false, statusCode: 404 });

  it.each([
    ['an error of the venue', () => Promise.reject(refused())],
    ['a fault of ours', () => Promise.reject(new TypeError('the venue answered 404'))],
  ])('continues with other markets after %s, and gives up after five tries', async (_name, refuse) => {
    const [bad, good] = [await on.aRequest(), await on.aRequest()];
    const tape = tapeOf(good, 3);
    const serve = historyOf(tape, 1);
    const adapter = adapterOf((request, position, call) =>
      request.marketId === bad.marketId ? refuse() : serve(request, position, call),
    );
    const { log, lines } = capturedLog();
    const producer = wakeRecorder();
    await on.run(adapter, { log, producer });
    expect(await on.storedIds(good)).toEqual(idsOf(tape));
    expect(await on.walkOf(bad)).toMatchObject({ status: 'queued', failures: 1, isTouched: true });
    expect(producer.woken).not.toContain('backfill-trades');
    for (let failures = 2; failures <= 5; failures++) {
      await test.db.query(LATER);
      await on.run(adapter, { log });
    }
    expect(await on.walkOf(bad)).toMatchObject({ status: 'failed', failures: 5, lastError: 'the venue answered 404' });
    expect(lines.filter((line) => line.includes('given up'))).toHaveLength(1);
    expect(await lease()).toMatchObject({ consecutiveFailures: 0, lastError: null });
  });

  it('retries when the walk ends too early, and resets the failures after a page that reaches further', async () => {
    const market = await on.aRequest();
    let reachedMs = LIVE - MINUTE_MS;
    const adapter = adapterOf(async () => ({ records: [], rejected: [], position: null, more: false, reachedMs }));
    await on.run(adapter);
    expect(await on.walkOf(market)).toMatchObject({ status: 'walking', pages: 1, reachedMs, failures: 1 });
    expect((await on.walkOf(market))?.lastError).toContain('nothing before 2026');
    reachedMs = BEGAN;
    await test.db.query(LATER);
    await on.run(adapter);
    expect(await on.walkOf(market)).toMatchObject({ status: 'done', failures: 0, lastError: null });
  });
});

describe('a backfill of a market that the venue never answers for', () => {
  const unanswered = () =>
    new VenueError(on.venue, 'http_status', 'the venue answered 500', { retryable: true, statusCode: 500 });

  it('stores the other markets in the same run, and then fails with the reason', async () => {
    const [bad, good, late] = [await on.aRequest(), await on.aRequest(), await on.aRequest()];
    const tape = [...tapeOf(good, 3), ...tapeOf(late, 3)];
    const serve = historyOf(tape, 1);
    const asked: string[] = [];
    const adapter = adapterOf((request, position, call) => {
      asked.push(request.marketId);
      return request.marketId === bad.marketId ? Promise.reject(unanswered()) : serve(request, position, call);
    });
    const producer = wakeRecorder();
    expect(await on.run(adapter, { producer })).toEqual({ failed: 'the venue answered 500' });
    expect(await on.storedIds(good, late)).toEqual(idsOf(tape));
    expect(asked.filter((marketId) => marketId === bad.marketId)).toHaveLength(1);
    expect(producer.woken).not.toContain('backfill-trades');
    expect(await on.walkOf(bad)).toMatchObject({ status: 'queued', failures: 0, isTouched: true });
  });

  it('stops after three markets without an answer, because the host is the cause', async () => {
    for (let at = 0; at < 5; at += 1) await on.aRequest();
    const asked = new Set<string>();
    const adapter = adapterOf(({ marketId }) => {
      asked.add(marketId);
      return Promise.reject(unanswered());
    });
    expect(await on.run(adapter)).toEqual({ failed: 'the venue answered 500' });
    expect(asked.size).toBe(3);
  });
});

describe('a backfill of a venue that is down', () => {
  it('counts a failure of the lease and of no market, and the next run starts with another market', async () => {
    const [first, second] = [await on.aRequest(), await on.aRequest()];
    const asked: string[] = [];
    const adapter = adapterOf(({ marketId }) => {
      asked.push(marketId);
      return Promise.reject(new VenueError(on.venue, 'timeout', 'too slow', { retryable: true }));
    });
    const producer = wakeRecorder();
    expect(await on.run(adapter, { producer })).toEqual({ failed: 'too slow' });
    expect(await on.run(adapter, { producer })).toEqual({ failed: 'too slow' });
    expect(asked).toEqual([first.marketId, second.marketId]);
    expect(producer.woken).toEqual([]);
    expect(await on.walkOf(first)).toMatchObject({ status: 'queued', failures: 0, pages: 0 });
    expect(await lease()).toEqual({ consecutiveFailures: 2, lastError: 'too slow', isLeased: false });
  });
});

describe('two backfills of one venue', () => {
  it('walk each page once when they run at the same time', async () => {
    const market = await on.aRequest();
    const tape = tapeOf(market, 4);
    const serve = historyOf(tape, 2);
    const started = gate();
    const mayGoOn = gate();
    const adapter = adapterOf(async (request, position, call) => {
      started.open();
      await mayGoOn.opened;
      return serve(request, position, call);
    });
    const first = on.run(adapter);
    await started.opened;
    expect(await on.run(adapter)).toEqual({ skipped: 'already running' });
    mayGoOn.open();
    expect(await first).toMatchObject({ written: 4 });
    expect(await on.walkOf(market)).toMatchObject({ pages: 2, trades: 4 });
  });

  it('write each trade once when one freezes and the other takes over', async () => {
    const market = await on.aRequest();
    const tape = tapeOf(market, 4);
    const serve = historyOf(tape, 2);
    const started = gate();
    const mayGoOn = gate();
    const frozen = on.run(
      adapterOf(async (request, position, call) => {
        started.open();
        await mayGoOn.opened;
        return { ...(await serve(request, position, call)), records: [aTrade({ tradeId: 'frozen', tsMs: LIVE - 1 })] };
      }),
    );
    await started.opened;
    await on.endLease();
    expect(await on.run(adapterOf(serve))).toMatchObject({ written: 4 });
    mayGoOn.open();
    expect(await frozen).toEqual({ failed: expect.stringContaining('taken over') });
    expect(await on.storedIds(market)).toEqual(idsOf(tape));
    expect(await on.walkOf(market)).toMatchObject({ status: 'done', pages: 2, trades: 4 });
  });
});

describe('the reconcile timer of the poller', () => {
  const backend = { restore: async () => false } as unknown as QueueBackend;

  it('wakes venues with due walks, and measures all walks', async () => {
    const config = testConfig(test.url);
    // An aggregator wakes none. The schedules of the poller need queues, so only that step fails here.
    const round = async () => {
      const producer = wakeRecorder();
      const deps = jobContext({ db: test.db, config, producer });
      await reconcile('poller', { ...deps, backend }).catch((error: Error) =>
        expect(error.message).toContain('no queues'),
      );
      const gauge = (await deps.metrics.historyBackfills.get()).values;
      return { woken: producer.woken, gauge: gauge.map(({ labels, value }) => [labels.venue, labels.status, value]) };
    };
    on = backfillOf(test, 'polymarket');
    expect(await round()).toEqual({ woken: [], gauge: [] });
    await on.aRequest();
    await on.aRequest();
    expect(await round()).toEqual({ woken: ['backfill-trades'], gauge: [['polymarket', 'queued', 2]] });
    await on.run(adapterOf(historyOf([], 1)));
    expect(await round()).toEqual({ woken: [], gauge: [] });
  });
});
