import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../../src/domain/markets/market.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { markMissing, missingMarkets, settleMissing } from '../../../../src/store/catalog/market-sightings.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aCatalogPage, aMarketRecord } from '../../../factories/markets.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const STATS = sql(
  'test_sighting',
  `SELECT s.seen_at, s.missing_since IS NOT NULL AS is_missing, s.xmin::text || s.ctid::text AS version
   FROM market_stats s JOIN market m ON m.id = s.market_id WHERE m.venue = $1 AND m.venue_market_id = 'm'`,
);
const MARKET = sql(
  'test_gone',
  `SELECT status, gone_at IS NOT NULL AS is_gone, gone_at = updated_at AS at_once, title,
     (SELECT array_agg(facts->>'status' ORDER BY known_until) FROM market_version WHERE market_id = m.id) AS were
   FROM market m WHERE venue = $1 AND venue_market_id = 'm'`,
);
const VOLUME = sql(
  'test_volume',
  `SELECT s.volume::text FROM market_stats s JOIN market m ON m.id = s.market_id
   WHERE m.venue = $1 AND m.venue_market_id = 'm'`,
);
/** Each stored row version with its transaction and lock stamps. */
const ROWS = (table: string) =>
  sql(`test_rows_${table}`, `SELECT xmin::text, xmax::text, ctid::text FROM ${table} ORDER BY ctid`);

const SWEEP = Date.UTC(2026, 2, 1);
const LATER = SWEEP + 3_600_000;

const test = useTestDatabase();
let venue = '';
let made = 0;
beforeAll(() => new Partitions(test.db).ensureAroundNow('price_history'));
beforeEach(() => {
  made += 1;
  venue = `v${made}`;
});

const market = (over: Partial<MarketRecord> = {}) =>
  aMarketRecord({ marketId: 'm', outcomes: [{ outcomeId: `${venue}:yes`, label: 'Yes' }], ...over });
const write = (page: readonly MarketRecord[], options: { nowMs?: number; sweepMs?: number } = {}) =>
  test.db.transaction((tx) => writeMarkets(tx, venue, 'USD', page, options.nowMs ?? LATER, options.sweepMs));
const miss = (sweepMs = SWEEP) => test.db.transaction((tx) => markMissing(tx, venue, sweepMs));
const missing = () => missingMarkets(test.db, venue, 10);
const sighting = async () =>
  (await test.db.query<{ seenAt: Date | null; isMissing: boolean; version: string }>(STATS, [venue]))[0];
const stored = async () => (await test.db.query<Record<string, unknown>>(MARKET, [venue]))[0];
/** Asks for all missing markets, and the venue knows none of them. */
const goneAll = async () => {
  const asked = await missing();
  return test.db.transaction((tx) => settleMissing(tx, asked, asked));
};

describe('writeMarkets', () => {
  it('stamps sightings of a sweep with the start of the sweep, once', async () => {
    await write([market()], { sweepMs: SWEEP });
    const first = await sighting();
    expect(first).toMatchObject({ seenAt: new Date(SWEEP), isMissing: false });
    await write([market()], { sweepMs: SWEEP });
    expect(await sighting()).toEqual(first);
    await write([market()], { sweepMs: LATER });
    expect((await sighting())?.seenAt).toEqual(new Date(LATER));
  });

  it('stamps sightings outside a sweep only when it writes the row anyway', async () => {
    await write([market()], { nowMs: SWEEP });
    const first = await sighting();
    expect(first?.seenAt).toEqual(new Date(SWEEP));
    await write([market()], { nowMs: LATER });
    expect(await sighting()).toEqual(first);
    await write([market({ volume: decimal('7') })], { nowMs: LATER });
    expect((await sighting())?.seenAt).toEqual(new Date(LATER));
  });

  it('keeps a newer stamp when an older sweep resumes late', async () => {
    await write([market()], { sweepMs: LATER });
    await write([market({ volume: decimal('7') })], { sweepMs: SWEEP });
    expect((await sighting())?.seenAt).toEqual(new Date(LATER));
  });
});

