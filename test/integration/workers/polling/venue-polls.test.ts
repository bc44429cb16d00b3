import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { acquirePollLease, advancePoll, POLL_LEASES, requestPoll } from '../../../../src/store/catalog/poll-state.ts';
import { newLeaseToken } from '../../../../src/store/db/leases.ts';
import { type Statement, sql } from '../../../../src/store/db/tx.ts';
import { pollTrades } from '../../../../workers/jobs/poll-trades.ts';
import { PollLeases } from '../../../../workers/polling/poll-leases.ts';
import { type VenuePoll, VenuePolls } from '../../../../workers/polling/venue-polls.ts';
import { aTrade } from '../../../factories/trades.ts';
import { lastPage, type ScriptedAdapter, scriptedAdapter } from '../../../factories/venue-adapter.ts';
import { gate } from '../../../support/gate.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { capturedLog, jobContext, LosableDatabase, testConfig, until } from '../worker-harness.ts';

const STATE = sql(
  'test_kept_state',
  `SELECT kind, position, lease_token IS NOT NULL AS is_leased, last_success_at, last_attempt_at, caught_up_at, first_success_at,
     consecutive_failures AS failures, last_error, requested_at IS NOT NULL AS is_requested
   FROM poll_state WHERE venue = $1 AND kind = $2`,
);
const TRADES = sql('test_kept_trades', 'SELECT trade_id FROM trade ORDER BY trade_id');
const CLEAR = sql('test_clear_kept', 'TRUNCATE trade, mark, poll_state');
const FAILED = sql(
  'test_failed_poll',
  `INSERT INTO poll_state (venue, kind, consecutive_failures, last_error) VALUES ($1, 'trades', 3, 'HTTP 500')`,
);
const END_LEASES = sql('test_end_kept', `UPDATE poll_state SET lease_until = now() - interval '1 ms' WHERE venue = $1`);
const BEFORE = sql(
  'test_before',
  `UPDATE poll_state SET last_attempt_at = now() - $3 * interval '1 s' WHERE venue = $1 AND kind = $2`,
);

const NOW = Date.UTC(2026, 5, 15, 12);

const test = useTestDatabase();
const venue = 'kept';
const closers: (() => Promise<unknown>)[] = [];
beforeEach(() => test.db.query(CLEAR));
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

interface State {
  position: string | null;
  isLeased: boolean;
  lastSuccessAt: Date | null;
  lastAttemptAt: Date | null;
  caughtUpAt: Date | null;
  firstSuccessAt: Date | null;
  failures: number;
  lastError: string | null;
  isRequested: boolean;
}
async function state(kind = 'trades'): Promise<State> {
  const [row] = await test.db.query<State>(STATE, [venue, kind]);
  if (!row) throw new Error(`no ${kind} poll`);
  return row;
}
const tradeIds = async () => (await test.db.query<{ tradeId: string }>(TRADES)).map(({ tradeId }) => tradeId);

class RecordingDatabase extends LosableDatabase {
  readonly statements: string[] = [];
  override query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    this.statements.push(statement.name);
    return super.query<Row>(statement, values);
  }
}

/** One process with its leases. `presence`: its key. */
function aProcess(adapter: ScriptedAdapter, presence = 1) {
  const db = new RecordingDatabase(test.db.dataSource);
  const context = jobContext({
    ...{ db, config: testConfig(test.url), adapter, now: () => NOW },
    presence: { key: presence, register: async () => undefined, query: async () => [] },
  });
  const { pollLeases } = context;
  closers.push(() => pollLeases.close());
  return { db, context, leases: pollLeases, poll: () => pollTrades.run({ venue }, context) };
}

const trade = (n: number) => aTrade({ tradeId: `t${n}`, tsMs: NOW - 60_000 + n });

