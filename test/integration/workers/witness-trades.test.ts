import { beforeEach, describe, expect, it } from 'vitest';
import { sql } from '../../../src/store/db/tx.ts';
import { VenueError } from '../../../src/venues/errors.ts';
import { witnessTrades } from '../../../workers/jobs/witness-trades.ts';
import { aMarketRecord } from '../../factories/markets.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { WitnessedVenue } from './witness-harness.ts';
import { LosableDatabase, wakeRecorder } from './worker-harness.ts';

/** Rules belong to real venues, so each test empties the tables of the one before. */
const EMPTY = sql(
  'test_empty_witness',
  'TRUNCATE market, poll_state, volume_sample, venue_completeness, mark, candle CASCADE',
);
const END_LEASES = sql('test_end_leases', `UPDATE poll_state SET lease_until = now() - interval '1 ms'`);

const test = useTestDatabase();
let made = 0;
beforeEach(async () => {
  await test.db.query(EMPTY);
  made += 1;
});

/** Market ids of a test; outcomes and trades of earlier tests stay. */
const ids = (...names: string[]) => names.map((name) => `${name}${made}`);

async function anOpenVenue(markets: readonly string[], venue = 'kalshi'): Promise<WitnessedVenue> {
  const opened = new WitnessedVenue(test, venue, markets);
  await opened.open();
  return opened;
}