describe('writeMarkets with a cached record', () => {
  const volumeOf = async () => (await test.db.query<{ volume: string | null }>(VOLUME, [venue]))[0]?.volume;

  it('keeps the volumes of a later sighting, and counts the market in the sweep', async () => {
    await write([market({ volume: decimal('9') })], { nowMs: LATER });
    await write([market({ volume: decimal('7'), ageMs: 60_000 })], { nowMs: LATER + 30_000 });
    expect(await volumeOf()).toBe('9');
    const sweepMs = LATER + 30_000;
    await write([market({ volume: decimal('7'), ageMs: 60_000 })], { nowMs: sweepMs, sweepMs });
    expect(await volumeOf()).toBe('9');
    expect((await sighting())?.seenAt).toEqual(new Date(sweepMs));
  });

  it('updates the volumes when the record is newer than the last sighting', async () => {
    await write([market({ volume: decimal('7') })], { nowMs: LATER });
    await write([market({ volume: decimal('9'), ageMs: 60_000 })], { nowMs: LATER + 90_000 });
    expect(await volumeOf()).toBe('9');
    expect((await sighting())?.seenAt).toEqual(new Date(LATER + 30_000));
  });
});

describe('markMissing', () => {
  it.each(['created', 'open', 'halted'] as const)(
    'reports a market with status %s that the sweep did not list',
    async (status) => {
      await write([market({ status })], { nowMs: SWEEP - 1 });
      expect(await miss()).toBe(1);
      expect(await missing()).toMatchObject([{ marketId: 'm' }]);
      expect(await miss()).toBe(0);
    },
  );

  it.each(['closed', 'resolved', 'settled'] as const)('ignores a %s market', async (status) => {
    await write([market({ status })], { nowMs: SWEEP - 1 });
    expect(await miss()).toBe(0);
  });

  it('ignores a market that any page listed since the start of the sweep, and a market first seen since', async () => {
    await write([market()], { nowMs: SWEEP });
    expect(await miss()).toBe(0);
    await write([market()], { nowMs: LATER, sweepMs: LATER });
    expect(await miss(LATER)).toBe(0);
  });

  it('ignores markets of other venues', async () => {
    await write([market()], { nowMs: SWEEP - 1 });
    venue = `${venue}-other`;
    expect(await miss()).toBe(0);
    expect(await missing()).toEqual([]);
  });

  it.each([
    ['a page of a sweep', { sweepMs: LATER }],
    ['any page', {}],
  ])('no longer reports a missing market after %s lists it', async (_name, options) => {
    await write([market()], { nowMs: SWEEP - 1 });
    await miss();
    await write([market()], options);
    expect(await sighting()).toMatchObject({ isMissing: false });
    expect(await missing()).toEqual([]);
  });
});

describe('a sweep that includes closed markets', () => {
  const missClosed = () => test.db.transaction((tx) => markMissing(tx, venue, SWEEP, true));

  it('reports a closed market that no page named as missing, once', async () => {
    await write([market({ status: 'closed' })], { nowMs: SWEEP - 1 });
    expect(await missClosed()).toBe(1);
    expect(await missing()).toMatchObject([{ marketId: 'm' }]);
    expect(await missClosed()).toBe(0);
  });

  it('reports it again while it has no result, and never again once it has one', async () => {
    await write([market({ status: 'closed' })], { nowMs: SWEEP - 1 });
    await missClosed();
    const asked = await missing();
    await test.db.transaction((tx) => settleMissing(tx, asked, []));
    expect(await missClosed()).toBe(1);
    await write([market({ status: 'resolved' })], { nowMs: SWEEP - 1 });
    expect(await missClosed()).toBe(0);
    expect(await stored()).toMatchObject({ status: 'resolved' });
  });

  it('marks a closed market that the venue does not know any more as gone, and does not request it again', async () => {
    await write([market({ status: 'closed' })], { nowMs: SWEEP - 1 });
    await missClosed();
    expect(await goneAll()).toBe(1);
    expect(await stored()).toMatchObject({ status: 'closed', isGone: true });
    expect(await missClosed()).toBe(0);
  });
});

