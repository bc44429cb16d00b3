import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { readJournalHead } from '../../src/store/journal/read-journal.ts';
import { eventually } from '../support/eventually.ts';
import { ofEach } from '../support/processes/fleet.ts';
import { BACKENDS, isAvailable } from '../support/redis/queue-backends.ts';
import { type RedisServer, spawnRedisServer } from '../support/redis/redis.ts';
import { type Campaign, startCampaign } from './campaign/campaign.ts';
import { type OwnPostgres, startOwnPostgres } from './campaign/own-postgres.ts';
import { type StreamReader, startReaders } from './campaign/stream-clients.ts';
import { differences, holes, readLedger, wrongFacts } from './campaign/stream-ledger.ts';

/** On both backends together. */
const KILLS = Math.ceil(Number(process.env['FAULTS_KILLS'] ?? 200) / BACKENDS.length);
const READERS = 200;
const KILLS_IN_A_ROW = 5;
const AWAY_MS = 1_500;
const CATCH_UP_MS = 60_000;
const KILL_LIMIT_MS = 6_000;
const LIMIT_MS = 420_000 + KILLS * KILL_LIMIT_MS;

/** The processes that host the publisher, the API processes, the database, and the queue store. */
const VICTIMS = ['aggregator', 'api', 'postgres', 'redis'] as const;

let campaign: Campaign | undefined;
let postgres: OwnPostgres | undefined;
let redis: RedisServer | undefined;
let readers: readonly StreamReader[] = [];
afterEach(async () => {
  await Promise.all(readers.map((reader) => reader.stop()));
  await campaign?.stop();
  await postgres?.stop();
  await redis?.stop();
  readers = [];
  campaign = undefined;
  postgres = undefined;
  redis = undefined;
});

describe.each(BACKENDS)('streams under kills of their servers, queues on %s', (backend) => {
  it.skipIf(!isAvailable(backend))(
    `have every change of the journal or name the gap, for ${READERS} readers and ${KILLS} kills`,
    async () => {
      const own = await startOwnPostgres();
      postgres = own;
      const store = backend === 'redis' ? await spawnRedisServer() : undefined;
      redis = store;
      const running = await startCampaign({
        name: 'streams',
        backend,
        database: own.database,
        ...(store && { redisUrl: `redis://127.0.0.1:${store.port}` }),
        counts: { ...ofEach(1), api: 3, aggregator: 2 },
        environment: { STREAM_CONNECTIONS_PER_ACCOUNT: String(READERS * 2) },
      });
      campaign = running;
      const { random, fleet, keeper } = running;
      const { db } = own.database;
      const markets = fleet.exchange.state().markets.map(({ conditionId }) => conditionId);
      readers = startReaders(fleet, { count: READERS, marketIds: markets, random });

      async function strike(victim: (typeof VICTIMS)[number]): Promise<void> {
        if (victim === 'aggregator' || victim === 'api') return keeper.kill(random.pick(fleet.membersOf(victim)));
        const server = victim === 'postgres' ? own.server : store;
        await server?.kill();
        await delay(random.between(0, AWAY_MS));
        await server?.start();
      }

      const victims = VICTIMS.filter((victim) => victim !== 'redis' || store);
      for (let kills = 0; kills < KILLS; ) {
        for (let inARow = 0; inARow < KILLS_IN_A_ROW && kills < KILLS; inARow += 1, kills += 1) {
          const victim = random.pick(victims);
          await running.blow(`kill ${victim}`, () => strike(victim));
          await delay(random.between(20, 1_500));
        }
        await running.recovered();
      }
      await keeper.whole();

      const { seq } = await readJournalHead(db);
      await eventually(
        async () => readers.filter(({ confirmed }) => confirmed < seq).length,
        (behind) => behind === 0,
        { timeoutMs: CATCH_UP_MS },
      );
      await Promise.all(readers.map((reader) => reader.stop()));
      const ledger = await readLedger(db, seq);
      expect(holes(ledger)).toEqual([]);
      expect(readers.flatMap(({ violations }) => violations).slice(0, 10)).toEqual([]);
      expect(readers.flatMap((reader) => differences(reader, ledger, seq)).slice(0, 10)).toEqual([]);
      const changes = readers.reduce((sum, { log }) => sum + log.length, 0);
      const connections = readers.reduce((sum, reader) => sum + reader.connections, 0);
      process.stdout.write(
        `streams on ${backend}: ${ledger.length} changes, ${changes} received, ${connections} connections\n`,
      );
      expect(changes).toBeGreaterThan(READERS);
      await running.expectNothingLost({ mayFailJobs: true });
      expect(await wrongFacts(db)).toEqual({ unpublished: [], twice: [], quotes: [] });
    },
    LIMIT_MS,
  );
});
