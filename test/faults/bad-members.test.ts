import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { FaultRequest } from '../../sim/exchange.ts';
import { sql } from '../../src/store/db/tx.ts';
import { findPlaces, MARKET_VENUES, type MarketVenue } from '../e2e/venue-ledger.ts';
import { anAccount, anAlert } from '../factories/alerts.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import { type System, startSystem } from '../support/processes/system.ts';
import { BACKENDS, isAvailable } from '../support/redis/queue-backends.ts';

/** Prices of open markets, and of the mints that alerts name, with their age. */
const PRICES = sql(
  'test_price_ages',
  `SELECT coalesce(m.venue, 'solana') AS venue, coalesce(m.venue_market_id, t.mint) AS market_id, t.mint AS outcome_id,
     (extract(epoch FROM c.as_of) * 1000)::float8 AS as_of_ms
   FROM current_price c JOIN token t ON t.id = c.token_id LEFT JOIN outcome o ON o.token_id = t.id LEFT JOIN market m ON m.id = o.market_id
   WHERE m.id IS NULL OR (m.status = 'open' AND m.gone_at IS NULL)`,
);
const BOOKS = sql(
  'test_book_ages',
  `SELECT m.venue, m.venue_market_id AS market_id, t.mint AS outcome_id, (extract(epoch FROM b.as_of) * 1000)::float8 AS as_of_ms
   FROM book_latest b JOIN token t ON t.id = b.token_id JOIN outcome o ON o.token_id = t.id JOIN market m ON m.id = o.market_id
   WHERE m.status = 'open' AND m.gone_at IS NULL`,
);
const NOW = sql('test_now', 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now_ms');
const REFUSED = sql(
  'test_refused_members',
  `SELECT venue, kind, record_id FROM quarantine WHERE reason = 'member_refused' ORDER BY venue, kind, record_id`,
);

interface Age {
  venue: string;
  marketId: string;
  outcomeId: string;
  asOfMs: number;
}

/** Venues whose prices are requested by ids, and venues with books. */
const PRICED_BY_ID = ['polymarket', 'manifold', 'solana'];
const WITH_BOOKS = ['polymarket', 'kalshi', 'limitless'];
const WAIT = { timeoutMs: 180_000, everyMs: 500 };

describe.each(BACKENDS)('ids that break the requests of every venue, queues on %s', (backend) => {
  if (!isAvailable(backend)) {
    it.skip('needs a Redis server', () => undefined);
    return;
  }
  let database: TestDatabase;
  let system: System;
  /** Two bad markets or mints of each venue, by the id that its requests name. */
  const bad = new Map<string, { ids: string[]; marketIds: string[] }>();

  const isBad = ({ venue, marketId }: Age) => bad.get(venue)?.marketIds.includes(marketId) === true;
  const pricesOf = async () =>
    (await database.db.query<Age>(PRICES)).filter(({ venue }) => PRICED_BY_ID.includes(venue));
  const booksOf = async () => (await database.db.query<Age>(BOOKS)).filter(({ venue }) => WITH_BOOKS.includes(venue));
  const nowMs = async () => (await database.db.query<{ nowMs: number }>(NOW))[0]?.nowMs ?? 0;
  const stale = async (sinceMs: number) => {
    const old = ({ asOfMs }: Age) => asOfMs <= sinceMs;
    const lines = (kind: string, ages: Age[]) =>
      ages.filter((age) => old(age) && !isBad(age)).map(({ venue, outcomeId }) => `${kind} ${venue} ${outcomeId}`);
    return [...lines('price', await pricesOf()), ...lines('book', await booksOf())];
  };

  beforeAll(async () => {
    database = await createTestDatabase();
    const redisUrl = inject('redisUrl');
    system = await startSystem({
      databaseUrl: database.url,
      ...(backend === 'redis' && redisUrl !== null && { redisUrl, queuePrefix: `members_${process.pid}` }),
      exchange: { seed: 12, markets: 14, rollingSeconds: 0, historyHours: 1 },
      environment: {
        VENUES: [...MARKET_VENUES, 'solana'].join(','),
        LIMITLESS_REQUESTS_PER_SECOND: '40',
        JUPITER_REQUESTS_PER_SECOND: '40',
      },
    });
    const account = await anAccount(database.db);
    const mints = system.exchange.solana.tokens().map(({ mint }) => mint);
    for (const mint of mints) {
      await database.db.transaction((tx) =>
        anAlert(tx, { accountId: account, mint, condition: 'above', target: '999999999' }),
      );
    }
    const places = [...(await findPlaces(system.exchange)).values()];
    const first = (venue: MarketVenue, isUsable: (place: (typeof places)[number]) => boolean = () => true) =>
      [...new Set(places.filter(isUsable).map((place) => place[venue].marketId))].slice(1, 3);
    for (const venue of ['kalshi', 'manifold', 'polymarket'] as const) {
      const marketIds = first(venue);
      const ids =
        venue === 'polymarket'
          ? places
              .filter((place) => marketIds.includes(place[venue].marketId))
              .flatMap((place) => [...place[venue].outcomeIds])
          : marketIds;
      bad.set(venue, { ids, marketIds });
    }
    const slugs = first('limitless', (place) => place.limitless.hasFeed);
    bad.set('limitless', { ids: slugs, marketIds: slugs });
    bad.set('solana', { ids: mints.slice(0, 2), marketIds: mints.slice(0, 2) });
  });
  afterAll(async () => {
    await system?.stop();
    await database?.drop();
  });

  it('every venue has prices and books before the fault', async () => {
    const kinds = async () => new Set([...(await pricesOf()), ...(await booksOf())].map(({ venue }) => venue)).size;
    await eventually(kinds, (venues) => venues === 5, WAIT);
  });

  it('leave the prices and books of all other ids fresh, and the bad ids in quarantine', async () => {
    const path: Record<string, Pick<FaultRequest, 'host' | 'path'>> = {
      polymarket: { host: 'clob', path: '/books' },
      kalshi: { host: 'kalshi', path: '/trade-api/v2/markets/orderbooks' },
      manifold: { host: 'manifold', path: '/v0/market-probs' },
      limitless: { host: 'limitless' },
      solana: { host: 'jupiter', path: '/price/v3' },
    };
    for (const [venue, { ids }] of bad) {
      const status = venue === 'solana' ? 400 : 500;
      system.exchange.addFault({ ...path[venue], kind: 'bad_member', members: { ids, status } } as FaultRequest);
    }
    await eventually(
      async () => new Set((await database.db.query<{ venue: string }>(REFUSED)).map(({ venue }) => venue)).size,
      (venues) => venues === bad.size,
      WAIT,
    );
    // From here on, the processes read everything beside the bad ids.
    const sinceMs = await nowMs();
    await eventually(
      () => stale(sinceMs),
      (ids) => ids.length === 0,
      WAIT,
    );
    const refused = await database.db.query<{ venue: string; recordId: string }>(REFUSED);
    for (const { venue, recordId } of refused) expect(bad.get(venue)?.ids).toContain(recordId);
  });

  it('are read again after they heal, at the latest at their retry time', async () => {
    system.exchange.clearFaults();
    const sinceMs = await nowMs();
    const healed = async () => {
      const ages = [...(await pricesOf()), ...(await booksOf())].filter(isBad);
      return { ids: ages.length, old: ages.filter(({ asOfMs }) => asOfMs <= sinceMs).length };
    };
    await eventually(healed, ({ ids, old }) => ids > 0 && old === 0, { timeoutMs: 500_000, everyMs: 1_000 });
  });

  it('of which two fail only beside each other leave every price fresh', async () => {
    const ids = bad.get('manifold')?.ids ?? [];
    system.exchange.addFault({
      host: 'manifold',
      path: '/v0/market-probs',
      kind: 'bad_member',
      members: { ids, together: true },
    });
    const sinceMs = await nowMs();
    const old = async () =>
      (await pricesOf()).filter(({ venue, asOfMs }) => venue === 'manifold' && asOfMs <= sinceMs).length;
    await eventually(old, (count) => count === 0, WAIT);
  });
});
