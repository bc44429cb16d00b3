import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { VARIABLES } from '../../src/config/variables.ts';
import { VENUES } from '../../src/domain/markets/venue.ts';
import { sql } from '../../src/store/db/tx.ts';
import { findPlaces, ledgerTape, MARKET_VENUES, storedTapes } from '../e2e/venue-ledger.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import { type BusyCore, startBusyCore } from '../support/processes/busy-core.ts';
import { type Fleet, ofEach, startFleet } from '../support/processes/fleet.ts';
import { hasProgram } from '../support/processes/has-program.ts';
import { API_KEY, WEBHOOK_SECRET } from '../support/processes/system.ts';
import { BACKENDS, isAvailable } from '../support/redis/queue-backends.ts';
import { openSse } from '../support/sse.ts';

/** Endless loops beside the processes of oddswire on one core: about half of it is left. */
const LOOPS = 4;
/** The machine needs as long as it needs; this ends a test that hangs. */
const WITHIN = { timeoutMs: 500_000, everyMs: 1_000 };
/** The trades of so many seconds are compared. */
const TAPE_SECONDS = 60;
const INTERVALS = ['POLL_MARKETS_MS', 'POLL_PRICES_MS', 'POLL_TRADES_MS', 'POLL_BOOKS_MS', 'POLL_WALLETS_MS'] as const;

const POLLS = sql(
  'test_slow_polls',
  'SELECT venue, kind, last_success_at, idle_at, last_error, consecutive_failures FROM poll_state ORDER BY venue, kind',
);

interface Listed {
  market_id: string;
  outcomes: { outcome_id: string }[];
}
interface Venue {
  venue: string;
  healthy: boolean;
  failing?: { kind: string; reason: string }[];
  feed?: { state: string; reason?: string };
}

describe.each(BACKENDS)('oddswire at its default intervals on about half a core, queues on %s', (kind) => {
  describe.skipIf(!isAvailable(kind) || !hasProgram('taskset', 'a slow machine'))('is slow, and not wrong:', () => {
    let database: TestDatabase;
    let fleet: Fleet;
    let core: BusyCore;
    const lines: string[] = [];

    beforeAll(async () => {
      database = await createTestDatabase();
      core = startBusyCore(LOOPS);
      const redisUrl = inject('redisUrl');
      const defaults = INTERVALS.map((name) => [name, VARIABLES[name].default ?? '']);
      fleet = await startFleet({
        databaseUrl: database.url,
        counts: { ...ofEach(1), streamer: 1 },
        ...(kind === 'redis' && redisUrl !== null && { redisUrl, queuePrefix: `slow${Date.now()}` }),
        exchange: { seed: 21, markets: 10, rollingSeconds: 0, historyHours: 1 },
        environment: { ...Object.fromEntries(defaults), VENUES: MARKET_VENUES.join(','), ...core.environment },
        startLimitMs: 400_000,
        listenerOf: () => ({ line: (text) => void lines.push(text) }),
      });
    });
    afterAll(async () => {
      await fleet?.stop();
      core?.stop();
      await database?.drop();
    });

    /** The market of each venue for which `arrives` holds. */
    async function eachVenue(
      arrives: (venue: string, market: Listed) => Promise<boolean>,
      only: readonly string[] = MARKET_VENUES,
    ) {
      for (const venue of only) {
        await eventually(
          async () => {
            const markets = await fleet.read<Listed[]>(`/v1/${venue}/markets?status=open&limit=20`);
            for (const market of markets) if (await arrives(venue, market)) return true;
            return false;
          },
          Boolean,
          WITHIN,
        );
      }
    }
    const hasRows =
      (path: string) =>
      async (venue: string, { market_id, outcomes }: Listed) => {
        const outcome = encodeURIComponent(outcomes[0]?.outcome_id ?? '');
        const address = `/v1/${venue}/markets/${encodeURIComponent(market_id)}/${path}`.replace('OUTCOME', outcome);
        return (await fleet.read<unknown[]>(address)).length > 0;
      };

    it('prices, books, trades, candles and snapshots of each venue arrive', async () => {
      await eachVenue(async (venue, { market_id }) => {
        const path = `/v1/${venue}/markets/${encodeURIComponent(market_id)}/prices`;
        const found = await fleet.read<{ outcomes: { price?: number }[] }>(path).catch(() => undefined);
        return found?.outcomes.some(({ price }) => price !== undefined) ?? false;
      });
      const withBooks = MARKET_VENUES.filter((venue) => VENUES[venue].capabilities.books);
      await eachVenue(async (venue, { market_id }) => {
        const path = `/v1/${venue}/markets/${encodeURIComponent(market_id)}/orderbook`;
        const found = await fleet.read<{ bids: unknown[]; asks: unknown[] }>(path).catch(() => undefined);
        return found !== undefined && found.bids.length + found.asks.length > 0;
      }, withBooks);
      await eachVenue(hasRows('trades'));
      await eachVenue(hasRows('candles?interval=1m'));
      await eachVenue(hasRows('snapshots?interval=1m'));
    });

    it('every trade of a minute is stored once', async () => {
      const from = fleet.exchange.second() + 5;
      const until = from + TAPE_SECONDS;
      await eventually(
        async () => fleet.exchange.second(),
        (second) => second > until,
        WITHIN,
      );
      const places = await findPlaces(fleet.exchange);
      for (const venue of MARKET_VENUES) {
        const truth = ledgerTape(venue, fleet.exchange.ledger().trades, places, from, until);
        await eventually(
          async () => (await storedTapes(database.db, from, until)).get(venue) ?? [],
          (stored) => isDeepStrictEqual(stored, truth),
          WITHIN,
        );
      }
    });

    it('an alert fires and its webhook gets the event, and a stream gets prices', async () => {
      const stream = await openSse(`${fleet.apis()[0]}/v1/all/stream?channels=prices`, {
        authorization: `Bearer ${API_KEY}`,
      });
      try {
        await stream.next(({ event }) => event === 'price', WITHIN.timeoutMs);
      } finally {
        stream.close();
      }
      await fleet.call('POST', '/v1/webhooks', {
        url: fleet.receiver.url,
        events: ['price_alert'],
        secret: WEBHOOK_SECRET,
      });
      const [market] = await fleet.read<Listed[]>('/v1/polymarket/markets?status=open&limit=1');
      await fleet.call('POST', '/v1/alerts', {
        tokenMint: market?.outcomes[0]?.outcome_id,
        condition: 'above',
        price: 0.000001,
      });
      await eventually(
        async () => fleet.receiver.requests.length,
        (count) => count > 0,
        WITHIN,
      );
    });

    it('every poll works, every feed is live, no venue is blamed and no breaker opened', async () => {
      await eventually(
        async () => ({
          venues: await fleet.read<Venue[]>('/v1/venues'),
          polls: await database.db.query(POLLS),
        }),
        ({ venues }) =>
          venues.length === MARKET_VENUES.length &&
          venues.every(({ healthy, failing, feed }) => healthy && !failing && feed?.state === 'live'),
        WITHIN,
      );
      const logged = lines.flatMap((text) =>
        text.startsWith('{') ? [JSON.parse(text) as Record<string, unknown>] : [],
      );
      expect(logged.filter(({ msg }) => msg === 'venue circuit breaker')).toEqual([]);
      const blamed = logged.filter(({ msg, code }) => msg === 'poll failed' && code !== 'process_late');
      expect(blamed).toEqual([]);
      expect(lines.filter((text) => /^\(node:\d+\) \w*Warning: /.test(text))).toEqual([]);
    });
  });
});
