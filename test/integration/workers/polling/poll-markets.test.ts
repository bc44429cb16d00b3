import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { MarketRecord } from '../../../../src/domain/markets/market.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { VenueError } from '../../../../src/venues/errors.ts';
import type { Batch, MarketPage } from '../../../../src/venues/port.ts';
import { pollMarkets } from '../../../../workers/jobs/poll-markets.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { type ScriptedAdapter, scriptedAdapter } from '../../../factories/venue-adapter.ts';
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

const CATALOG = sql(
  'test_catalog',
  `SELECT m.venue_market_id AS id, m.status, m.gone_at IS NOT NULL AS gone, s.missing_since IS NOT NULL AS missing
   FROM market m JOIN market_stats s ON s.market_id = m.id WHERE m.venue = $1 ORDER BY 1`,
);
const VERSIONS = sql(
  'test_kept_versions',
  `SELECT count(*)::int AS versions FROM market_version v JOIN market m ON m.id = v.market_id WHERE m.venue = $1`,
);
const POSITION = sql('test_walk_position', 'SELECT position, last_error FROM poll_state WHERE venue = $1');
const END_LEASE = sql('test_end_lease', `UPDATE poll_state SET lease_until = now() - interval '1 ms' WHERE venue = $1`);
const QUARANTINE = sql('test_quarantined', 'SELECT reason, record_id FROM quarantine WHERE venue = $1');

const NOW = Date.now();
const HOUR_MS = 3_600_000;

const test = useTestDatabase();
let venue = '';
let made = 0;
beforeEach(() => {
  made += 1;
  venue = `v${made}`;
});

const market = (name: string, over: Partial<MarketRecord> = {}) =>
  aMarketRecord({ marketId: name, outcomes: [{ outcomeId: `${venue}:${name}`, label: 'Yes' }], ...over });

/** A sweep of these pages that starts at `startedAtMs`. After its end the walk waits for the next tick. */
function sweepOf(startedAtMs: number, ...pages: MarketRecord[][]) {
  return async (position: unknown): Promise<MarketPage> => {
    const page = (position as { page: number } | null)?.page ?? 0;
    const ended = page === pages.length - 1;
    return {
      records: pages[page] ?? [],
      rejected: [],
      position: { page: page + 1 },
      more: !ended,
      ...(page < pages.length && { sweep: { startedAtMs, ended } }),
    };
  };
}
type ById = (ids: readonly string[]) => Promise<Batch<MarketRecord>>;
const knows =
  (...records: MarketRecord[]): ById =>
  async (ids) => ({ records: records.filter((record) => ids.includes(record.marketId)), rejected: [] });

function adapterOf(markets: (position: unknown) => Promise<MarketPage>, marketsById: ById = knows()): ScriptedAdapter {
  return scriptedAdapter({ venue, markets, marketsById, maxMarketsPerFetch: 2 });
}
const context = (adapter: ScriptedAdapter, fields: Partial<ContextFields> = {}) =>
  jobContext({ db: test.db, config: testConfig(test.url), adapter, now: () => NOW, ...fields });
const poll = (adapter: ScriptedAdapter, fields: Partial<ContextFields> = {}) =>
  pollMarkets.run({ venue }, context(adapter, fields));
const catalog = async () => {
  const rows = await test.db.query<{ id: string; status: string; gone: boolean; missing: boolean }>(CATALOG, [venue]);
  return Object.fromEntries(
    rows.map((row) => [row.id, `${row.status}${row.gone ? ' gone' : ''}${row.missing ? ' missing' : ''}`]),
  );
};
const versions = async () => (await test.db.query<{ versions: number }>(VERSIONS, [venue]))[0]?.versions;
const state = async () => (await test.db.query<{ position: string; lastError: string | null }>(POSITION, [venue]))[0];

/** Stores these markets an hour ago, then runs a sweep that names only some of them. */
async function missAfter(names: string[], listed: MarketRecord[] = []): Promise<void> {
  const earlier = NOW - HOUR_MS;
  const first = adapterOf(
    sweepOf(
      earlier,
      names.map((name) => market(name)),
    ),
  );
  await poll(first, { now: () => earlier });
  await poll(adapterOf(async () => sweepOf(NOW, listed)(null)));
}
/** A walk with no more markets. */
const quiet = async (): Promise<MarketPage> => ({ records: [], rejected: [], position: { page: 1 }, more: false });