describe('a process that keeps the lease of a poll', () => {
  it('writes nothing for a tick without a new trade, and all of it when it renews the lease', async () => {
    let page = 0;
    const adapter = scriptedAdapter({
      venue,
      trades: async () => {
        page += 1;
        return { ...lastPage([trade(1)], { page }), caughtUpMs: NOW - 10_000 + page * 1_000 };
      },
    });
    const { db, leases, poll } = aProcess(adapter);
    await leases.keep(venue, ['trades']);
    await poll();
    const first = await state();
    expect(first).toMatchObject({ position: '{"page":1}', isLeased: true, caughtUpAt: new Date(NOW - 9_000) });
    db.statements.length = 0;
    for (let tick = 0; tick < 3; tick += 1) await poll();
    expect(db.statements).toEqual([]);
    expect(await state()).toEqual(first);
    await leases.renew();
    expect(db.statements).toEqual(['store_poll_news']);
    const renewed = await state();
    expect(renewed).toMatchObject({ position: '{"page":4}', isLeased: true, caughtUpAt: new Date(NOW - 6_000) });
    expect(Number(renewed.lastSuccessAt)).toBeGreaterThan(Number(first.lastSuccessAt));
    expect(Number(renewed.lastAttemptAt)).toBeGreaterThan(Number(first.lastAttemptAt));
    expect(renewed.firstSuccessAt).toEqual(first.firstSuccessAt);
    db.statements.length = 0;
    await leases.renew();
    expect(await state()).toMatchObject({ position: '{"page":4}', lastSuccessAt: renewed.lastSuccessAt });
  });

  it('stores a large position without news once a minute, with the times of each renewal, and when it ends the lease', async () => {
    let page = 0;
    const markets = 'm'.repeat(9_000);
    const adapter = scriptedAdapter({
      venue,
      trades: async () => {
        page += 1;
        return { ...lastPage([], { page, markets }), caughtUpMs: NOW + page * 1_000 };
      },
    });
    const { leases, poll } = aProcess(adapter);
    const stored = async () => JSON.parse((await state()).position ?? '{}').page;
    await leases.keep(venue, ['trades']);
    await poll();
    expect(await stored()).toBe(1);
    await poll();
    await leases.renew();
    expect(await stored()).toBe(1);
    expect((await state()).caughtUpAt).toEqual(new Date(NOW + 2_000));
    const nowMs = performance.now();
    // A faked clock begins at zero.
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      vi.advanceTimersByTime(nowMs + 60_000);
      await leases.renew();
      expect(await stored()).toBe(2);
    } finally {
      vi.useRealTimers();
    }
    await poll();
    await leases.release(venue);
    expect(await stored()).toBe(3);

    await leases.keep(venue, ['trades']);
    await poll();
    const held = await leases.take(venue, 'trades');
    if (!held) throw new Error('no lease');
    await leases.fail(held, new Error('the venue is away'));
    expect(await stored()).toBe(4);
  });

  it('stores the first success after failures at once', async () => {
    await test.db.query(FAILED, [venue]);
    const { leases, poll } = aProcess(scriptedAdapter({ venue, trades: async () => lastPage([], { page: 1 }) }));
    await leases.keep(venue, ['trades']);
    await poll();
    expect(await state()).toMatchObject({ failures: 0, lastError: null, position: '{"page":1}' });
  });

  it('loses with its death only what another process reads again', async () => {
    const pages = [[trade(1)], [], [], [trade(2)]];
    const adapter = () =>
      scriptedAdapter({
        venue,
        trades: async (position) => {
          const { page } = (position ?? { page: 0 }) as { page: number };
          return lastPage(pages[page] ?? [], { page: Math.min(page + 1, pages.length) });
        },
      });
    const dying = aProcess(adapter(), 1);
    await dying.leases.keep(venue, ['trades']);
    for (let tick = 0; tick < 3; tick += 1) await dying.poll();
    expect(await state()).toMatchObject({ position: '{"page":1}' });
    expect(await POLL_LEASES.endOf(test.db, 1)).toBe(1);
    const next = aProcess(adapter(), 2);
    await next.leases.keep(venue, ['trades']);
    for (let tick = 0; tick < 3; tick += 1) await next.poll();
    expect(await tradeIds()).toEqual(['t1', 't2']);
    // The process was only suspended: it finds its lease lost.
    await dying.leases.renew();
    expect(await dying.poll()).toEqual({ skipped: 'already running' });
    expect(await state()).toMatchObject({ position: '{"page":4}' });
  });

  it('writes nothing more in a poll whose lease it loses meanwhile', async () => {
    const fetched = gate();
    const mayGoOn = gate();
    const slow = aProcess(
      scriptedAdapter({
        venue,
        trades: async () => {
          fetched.open();
          await mayGoOn.opened;
          return lastPage([], { page: 'late' });
        },
      }),
    );
    await slow.leases.keep(venue, ['trades']);
    const report = slow.poll();
    await fetched.opened;
    await POLL_LEASES.endOf(test.db, 1);
    await slow.leases.renew();
    mayGoOn.open();
    expect(await report).toEqual({ failed: `the trades poll of ${venue} was taken over` });
    expect(await state()).toMatchObject({ position: null, isLeased: false });
  });

  it('keeps its lease over a time without the database', async () => {
    const { db, leases, poll } = aProcess(
      scriptedAdapter({ venue, trades: async () => lastPage([trade(1)], { page: 1 }) }),
    );
    await leases.keep(venue, ['trades']);
    db.loseBefore = () => true;
    await expect(poll()).rejects.toThrow('terminating connection');
    db.loseStatements = ['store_poll_news'];
    await leases.renew();
    db.loseBefore = () => false;
    db.loseStatements = [];
    expect(await poll()).toMatchObject({ written: 1 });
    expect(await state()).toMatchObject({ isLeased: true, failures: 0 });
  });

  it('polls once at a time while the end of its first poll is not stored', async () => {
    const { db, leases, poll } = aProcess(
      scriptedAdapter({ venue, trades: async () => lastPage([trade(1)], { page: 1 }) }),
    );
    await leases.keep(venue, ['trades']);
    const [asked, answered] = [gate(), gate()];
    const query = db.query.bind(db);
    db.query = async <Row>(statement: Statement, values?: readonly unknown[]) => {
      if (statement.name !== 'store_poll_news') return query<Row>(statement, values);
      db.query = query;
      asked.open();
      await answered.opened;
      throw Object.assign(new Error('no connection'), { code: '08006' });
    };
    const first = poll();
    await asked.opened;
    expect(await poll()).toEqual({ skipped: 'already running' });
    answered.open();
    await expect(first).rejects.toThrow('no connection');
    expect(await poll()).toMatchObject({ rejected: 0 });
    expect(await state()).toMatchObject({ isLeased: true, failures: 0 });
  });

  it('keeps its lease over a time without database and presence, also when it gets another key', async () => {
    const { context, db, leases, poll } = aProcess(
      scriptedAdapter({ venue, trades: async () => lastPage([trade(1)], { page: 1 }) }),
    );
    await leases.keep(venue, ['trades']);
    for (const key of [null, 7]) {
      Object.assign(context.presence, { key });
      db.loseStatements = ['store_poll_news'];
      await leases.renew();
      db.loseStatements = [];
      expect(await poll()).not.toMatchObject({ skipped: expect.anything() });
    }
    await leases.renew();
    expect(await state()).toMatchObject({ isLeased: false });
    await poll();
    expect(await POLL_LEASES.endOf(test.db, 7)).toBe(1);
  });

  it('frees the lease when its presence gets another key, and takes it under the new one', async () => {
    const { context, leases, poll } = aProcess(scriptedAdapter({ venue, trades: async () => lastPage() }), 1);
    await leases.keep(venue, ['trades']);
    await poll();
    Object.assign(context.presence, { key: 7 });
    await leases.renew();
    expect(await state()).toMatchObject({ isLeased: false });
    await poll();
    expect(await POLL_LEASES.endOf(test.db, 7)).toBe(1);
  });
});