describe('witness-trades', () => {
  it('reports a share of 1 while the stored trades cover the totals', async () => {
    const [market = ''] = ids('m');
    const venue = await anOpenVenue([market]);
    await venue.pass(60);
    expect(await venue.of(market)).toMatchObject({ venueVolume: 0, missingSince: null });
    await venue.pass(600, () => venue.trade(market, 3));
    expect(await venue.of(market)).toMatchObject({ missingVolume: 0, missingSince: null, repair: null });
    expect(await venue.summary()).toMatchObject({ share: 1, markets: 1, marketsMissing: 0, missingSince: null });
    expect(venue.messages()).not.toContain('markets miss trades');
  });

  it('accepts totals that lag behind the trades', async () => {
    const [market = ''] = ids('m');
    const venue = await anOpenVenue([market]);
    venue.totalLagMs = 25_000;
    await venue.pass(60);
    for (const size of [400, 1, 1, 800, 2, 1]) await venue.pass(75, () => venue.trade(market, size));
    await venue.pass(120);
    expect(await venue.of(market)).toMatchObject({ missingVolume: 0, missingSince: null });
  });

  it('reports a lost trade within a minute, once, and its recovery', async () => {
    const [market = '', other = ''] = ids('m', 'other');
    const venue = await anOpenVenue([market, other]);
    await venue.pass(60);
    await venue.pass(60, () => venue.trade(market, 3));
    await venue.pass(60);
    const lost = await venue.trade(market, 20, { isLost: true });
    await venue.pass(60, () => venue.trade(other, 2));
    expect(await venue.of(market)).toMatchObject({ missingVolume: 20, storedVolume: 12, venueVolume: 32 });
    expect(await venue.summary()).toMatchObject({ markets: 2, marketsMissing: 1, share: 0.473684211 });
    await venue.pass(15);
    await venue.deliver([lost]);
    await venue.pass(15);
    expect(await venue.of(market)).toMatchObject({ missingVolume: 0, storedVolume: 32, missingSince: null });
    const told = venue.messages().filter((text) => text.includes('trades') && !text.includes('repair'));
    expect(told).toEqual(['markets miss trades', 'missing trades stored']);
    expect(venue.log.lines.find((line) => line.includes('markets miss trades'))).toContain(market);
  });

  it('waits for trades that are not folded into candles', async () => {
    const [market = ''] = ids('m');
    const venue = await anOpenVenue([market]);
    await venue.pass(60);
    await venue.trade(market, 30);
    const waiting = async () => {
      venue.nowMs += 120_000;
      await venue.readTape();
      await venue.run(witnessTrades);
    };
    await waiting();
    await waiting();
    expect(await venue.of(market)).toMatchObject({ storedVolume: 0, missingSince: null });
    expect(await venue.samples()).toBe(1);
    await venue.witness();
    expect(await venue.of(market)).toMatchObject({ storedVolume: 30, missingSince: null });
    expect(await venue.samples()).toBe(0);
  });

  it('compares nothing while the trade poll fails', async () => {
    const [market = ''] = ids('m');
    const venue = await anOpenVenue([market]);
    await venue.pass(60);
    venue.isTapeBroken = true;
    const lost = await venue.trade(market, 30, { isLost: true });
    await venue.pass(120);
    expect(await venue.of(market)).toMatchObject({ missingSince: null });
    venue.isTapeBroken = false;
    await venue.deliver([lost]);
    await venue.pass(30);
    expect(await venue.of(market)).toMatchObject({ storedVolume: 30, missingSince: null });
  });

  it('compares although the venue serves no totals by id', async () => {
    const [market = ''] = ids('m');
    const venue = await anOpenVenue([market]);
    await venue.pass(60);
    await venue.trade(market, 9, { isLost: true });
    await venue.pass(15);
    const broken = async () => {
      throw new VenueError('kalshi', 'http_status', 'HTTP 500', { retryable: true, statusCode: 500 });
    };
    venue.adapter.fetchMarkets = broken;
    await venue.pass(45);
    expect(await venue.of(market)).toMatchObject({ missingVolume: 9 });
  });

  it('begins no comparison before the tape of the venue', async () => {
    const [market = ''] = ids('m');
    const venue = new WitnessedVenue(test, 'kalshi', [market]);
    venue.isTapeBroken = true;
    await venue.open();
    await venue.pass(60);
    expect(await venue.of(market)).toBeNull();
    expect(await venue.samples()).toBe(1);
    venue.isTapeBroken = false;
    await venue.readTape();
    venue.nowMs -= 2 * 3_600_000;
    await venue.trade(market, 3, { isLost: true });
    await venue.pass(60);
    expect(await venue.of(market)).toBeNull();
  });

  it('begins the comparison anew after a week without a loss', async () => {
    const [market = ''] = ids('m');
    const venue = await anOpenVenue([market]);
    await venue.pass(60);
    await venue.pass(60, () => venue.trade(market, 3));
    await venue.pass(45);
    const before = await venue.of(market);
    venue.nowMs += 8 * 86_400_000;
    await venue.trade(market, 4);
    await venue.pass(75);
    const after = await venue.of(market);
    expect(before).toMatchObject({ storedVolume: 12, venueVolume: 12 });
    expect(after?.since.getTime()).toBeGreaterThan(before?.since.getTime() ?? 0);
    expect(after).toMatchObject({ storedVolume: 4, missingSince: null });
  });

  it('reports a loss that is smaller than every stored trade', async () => {
    const [market = ''] = ids('m');
    const venue = await anOpenVenue([market]);
    for (const size of [50, 70]) {
      await venue.trade(market, size);
      await venue.pass(105);
    }
    await venue.trade(market, 5, { isLost: true });
    await venue.pass(60);
    expect(await venue.of(market)).toMatchObject({ missingVolume: 5 });
  });

  it('measures the unit of the totals, and begins the comparisons anew in it', async () => {
    const markets = ids(...Array.from({ length: 20 }, (_, index) => `u${index}-`));
    // The rule assumes price times size, and these totals are sums of sizes.
    const venue = await anOpenVenue(markets, 'polymarket');
    await venue.pass(75);
    for (const market of markets) await venue.trade(market, 40);
    await venue.pass(75);
    expect(venue.messages().some((text) => text.startsWith('unit of the totals measured'))).toBe(true);
    for (const market of markets) await venue.trade(market, 10);
    await venue.pass(150);
    for (const market of markets) await venue.trade(market, 10, { isLost: market === markets[0] });
    await venue.pass(75);
    expect(await venue.summary()).toMatchObject({ markets: 20, marketsMissing: 1 });
    expect(await venue.of(markets[0] ?? '')).toMatchObject({ missingVolume: 10 });
  });

  it('excludes markets whose totals count other trades', async () => {
    const [market = ''] = ids('m');
    const venue = new WitnessedVenue(test, 'manifold', [market], {
      marketsById: async (asked) => ({
        records: asked.map((marketId) => aMarketRecord({ marketId, eventId: 'e' })),
        rejected: [],
      }),
      markets: async () => ({
        records: [aMarketRecord({ marketId: market, eventId: 'e' })],
        rejected: [],
        position: null,
        more: false,
      }),
    });
    await venue.open();
    await venue.pass(60);
    expect(await venue.of(market)).toBeNull();
    expect(await venue.samples()).toBe(0);
    expect(venue.adapter.batches).toEqual([]);
  });
});

