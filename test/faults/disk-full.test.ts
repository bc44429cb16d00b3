import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { sql } from '../../src/store/db/tx.ts';
import type { TestCluster } from '../support/postgres/embedded-cluster.ts';
import { canMount, mountSmallDisk, type SmallDisk } from '../support/postgres/small-disk.ts';
import { BACKENDS, isAvailable } from '../support/redis/queue-backends.ts';
import { ApiWatch } from './campaign/api-watch.ts';
import { type Campaign, startCampaign } from './campaign/campaign.ts';
import { type OwnPostgres, startOwnPostgres } from './campaign/own-postgres.ts';

const SIZE_MEGABYTES = 500;
const FULL_MS = 6_000;
/** More than the server keeps ready. */
const WAL_FILES = 15;
/** The interval of a supervisor's attempts to restart an ended server. */
const START_EVERY_MS = 500;

const NEXT_WAL_FILE = sql('test_next_wal_file', 'SELECT pg_switch_wal()');

let disk: SmallDisk | undefined;
let postgres: OwnPostgres | undefined;
let supervisor: Supervisor | undefined;
let campaign: Campaign | undefined;
afterEach(async () => {
  await campaign?.stop();
  await disk?.clear();
  await supervisor?.stop();
  await postgres?.stop();
  await disk?.unmount();
  campaign = undefined;
  supervisor = undefined;
  postgres = undefined;
  disk = undefined;
});

interface Supervisor {
  /** How often the server had ended. */
  readonly ends: number;
  /** Resolves when the server runs; it is not restarted afterwards. */
  stop(): Promise<void>;
}

/** Starts the server each time it ends. */
function supervise(server: TestCluster): Supervisor {
  let isOver = false;
  let ends = 0;
  let wasRunning = true;
  const keepRunning = async () => {
    for (;;) {
      const isRunning = await server.isRunning();
      if (wasRunning && !isRunning) ends += 1;
      wasRunning = isRunning;
      if (!isRunning) {
        // The start fails while the disk has no room for its log.
        await server.start().catch((error: unknown) => {
          if (isOver) throw error;
        });
      } else if (isOver) return;
      await delay(START_EVERY_MS);
    }
  };
  const running = keepRunning();
  return {
    get ends() {
      return ends;
    },
    async stop() {
      isOver = true;
      await running;
    },
  };
}

const isPossible = await canMount('the full disk of Postgres is');

describe.each(BACKENDS)('writes during a full disk of Postgres, queues on %s', (backend) => {
  it.skipIf(!isPossible || !isAvailable(backend))('are rejected, and succeed when there is room', async () => {
    disk = await mountSmallDisk({ sizeMegabytes: SIZE_MEGABYTES });
    const full = disk;
    const own = await startOwnPostgres({ dataDir: disk.path });
    postgres = own;
    const running = await startCampaign({ name: 'disk full', backend, database: own.database });
    campaign = running;
    const { random, fleet, load } = running;
    const watch = new ApiWatch(fleet, load.webhookIds[0]);
    supervisor = supervise(own.server);
    // First only tables have no room; then the log has none either, and the server ends.
    for (const isLogFull of [false, true, true]) {
      await delay(random.between(500, 3_000));
      await running.blow(isLogFull ? 'log too' : 'tables', async () => {
        full.fill();
        // The current file may have room for long, so the server switches to the next ones.
        for (let file = 0; isLogFull && file < WAL_FILES && (await own.server.isRunning()); file++) {
          await own.database.db
            .query(NEXT_WAL_FILE)
            .catch((error: unknown) => running.log.note('no more log', { error: String(error) }));
          await delay(200);
        }
        await delay(random.between(1_000, FULL_MS));
        await full.clear();
      });
      await running.recovered();
    }
    await supervisor.stop();
    expect(supervisor.ends).toBeGreaterThan(0);
    await watch.stop();
    expect(watch.improper).toEqual([]);
    expect([...watch.counts.keys()].sort()).toEqual(['200', '202', '503 not_ready']);
    await running.expectNothingLost({ mayFailJobs: true });
  });
});
