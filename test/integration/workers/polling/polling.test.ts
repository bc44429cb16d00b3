import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { TradeRecord } from '../../../../src/domain/markets/market.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { VenueError } from '../../../../src/venues/errors.ts';
import { pollTrades } from '../../../../workers/jobs/poll-trades.ts';
import { aTrade } from '../../../factories/trades.ts';
import { lastPage, pagesOf, type ScriptedAdapter, scriptedAdapter } from '../../../factories/venue-adapter.ts';
import { gate } from '../../../support/gate.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import {
  type ContextFields,
  capturedLog,
  jobContext,
  LosableDatabase,
  testConfig,
  wakeRecorder,
} from '../worker-harness.ts';

const STATE = sql(
  'test_state',
  `SELECT position, lease_token IS NOT NULL AS is_leased, last_success_at IS NOT NULL AS has_succeeded, last_error,
     consecutive_failures
   FROM poll_state WHERE venue = $1 AND kind = 'trades'`,
);
const TRADES = sql('test_trades', 'SELECT trade_id FROM trade ORDER BY trade_id');
const QUARANTINE = sql(
  'test_quarantined',
  'SELECT kind, reason, record_id, times::int FROM quarantine WHERE venue = $1 ORDER BY reason, record_id',
);
/** Longer than the lateness at which a missed deadline is the fault of the process. */
const LATE_MS = 1_000;
const END_LEASE = sql('test_end_lease', `UPDATE poll_state SET lease_until = now() - interval '1 ms' WHERE venue = $1`);
const FOLD_MARKS = sql('test_fold_marks', `SELECT count(*)::int AS marks FROM mark WHERE stage = 'fold-candles'`);

const NOW = Date.UTC(2026, 5, 15, 12);
const MINUTE_MS = 60_000;

const test = useTestDatabase();
let venue = '';
let made = 0;
beforeEach(async () => {
  made += 1;
  venue = `v${made}`;
  await test.db.query(sql('test_clear_trades', 'TRUNCATE trade, mark'));
});

/** Trade `n`, a minute after trade `n - 1`. */
const trade = (n: number, over: Partial<TradeRecord> = {}): TradeRecord =>
  aTrade({ tradeId: `t${n}`, tsMs: NOW - 60 * MINUTE_MS + n * MINUTE_MS, ...over });
const THREE_PAGES = [[trade(1), trade(2)], [trade(3)], [trade(4), trade(5)]];

function context(adapter: ScriptedAdapter, fields: Partial<ContextFields> = {}) {
  return jobContext({ db: test.db, config: testConfig(test.url), adapter, now: () => NOW, ...fields });
}
const poll = (adapter: ScriptedAdapter, fields: Partial<ContextFields> = {}) =>
  pollTrades.run({ venue }, context(adapter, fields));
const adapterOf = (trades: NonNullable<Parameters<typeof scriptedAdapter>[0]['trades']>) =>
  scriptedAdapter({ venue, trades });