describe('the repair of missing trades', () => {
  /** A market that loses `lost` trades for `seconds`. */
  async function aLoss(markets: readonly string[], seconds = 60): Promise<WitnessedVenue> {
    const venue = await anOpenVenue(markets);
    await venue.pass(90);
    await venue.pass(60, async () => {
      for (const market of markets) await venue.trade(market, 2);
    });
    await venue.pass(seconds, async () => {
      for (const market of markets) await venue.trade(market, 7, { isLost: true });
    });
    return venue;
  }

  it('reads the range again once the feed works, and records the result', async () => {
    const [market = ''] = ids('m');
    const venue = await aLoss([market], 120);
    expect(await venue.repairOf(market)).toBeUndefined();
    await venue.pass(120, () => venue.trade(market, 1));
    expect(await venue.repairOf(market)).toMatchObject({ status: 'queued', attempts: 1, missingAfter: null });
    await venue.repair();
    expect(await venue.storedIds(market)).toEqual(venue.idsOf(market));
    await venue.pass(30);
    expect(await venue.of(market)).toMatchObject({ missingVolume: 0, missingSince: null });
    expect(await venue.repairOf(market)).toMatchObject({ status: 'done', trades: 8, missingAfter: 0 });
    expect(await venue.summary()).toMatchObject({ marketsMissing: 0, share: 1 });
    expect(venue.messages()).toContain('trade repairs ended');
  });

  it('queues the walk although trades around the totals hide and show the loss in turn', async () => {
    const [market = '', small = ''] = ids('m', 'small');
    const venue = await anOpenVenue([market, small]);
    await venue.pass(90);
    await venue.trade(small, 0.5, { isLost: true });
    await venue.pass(60, () => venue.trade(market, 7, { isLost: true }));
    // Each total lacks the latest trade, so the certain part of the loss is 28 or 8 in turn, or nothing.
    venue.totalLagMs = 10_000;
    let steps = 0;
    const sizes = [1, 20, 1, 40];
    await venue.pass(150, () => venue.trade(market, sizes[steps++ % sizes.length] ?? 0));
    expect(await venue.of(market)).toMatchObject({ missingSince: expect.any(Date) });
    expect(venue.messages()).not.toContain('missing trades stored');
    await venue.repair();
    await venue.pass(30);
    for (const each of [market, small]) expect(await venue.storedIds(each)).toEqual(venue.idsOf(each));
    expect(await venue.of(market)).toMatchObject({ missingVolume: 0, missingSince: null });
  });

  it('keeps a walk for the end of a fault that pauses and goes on', async () => {
    const [market = ''] = ids('m');
    const venue = await anOpenVenue([market]);
    await venue.pass(90);
    const walks: number[] = [];
    for (let pause = 0; pause < 10; pause += 1) {
      await venue.pass(60, () => venue.trade(market, 7, { isLost: true }));
      await venue.pass(120);
      await venue.repair();
      walks.push((await venue.repairOf(market))?.attempts ?? 0);
    }
    expect(walks).toEqual([1, 2, 3, 3, 4, 4, 4, 5, 5, 5]);
    await venue.pass(1_000);
    await venue.repair();
    await venue.pass(30);
    expect(await venue.storedIds(market)).toEqual(venue.idsOf(market));
    expect(await venue.of(market)).toMatchObject({ missingVolume: 0, missingSince: null });
  });

  it('walks again with growing waits while trades are missing, and begins at the start of the comparison', async () => {
    const [market = ''] = ids('m');
    const venue = await aLoss([market]);
    const serve = venue.adapter.pollHistory.bind(venue.adapter);
    venue.adapter.pollHistory = async (request) => ({
      records: [],
      rejected: [],
      position: null,
      more: false,
      reachedMs: request.fromMs,
    });
    await venue.pass(120);
    const first = await venue.repairOf(market);
    await venue.repair();
    await venue.pass(60);
    expect(await venue.repairOf(market)).toMatchObject({ status: 'done', attempts: 1, trades: 0, missingAfter: 28 });
    venue.nowMs += 300_000;
    await venue.witness();
    const second = await venue.repairOf(market);
    expect(second).toMatchObject({ status: 'queued', attempts: 2 });
    expect(second?.fromMs).toBeLessThanOrEqual(first?.fromMs ?? 0);
    venue.adapter.pollHistory = serve;
    await venue.repair();
    await venue.pass(30);
    expect(await venue.repairOf(market)).toMatchObject({ attempts: 2, missingAfter: 0 });
    expect(await venue.storedIds(market)).toEqual(venue.idsOf(market));
  });

  it('bounds the open repairs of a venue and the ids of a log line', async () => {
    const markets = ids(...Array.from({ length: 14 }, (_, index) => `m${index}-`));
    const venue = await aLoss(markets);
    await venue.pass(120);
    const repairs = await Promise.all(markets.map((market) => venue.repairOf(market)));
    expect(repairs.filter((repair) => repair !== undefined)).toHaveLength(10);
    const line = venue.log.lines.find((text) => text.includes('markets miss trades'));
    expect(JSON.parse(line ?? '{}')).toMatchObject({ markets: 14, marketIds: { length: 10 } });
    await venue.repair();
    await venue.pass(30);
    await venue.repair();
    await venue.pass(30);
    for (const market of markets) expect(await venue.storedIds(market)).toEqual(venue.idsOf(market));
    expect(await venue.summary()).toMatchObject({ marketsMissing: 0 });
  });

  it('also reads the markets again that lost less than the tolerance in the same fault', async () => {
    const [market = '', small = '', quiet = ''] = ids('m', 'small', 'quiet');
    const venue = await anOpenVenue([market, small, quiet]);
    await venue.pass(120);
    await venue.trade(quiet, 1);
    await venue.pass(2_000);
    await venue.trade(small, 0.5, { isLost: true });
    for (let lost = 0; lost < 4; lost += 1) {
      await venue.trade(market, 7, { isLost: true });
      await venue.pass(30);
    }
    await venue.pass(180);
    expect(await venue.of(small)).toMatchObject({ missingSince: null });
    await venue.repair();
    await venue.pass(30);
    for (const each of [market, small]) expect(await venue.storedIds(each)).toEqual(venue.idsOf(each));
    expect(await venue.repairOf(small)).toMatchObject({ trades: 1, missingBefore: 0, missingAfter: 0 });
    expect(await venue.repairOf(quiet)).toBeUndefined();
  });

  it('leaves the coverage of older trades unchanged', async () => {
    const [market = ''] = ids('m');
    const venue = await aLoss([market]);
    await venue.pass(120);
    await venue.repair();
    const history = sql('test_no_history', 'SELECT count(*)::int AS walks FROM trade_history');
    expect(await test.db.query(history)).toEqual([{ walks: 0 }]);
  });
});