describe('settleMissing', () => {
  const lose = async (over: Partial<MarketRecord> = {}) => {
    await write([market(over)], { nowMs: SWEEP - 1 });
    await miss();
    return goneAll();
  };

  it('closes an unknown market, keeps a version of its last state, and does not request it again', async () => {
    expect(await lose({ status: 'halted' })).toBe(1);
    expect(await stored()).toMatchObject({ status: 'closed', isGone: true, atOnce: true, were: ['halted'] });
    expect(await missing()).toEqual([]);
    expect(await miss(LATER)).toBe(0);
  });

  it('lets a gone market return when it is listed again, changed or not', async () => {
    await lose();
    expect(await write([market()])).toMatchObject({ changed: 1 });
    expect(await stored()).toMatchObject({ status: 'open', isGone: false, were: ['open', 'closed'] });
    expect(await write([market()])).toMatchObject({ changed: 0 });
  });

  it('lets a gone market return with its stored fields when a summary lists it', async () => {
    await lose({ title: 'T', description: 'Long.' });
    await write([market({ title: 'T', description: '', isSummary: true })]);
    expect(await stored()).toMatchObject({ status: 'open', isGone: false, title: 'T' });
    expect(await write([market({ title: 'T', description: 'Long.' })])).toMatchObject({ changed: 0 });
  });

  it('ignores a market that was listed or closed after it went missing', async () => {
    await write([market()], { nowMs: SWEEP - 1 });
    await miss();
    const asked = await missing();
    await write([market()]);
    expect(await test.db.transaction((tx) => settleMissing(tx, asked, asked))).toBe(0);
    expect(await stored()).toMatchObject({ status: 'open', isGone: false, were: null });
  });

  it('clears the missing state of markets that the venue knows', async () => {
    await write([market()], { nowMs: SWEEP - 1 });
    await miss();
    const asked = await missing();
    expect(await test.db.transaction((tx) => settleMissing(tx, asked, []))).toBe(0);
    expect(await missing()).toEqual([]);
    expect(await stored()).toMatchObject({ status: 'open', isGone: false });
  });
});

describe('writeMarkets with thousands of markets', () => {
  const MARKETS = 2_000;
  const PAGE = 500;
  const sync = async (sweepMs: number) => {
    let changed = 0;
    for (let from = 0; from < MARKETS; from += PAGE) {
      changed += (await write(aCatalogPage(from, PAGE), { sweepMs, nowMs: sweepMs })).changed;
    }
    return changed;
  };

  it('writes and locks no market, outcome or version in a second sync, and writes each sighting once', async () => {
    const tables = ['market', 'outcome', 'token', 'market_version'].map(ROWS);
    const read = () => Promise.all(tables.map((rows) => test.db.query(rows)));
    expect(await sync(SWEEP)).toBe(MARKETS);
    const before = await read();
    const stats = await test.db.query<{ ctid: string }>(ROWS('market_stats'));
    expect(await sync(SWEEP)).toBe(0);
    expect(await test.db.query(ROWS('market_stats'))).toEqual(stats);
    expect(await sync(LATER)).toBe(0);
    const stamped = await test.db.query<{ ctid: string }>(ROWS('market_stats'));
    const places = new Set(stats.map((row) => row.ctid));
    expect(stamped.filter((row) => places.has(row.ctid)).length).toBeLessThan(stats.length / 2);
    expect(await read()).toEqual(before);
    expect(await miss(LATER)).toBe(0);
  });
});
