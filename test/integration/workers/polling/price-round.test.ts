import { beforeEach, describe, expect, it } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { type Statement, sql } from '../../../../src/store/db/tx.ts';
import { VenueError } from '../../../../src/venues/errors.ts';
import type { PriceSweep, SweepPart } from '../../../../src/venues/port.ts';
import { pollMarkets } from '../../../../workers/jobs/poll-markets.ts';
import { pollPrices } from '../../../../workers/jobs/poll-prices.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { lastPage, type Script, type ScriptedAdapter, scriptedAdapter } from '../../../factories/venue-adapter.ts';
import { gate } from '../../../support/gate.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { type ContextFields, jobContext, LosableDatabase, testConfig, until } from '../worker-harness.ts';

const PRICED = sql(
  'test_round_prices',
  'SELECT t.mint, l.price FROM latest_price l JOIN token t ON t.id = l.token_id ORDER BY t.mint',
);
const POSITION = sql('test_round_position', `SELECT position FROM poll_state WHERE kind = 'prices'`);
const SET_POSITION = sql('test_set_round_position', 'UPDATE poll_state SET position = $1');
const END_LEASE = sql('test_end_round_lease', `UPDATE poll_state SET lease_until = now() - interval '1 ms'`);
const CLEAR = sql(
  'test_clear_round',
  'TRUNCATE market, outcome, market_stats, token, latest_price, observation, price_history, mark, poll_state CASCADE',
);

const NOW = Date.now();
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];
/** The outcome of each market with the lower key, in the order of the round. */
const FIRSTS = NAMES.map((name) => `${name}:no`);

const test = useTestDatabase();
beforeEach(async () => {
  await test.db.query(CLEAR);
  for (const marketId of NAMES) await aStoredMarket(test.db, { venue: 'v', marketId });
});

type Prices = NonNullable<Script['prices']>;
const halves: Prices = async (ids) => ({
  records: ids.map((outcomeId) => ({ outcomeId, asOfMs: NOW, price: decimal('0.5') })),
  rejected: [],
});
/** One market per request, three requests at once; the answer has the mirror of each price. */
function overlapping(prices: Prices): ScriptedAdapter & { mirrors: (ReadonlyMap<string, string> | undefined)[] } {
  const scripted = scriptedAdapter({ prices, maxOutcomesPerFetch: 1 });
  const mirrors: (ReadonlyMap<string, string> | undefined)[] = [];
  return {
    ...scripted,
    mirrors,
    fetchesAtOnce: 3,
    mirrorsOutcomes: true,
    async fetchPrices(ids, call, others) {
      mirrors.push(others);
      const { records, rejected } = await scripted.fetchPrices(ids, call);
      const mirrored = records.map((record) => ({ ...record, outcomeId: others?.get(record.outcomeId) ?? '' }));
      return { records: [...records, ...mirrored], rejected };
    },
  };
}
function run(adapter: ScriptedAdapter, fields: Partial<ContextFields> = {}) {
  const config = testConfig(test.url, { POLL_PRICES_MS: '5000' });
  return pollPrices.run({ venue: 'v' }, jobContext({ db: test.db, config, adapter, now: () => NOW, ...fields }));
}
const mints = async () => (await test.db.query<{ mint: string }>(PRICED)).map(({ mint }) => mint);
const inTwos = (ids: readonly string[]) => ids.flatMap((_, i) => (i % 2 === 0 ? [ids.slice(i, i + 2)] : []));
const both = (names: readonly string[]) => names.flatMap((name) => [`${name}:no`, `${name}:yes`]);
async function position() {
  const [row] = await test.db.query<{ position: string | null }>(POSITION);
  return JSON.parse(row?.position ?? 'null');
}