describe('processes of two releases', () => {
  /** The poll of a former process: it holds the lease for one poll. */
  async function formerPoll(position: string): Promise<boolean> {
    const lease = await acquirePollLease(test.db, venue, 'trades', newLeaseToken(9));
    if (!lease) return false;
    await advancePoll(test.db, lease, position);
    await POLL_LEASES.release(test.db, lease, null);
    return true;
  }
  const adapter = () => scriptedAdapter({ venue, trades: async () => lastPage([], { page: 'ours' }) });

  it('never poll at once, and go on when the other one stops', async () => {
    expect(await formerPoll('theirs')).toBe(true);
    const { leases, poll } = aProcess(adapter());
    expect((await leases.keep(venue, ['trades'])).get('trades')).toBeLessThan(60_000);
    expect(await formerPoll('theirs')).toBe(false);
    await poll();
    expect(await formerPoll('theirs')).toBe(false);
    await leases.release(venue);
    expect(await state()).toMatchObject({ position: '{"page":"ours"}', isLeased: false });
    expect(await formerPoll('theirs again')).toBe(true);
  });

  it('leave a lease to the former process until its poll ends', async () => {
    const theirs = await acquirePollLease(test.db, venue, 'trades', newLeaseToken(9));
    if (!theirs) throw new Error('no lease');
    const { leases, poll } = aProcess(adapter());
    expect(await leases.keep(venue, ['trades'])).toEqual(new Map());
    expect(await poll()).toEqual({ skipped: 'already running' });
    await POLL_LEASES.release(test.db, theirs, null);
    expect([...(await leases.keep(venue, ['trades'])).keys()]).toEqual(['trades']);
  });
});

