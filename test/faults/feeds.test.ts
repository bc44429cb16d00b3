import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { SocketFault } from '../../sim/exchange.ts';
import { FEED_HOSTS } from '../../sim/feeds/socket-faults.ts';
import { sql } from '../../src/store/db/tx.ts';
import { readFeedStates } from '../../src/store/feeds/streamers.ts';
import { findPlaces, ledgerTape, MARKET_VENUES, type Places, storedTapes } from '../e2e/venue-ledger.ts';
import { quotesAgree } from '../integration/streamer/streamer-harness.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import { type Fleet, ofEach, startFleet } from '../support/processes/fleet.ts';
import { BACKENDS, isAvailable } from '../support/redis/queue-backends.ts';
import { replayCommand, SEED, streamOf } from './campaign/seed.ts';

const OWNERS = sql(
  'test_living_owners',
  `SELECT venue, part, owner FROM feed_part WHERE owner IS NOT NULL AND lease_until > clock_timestamp()`,
);
const OPEN_GAPS = sql('test_open_feed_gaps', 'SELECT venue, reason FROM feed_gap WHERE to_at IS NULL');
const GAPS = sql(
  'test_gap_reasons',
  'SELECT reason, count(DISTINCT gap)::int AS gaps FROM feed_gap GROUP BY reason ORDER BY 1',
);

/** Its markets have quotes on both sides. */
const EXCHANGE_SEED = 31;
/** Each lasts for some seconds on the feed of one venue. */
const FAULTS: readonly SocketFault[] = [
  { how: 'drop', share: 0.3 },
  { how: 'repeat', share: 0.3 },
  { how: 'reorder', share: 0.3 },
  { how: 'garbage', share: 0.3 },
  { how: 'arrays', share: 0.5 },
  { how: 'flood', times: 10 },
  { how: 'restart' },
  { how: 'reject', status: 429 },
  { how: 'reject', status: 401 },
  { how: 'reject', status: 403 },
  { how: 'close_large', maxIds: 100 },
  { how: 'freeze' },
  { how: 'half_open' },
];
/** Faults of one backend: FAULTS_KILLS for both together, by default every one on each. */
const COUNT = Math.ceil(Number(process.env['FAULTS_KILLS'] ?? BACKENDS.length * FAULTS.length) / BACKENDS.length);
const FAULT_MS = 3_000;
const QUOTED = ['polymarket', 'kalshi', 'limitless'] as const;
const WITHIN = { timeoutMs: 90_000, everyMs: 100 };

/** The faults of a backend in the order of the seed. Fewer faults than all of them differ between the backends. */
function faultsOf(kind: (typeof BACKENDS)[number]): SocketFault[] {
  const random = streamOf('feeds', 'order');
  const order = FAULTS.map((fault) => ({ fault, at: random.below(1_000_000) }))
    .sort((a, b) => a.at - b.at)
    .map(({ fault }) => fault);
  const first = BACKENDS.indexOf(kind) * COUNT;
  return Array.from({ length: COUNT }, (_, number) => order[(first + number) % order.length]).filter(
    (fault) => fault !== undefined,
  );
}

/** The lines of `all` that `some` lacks; equal lines count each. */
function without(all: readonly string[], some: readonly string[]): string[] {
  const left = new Map<string, number>();
  for (const line of some) left.set(line, (left.get(line) ?? 0) + 1);
  return all.filter((line) => {
    const count = left.get(line) ?? 0;
    left.set(line, count - 1);
    return count <= 0;
  });
}