describe('the request for due results', () => {
  it('is made again by the next poll when it failed, and not when it succeeded', async () => {
    const db = new LosableDatabase(test.db.dataSource);
    const query = vi.spyOn(db, 'query');
    const asks = async () => {
      query.mockClear();
      await test.db.query(END_LEASE, [venue]);
      const polled = poll(adapterOf(quiet), { db });
      await (db.loseStatements.length > 0 ? expect(polled).rejects.toThrow('terminating connection') : polled);
      return query.mock.calls.filter(([{ name }]) => name === 'ask_for_results').length;
    };
    db.loseStatements = ['ask_after_former'];
    expect(await asks()).toBe(1);
    db.loseStatements = [];
    expect(await asks()).toBe(1);
    expect(await asks()).toBe(0);
  });
});

describe('a market that the sweep did not name', () => {
  it('is requested by its id, and is gone when the venue does not know it', async () => {
    await missAfter(['a', 'b', 'c', 'd'], [market('a')]);
    expect(await catalog()).toEqual({ a: 'open', b: 'open missing', c: 'open missing', d: 'open missing' });
    const producer = wakeRecorder();
    const { log, lines } = capturedLog();
    const closed = market('b', { status: 'closed' });
    const won = market('c', {
      status: 'resolved',
      outcomes: [{ outcomeId: `${venue}:c`, label: 'Yes', payout: decimal('1') }],
    });
    const adapter = adapterOf(quiet, knows(closed, won));
    const used = context(adapter, { producer, log });
    await pollMarkets.run({ venue }, used);
    expect(adapter.batches).toEqual([['b', 'c'], ['d']]);
    expect(await catalog()).toEqual({ a: 'open', b: 'closed', c: 'resolved', d: 'closed gone' });
    expect(await versions()).toBe(3);
    expect(producer.woken).toEqual(['evaluate-alerts']);
    const logged = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(logged.filter((line) => line['msg'] === 'missing markets verified')).toMatchObject([
      { venue, asked: 2, known: 2, written: 2, gone: 0 },
      { venue, asked: 1, known: 0, written: 0, gone: 1 },
    ]);
    const metrics = await used.metrics.registry.metrics();
    expect(metrics).toMatch(new RegExp(`catalog_markets_gone_total\\{.*venue="${venue}".*\\} 1`));
    expect(metrics).toMatch(/ingest_rows_total\{.*kind="markets".*\} 2/);
  });

  it('is requested before the walk continues, and the walk keeps its position', async () => {
    await missAfter(['a']);
    const order: string[] = [];
    const adapter = adapterOf(
      async (position) => {
        order.push(`page after ${JSON.stringify(position)}`);
        return quiet();
      },
      async (ids) => {
        order.push(`ask ${ids}`);
        return knows()(ids);
      },
    );
    await poll(adapter);
    expect(order).toEqual(['ask a', 'page after {"page":1}']);
    await poll(adapter);
    expect(order).toEqual(['ask a', 'page after {"page":1}', 'page after {"page":1}']);
  });

  it('is requested before the next page when the walk continues after the sweep', async () => {
    const earlier = NOW - HOUR_MS;
    await poll(adapterOf(sweepOf(earlier, [market('a')])), { now: () => earlier });
    const walk = async (position: unknown): Promise<MarketPage> =>
      (position as { page: number }).page === 1
        ? { ...(await quiet()), position: { page: 2 }, more: true, sweep: { startedAtMs: NOW, ended: true } }
        : { ...(await quiet()), position: { page: 3 } };
    const adapter = adapterOf(walk);
    expect(await poll(adapter)).toMatchObject({ pages: 2 });
    expect(adapter.batches).toEqual([['a']]);
    expect(await catalog()).toEqual({ a: 'closed gone' });
    expect(await state()).toMatchObject({ position: '{"page":3}' });
  });

  it('stays when it is still open at the venue, and is requested once per sweep', async () => {
    await missAfter(['a']);
    const adapter = adapterOf(quiet, knows(market('a')));
    await poll(adapter);
    await poll(adapter);
    expect(adapter.batches).toEqual([['a']]);
    expect(await catalog()).toEqual({ a: 'open' });
    expect(await versions()).toBe(0);
  });

  it('returns from gone when the venue lists it again', async () => {
    await missAfter(['a']);
    await poll(adapterOf(quiet));
    expect(await catalog()).toEqual({ a: 'closed gone' });
    await poll(adapterOf(async () => ({ ...(await quiet()), records: [market('a')] })));
    expect(await catalog()).toEqual({ a: 'open' });
  });
});

