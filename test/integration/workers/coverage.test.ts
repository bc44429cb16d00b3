import { beforeEach, describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../../src/domain/markets/coverage.ts';
import type { TradeRecord } from '../../../src/domain/markets/market.ts';
import { sql, sqlPlannedPerCall } from '../../../src/store/db/tx.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { CoveredVenue } from './coverage-harness.ts';
import { LosableDatabase } from './worker-harness.ts';

const EMPTY = sql(
  'test_empty_coverage',
  `TRUNCATE market, quarantine, feed_gap, poll_state, volume_sample, venue_completeness, mark, candle, coverage, coverage_total, coverage_poll, coverage_sweep,
     coverage_settled CASCADE`,
);
const END_LEASES = sql('test_end_coverage_leases', `UPDATE poll_state SET lease_until = now() - interval '1 ms'`);
/** The former release compares and deletes the samples of a venue. */
const FORMER_DELETE = sql('test_former_delete', 'DELETE FROM volume_sample WHERE venue = $1');
const UNPOLL = sql('test_unpoll', `DELETE FROM poll_state WHERE venue = $1 AND kind <> 'trades'`);
const FEED_GAP = sql(
  'test_coverage_feed_gap',
  `INSERT INTO feed_gap (gap, venue, market_id, affected, reason, from_at, to_at)
   SELECT gen_random_uuid(), venue, id, 'books', 'silent', $3::timestamptz, $3::timestamptz + interval '1 minute'
   FROM market WHERE venue = $1 AND venue_market_id = $2`,
);
const test = useTestDatabase();
let made = 0;
beforeEach(async () => {
  await test.db.query(EMPTY);
  made += 1;
});

const STEP_MS = 60_000;
/** Hours of polls with random losses. */
const LOSS_HOURS = 120;

/** Moves the clock by minutes, with `onMinute` and a run after each. */
async function pass(
  venue: CoveredVenue,
  minutes: number,
  onMinute: (minute: number) => Promise<unknown> = async () => undefined,
) {
  for (let minute = 0; minute < minutes; minute += 1) {
    venue.nowMs += STEP_MS;
    await onMinute(minute);
    await venue.tick();
  }
}

/** Lets every total of the last hour settle. */
const settle = (venue: CoveredVenue) => pass(venue, 20);

describe('coverage of trades', () => {
  it('is complete, quiet and a gap when trades are stored, absent and lost', async () => {
    const [market, other] = [`m${made}`, `o${made}`];
    const venue = new CoveredVenue(test, 'kalshi', [market, other]);
    await venue.begin();
    await pass(venue, 30);
    await pass(venue, 60, (minute) => (minute % 10 === 5 ? venue.trade(market, 20) : Promise.resolve()));
    await pass(venue, 60, (minute) => (minute === 30 ? venue.trade(market, 50, { isLost: true }) : Promise.resolve()));
    await pass(venue, 60);
    await settle(venue);
    const hours = await venue.hoursOf(market);
    expect(hours.map((hour) => hour.class)).toEqual(['complete', 'gap', 'quiet']);
    expect(hours[0]).toMatchObject({ stored: '120', total: '120' });
    expect(hours[1]).toMatchObject({ cause: 'missing_trades', missing: '50', stored: '0' });
    expect((await venue.hoursOf(other)).map((hour) => hour.class)).toEqual(['quiet', 'quiet', 'quiet']);
    const summed = await venue.venueHours();
    expect(summed.map((hour) => hour.class)).toEqual(['complete', 'gap', 'quiet']);
    expect(summed[1]).toMatchObject({ marketsGap: 1, missing: '50' });
  });

  it('calls no hour complete that misses trades, and no quiet hour a gap, when 200 losses are injected at random', async () => {
    const random = randomFrom(33);
    const markets = Array.from({ length: 40 }, (_, index) => `r${made}-${index}`);
    const venue = new CoveredVenue(test, 'kalshi', markets);
    await venue.begin();
    await pass(venue, 30);
    const firstMs = venue.nowMs;
    const lost = new Set<TradeRecord>();
    let isLosing = false;
    await pass(venue, 6 * 60, async (minute) => {
      // The venue's totals lag, its catalog is not read for a while, and the poller restarts.
      venue.totalLagMs = random(3) === 0 ? 25_000 : 0;
      venue.isAway = minute % 97 > 88;
      for (const [index, market] of markets.entries()) {
        // Some markets trade in each minute, some now and then, some in every second hour.
        const isDue =
          index < 4 || (index < 20 ? random(25) === 0 : random(40) === 0 && Math.floor(minute / 60) % 2 === index % 2);
        if (!isDue) continue;
        if (random(20) === 0) isLosing = !isLosing;
        const isLost = lost.size < 200 && (isLosing ? random(3) > 0 : random(12) === 0);
        const trade = await venue.trade(market, isLost ? 10 + random(400) : 1 + random(60), { isLost });
        if (isLost) lost.add(trade);
      }
    });
    venue.isAway = false;
    await pass(venue, 90);
    expect(lost.size).toBe(200);
    const seen = await law(venue, markets, firstMs, lost);
    for (const each of ['complete', 'quiet', 'gap']) expect(seen[each]).toBeGreaterThan(10);

    // A repair stores all of them; then no hour has a gap.
    await venue.deliver([...lost]);
    lost.clear();
    await pass(venue, 15);
    venue.nowMs += 7 * HOUR_MS;
    await pass(venue, 3);
    const repaired = await law(venue, markets, firstMs, lost);
    expect(repaired['gap'] ?? 0).toBe(0);
    expect(repaired['complete']).toBeGreaterThan(seen['complete'] ?? 0);
  });

  it('settles the hours later, and no hour twice, when the process dies at any step', async () => {
    const market = `m${made}`;
    const venue = new CoveredVenue(test, 'kalshi', [market]);
    await venue.begin();
    await pass(venue, 30);
    await pass(venue, 60, (minute) => (minute === 20 ? venue.trade(market, 20) : Promise.resolve()));
    venue.nowMs += 16 * STEP_MS;
    // The n-th process dies at the end of its n-th transaction.
    for (let ended = 1; (await venue.venueHours())[0]?.checkedMs === undefined; ended += 1) {
      const db = new LosableDatabase(test.db.dataSource);
      db.loseAtCommit = (transaction) => transaction === ended;
      db.loseBefore = (transaction) => transaction > ended;
      await venue.tick({ db }).catch((error: Error) => expect(error.message).toContain('terminating'));
      await test.db.query(END_LEASES);
      for (const hour of await venue.venueHours()) if (hour.class !== 'complete') expect(hour.class).toBe('unknown');
      expect(ended).toBeLessThan(40);
    }
    expect((await venue.hoursOf(market)).map((hour) => hour.class)).toEqual(['complete']);
    expect((await venue.venueHours()).map((hour) => hour.class)).toEqual(['complete']);
  });

  it('keeps the totals that a process of the former release compares and deletes', async () => {
    const market = `m${made}`;
    const venue = new CoveredVenue(test, 'kalshi', [market]);
    await venue.begin();
    await pass(venue, 30);
    for (let minute = 0; minute < 60; minute += 1) {
      venue.nowMs += STEP_MS;
      if (minute === 30) await venue.trade(market, 50, { isLost: true });
      await venue.poll();
      await test.db.query(FORMER_DELETE, [venue.venue]);
    }
    await pass(venue, 20);
    expect((await venue.hoursOf(market)).map((hour) => hour.class)).toEqual(['gap']);
  });

  it('leaves an hour unknown when the catalog is not read for six hours after it', async () => {
    const market = `m${made}`;
    const venue = new CoveredVenue(test, 'kalshi', [market]);
    await venue.begin();
    await pass(venue, 30);
    await pass(venue, 60, (minute) => (minute === 20 ? venue.trade(market, 20) : Promise.resolve()));
    venue.isAway = true;
    await pass(venue, 60);
    expect(await venue.venueHours()).toEqual([]);
    venue.nowMs += 6 * HOUR_MS;
    await pass(venue, 2);
    const [hour] = await venue.venueHours();
    expect(hour).toMatchObject({ class: 'unknown', reason: 'not_compared' });
    venue.isAway = false;
    venue.nowMs += 4 * HOUR_MS;
    await pass(venue, 2);
    expect((await venue.venueHours())[0]).toMatchObject({ class: 'unknown', reason: 'not_compared' });
    expect((await venue.hoursOf(market))[0]?.class).toBe('complete');
  });

  it('leaves the hour of the venue unknown when a record of a market that is not known was rejected', async () => {
    const market = `m${made}`;
    const venue = new CoveredVenue(test, 'kalshi', [market]);
    await venue.begin();
    await pass(venue, 30);
    await pass(venue, 60, async (minute) => {
      if (minute === 20) await venue.trade(market, 20);
      const recordId = `new-${made}`;
      venue.rejected =
        minute === 30 ? [{ kind: 'markets', recordId, reason: 'no_outcomes', detail: 'scripted', sample: '{}' }] : [];
    });
    await settle(venue);
    expect((await venue.hoursOf(market))[0]?.class).toBe('complete');
    expect((await venue.venueHours())[0]).toMatchObject({ class: 'unknown', reason: 'records_rejected' });
  });

  it('leaves an hour unknown while its trades wait for their candles, and judges it afterwards', async () => {
    const market = `m${made}`;
    const venue = new CoveredVenue(test, 'kalshi', [market]);
    await venue.begin();
    await pass(venue, 30);
    const fold = venue.fold.bind(venue);
    venue.fold = async () => undefined;
    await pass(venue, 60, (minute) => (minute === 20 ? venue.trade(market, 20) : Promise.resolve()));
    await settle(venue);
    expect((await venue.hoursOf(market))[0]).toMatchObject({ class: 'unknown', reason: 'not_folded' });
    expect((await venue.venueHours())[0]?.class).toBe('unknown');
    venue.fold = fold;
    await pass(venue, 120);
    expect((await venue.hoursOf(market))[0]).toMatchObject({ class: 'complete', stored: '20' });
    expect((await venue.venueHours())[0]).toMatchObject({ class: 'complete', stored: '20' });
  });
});

/** Checks the law against all trades of the venue; returns the number of hours of each class. */
async function law(venue: CoveredVenue, markets: readonly string[], firstMs: number, lost: ReadonlySet<TradeRecord>) {
  const seen: Record<string, number> = {};
  const missingOf = new Map<number, number>();
  for (const market of markets) {
    for (const hour of await venue.hoursOf(market)) {
      if (hour.startMs < firstMs) continue;
      const trades = venue.trades.filter(
        ({ outcomeId, tsMs }) => outcomeId === `${market}:yes` && tsMs >= hour.startMs && tsMs < hour.startMs + HOUR_MS,
      );
      const missing = trades.reduce((sum, trade) => sum + (lost.has(trade) ? Number(trade.size) : 0), 0);
      missingOf.set(hour.startMs, (missingOf.get(hour.startMs) ?? 0) + missing);
      seen[hour.class] = (seen[hour.class] ?? 0) + 1;
      const at = `${market} ${new Date(hour.startMs).toISOString()} ${JSON.stringify(hour)}`;
      if (hour.class === 'complete') expect(missing, at).toBeLessThanOrEqual(Number(hour.tolerance));
      if (hour.class === 'quiet') expect(trades.length, at).toBe(0);
      if (trades.length === 0) expect(hour.class, at).not.toBe('gap');
    }
  }
  for (const hour of await venue.venueHours()) {
    const missing = missingOf.get(hour.startMs) ?? 0;
    if (hour.class === 'complete') expect(missing).toBeLessThanOrEqual(Number(hour.tolerance));
    if (hour.class === 'quiet') expect(missing).toBe(0);
  }
  return seen;
}

/** Whole numbers below a limit, the same in each run. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

const COUNTED = sql(
  'test_counted_polls',
  `INSERT INTO poll_state (venue, kind, last_success_at) VALUES ($1, $2, $3)
   ON CONFLICT (venue, kind) DO UPDATE SET last_success_at = excluded.last_success_at, consecutive_failures = $4`,
);

describe('coverage of polls', () => {
  /** Successes in the statement of the former release, which names none of the columns of the count. */
  async function polled(venue: CoveredVenue, kind: string, fromMs: number, minutes: readonly number[], failures = 0) {
    for (const minute of minutes) {
      const at = new Date(fromMs + minute * STEP_MS).toISOString();
      await test.db.query(COUNTED, [venue.venue, kind, at, failures]);
    }
  }
  /** A venue without a poll of the catalog, which would be at the time of the database. */
  async function anUnpolledVenue(markets: readonly string[]): Promise<CoveredVenue> {
    const venue = new CoveredVenue(test, 'kalshi', markets);
    await venue.begin();
    await test.db.query(UNPOLL, [venue.venue]);
    return venue;
  }
  const upTo = (minutes: number, from = 0) => Array.from({ length: minutes - from }, (_, minute) => from + minute);

  it('is observed while the polls succeed, and a gap in each hour that a pause touches', async () => {
    const venue = await anUnpolledVenue([`m${made}`]);
    const fromMs = venue.nowMs;
    await polled(venue, 'markets', fromMs, [...upTo(100), ...upTo(300, 215)]);
    venue.nowMs = fromMs + 300 * STEP_MS;
    await venue.witness(venue.fields());
    const hours = await venue.venueHours('markets');
    expect(hours.map((hour) => hour.class)).toEqual(['observed', 'gap', 'gap', 'gap']);
    expect(hours[1]).toMatchObject({
      cause: 'poll_pause',
      fromMs: fromMs + 99 * STEP_MS,
      toMs: fromMs + 215 * STEP_MS,
    });
    expect(hours[2]).toMatchObject({
      cause: 'poll_pause',
      fromMs: fromMs + 99 * STEP_MS,
      toMs: fromMs + 215 * STEP_MS,
    });
  });

  it('counts no page as a success while the poll fails', async () => {
    const venue = await anUnpolledVenue([`m${made}`]);
    const fromMs = venue.nowMs;
    await polled(venue, 'markets', fromMs, upTo(40));
    await polled(venue, 'markets', fromMs, upTo(60, 40), 3);
    await polled(venue, 'markets', fromMs, upTo(120, 60));
    venue.nowMs = fromMs + 120 * STEP_MS;
    await venue.witness(venue.fields());
    const [hour] = await venue.venueHours('markets');
    expect(hour).toMatchObject({ class: 'gap', cause: 'poll_pause', pauseMs: 21 * STEP_MS });
  });

  it('is a gap of the market and the venue when a feed lost changes', async () => {
    const [market, other] = [`m${made}`, `o${made}`];
    const venue = await anUnpolledVenue([market, other]);
    const fromMs = venue.nowMs;
    await polled(
      venue,
      'prices',
      fromMs,
      Array.from({ length: 1_200 }, (_, step) => step / 10),
    );
    await test.db.query(FEED_GAP, [venue.venue, market, new Date(fromMs + 40 * STEP_MS).toISOString()]);
    venue.nowMs = fromMs + 120 * STEP_MS;
    await venue.witness(venue.fields());
    expect((await venue.venueHours('prices'))[0]).toMatchObject({ class: 'gap', cause: 'feed_gap', marketsGap: 1 });
    expect((await venue.hoursOf(market, 'prices'))[0]).toMatchObject({ class: 'gap', cause: 'feed_gap' });
    expect((await venue.hoursOf(other, 'prices'))[0]).toMatchObject({ class: 'observed' });
  });

  it('calls no hour observed that a pause or a gap of the feed touches, and no other hour a gap, with 200 losses at random', async () => {
    const market = `m${made}`;
    const venue = await anUnpolledVenue([market]);
    const [fromMs, random] = [venue.nowMs, randomFrom(20_261_127)];
    const losses: Record<string, { fromMs: number; toMs: number }[]> = { prices: [], books: [], markets: [] };
    let injected = 0;
    for (let hour = 1; hour < LOSS_HOURS - 1; hour += 1) {
      for (const kind of ['prices', 'books', 'markets'] as const) {
        if (injected === 200 || random(3) === 0) continue;
        injected += 1;
        const startMs = fromMs + hour * HOUR_MS + random(3_600) * 1_000;
        if (kind !== 'markets' && random(4) === 0) {
          await test.db.query(FEED_GAP, [venue.venue, market, new Date(startMs).toISOString()]);
          // The feed of books brings quotes too.
          for (const each of ['prices', 'books']) losses[each]?.push({ fromMs: startMs, toMs: startMs + STEP_MS });
        } else losses[kind]?.push({ fromMs: startMs, toMs: startMs + (5 + random(80)) * STEP_MS });
      }
    }
    expect(injected).toBe(200);
    const untilMs = fromMs + LOSS_HOURS * HOUR_MS;
    for (const [kind, everyMs] of [
      ['prices', 20_000],
      ['books', 20_000],
      ['markets', 60_000],
    ] as const) {
      // A loss of the feed is no pause of the polls.
      const pauses = losses[kind]?.filter((loss) => loss.toMs - loss.fromMs > STEP_MS) ?? [];
      const polls: number[] = [];
      for (let atMs = fromMs; atMs < untilMs; atMs += everyMs) {
        if (!pauses.some((pause) => atMs > pause.fromMs && atMs < pause.toMs)) polls.push(atMs);
      }
      await test.db.query(countedAll(venue.venue, kind, polls));
    }
    venue.nowMs = untilMs;
    for (let run = 0; run < 12; run += 1) await venue.witness(venue.fields());
    for (const kind of ['prices', 'books', 'markets'] as const) {
      const hours = await venue.venueHours(kind);
      expect(hours.length).toBeGreaterThanOrEqual(LOSS_HOURS - 2);
      const seen = new Set(hours.map((hour) => hour.class));
      expect([...seen].sort()).toEqual(['gap', 'observed']);
      for (const hour of hours) {
        // A pause lasts from the last success before it to the first one behind it.
        const touches = (marginMs: number) =>
          losses[kind]?.some(
            (loss) => loss.fromMs - marginMs < hour.startMs + HOUR_MS && loss.toMs + marginMs > hour.startMs,
          );
        const at = `${kind} ${new Date(hour.startMs).toISOString()} ${JSON.stringify(hour)}`;
        if (hour.class === 'observed') expect(touches(0), at).toBe(false);
        if (hour.class === 'gap') expect(touches(STEP_MS), at).toBe(true);
      }
    }
  });
});

/** Polls that succeed one after the other, in one statement. */
function countedAll(venue: string, kind: string, polls: readonly number[]) {
  return sqlPlannedPerCall(
    'test_counted_all',
    `DO $$ DECLARE at_ms bigint; BEGIN
       FOREACH at_ms IN ARRAY ARRAY[${polls.join(', ')}]::bigint[] LOOP
         INSERT INTO poll_state (venue, kind, last_success_at) VALUES ('${venue}', '${kind}', to_timestamp(at_ms / 1000.0))
         ON CONFLICT (venue, kind) DO UPDATE SET last_success_at = excluded.last_success_at, consecutive_failures = 0;
       END LOOP;
     END $$`,
  );
}
