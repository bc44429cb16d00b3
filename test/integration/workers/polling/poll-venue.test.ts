import { once } from 'node:events';
import type { Worker } from 'bullmq';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { concurrencyOf, POLL_QUEUE } from '../../../../src/queues/jobs.ts';
import { createProducer, type Producer } from '../../../../src/queues/producer.ts';
import { reconcileSchedules, schedulesOf, wakeVenuePolls } from '../../../../src/queues/schedules.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { pollBooks } from '../../../../workers/jobs/poll-books.ts';
import { pollMarkets } from '../../../../workers/jobs/poll-markets.ts';
import { pollPrices } from '../../../../workers/jobs/poll-prices.ts';
import { pollTrades } from '../../../../workers/jobs/poll-trades.ts';
import { pollVenue } from '../../../../workers/jobs/poll-venue.ts';
import { pollWallets } from '../../../../workers/jobs/poll-wallets.ts';
import { witnessTrades } from '../../../../workers/jobs/witness-trades.ts';
import { createProcessor } from '../../../../workers/process/define.ts';
import { lastPage, scriptedAdapter } from '../../../factories/venue-adapter.ts';
import { gate } from '../../../support/gate.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { BACKENDS, createTestBackend, isAvailable } from '../../../support/redis/queue-backends.ts';
import { capturedLog, jobContext, testConfig, until } from '../worker-harness.ts';

const POLLS = [pollVenue, pollMarkets, pollPrices, pollBooks, pollTrades, pollWallets, witnessTrades];
const CLEAR = sql('test_clear_polls', 'TRUNCATE poll_state');
const KINDS = sql(
  'test_polled_kinds',
  `SELECT kind, lease_until > now() AS is_leased FROM poll_state WHERE venue = 'polymarket' AND last_attempt_at IS NOT NULL ORDER BY kind`,
);

const test = useTestDatabase();
const closers: (() => Promise<unknown>)[] = [];
beforeEach(() => test.db.query(CLEAR));
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const kinds = () => test.db.query<{ kind: string; isLeased: boolean }>(KINDS);

describe.each(BACKENDS)('poll-venue on %s', (backendKind) => {
  describe.skipIf(!isAvailable(backendKind))('with the schedule of the poller', () => {
    /** A poller with the real processors and a scripted venue. `hold`: its catalog does not answer before this. */
    async function poller(hold: Promise<void> = Promise.resolve()) {
      const queues = await createTestBackend(backendKind, 2);
      const { log, lines } = capturedLog();
      const producer: Producer = createProducer({ backend: queues.backend, log });
      const stopping = new AbortController();
      let tapes = 0;
      const adapter = scriptedAdapter({
        venue: 'polymarket',
        markets: async () => {
          await hold;
          return lastPage();
        },
        trades: async () => {
          tapes += 1;
          return lastPage();
        },
      });
      const config = testConfig(test.url, { POLL_TRADES_MS: '100', POLL_PRICES_MS: '100', POLL_BOOKS_MS: '100' });
      const context = jobContext({ db: test.db, config, adapter, producer, log, stopping: stopping.signal });
      const processor = createProcessor(POLLS, context);
      const worker: Worker = queues.backend.worker(POLL_QUEUE, processor, concurrencyOf(POLL_QUEUE));
      worker.on('error', () => undefined);
      closers.push(
        () => Promise.resolve(stopping.abort()),
        () => worker.close(),
        () => context.pollLeases.close(),
        () => producer.close(),
        () => queues.close(),
      );
      const start = async () => {
        await reconcileSchedules(producer, schedulesOf('poller', config), Date.now());
        worker.run().catch(() => undefined);
      };
      return { start, config, producer, tapes: () => tapes, lines, stop: () => stopping.abort(), worker };
    }

    it('runs every kind of poll, goes on with trades while the catalog hangs, and frees all leases at the stop', async () => {
      const catalog = gate();
      const { start, tapes, stop, worker } = await poller(catalog.opened);
      await start();
      await until(
        async () => tapes(),
        (count) => count >= 10,
      );
      const polled = await until(kinds, (rows) => rows.length >= 4);
      expect(polled.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['books', 'prices', 'trades']));
      // The next job of the schedule ends the first one, and the polls go on in it.
      await once(worker, 'completed');
      const before = tapes();
      await until(
        async () => tapes(),
        (count) => count >= before + 10,
      );
      catalog.open();
      stop();
      await worker.close();
      expect((await kinds()).filter(({ isLeased }) => isLeased)).toEqual([]);
    });

    it('begins at once after a restart, and not at the next time of the schedule', async () => {
      const { config, producer, tapes, worker } = await poller();
      // The schedule of the process before, whose next job is not due.
      await producer
        .queue(POLL_QUEUE)
        .upsertJobScheduler(
          'poll-venue.polymarket',
          { every: 12_000, startDate: Date.now() + 600_000 },
          { name: 'poll-venue', data: { venue: 'polymarket' } },
        );
      await wakeVenuePolls(producer, config.venues, Date.now());
      worker.run().catch(() => undefined);
      await until(
        async () => tapes(),
        (count) => count > 0,
      );
    });

    it('polls nothing while the queue of the venue is paused', async () => {
      const { start, producer, tapes, worker } = await poller();
      await producer.queue('venue-polymarket').pause();
      const done = new Promise<unknown>((resolve) => worker.once('completed', (_job, result) => resolve(result)));
      await start();
      expect(await done).toEqual({ skipped: 'the queue of the venue is paused' });
      expect(tapes()).toBe(0);
    });
  });
});