describe('VenuePolls', () => {
  const signal = () => new AbortController();
  /** Polls without leases, or with the lease of their kind. */
  function aPoll(job: VenuePoll['job'], run: () => Promise<unknown>, over: Partial<VenuePoll> = {}): VenuePoll {
    return { job, everyMs: 20, kind: undefined, run: async () => (await run()) === true, ...over };
  }
  function polls(presence = 1, stayMs?: number) {
    const db = new RecordingDatabase(test.db.dataSource);
    const leases = new PollLeases({ db, log: capturedLog().log, presence: { key: presence, query: async () => [] } });
    closers.push(() => leases.close());
    return { db, leases, polls: new VenuePolls(leases, stayMs === undefined ? {} : { stayMs }) };
  }

  it('repeats each poll, and goes on with the others while one is slow', async () => {
    const { polls: ours } = polls();
    const over = signal();
    const slow = gate();
    const counts = { trades: 0, markets: 0 };
    const staying = ours.stay(
      venue,
      [
        aPoll('poll-markets', () => {
          counts.markets += 1;
          return slow.opened;
        }),
        aPoll('poll-trades', async () => {
          counts.trades += 1;
          if (counts.trades === 5) over.abort();
        }),
      ],
      over.signal,
    );
    await until(
      async () => counts.trades,
      (trades) => trades === 5,
    );
    expect(counts.markets).toBe(1);
    slow.open();
    expect(await staying).toBe(6);
  });

  it('ends the present job when the next one of the venue begins, without a second run of a poll in progress', async () => {
    const { polls: ours, db } = polls();
    const over = signal();
    const slow = gate();
    let runs = 0;
    const poll = aPoll(
      'poll-trades',
      () => {
        runs += 1;
        return slow.opened;
      },
      { kind: 'trades' },
    );
    const first = ours.stay(venue, [poll], signal().signal);
    await until(
      async () => runs,
      (count) => count === 1,
    );
    db.statements.length = 0;
    const second = ours.stay(venue, [poll], over.signal);
    expect(await first).toBe(1);
    expect(db.statements).toEqual([]);
    expect(runs).toBe(1);
    over.abort();
    slow.open();
    await second;
    expect(runs).toBe(1);
    expect(db.statements).toEqual(['store_poll_news']);
  });

  it('frees the leases when no other job follows, and another process goes on at the interval', async () => {
    const ours = polls(1, 30);
    const runs: string[] = [];
    const by = (name: string) =>
      aPoll('poll-markets', async () => void runs.push(name), { kind: 'markets', everyMs: 60_000 });
    await ours.polls.stay(venue, [by('ours')], signal().signal);
    expect(runs).toEqual(['ours']);
    expect(await state('markets')).toMatchObject({ isLeased: false });
    // The poll began five seconds ago by the state.
    await test.db.query(BEFORE, [venue, 'markets', 5]);
    const theirs = polls(2, 60);
    await theirs.polls.stay(venue, [by('theirs')], signal().signal);
    expect(runs).toEqual(['ours']);
    await test.db.query(BEFORE, [venue, 'markets', 61]);
    await polls(3, 60).polls.stay(venue, [by('later')], signal().signal);
    expect(runs).toEqual(['ours', 'later']);
  });

  it('runs a poll at once that follows one with news, and not one that follows a poll without', async () => {
    const { polls: ours } = polls();
    const over = signal();
    const runs: string[] = [];
    const long = { everyMs: 60_000 };
    const staying = ours.stay(
      venue,
      [
        aPoll('poll-prices', async () => void runs.push('prices'), { ...long, follows: 'poll-markets' }),
        aPoll('poll-books', async () => void runs.push('books'), { ...long, follows: 'poll-trades' }),
        aPoll('poll-markets', async () => runs.push('markets') > 0, long),
        aPoll('poll-trades', async () => void runs.push('trades'), long),
      ],
      over.signal,
    );
    await until(
      async () => runs,
      (all) => all.length >= 5,
    );
    over.abort();
    expect(await staying).toBe(5);
    expect(runs.slice(0, 4)).toEqual(['prices', 'books', 'markets', 'trades']);
    expect(runs[4]).toBe('prices');
  });

  it('goes on with its leases, and takes the others when the database answers again', async () => {
    const ours = polls(1);
    const poll = aPoll('poll-trades', async () => undefined, { kind: 'trades' });
    const first = signal();
    const staying = ours.polls.stay(
      venue,
      [poll, aPoll('poll-markets', async () => undefined, { kind: 'markets' })],
      first.signal,
    );
    await until(
      async () => ours.db.statements,
      (statements) => statements.includes('acquire_poll_leases'),
    );
    ours.db.loseStatements = ['acquire_poll_leases'];
    const over = signal();
    const taken = gate();
    const tries = () => ours.db.statements.filter((name) => name === 'acquire_poll_leases').length;
    const before = tries();
    const second = ours.polls.stay(
      venue,
      [poll, aPoll('poll-books', async () => taken.open(), { kind: 'books' })],
      over.signal,
    );
    await until(
      async () => tries(),
      (count) => count >= before + 2,
    );
    expect(await state()).toMatchObject({ isLeased: true });
    ours.db.loseStatements = [];
    await taken.opened;
    over.abort();
    await Promise.all([staying, second]);
    expect(await state()).toMatchObject({ isLeased: false });
    expect([...(await polls(2).leases.keep(venue, ['trades'])).keys()]).toEqual(['trades']);
  });

  it('repeats a poll that was in progress when one job ended and the next one began', async () => {
    const { polls: ours, leases } = polls();
    const [first, second] = [signal(), signal()];
    const [began, slow] = [gate(), gate()];
    let runs = 0;
    const poll = aPoll(
      'poll-trades',
      async () => {
        const held = await leases.take(venue, 'trades');
        if (!held) return;
        runs += 1;
        began.open();
        await slow.opened;
        await leases.end(held, { position: null, requests: 'sent' });
        if (runs === 3) second.abort();
      },
      { kind: 'trades' },
    );
    const ending = ours.stay(venue, [poll], first.signal);
    await began.opened;
    first.abort();
    // The first job has freed its leases, except that of the poll in progress.
    await new Promise((resolve) => setImmediate(resolve));
    const next = ours.stay(venue, [poll], second.signal);
    slow.open();
    await ending;
    expect(await next).toBeGreaterThanOrEqual(2);
    expect(runs).toBe(3);
  });

  it('takes a lease that another process frees meanwhile', async () => {
    const theirs = await acquirePollLease(test.db, venue, 'trades', newLeaseToken(9));
    if (!theirs) throw new Error('no lease');
    await test.db.query(BEFORE, [venue, 'trades', 60]);
    const { polls: ours, db } = polls();
    const over = signal();
    const began = gate();
    const poll = aPoll(
      'poll-trades',
      async () => {
        began.open();
        over.abort();
      },
      { kind: 'trades' },
    );
    const staying = ours.stay(venue, [poll], over.signal);
    await until(
      async () => db.statements,
      (statements) => statements.includes('acquire_poll_leases'),
    );
    await POLL_LEASES.release(test.db, theirs, null);
    await began.opened;
    expect(await staying).toBe(1);
  });

  it('runs a poll that another process requested, at the next renewal', async () => {
    const { polls: ours, leases } = polls();
    const over = signal();
    let runs = 0;
    const poll = aPoll(
      'poll-markets',
      async () => {
        runs += 1;
      },
      { kind: 'markets', everyMs: 60_000 },
    );
    const staying = ours.stay(venue, [poll], over.signal);
    await until(
      async () => runs,
      (count) => count === 1,
    );
    const asking = polls(2).leases;
    expect(await asking.take(venue, 'markets')).toBeNull();
    expect(await state('markets')).toMatchObject({ isRequested: true });
    await leases.renew();
    await until(
      async () => runs,
      (count) => count === 2,
    );
    over.abort();
    await staying;
  });

  it('forgets a request once a poll has begun after it', async () => {
    const { leases, poll } = aProcess(scriptedAdapter({ venue, trades: async () => lastPage() }));
    await leases.keep(venue, ['trades']);
    await poll();
    await requestPoll(test.db, venue, 'trades');
    await leases.renew();
    expect(await state()).toMatchObject({ isRequested: true });
    await poll();
    await leases.renew();
    expect(await state()).toMatchObject({ isRequested: false });
  });

  it('takes over at the end of a lease whose process died', async () => {
    const dead = polls(1).leases;
    await dead.keep(venue, ['trades']);
    await test.db.query(END_LEASES, [venue]);
    const { polls: ours } = polls(2);
    const over = signal();
    const poll = aPoll('poll-trades', async () => over.abort(), { kind: 'trades' });
    expect(await ours.stay(venue, [poll], over.signal)).toBe(1);
  });
});