/** Blocks the event loop, as a machine without a free processor does. */
function blockFor(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

const state = async () => (await test.db.query<Record<string, unknown>>(STATE, [venue]))[0];
const tradeIds = async () => (await test.db.query<{ tradeId: string }>(TRADES)).map((row) => row.tradeId);

describe('a record that Postgres refuses', () => {
  /** Longer than the limit of a btree, and random, so that compression does not shorten it. */
  const hugeId = randomBytes(6_000).toString('hex');

  it('is quarantined, its neighbours are stored and the position moves', async () => {
    const page = [trade(1), trade(2, { tradeId: hugeId }), trade(3), trade(4), trade(5)];
    const adapter = adapterOf(pagesOf([page, [trade(6)]]));
    expect(await poll(adapter)).toEqual({ pages: 2, records: 6, written: 5, rejected: 1 });
    expect(await tradeIds()).toEqual(['t1', 't3', 't4', 't5', 't6']);
    expect(await state()).toMatchObject({ position: '{"page":2}', lastError: null, consecutiveFailures: 0 });
    expect(await test.db.query(QUARANTINE, [venue])).toEqual([
      { kind: 'trades', reason: 'refused_by_store', recordId: hugeId.slice(0, 200), times: 1 },
    ]);
  });

  it('is quarantined when it is alone on its page', async () => {
    const adapter = adapterOf(pagesOf([[trade(1, { tradeId: hugeId })]]));
    expect(await poll(adapter)).toEqual({ pages: 1, records: 1, written: 0, rejected: 1 });
    expect(await state()).toMatchObject({ position: '{"page":1}', lastError: null });
  });
});

describe('a poll', () => {
  it('stores page after page, and keeps the position', async () => {
    const adapter = adapterOf(pagesOf(THREE_PAGES));
    const producer = wakeRecorder();
    expect(await poll(adapter, { producer })).toEqual({ pages: 3, records: 5, written: 5, rejected: 0 });
    expect(adapter.positions).toEqual([null, { page: 1 }, { page: 2 }]);
    expect(await tradeIds()).toEqual(['t1', 't2', 't3', 't4', 't5']);
    expect(await state()).toEqual({
      position: '{"page":3}',
      isLeased: false,
      hasSucceeded: true,
      lastError: null,
      consecutiveFailures: 0,
    });
    expect(new Set(producer.woken)).toEqual(new Set(['fold-candles', 'evaluate-alerts']));
    expect(await poll(adapter)).toMatchObject({ pages: 1, records: 0 });
    expect(adapter.positions.at(-1)).toEqual({ page: 3 });
  });

  it('stores and marks no stored record again, and wakes no stage for it', async () => {
    await poll(adapterOf(async () => lastPage([trade(1)])));
    const before = await test.db.query(FOLD_MARKS);
    const producer = wakeRecorder();
    const report = await poll(
      adapterOf(async () => lastPage([trade(1)])),
      { producer },
    );
    expect(report).toMatchObject({ records: 1, written: 0 });
    expect(await test.db.query(FOLD_MARKS)).toEqual(before);
    expect(producer.woken).toEqual([]);
  });

  it('does nothing when the venue is not enabled', async () => {
    expect(await pollTrades.run({ venue: 'nowhere' }, context(adapterOf(async () => lastPage())))).toEqual({
      skipped: 'venue not enabled',
    });
  });

  it('ends after 500 pages and continues there at the next tick', async () => {
    const adapter = adapterOf(pagesOf(Array.from({ length: 600 }, () => [])));
    expect(await poll(adapter)).toMatchObject({ pages: 500 });
    expect(await state()).toMatchObject({ position: '{"page":500}', hasSucceeded: true });
    expect(await poll(adapter)).toMatchObject({ pages: 100 });
  });

  it('quarantines rejected records with their reason, in the transaction of the page', async () => {
    const rejected = [
      { kind: 'trades' as const, recordId: 'bad', reason: 'price_out_of_range', detail: 'price: 7', sample: '{}' },
    ];
    const adapter = adapterOf(async () => ({ ...lastPage([trade(1)]), rejected }));
    const { db } = test;
    const used = context(adapter, { db });
    expect(await pollTrades.run({ venue }, used)).toMatchObject({ written: 1, rejected: 1 });
    expect(await test.db.query(QUARANTINE, [venue])).toEqual([
      { kind: 'trades', reason: 'price_out_of_range', recordId: 'bad', times: 1 },
    ]);
    const metrics = await used.metrics.registry.metrics();
    expect(metrics).toMatch(/ingest_rejected_total\{.*reason="price_out_of_range".*\} 1/);
    expect(metrics).toMatch(/ingest_rows_total\{.*kind="trades".*\} 1/);
  });

  it('quarantines trades of the future and from before the retention floor, and stores their neighbours', async () => {
    const dayMs = 86_400_000;
    const page = [
      trade(1, { tradeId: 'soon', tsMs: NOW + 5 * MINUTE_MS }),
      trade(2, { tradeId: 'too-soon', tsMs: NOW + 5 * MINUTE_MS + 1 }),
      trade(3, { tradeId: 'old', tsMs: NOW - 30 * dayMs }),
      trade(4, { tradeId: 'too-old', tsMs: NOW - 30 * dayMs - 1 }),
      trade(5, { tradeId: 'ancient', tsMs: 0 }),
    ];
    const config = testConfig(test.url, { RETENTION_TRADES_DAYS: '30' });
    expect(
      await poll(
        adapterOf(async () => lastPage(page)),
        { config },
      ),
    ).toMatchObject({ records: 2, written: 2, rejected: 3 });
    expect(await tradeIds()).toEqual(['old', 'soon']);
    expect(await test.db.query(QUARANTINE, [venue])).toMatchObject([
      { reason: 'before_retention_floor', recordId: 'ancient' },
      { reason: 'before_retention_floor', recordId: 'too-old' },
      { reason: 'timestamp_in_future', recordId: 'too-soon' },
    ]);
  });
});

describe('a poll that dies', () => {
  it('before the commit of a page reads the page again', async () => {
    const adapter = adapterOf(pagesOf(THREE_PAGES));
    const db = new LosableDatabase(test.db.dataSource);
    // The second page, with trade 3, is lost at its commit. Partitions are made in transactions too.
    let pages = 0;
    const lost = scriptedAdapter({
      venue,
      trades: async (position) => {
        pages += 1;
        db.loseAtCommit = () => pages === 2;
        return adapter.pollTrades(position, { signal: AbortSignal.abort(), now: () => NOW });
      },
    });
    await expect(poll(lost, { db })).rejects.toThrow('terminating connection');
    expect(await tradeIds()).toEqual(['t1', 't2']);
    expect(await state()).toMatchObject({ position: '{"page":1}', isLeased: true });
    expect(await poll(adapter)).toEqual({ skipped: 'already running' });
    await test.db.query(END_LEASE, [venue]);
    expect(await poll(adapter)).toMatchObject({ pages: 2, written: 3 });
    expect(await tradeIds()).toEqual(['t1', 't2', 't3', 't4', 't5']);
    expect(adapter.positions).toEqual([null, { page: 1 }, { page: 1 }, { page: 2 }]);
  });

  it('after the commit and before the release of its lease is continued after the page', async () => {
    const adapter = adapterOf(pagesOf(THREE_PAGES));
    const db = new LosableDatabase(test.db.dataSource);
    db.loseStatements = ['store_poll_news'];
    await expect(poll(adapter, { db })).rejects.toThrow('terminating connection');
    expect(await state()).toMatchObject({ position: '{"page":3}', isLeased: true });
    await test.db.query(END_LEASE, [venue]);
    expect(await poll(adapter)).toMatchObject({ pages: 1, records: 0 });
    expect(adapter.positions).toEqual([null, { page: 1 }, { page: 2 }, { page: 3 }]);
    expect(await tradeIds()).toHaveLength(5);
  });

  it('writes nothing and wakes no stage when its lease was taken over while it was frozen', async () => {
    const fetched = gate();
    const mayGoOn = gate();
    const frozen = adapterOf(async () => {
      fetched.open();
      await mayGoOn.opened;
      return lastPage([trade(9)], { page: 'frozen' });
    });
    const producer = wakeRecorder();
    const report = poll(frozen, { producer });
    await fetched.opened;
    await test.db.query(END_LEASE, [venue]);
    expect(await poll(adapterOf(pagesOf(THREE_PAGES)))).toMatchObject({ written: 5 });
    mayGoOn.open();
    expect(await report).toEqual({ failed: `the trades poll of ${venue} was taken over` });
    expect(producer.woken).toEqual([]);
    expect(await tradeIds()).toEqual(['t1', 't2', 't3', 't4', 't5']);
    expect(await state()).toMatchObject({ position: '{"page":3}', lastError: null, consecutiveFailures: 0 });
  });

  it('continues when its lease ended while it was frozen and nobody took it', async () => {
    const good = pagesOf(THREE_PAGES);
    const frozen = adapterOf(async (position) => {
      await test.db.query(END_LEASE, [venue]);
      return good(position);
    });
    expect(await poll(frozen)).toMatchObject({ pages: 3, written: 5 });
    expect(await state()).toMatchObject({ position: '{"page":3}', isLeased: false, lastError: null });
  });
});

describe('polls of one kind', () => {
  it('run one at a time', async () => {
    const started = gate();
    const mayGoOn = gate();
    const adapter = adapterOf(async () => {
      started.open();
      await mayGoOn.opened;
      return lastPage([trade(1)]);
    });
    const first = poll(adapter);
    await started.opened;
    const others = await Promise.all([poll(adapter), poll(adapter), poll(adapter)]);
    expect(others).toEqual(Array.from({ length: 3 }, () => ({ skipped: 'already running' })));
    mayGoOn.open();
    expect(await first).toMatchObject({ written: 1 });
    expect(adapter.positions).toEqual([null]);
  });
});

describe('a poll that fails', () => {
  const down = () =>
    new VenueError(venue, 'http_status', 'the venue answered 503', { retryable: true, statusCode: 503 });

  it('for its venue keeps the failure in its state without a failed job, and logs one line until it succeeds again', async () => {
    const { log, lines } = capturedLog();
    const adapter = adapterOf(() => Promise.reject(down()));
    for (let turn = 1; turn <= 5; turn++) {
      expect(await poll(adapter, { log })).toEqual({ failed: 'the venue answered 503' });
      expect(await state()).toMatchObject({
        isLeased: false,
        hasSucceeded: false,
        lastError: 'the venue answered 503',
        consecutiveFailures: turn,
      });
    }
    const warnings = () => lines.map((line) => JSON.parse(line)).filter(({ level }) => level === 'warn');
    expect(warnings()).toEqual([
      expect.objectContaining({ msg: 'poll failed', venue, code: 'http_status', reason: 'the venue answered 503' }),
    ]);
    expect(lines.join('')).not.toContain('"stack"');
    expect(await poll(adapterOf(pagesOf(THREE_PAGES)), { log })).toMatchObject({ written: 5 });
    expect(lines.find((line) => line.includes('poll works again'))).toContain('"failed":5');
    expect(await state()).toMatchObject({ hasSucceeded: true, lastError: null, consecutiveFailures: 0 });
    await poll(adapter, { log });
    expect(warnings()).toHaveLength(2);
  });

  it('because its process is late keeps the reason in its state, counts nothing, and logs one line until it succeeds', async () => {
    const { log, lines } = capturedLog();
    const late = () => new VenueError(venue, 'process_late', 'this process was late by 9000 ms', { retryable: true });
    const aborted = () => {
      blockFor(LATE_MS);
      return new VenueError(venue, 'aborted', 'the call was aborted', { retryable: true });
    };
    for (const [failure, reason] of [
      [late, /^this process was late by 9000 ms$/],
      [aborted, /^this process was late by \d+ ms: the call was aborted$/],
    ] as const) {
      const good = pagesOf(THREE_PAGES);
      const adapter = adapterOf((position) => (position === null ? good(position) : Promise.reject(failure())));
      await poll(adapter, { log });
      expect(await state()).toMatchObject({
        position: '{"page":1}',
        isLeased: false,
        lastError: expect.stringMatching(reason),
        consecutiveFailures: 0,
      });
    }
    const warnings = lines.map((line) => JSON.parse(line)).filter(({ level }) => level === 'warn');
    expect(warnings).toEqual([expect.objectContaining({ msg: 'poll failed', code: 'process_late', failures: 0 })]);
    expect(await poll(adapterOf(pagesOf(THREE_PAGES)), { log })).toMatchObject({ written: 3 });
    expect(await state()).toMatchObject({ lastError: null });
  });

  it('because its request budget did not answer keeps the reason in its state, and counts nothing', async () => {
    const message = 'the request budget did not answer';
    const unanswered = () => new VenueError(venue, 'budget_unavailable', message, { retryable: true });
    const adapter = adapterOf(() => Promise.reject(unanswered()));
    await poll(adapter);
    await poll(adapter);
    expect(await state()).toMatchObject({
      isLeased: false,
      lastError: expect.stringContaining(message),
      consecutiveFailures: 0,
    });
  });

  it('half-way keeps the stored pages, and continues after them', async () => {
    const good = pagesOf(THREE_PAGES);
    let isDown = true;
    const adapter = adapterOf((position) => {
      if (isDown && (position as { page?: number } | null)?.page === 2) return Promise.reject(down());
      return good(position);
    });
    expect(await poll(adapter)).toHaveProperty('failed');
    expect(await tradeIds()).toEqual(['t1', 't2', 't3']);
    expect(await state()).toMatchObject({ position: '{"page":2}', consecutiveFailures: 1 });
    isDown = false;
    expect(await poll(adapter)).toMatchObject({ pages: 1, written: 2 });
  });

  it('for a fault of ours fails the job, keeps the reason in its state and releases the lease', async () => {
    const adapter = adapterOf(() => Promise.reject(new TypeError('cannot read "x" of undefined')));
    await expect(poll(adapter)).rejects.toThrow(TypeError);
    expect(await state()).toMatchObject({ isLeased: false, lastError: expect.stringContaining('cannot read') });
  });

  it('for a dropped partition makes it again at the next poll', async () => {
    const { partitions } = context(adapterOf(async () => lastPage()));
    const adapter = adapterOf(async () => lastPage([trade(1)]));
    await poll(adapter, { partitions });
    await test.db.query(sql('test_drop_partition', 'DROP TABLE trade_202606'));
    await expect(poll(adapter, { partitions })).rejects.toThrow('no partition');
    expect(await poll(adapter, { partitions })).toMatchObject({ written: 1 });
  });
});

describe('a poll of a stopping process', () => {
  const stuck = (started: () => void) =>
    adapterOf((_position, { signal }) => {
      started();
      return new Promise((_resolve, reject) => {
        const abort = () => reject(new VenueError(venue, 'aborted', 'aborted', { retryable: true }));
        if (signal.aborted) abort();
        signal.addEventListener('abort', abort);
      });
    });

  it('aborts the fetch, releases the lease and counts no failure', async () => {
    const started = gate();
    const stopping = new AbortController();
    const report = poll(stuck(started.open), { stopping: stopping.signal });
    await started.opened;
    stopping.abort();
    await report;
    expect(await state()).toEqual({
      position: null,
      isLeased: false,
      hasSucceeded: false,
      lastError: null,
      consecutiveFailures: 0,
    });
  });

  it('fetches no further page', async () => {
    const stopping = new AbortController();
    const pages = pagesOf(THREE_PAGES);
    const adapter = adapterOf(async (position) => {
      stopping.abort();
      return pages(position);
    });
    await poll(adapter, { stopping: stopping.signal });
    expect(await tradeIds()).toEqual(['t1', 't2']);
    expect(await state()).toMatchObject({ position: '{"page":1}', isLeased: false });
  });

  it('counts as failed when its deadline passed before the stop', async () => {
    const started = gate();
    const deadline = new AbortController();
    const report = poll(stuck(started.open), { deadline: deadline.signal });
    await started.opened;
    deadline.abort();
    expect(await report).toEqual({ failed: 'aborted' });
    expect(await state()).toMatchObject({ isLeased: false, consecutiveFailures: 1 });
  });
});