describe('a price sweep by ids', () => {
  it('requests one outcome per market of two, and each outcome of the others', async () => {
    await aStoredMarket(test.db, { venue: 'v', marketId: 'three', labels: ['A', 'B', 'C'] });
    await aStoredMarket(test.db, { venue: 'v', marketId: 'one', labels: ['Only'] });
    const adapter = overlapping(halves);
    expect(await run(adapter)).toMatchObject({ pages: 11 });
    expect(adapter.batches.flat().sort()).toEqual([...FIRSTS, 'three:a', 'three:b', 'three:c', 'one:only'].sort());
    const pairs = adapter.mirrors.flatMap((each) => [...(each ?? [])]);
    expect(pairs.sort()).toEqual(NAMES.map((name) => [`${name}:no`, `${name}:yes`]));
    expect(await mints()).toEqual([...both(NAMES), 'one:only', 'three:a', 'three:b', 'three:c']);
    expect(await position()).toBeNull();
  });

  it('splits a market with more outcomes than a request allows, and passes markets without outcomes and closed ones', async () => {
    await aStoredMarket(test.db, { venue: 'v', marketId: 'none', labels: [] });
    await aStoredMarket(test.db, { venue: 'v', marketId: 'five', labels: ['A', 'B', 'C', 'D', 'E'], status: 'halted' });
    await aStoredMarket(test.db, { venue: 'v', marketId: 'shut', status: 'closed' });
    await aStoredMarket(test.db, { venue: 'v', marketId: 'end', labels: ['Only'] });
    const adapter = { ...overlapping(halves), maxOutcomesPerFetch: 2 };
    await run(adapter);
    const five = ['a', 'b', 'c', 'd', 'e'].map((label) => `five:${label}`);
    expect(adapter.batches).toEqual(inTwos([...FIRSTS, ...five, 'end:only']));
    expect(await mints()).toEqual([...both(NAMES), 'end:only', ...five].sort());
    expect(await position()).toBeNull();
  });

  it('begins a new sweep when the stored position is that of a former release', async () => {
    const adapter = overlapping(halves);
    await run(adapter);
    const tally = { startedAtMs: NOW, pages: 1, markets: 1, changed: 0, skipped: 0 };
    await test.db.query(SET_POSITION, [JSON.stringify({ tally, afterTokenId: '3', ahead: [] })]);
    adapter.batches.splice(0);
    await run(adapter);
    expect(adapter.batches.flat()).toEqual(FIRSTS);
  });

  it('keeps three requests in flight, and stores pages in any order of arrival', async () => {
    const gates = new Map(FIRSTS.map((id) => [id, gate()]));
    let inFlight = 0;
    let most = 0;
    const adapter = overlapping(async (ids, call) => {
      inFlight += 1;
      most = Math.max(most, inFlight);
      await Promise.all(ids.map((id) => gates.get(id)?.opened));
      inFlight -= 1;
      return halves(ids, call);
    });
    const report = run(adapter);
    const open = (name: string) => gates.get(`${name}:no`)?.open();
    await until(
      async () => adapter.batches.length,
      (count) => count === 3,
    );
    open('c');
    await until(mints, (some) => some.includes('c:yes'));
    // The first page is still in flight, so a process that takes over begins there.
    expect(await position()).toMatchObject({ after: '0:0', ahead: [{ isLast: false }] });
    open('a');
    await until(mints, (some) => some.includes('a:yes'));
    expect((await position()).ahead).toHaveLength(1);
    for (const name of NAMES) open(name);
    expect(await report).toMatchObject({ pages: 7, written: 12 });
    expect(most).toBe(3);
    expect(adapter.batches.flat()).toEqual(FIRSTS);
  });

  it('stores the pages in flight when a request fails, ends the tick, and begins the next one behind the failed page', async () => {
    let isDown = true;
    const adapter = overlapping(async (ids, call) => {
      if (isDown && ids.includes('b:no')) throw new VenueError('v', 'network', 'unreachable', { retryable: true });
      return halves(ids, call);
    });
    expect(await run(adapter)).toEqual({ failed: 'unreachable' });
    const stored = await mints();
    expect(stored).toContain('a:yes');
    expect(stored).not.toContain('b:yes');
    isDown = false;
    adapter.batches.splice(0);
    expect(await run(adapter)).toMatchObject({ rejected: 0 });
    expect(adapter.batches.flat()).not.toContain('b:no');
    expect(await mints()).toEqual(both(NAMES.filter((name) => name !== 'b')));
    adapter.batches.splice(0);
    await run(adapter);
    expect(adapter.batches.flat()).toEqual(FIRSTS);
    expect(await mints()).toEqual(both(NAMES));
  });

  it('loses no page when its process dies at any commit', async () => {
    for (let dies = 1; dies <= NAMES.length; dies += 1) {
      await test.db.query(sql('test_forget_round', 'TRUNCATE latest_price, poll_state'));
      const { partitions } = jobContext({ db: test.db, config: testConfig(test.url) });
      await partitions.ensureAroundNow('price_history');
      await partitions.ensureAroundNow('observation');
      const db = new LosableDatabase(test.db.dataSource);
      db.loseAtCommit = (transaction) => transaction >= dies;
      await expect(run(overlapping(halves), { db, partitions })).rejects.toThrow('terminating connection');
      expect((await mints()).length).toBe(2 * (dies - 1));
      await test.db.query(END_LEASE);
      await run(overlapping(halves));
      expect(await mints()).toEqual(both(NAMES));
      expect(await position()).toBeNull();
    }
  });

  it('is followed by another in the same tick only when its interval is over', async () => {
    let nowMs = NOW;
    const slow = overlapping(async (ids, call) => {
      // The first sweep takes 6 s of the 5 s of its interval, the second one takes 3 s.
      nowMs += slow.batches.length <= NAMES.length ? 1_000 : 500;
      return halves(ids, call);
    });
    await run(slow, { now: () => nowMs });
    expect(slow.batches.flat()).toEqual([...FIRSTS, ...FIRSTS]);
  });

  it('reads its outcomes once until its process stores a change of the catalog, or loses the database', async () => {
    class CountingDatabase extends LosableDatabase {
      reads = 0;
      override query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
        if (statement.name === 'open_outcomes') this.reads += 1;
        return super.query<Row>(statement, values);
      }
    }
    let price = '0.5';
    const prices: Prices = async (ids) => ({
      records: ids.map((outcomeId) => ({ outcomeId, asOfMs: Date.now(), price: decimal(price) })),
      rejected: [],
    });
    const db = new CountingDatabase(test.db.dataSource);
    const listing = async () =>
      lastPage([aMarketRecord({ marketId: 'g', outcomes: [{ outcomeId: 'g:only', label: 'Only' }] })]);
    const adapter = { ...scriptedAdapter({ prices, markets: listing }), mirrorsOutcomes: true };
    const context = jobContext({ db, config: testConfig(test.url), adapter, now: () => NOW });
    const sweep = () => pollPrices.run({ venue: 'v' }, context);
    await sweep();
    const { reads } = db;
    adapter.batches.splice(0);
    await sweep();
    expect(db.reads).toBe(reads);
    expect(adapter.batches.flat()).toEqual(FIRSTS);

    await pollMarkets.run({ venue: 'v' }, context);
    adapter.batches.splice(0);
    await sweep();
    expect(adapter.batches.flat()).toEqual([...FIRSTS, 'g:only']);

    price = '0.6';
    db.loseBefore = () => true;
    await expect(sweep()).rejects.toThrow();
    db.loseBefore = () => false;
    await test.db.query(END_LEASE);
    await aStoredMarket(test.db, { venue: 'v', marketId: 'h', labels: ['Only'] });
    adapter.batches.splice(0);
    await sweep();
    expect(adapter.batches.flat()).toContain('h:only');
  });
});

