import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MARKET_STATUSES, type MarketRecord, type MarketStatus } from '../../../../src/domain/markets/market.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { findEvent, listEvents } from '../../../../src/store/catalog/market-event-reads.ts';
import { reconcileEvents } from '../../../../src/store/catalog/market-events.ts';
import { findMarket } from '../../../../src/store/catalog/market-reads.ts';
import { markMissing, missingMarkets, settleMissing } from '../../../../src/store/catalog/market-sightings.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const EVENTS = sql(
  'test_events',
  `SELECT event_id, title, category, url, status, xmin::text || ctid::text AS version FROM market_event
   WHERE venue = $1 ORDER BY event_id`,
);
const MARKETS = sql(
  'test_market_versions_of_rows',
  'SELECT xmin::text || ctid::text AS version FROM market WHERE venue = $1 ORDER BY id',
);
const NOW = Date.UTC(2026, 2, 1);

const test = useTestDatabase();
let venue = '';
let made = 0;
beforeAll(() => new Partitions(test.db).ensureAroundNow('price_history'));
beforeEach(() => {
  made += 1;
  venue = `v${made}`;
});

const market = (name: string, over: Partial<MarketRecord> = {}) =>
  aMarketRecord({ marketId: `${venue}-${name}`, eventId: 'e', eventTitle: 'Weather in May', ...over });
const write = (...page: MarketRecord[]) => test.db.transaction((tx) => writeMarkets(tx, venue, 'USD', page, NOW));
const rows = () => test.db.query<Record<string, unknown>>(EVENTS, [venue]);
const event = (eventId = 'e') => findEvent(test.db, [venue], eventId);

describe('writeMarkets with events', () => {
  it('stores the facts of the venue, exact decimal sums and the time span of the markets', async () => {
    await write(
      market('a', {
        category: 'Weather',
        tags: ['rain', 'may'],
        eventUrl: 'https://venue.test/e',
        createdAtMs: NOW + 5_000,
        openAtMs: NOW + 20_000,
        closeAtMs: NOW + 30_000,
        volume: decimal('12345678901234567890.000000000000000001'),
        volume24h: decimal('0.1'),
      }),
      market('b', {
        category: 'Weather',
        tags: ['may'],
        createdAtMs: NOW,
        openAtMs: NOW + 10_000,
        volume24h: decimal('0.2'),
      }),
      market('c', { category: 'Other', tags: [], closeAtMs: NOW + 40_000, volume: decimal('2') }),
    );
    expect(await event()).toMatchObject({
      venue,
      eventId: 'e',
      title: 'Weather in May',
      category: 'Weather',
      tags: ['may', 'rain'],
      url: 'https://venue.test/e',
      status: 'open',
      marketCount: 3,
      openAt: new Date(NOW + 10_000),
      closeAt: new Date(NOW + 40_000),
      volume: '12345678901234568892.500000000000000001',
      volume24h: '10.3',
    });
    expect((await event())?.createdAt).toEqual(new Date(Date.UTC(2026, 0, 1)));
  });

  it('rewrites neither event nor markets when only volumes change or nothing changes', async () => {
    const page = [market('a', { eventUrl: 'https://venue.test/e', siblingLabel: 'Rain' }), market('b')];
    await write(...page);
    const before = [await rows(), await test.db.query(MARKETS, [venue])];
    expect(await write(...page)).toMatchObject({ changed: 0 });
    await write(market('a', { ...page[0], volume: decimal('7') }));
    // This change of a market leaves the event unchanged.
    await write({ ...market('b'), description: 'In Rome.' });
    expect(await rows()).toEqual(before[0]);
    expect((await test.db.query(MARKETS, [venue])).slice(0, 1)).toEqual(before[1]?.slice(0, 1));
  });

  it('derives the status as the first of open, halted, created, closed, resolved, settled among the markets', async () => {
    const order: MarketStatus[] = ['open', 'halted', 'created', 'closed', 'resolved', 'settled'];
    expect([...order].sort()).toEqual([...MARKET_STATUSES].sort());
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...MARKET_STATUSES), { minLength: 1, maxLength: 4 }),
        fc.nat(3),
        fc.constantFrom(...MARKET_STATUSES),
        async (statuses, changed, next) => {
          made += 1;
          const eventId = `p${made}`;
          const one = (index: number, status: MarketStatus) => market(`${eventId}-${index}`, { eventId, status });
          await write(...statuses.map((status, index) => one(index, status)));
          expect((await event(eventId))?.status).toBe(order.find((status) => statuses.includes(status)));
          const after = statuses.map((status, index) => (index === changed ? next : status));
          if (changed < statuses.length) await write(one(changed, next));
          expect((await event(eventId))?.status).toBe(order.find((status) => after.includes(status)));
        },
      ),
      { numRuns: 60 },
    );
  });

  it('closes the event when its last market is gone from the venue', async () => {
    await write(market('a'), market('b', { status: 'resolved' }));
    const sweptAtMs = Date.now() + 60_000;
    await test.db.transaction((tx) => markMissing(tx, venue, sweptAtMs));
    const missing = await missingMarkets(test.db, venue, 10);
    expect(missing).toHaveLength(1);
    await test.db.transaction((tx) => settleMissing(tx, missing, missing));
    expect((await event())?.status).toBe('closed');
  });

  it('updates both events when a market moves between them', async () => {
    await write(market('a'), market('b', { status: 'settled' }));
    await write(market('a', { eventId: 'f', eventTitle: 'Weather in June' }));
    expect(await event()).toMatchObject({ status: 'settled', marketCount: 1 });
    expect(await event('f')).toMatchObject({ status: 'open', marketCount: 1, title: 'Weather in June' });
    await write(market('b', { eventId: 'f' }));
    expect(await event()).toMatchObject({ status: 'closed', marketCount: 0 });
  });

  it('keeps title and page of the event when a later record has only the event id', async () => {
    const { eventTitle: _title, ...untitled } = market('a');
    await write(market('a', { eventUrl: 'https://venue.test/e' }));
    expect(await write(untitled)).toMatchObject({ changed: 0 });
    await write({ ...untitled, status: 'halted' });
    expect(await event()).toMatchObject({ title: 'Weather in May', url: 'https://venue.test/e', status: 'halted' });
    expect(await findMarket(test.db, [venue], `${venue}-a`)).toMatchObject({ eventTitle: 'Weather in May' });
  });

  it('stores an event without a title, and takes the title from a later record', async () => {
    const { eventTitle: _title, ...untitled } = market('a');
    await write(untitled);
    expect(await event()).toMatchObject({ title: null, status: 'open' });
    await write(market('b'));
    expect(await event()).toMatchObject({ title: 'Weather in May', marketCount: 2 });
  });

  it('counts the markets of all writers when they write at once', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    await write(...names.map((name) => market(name)));
    await Promise.all(names.map((name) => write(market(name, { status: 'settled' }))));
    expect(await event()).toMatchObject({ status: 'settled', marketCount: 6 });
    await Promise.all(names.map((name) => write(market(`new-${name}`, { eventId: 'fresh', status: 'created' }))));
    expect(await event('fresh')).toMatchObject({ status: 'created', marketCount: 6 });
  });

  it('rolls back the event with the markets', async () => {
    const failed = test.db.transaction(async (tx) => {
      await writeMarkets(tx, venue, 'USD', [market('a')], NOW);
      throw new Error('stopped');
    });
    await expect(failed).rejects.toThrow('stopped');
    expect(await rows()).toEqual([]);
  });

  it('stores the market without an event when the event id is too long for an index', async () => {
    await write(market('a', { eventId: 'x'.repeat(5_000) }), market('b', { eventId: 'y'.repeat(200) }));
    expect((await rows()).map((row) => row['eventId'])).toEqual(['y'.repeat(200)]);
    expect(await reconcileEvents(test.db)).toBe(0);
    expect(await findMarket(test.db, [venue], `${venue}-a`)).toMatchObject({ eventId: 'x'.repeat(5_000) });
  });
});