describe.each(BACKENDS)('feeds with two streamers, queues on %s', (kind) => {
  describe.skipIf(!isAvailable(kind))(`seed ${SEED}`, () => {
    let database: TestDatabase;
    let fleet: Fleet;
    let places: Map<string, Places>;
    let tapeFrom: number;
    const random = streamOf('feeds', kind);
    const recovered: { fault: string; ms: number }[] = [];

    beforeAll(async () => {
      process.stdout.write(`\nfeeds on ${kind}: seed ${SEED}; again: ${replayCommand()}\n`);
      database = await createTestDatabase();
      const redisUrl = inject('redisUrl');
      fleet = await startFleet({
        databaseUrl: database.url,
        counts: { ...ofEach(1), streamer: 2 },
        ...(kind === 'redis' && redisUrl !== null && { redisUrl }),
        queuePrefix: `feeds${randomBytes(5).toString('hex')}`,
        exchange: { seed: EXCHANGE_SEED, markets: 10, rollingSeconds: 0, historyHours: 0.2, speed: 2 },
        environment: {
          VENUES: MARKET_VENUES.join(','),
          LIMITLESS_REQUESTS_PER_SECOND: '20',
          // Slow polls, so that the quotes come from the feeds.
          POLL_PRICES_MS: '20000',
          POLL_BOOKS_MS: '20000',
          POLL_TRADES_MS: '2000',
        },
      });
      places = await findPlaces(fleet.exchange);
      tapeFrom = fleet.exchange.second();
    });
    afterAll(async () => {
      if (process.env['FEED_LOGS'] !== undefined) {
        for (const { process: each } of fleet.membersOf('streamer'))
          process.stdout.write(`${each.lines.join('\n')}\n\n`);
      }
      process.stdout.write(
        `${JSON.stringify({ kind, seed: SEED, recovered, gaps: await database?.db.query(GAPS) })}\n`,
      );
      await fleet?.stop();
      await database?.drop();
    });

    const owners = async () => {
      const rows = await database.db.query<{ owner: string }>(OWNERS);
      return { parts: rows.length, streamers: new Set(rows.map(({ owner }) => owner)).size };
    };

    /** The stored quotes are those of the paused exchange. */
    async function settle(fault: string): Promise<void> {
      fleet.exchange.pause();
      const startedAtMs = performance.now();
      for (const venue of QUOTED) await quotesAgree(database.db, fleet.exchange, venue, WITHIN);
      recovered.push({ fault, ms: Math.round(performance.now() - startedAtMs) });
      fleet.exchange.resume();
    }

    it('both have parts, and all feeds are live', async () => {
      await eventually(owners, ({ streamers }) => streamers === 2, WITHIN);
      await eventually(
        async () => [...(await readFeedStates(database.db, MARKET_VENUES)).values()].map(({ state }) => state),
        (states) => states.length === 4 && states.every((state) => state === 'live'),
        WITHIN,
      );
      await settle('none');
    });

    it.each(faultsOf(kind).map((fault) => ({ fault })))(
      'quotes equal those of the exchange after $fault.how',
      async ({ fault }) => {
        const host = random.pick(FEED_HOSTS);
        const { id } = fleet.exchange.addFault({ host, kind: 'socket', socket: fault });
        await delay(FAULT_MS);
        fleet.exchange.clearFaults(id);
        await settle(`${fault.how} ${host}`);
      },
    );

    it('the parts of a killed streamer move, and come back in part after its restart', async () => {
      const [member] = fleet.membersOf('streamer');
      if (!member) throw new TypeError('no streamer');
      const { parts } = await eventually(owners, ({ streamers }) => streamers === 2, WITHIN);
      await member.process.end('SIGKILL');
      const killedMs = performance.now();
      await eventually(owners, (now) => now.streamers === 1 && now.parts === parts, WITHIN);
      recovered.push({ fault: 'parts of a killed streamer moved', ms: Math.round(performance.now() - killedMs) });
      await settle('killed');
      await fleet.start(member);
      await eventually(owners, (now) => now.streamers === 2 && now.parts === parts, WITHIN);
      await settle('restarted');
    });

    it('a stopped streamer that continues writes nothing older', async () => {
      const [, member] = fleet.membersOf('streamer');
      const { parts } = await eventually(owners, ({ streamers }) => streamers === 2, WITHIN);
      member?.process.signal('SIGSTOP');
      await eventually(owners, (now) => now.streamers === 1 && now.parts === parts, WITHIN);
      await delay(FAULT_MS);
      member?.process.signal('SIGCONT');
      await settle('stopped and continued');
    });

    it('every trade is stored once, and no gap stays open', async () => {
      const until = fleet.exchange.second();
      const { trades } = fleet.exchange.ledger();
      await eventually(
        async () => {
          const tapes = await storedTapes(database.db, tapeFrom, until);
          return MARKET_VENUES.flatMap((venue) => {
            const stored = tapes.get(venue) ?? [];
            const ledger = ledgerTape(venue, trades, places, tapeFrom, until);
            if (stored.join('\n') === ledger.join('\n')) return [];
            const [missing, surplus] = [without(ledger, stored), without(stored, ledger)];
            return [{ venue, trades: ledger.length, missing: missing.length, first: missing.slice(0, 3), surplus }];
          });
        },
        (incomplete) => incomplete.length === 0,
        { timeoutMs: 180_000, everyMs: 1_000 },
      );
      const open = await eventually(
        () => database.db.query<{ venue: string; reason: string }>(OPEN_GAPS),
        (rows) => rows.length === 0,
        WITHIN,
      );
      expect(open).toEqual([]);
    });
  });
});