describe('a price sweep by a list', () => {
  /** Parts with these pages of outcomes; a page is read by its number. */
  function listed(
    pages: Readonly<Record<string, readonly string[][]>>,
    over: Partial<PriceSweep> = {},
  ): ScriptedAdapter {
    const read = (part: SweepPart) => part as { name: string; page: number };
    const sweepPrices: PriceSweep = {
      atOnce: 2,
      parts: () => Object.keys(pages).map((name) => ({ name, page: 0 })),
      async fetch(part) {
        const { name, page } = read(part);
        const ids = pages[name]?.[page] ?? [];
        const { records } = await halves(ids, { signal: new AbortController().signal, now: () => NOW });
        const more = page + 1 < (pages[name]?.length ?? 0);
        return { records, rejected: [], markets: ids.length, part: { name, page: page + 1 }, more };
      },
      ...over,
    };
    return { ...scriptedAdapter({}), sweepPrices };
  }

  it('gives the parts of the last complete sweep to the next one', async () => {
    const seen: (readonly SweepPart[])[] = [];
    const adapter = listed(
      { x: [['a:yes'], ['b:yes']], y: [['c:yes']] },
      {
        parts(_nowMs, previous) {
          seen.push(previous);
          return [
            { name: 'x', page: 0 },
            { name: 'y', page: 0 },
          ];
        },
      },
    );
    expect(await run(adapter)).toMatchObject({ pages: 3, written: 3 });
    await run(adapter);
    const after = [
      { name: 'x', page: 2 },
      { name: 'y', page: 1 },
    ];
    expect(seen).toEqual([[], after]);
    expect(await mints()).toEqual(['a:yes', 'b:yes', 'c:yes']);
  });

  it('stores the pages of one part when another fails, and continues with the rest', async () => {
    const pages = { x: [['a:yes'], ['b:yes']], y: [['c:yes']] };
    const requested: unknown[] = [];
    const { sweepPrices } = listed(pages);
    let isDown = true;
    const adapter = listed(pages, {
      async fetch(part, call) {
        requested.push(part);
        if (isDown && (part as { name: string }).name === 'y')
          throw new VenueError('v', 'network', 'unreachable', { retryable: true });
        return (sweepPrices as PriceSweep).fetch(part, call);
      },
    });
    expect(await run(adapter)).toEqual({ failed: 'unreachable' });
    expect(await mints()).toEqual(['a:yes']);
    isDown = false;
    requested.splice(0);
    expect(await run(adapter)).toMatchObject({ pages: 2 });
    expect(requested).toEqual([
      { name: 'x', page: 1 },
      { name: 'y', page: 0 },
    ]);
    expect(await mints()).toEqual(['a:yes', 'b:yes', 'c:yes']);
  });

  it('stores no price of a market that ended or of another venue', async () => {
    await aStoredMarket(test.db, { venue: 'v', marketId: 'over', status: 'resolved' });
    await aStoredMarket(test.db, { venue: 'other', marketId: 'foreign' });
    expect(await run(listed({ x: [['a:yes', 'over:yes', 'foreign:yes', 'new:yes']] }))).toMatchObject({ records: 1 });
    expect(await mints()).toEqual(['a:yes']);
    expect((await position()).tally).toMatchObject({ markets: 4, skipped: 3 });
  });
});