describe('reconcileEvents', () => {
  it('adds missing events of older markets, and repairs a status that an older release wrote', async () => {
    await write(market('a', { category: 'Weather' }), market('b', { eventId: 'f', eventTitle: 'Weather in June' }));
    expect(await reconcileEvents(test.db)).toBe(0);
    const before = await rows();
    await test.db.query(sql('test_forget_event', `DELETE FROM market_event WHERE venue = $1 AND event_id = 'e'`), [
      venue,
    ]);
    await test.db.query(
      sql('test_older_release', `UPDATE market SET status = 'closed' WHERE venue = $1 AND event_id = 'f'`),
      [venue],
    );
    expect(await reconcileEvents(test.db)).toBe(2);
    expect(await rows()).toMatchObject([
      { eventId: 'e', title: 'Weather in May', category: 'Weather', status: 'open' },
      { eventId: 'f', title: 'Weather in June', status: 'closed', url: before[1]?.['url'] },
    ]);
    expect(await reconcileEvents(test.db)).toBe(0);
  });

  it('starts no batch after the abort', async () => {
    await write(market('a'));
    await test.db.query(sql('test_forget_events', `DELETE FROM market_event WHERE venue = $1`), [venue]);
    expect(await reconcileEvents(test.db, AbortSignal.abort())).toBe(0);
    expect(await event()).toBeNull();
    expect(await reconcileEvents(test.db)).toBe(1);
  });
});

describe('listEvents', () => {
  it('combines the filters status, category and words', async () => {
    const page = Array.from({ length: 300 }, (_, index) =>
      market(`m${index}`, {
        eventId: `e${index}`,
        eventTitle: `Weather ${index}`,
        category: index % 3 === 0 ? 'Rain' : 'Snow',
      }),
    );
    await write(...page);
    const all = await listEvents(test.db, { venues: [venue], limit: 1_000 });
    expect(all.events).toHaveLength(300);
    const rain = await listEvents(test.db, { venues: [venue], limit: 1_000, category: 'Rain', statuses: ['open'] });
    expect(rain.events).toHaveLength(100);
    const found = await listEvents(test.db, { venues: [venue], limit: 1_000, category: 'Snow', text: 'weather 29' });
    expect(found.events.map(({ eventId }) => eventId)).toEqual([
      'e299',
      'e298',
      'e296',
      'e295',
      'e293',
      'e292',
      'e290',
      'e29',
    ]);
  });
});