describe('witness-trades that is killed', () => {
  it('loses no comparison and no repair at any step', async () => {
    const [market = ''] = ids('m');
    const venue = await anOpenVenue([market]);
    await venue.pass(90);
    await venue.pass(60, () => venue.trade(market, 2));
    const runs = ['before', 'commit', 'after'] as const;
    let step = 0;
    /** A process that dies at one of its transactions, then another that lives. */
    const dyingStep = async () => {
      const fault = runs[step % runs.length];
      const at = 1 + (Math.floor(step / runs.length) % 2);
      step += 1;
      const db = new LosableDatabase(test.db.dataSource);
      if (fault === 'commit') db.loseAtCommit = (transaction) => transaction === at;
      if (fault === 'before') db.loseBefore = (transaction) => transaction === at;
      if (fault === 'after') db.loseBefore = (transaction) => transaction > at;
      await venue.witness({ db }).catch((error: Error) => expect(error.message).toContain('terminating'));
      await test.db.query(END_LEASES);
    };
    await venue.pass(120, async () => {
      await venue.trade(market, 5, { isLost: true });
      await dyingStep();
    });
    expect(await venue.of(market)).toMatchObject({ missingSince: expect.any(Date) });
    const producer = wakeRecorder();
    for (let passed = 0; passed < 150; passed += 15) {
      venue.nowMs += 15_000;
      await dyingStep();
      await venue.witness({ producer });
    }
    expect(await venue.repairOf(market)).toMatchObject({ attempts: 1 });
    await venue.repair();
    await dyingStep();
    await venue.pass(60, dyingStep);
    expect(await venue.storedIds(market)).toEqual(venue.idsOf(market));
    expect(await venue.of(market)).toMatchObject({ missingVolume: 0, missingSince: null });
    expect(await venue.repairOf(market)).toMatchObject({ missingAfter: 0, attempts: 1 });
    expect(await venue.samples()).toBe(0);
  });
});
