import { feedOffReason } from '../../src/config/feeds.ts';
import { isTapeBehind } from '../../src/domain/markets/trade-tape.ts';
import { VENUES } from '../../src/domain/markets/venue.ts';
import { DAY_MS } from '../../src/domain/values/durations.ts';
import { type Collector, MarkAges } from '../../src/observe/collectors.ts';
import { JOBS, queuesOfRole, type Role } from '../../src/queues/jobs.ts';
import { pollsOf } from '../../src/queues/schedules.ts';
import { QUEUE_STATES, queueState } from '../../src/queues/state.ts';
import { oldestOverdueSeconds } from '../../src/store/deliveries/due.ts';
import { countOpenGaps } from '../../src/store/feeds/gaps.ts';
import { readFeedStates } from '../../src/store/feeds/streamers.ts';
import { readJournalHead } from '../../src/store/journal/read-journal.ts';
import { journalPartitions } from '../../src/store/journal/retention.ts';
import { countDueDeliveries, pollAges, stageStates, storageState, walletAges } from '../../src/store/marks/backlog.ts';
import { STAGES } from '../../src/store/marks/detail.ts';
import { readFreshness } from '../../src/store/prices/freshness.ts';
import { refoldProgress, refoldShare } from '../../src/store/series/candle-refold.ts';
import { readVenueCompleteness } from '../../src/store/series/completeness.ts';
import type { WorkerDeps } from './deps.ts';

/** The gauges that the processes of a role read from the database and the queue store at a scrape. Each role measures its own part. */
export function gaugesOf(role: Role, deps: WorkerDeps): Collector[] {
  return [queueGauges(role, deps), ...ROLE_GAUGES[role](deps)];
}

const ROLE_GAUGES: Record<Role, (deps: WorkerDeps) => Collector[]> = {
  poller: (deps) => [
    pollGauges(deps),
    completenessGauges(deps),
    ...(deps.walletAdapters.size > 0 ? [walletGauges(deps)] : []),
  ],
  aggregator: (deps) => [
    stageGauges('aggregator', deps),
    storageGauges(deps),
    freshnessGauges(deps),
    feedGauges(deps),
    refoldGauges(deps),
    journalGauges(deps),
  ],
  alerter: (deps) => [stageGauges('alerter', deps)],
  deliverer: (deps) => [deliveryGauges(deps)],
};

function queueGauges(role: Role, { config, producer, metrics }: WorkerDeps): Collector {
  const names = queuesOfRole(role, config.venues);
  return {
    name: 'queues',
    async read() {
      for (const name of names) {
        const { counts, isPaused, oldestWaitingMs } = await queueState(producer.queue(name), Date.now());
        for (const state of QUEUE_STATES) metrics.queueJobs.set({ queue: name, state }, counts[state]);
        metrics.queuePaused.set({ queue: name }, isPaused ? 1 : 0);
        metrics.queueOldestWaiting.set({ queue: name }, oldestWaitingMs / 1000);
      }
    },
    forget() {
      metrics.queueJobs.reset();
      metrics.queuePaused.reset();
      metrics.queueOldestWaiting.reset();
    },
  };
}

function stageGauges(role: Role, { db, metrics }: WorkerDeps): Collector {
  const stages = STAGES.filter((stage) => JOBS[stage].role === role);
  const ages = new MarkAges();
  return {
    name: 'stages',
    async read() {
      for (const state of await stageStates(db, stages)) {
        const { stage, waiting, deadLetters } = state;
        metrics.marksWaiting.set({ stage }, waiting);
        metrics.deadLetters.set({ stage }, deadLetters);
        metrics.marksOldest.set({ stage }, ages.note(stage, state) / 1000);
      }
    },
    forget() {
      metrics.marksWaiting.reset();
      metrics.deadLetters.reset();
      metrics.marksOldest.reset();
    },
  };
}

/** The scheduled polls. Books and older trades that clients request have no schedule, and wallets have their own gauge. */
function pollGauges({ config, db, metrics, now }: WorkerDeps): Collector {
  const startedAtMs = now();
  const polls = config.venues.flatMap((venue) =>
    pollsOf(venue, config).flatMap(({ job, everyMs }) => {
      const kind = job === 'witness-trades' ? 'witness' : job.replace(/^poll-/, '');
      return kind === 'wallets' ? [] : [{ venue, kind, everyMs }];
    }),
  );
  return {
    name: 'polls',
    async read() {
      const ages = await pollAges(db, config.venues);
      for (const { venue, kind, everyMs } of polls) {
        const age = ages.find((one) => one.venue === venue && one.kind === kind);
        metrics.pollInterval.set({ venue, kind }, everyMs / 1000);
        // A poll that was never tried has no failures, and no success either.
        if (age !== undefined) metrics.failuresInARow.set({ venue, kind }, age.failuresInARow);
        metrics.sinceSuccess.set({ venue, kind }, age?.sinceSuccessSeconds ?? (now() - startedAtMs) / 1000);
      }
    },
    forget() {
      metrics.failuresInARow.reset();
      metrics.sinceSuccess.reset();
    },
  };
}