describe('a market is not gone', () => {
  it('when a page of the sweep lists it without a record, unchanged or rejected', async () => {
    await missAfter(['a', 'b', 'c'], [market('a')]);
    const startedAtMs = NOW + HOUR_MS;
    const page: MarketPage = {
      ...(await quiet()),
      records: [market('a')],
      sweep: { startedAtMs, ended: true, alsoListed: ['b', 'unheard of'] },
    };
    const adapter = adapterOf(
      async () => page,
      () => Promise.reject(new VenueError(venue, 'timeout', 'too slow', { retryable: true })),
    );
    await poll(adapter);
    expect(await catalog()).toEqual({ a: 'open', b: 'open', c: 'open missing' });
  });

  it('while the venue leaves it unread, and the others are looked up', async () => {
    await missAfter(['a', 'b', 'c']);
    const asked: string[][] = [];
    const look = async (ids: readonly string[]) => {
      asked.push([...ids]);
      const unread = ids.filter((id) => id === 'a');
      const records = ids.filter((id) => id === 'c').map((id) => market(id));
      return { records, rejected: [], ...(unread.length > 0 && { unread }) };
    };
    await poll(adapterOf(quiet, look));
    expect(asked.flat()).toEqual(['a', 'b', 'c']);
    expect(await catalog()).toEqual({ a: 'open missing', b: 'closed gone', c: 'open' });
  });

  it('when the venue fails, which is logged before the walk continues, and it is requested again', async () => {
    await missAfter(['a']);
    const { log, lines } = capturedLog();
    const down = () => Promise.reject(new VenueError(venue, 'timeout', 'too slow', { retryable: true }));
    const report = await poll(
      adapterOf(async () => ({ ...(await quiet()), records: [market('b')] }), down),
      { log },
    );
    expect(report).toMatchObject({ pages: 1, written: 1 });
    expect(lines.join()).toContain('missing markets not verified');
    expect(await catalog()).toEqual({ a: 'open missing', b: 'open' });
    expect((await state())?.lastError).toBeNull();
    await poll(adapterOf(quiet, knows(market('a'))));
    expect(await catalog()).toEqual({ a: 'open', b: 'open' });
  });

  it('when the venue knows it, but its record is not readable', async () => {
    await missAfter(['a', 'b']);
    const rejected = [{ kind: 'markets' as const, recordId: 'a', reason: 'missing_field', detail: '', sample: '{}' }];
    await poll(adapterOf(quiet, async () => ({ records: [], rejected })));
    expect(await catalog()).toEqual({ a: 'open', b: 'closed gone' });
    expect(await test.db.query(QUARANTINE, [venue])).toEqual([{ reason: 'missing_field', recordId: 'a' }]);
  });

  it.each([
    ['names other markets than the request', (): Batch<MarketRecord> => ({ records: [market('z')], rejected: [] })],
    [
      'has a record without an id',
      (): Batch<MarketRecord> => ({
        records: [],
        rejected: [{ kind: 'markets', reason: 'not_an_object', detail: '', sample: '7' }],
      }),
    ],
  ])('when the answer %s', async (_name, answer) => {
    await missAfter(['a']);
    const adapter = adapterOf(quiet, async () => answer());
    await poll(adapter);
    await poll(adapter);
    expect(adapter.batches).toHaveLength(1);
    expect((await catalog())['a']).toBe('open');
  });

  it('when Postgres rejects its record, while its neighbour is verified', async () => {
    await missAfter(['a', 'b']);
    const huge = randomBytes(6_000).toString('hex');
    const refused = market('a', { outcomes: [{ outcomeId: huge, label: 'Yes' }] });
    await poll(adapterOf(quiet, knows(refused)));
    expect(await catalog()).toEqual({ a: 'open', b: 'closed gone' });
    expect(await test.db.query(QUARANTINE, [venue])).toEqual([{ reason: 'refused_by_store', recordId: 'a' }]);
  });

  it('when it is on another page of a sweep with rejected records', async () => {
    const earlier = NOW - HOUR_MS;
    const names = ['a', 'b', 'c', 'd', 'e'];
    await poll(
      adapterOf(
        sweepOf(
          earlier,
          names.map((name) => market(name)),
        ),
      ),
      { now: () => earlier },
    );
    const bad = market('c', { outcomes: [{ outcomeId: randomBytes(6_000).toString('hex'), label: 'Yes' }] });
    const page = names.map((name) => (name === 'c' ? bad : market(name)));
    await poll(adapterOf(async () => sweepOf(NOW, page)(null)));
    expect(await catalog()).toEqual({ a: 'open', b: 'open', c: 'open missing', d: 'open', e: 'open' });
    await poll(adapterOf(quiet, knows(bad)));
    expect(await catalog()).toMatchObject({ c: 'open' });
  });

  it('when another process continues the sweep', async () => {
    const earlier = NOW - HOUR_MS;
    await poll(adapterOf(sweepOf(earlier, [market('a'), market('b')])), { now: () => earlier });
    const started = NOW - 1_000;
    const pages = [[market('a')], [market('b')]];
    const restarted = (position: unknown) =>
      sweepOf(started, ...pages)({ page: (position as { page: number }).page - 1 });
    const walk = async (position: unknown) => {
      const page = await restarted(position);
      return { ...page, position: { page: (position as { page: number }).page + 1 } };
    };
    let pagesRead = 0;
    const dying = adapterOf(async (position) => {
      pagesRead += 1;
      if (pagesRead === 2) throw new VenueError(venue, 'network', 'killed', { retryable: true });
      return walk(position);
    });
    await poll(dying);
    await poll(adapterOf(walk), { now: () => NOW + HOUR_MS });
    expect(await catalog()).toEqual({ a: 'open', b: 'open' });
  });

  it('when it is first seen during the sweep', async () => {
    const walk = async (position: unknown): Promise<MarketPage> =>
      position === null
        ? { ...(await quiet()), records: [market('new')], more: true }
        : { ...(await quiet()), sweep: { startedAtMs: NOW - 5_000, ended: true } };
    const adapter = adapterOf(walk);
    await poll(adapter);
    await poll(adapterOf(quiet));
    expect(adapter.batches).toEqual([]);
    expect(await catalog()).toEqual({ new: 'open' });
  });

  it('when a cache made a page of the sweep before the market was first seen', async () => {
    const seenAtMs = NOW - 100_000;
    await poll(adapterOf(sweepOf(NOW - HOUR_MS, [market('old')])), { now: () => NOW - HOUR_MS });
    const first = async (): Promise<MarketPage> => ({ ...(await quiet()), records: [market('new')] });
    await poll(adapterOf(first), { now: () => seenAtMs });
    const cached = async (): Promise<MarketPage> => ({
      ...(await quiet()),
      sweep: { startedAtMs: NOW, ended: true, madeSinceMs: seenAtMs - 50_000 },
    });
    await poll(adapterOf(cached));
    expect(await catalog()).toEqual({ new: 'open', old: 'open missing' });
  });

  it('when the process dies before the commit, and it is requested again', async () => {
    await missAfter(['a']);
    const db = new LosableDatabase(test.db.dataSource);
    let hasAsked = false;
    db.loseAtCommit = () => hasAsked;
    const dying = adapterOf(quiet, async (ids) => {
      hasAsked = true;
      return knows()(ids);
    });
    await expect(poll(dying, { db })).rejects.toThrow('terminating connection');
    expect(await catalog()).toEqual({ a: 'open missing' });
    expect(await versions()).toBe(0);
    await test.db.query(END_LEASE, [venue]);
    await poll(adapterOf(quiet, knows(market('a'))));
    expect(await catalog()).toEqual({ a: 'open' });
  });

  it('when the process that ends the sweep dies before the commit, and nothing is missing', async () => {
    const earlier = NOW - HOUR_MS;
    await poll(adapterOf(sweepOf(earlier, [market('a')])), { now: () => earlier });
    const db = new LosableDatabase(test.db.dataSource);
    let hasRead = false;
    db.loseAtCommit = () => hasRead;
    const dying = adapterOf(async () => {
      hasRead = true;
      return sweepOf(NOW, [])(null);
    });
    await expect(poll(dying, { db })).rejects.toThrow('terminating connection');
    expect(await catalog()).toEqual({ a: 'open' });
  });

  it('when the lease was lost during the request, and another poll found it listed', async () => {
    await missAfter(['a']);
    const asked = gate();
    const mayGoOn = gate();
    const frozen = poll(
      adapterOf(quiet, async () => {
        asked.open();
        await mayGoOn.opened;
        return { records: [], rejected: [] };
      }),
    );
    await asked.opened;
    await test.db.query(END_LEASE, [venue]);
    await poll(adapterOf(sweepOf(NOW + 1, [], [market('a')]), knows(market('a'))));
    mayGoOn.open();
    expect(await frozen).toEqual({ failed: expect.stringContaining('taken over') });
    expect(await catalog()).toEqual({ a: 'open' });
    expect(await versions()).toBe(0);
  });
});