/** While the tape is behind, nothing is compared: a share and a count without a loss would look like a complete venue. */
function completenessGauges({ config, db, metrics, now }: WorkerDeps): Collector {
  const { tradeCoverage, marketsMissingTrades, tapeAge } = metrics;
  const forget = () => {
    for (const gauge of [tradeCoverage, marketsMissingTrades, tapeAge]) gauge.reset();
  };
  return {
    name: 'completeness',
    async read() {
      const found = await readVenueCompleteness(db, config.venues);
      forget();
      for (const [venue, { share, marketsMissing, caughtUpMs, tapeSuccessMs }] of found) {
        if (caughtUpMs !== null) tapeAge.set({ venue }, Math.max(0, now() - caughtUpMs) / 1000);
        const isBehind = [caughtUpMs, tapeSuccessMs].every((ms) => isTapeBehind(ms, now(), config.pollMs.trades));
        if (isBehind && marketsMissing === 0) continue;
        if (share !== null) tradeCoverage.set({ venue }, share);
        marketsMissingTrades.set({ venue }, marketsMissing);
      }
    },
    forget,
  };
}

function walletGauges({ config, db, metrics }: WorkerDeps): Collector {
  const venues = config.venues.filter((venue) => VENUES[venue].capabilities.wallets);
  return {
    name: 'wallets',
    async read() {
      const ages = await walletAges(db, venues);
      metrics.walletsUnseen.reset();
      for (const [venue, seconds] of ages) metrics.walletsUnseen.set({ venue }, seconds);
    },
    forget: () => metrics.walletsUnseen.reset(),
  };
}

function storageGauges({ db, metrics, now }: WorkerDeps): Collector {
  return {
    name: 'storage',
    async read() {
      const { bytes, isReady } = await storageState(db, now() + DAY_MS);
      metrics.databaseBytes.set(bytes);
      for (const [table, ready] of isReady) metrics.partitionReady.set({ table }, ready ? 1 : 0);
    },
    forget() {
      metrics.databaseBytes.set(Number.NaN);
      metrics.partitionReady.reset();
    },
  };
}

/** An older measurement is absent, because it would look like a fresh venue while `measure-freshness` fails. */
const MAX_MEASURED_MS = 60_000;

function freshnessGauges({ config, db, metrics, now }: WorkerDeps): Collector {
  const forget = () => {
    metrics.priceAge.reset();
    metrics.unpricedMarkets.reset();
  };
  return {
    name: 'freshness',
    async read() {
      const measured = await readFreshness(db, config.venues);
      forget();
      for (const { venue, measuredAt, unpriced, p50Ms, p99Ms, maxMs } of measured) {
        if (now() - measuredAt.getTime() > MAX_MEASURED_MS) continue;
        metrics.unpricedMarkets.set({ venue }, unpriced);
        for (const [quantile, ms] of [
          ['0.5', p50Ms],
          ['0.99', p99Ms],
          ['1', maxMs],
        ] as const) {
          if (ms !== null) metrics.priceAge.set({ venue, quantile }, Number(ms) / 1000);
        }
      }
    },
    forget,
  };
}

/** Hosted by the aggregator, so that the figures also show the absence of every streamer. */
function feedGauges({ config, db, metrics }: WorkerDeps): Collector {
  // Only the streamer has the key of a feed.
  const venues = config.venues.filter((venue) => [undefined, 'no_key'].includes(feedOffReason(venue, config.feeds)));
  const { feedUp, feedSubscribed, feedMessagesPerSecond, feedLag, feedOpenGaps } = metrics;
  const forget = () => {
    for (const gauge of [feedUp, feedSubscribed, feedMessagesPerSecond, feedLag, feedOpenGaps]) gauge.reset();
  };
  return {
    name: 'feeds',
    async read() {
      const [states, open] = await Promise.all([readFeedStates(db, venues), countOpenGaps(db)]);
      forget();
      for (const [venue, { state, reason, subscribed, messagesPerSecond, lagMs }] of states) {
        if (state === 'off' || reason === 'no_markets') continue;
        feedUp.set({ venue }, state === 'live' ? 1 : 0);
        feedSubscribed.set({ venue }, subscribed);
        feedMessagesPerSecond.set({ venue }, messagesPerSecond);
        if (lagMs !== null) feedLag.set({ venue }, lagMs / 1000);
        feedOpenGaps.set({ venue }, open.get(venue) ?? 0);
      }
    },
    forget,
  };
}

function refoldGauges({ db, metrics }: WorkerDeps): Collector {
  return {
    name: 'refold',
    async read() {
      for (const progress of await refoldProgress(db)) {
        metrics.refoldProgress.set({ pass: progress.pass }, refoldShare(progress));
      }
    },
    forget: () => metrics.refoldProgress.reset(),
  };
}

function journalGauges({ db, metrics }: WorkerDeps): Collector {
  return {
    name: 'journal',
    async read() {
      const { seq, checkedAt, readAt } = await readJournalHead(db);
      const partitions = await journalPartitions(db);
      metrics.journalSeq.set(seq);
      metrics.journalCheckedAge.set((readAt.getTime() - checkedAt.getTime()) / 1000);
      metrics.journalBytes.set(partitions.reduce((sum, { bytes }) => sum + bytes, 0));
    },
    forget() {
      for (const gauge of [metrics.journalSeq, metrics.journalCheckedAge, metrics.journalBytes]) gauge.set(Number.NaN);
    },
  };
}

function deliveryGauges({ db, metrics }: WorkerDeps): Collector {
  return {
    name: 'deliveries',
    async read() {
      metrics.oldestOverdueSeconds.set(await oldestOverdueSeconds(db));
      metrics.deliveriesDue.set(await countDueDeliveries(db));
    },
    forget() {
      metrics.oldestOverdueSeconds.set(Number.NaN);
      metrics.deliveriesDue.set(Number.NaN);
    },
  };
}
