import { FailureStreaks } from '../../src/observe/failures.ts';
import { JOBS, POLL_QUEUE, type Role, venueQueue } from '../../src/queues/jobs.ts';
import type { LaneJob } from '../../src/queues/producer.ts';
import { POLL_JOBS, reconcileSchedules, schedulesOf } from '../../src/queues/schedules.ts';
import { inOrder } from '../../src/runtime/lifecycle.ts';
import type { ProcessContext } from '../../src/runtime/process-context.ts';
import { dueBacktests } from '../../src/store/alerts/backtest/jobs.ts';
import { markWaitingBooks } from '../../src/store/alerts/books/alert-books.ts';
import { expireDueAlerts } from '../../src/store/alerts/expiry.ts';
import { runsFormerAlerter } from '../../src/store/alerts/former-processes.ts';
import { republishResolutions } from '../../src/store/catalog/market-resolutions.ts';
import { oncePerOwner } from '../../src/store/db/batcher.ts';
import { hasPresence } from '../../src/store/db/presence.ts';
import { dueSubscriptions } from '../../src/store/deliveries/due.ts';
import { startStalledKeys } from '../../src/store/deliveries/order.ts';
import { STAGES } from '../../src/store/marks/detail.ts';
import { markResultsAgain, releaseDeadLetters, shardsOf, waitingShards } from '../../src/store/marks/marks.ts';
import { isRefoldDue } from '../../src/store/series/candle-refold.ts';
import { countTradeHistories } from '../../src/store/series/trade-walks.ts';

const EVERY_MS = 5_000;
const JITTER = 0.2;
const FORMER_EVERY_MS = 30_000;
/** The stage with lanes of a role. */
export const LANE_STAGES: Partial<Record<Role, LaneJob>> = { aggregator: 'fold-candles', alerter: 'evaluate-alerts' };
/** Subscriptions, and backtests, woken per round; the rest follow 5 s later. */
const MAX_WOKEN = 1_000;

/**
 * Starts the timer that reconciles the queue with the database. It runs in the process and not in the queue, so the loss of the queue
 * store does not stop it. It re-creates the store and the schedulers, and wakes stages with pending marks or due rows.
 */
export function startReconciling(role: Role, deps: ProcessContext): { stop(): Promise<void> } {
  const streaks = new FailureStreaks();
  const beat = deps.tracker.loop('restore', EVERY_MS);
  let timer: NodeJS.Timeout | undefined;
  let round: Promise<void> = Promise.resolve();
  const next = () => {
    if (deps.stopping.aborted) return;
    timer = setTimeout(
      () => {
        round = reconcile(role, deps)
          .then(
            () => void streaks.succeeded('round'),
            (error: unknown) => {
              const { inARow, shouldLog } = streaks.failed('round');
              deps.log[shouldLog ? 'warn' : 'debug']({ err: error, inARow }, 'restoring round failed');
            },
          )
          .finally(() => {
            beat();
            next();
          });
      },
      EVERY_MS * (1 - JITTER + 2 * JITTER * Math.random()),
    );
  };
  next();
  return {
    async stop() {
      clearTimeout(timer);
      await round;
    },
  };
}

/** One round of the timer. Each step runs even when an earlier step failed. */
export async function reconcile(role: Role, deps: ProcessContext): Promise<void> {
  const { db, backend, producer, log } = deps;
  await inOrder([
    async () => {
      if (await backend.restore()) log.warn('queue store was gone: re-created');
    },
    async () => {
      // Jobs in the queue store have the time of the process that made them.
      const restored = await reconcileSchedules(producer, schedulesOf(role, deps.config), Date.now());
      if (restored.length > 0) log.info({ schedules: restored }, 'schedules set');
    },
    async () => {
      if (role === 'poller') await removeFormerSchedules(deps);
    },
    async () => {
      const stage = LANE_STAGES[role];
      if (stage !== undefined) producer.wakeStage(stage, await waitingShards(db, stage));
    },
    async () => {
      if (role !== 'deliverer') return;
      await startStalledKeys(db);
      producer.wakeDeliveries(await dueSubscriptions(db, MAX_WOKEN));
    },
    async () => {
      if (role === 'poller') await wakeHistories(deps);
    },
    async () => {
      if (role === 'alerter') producer.wakeStage('evaluate-alerts', await markWaitingBooks(db));
    },
    async () => {
      if (role === 'alerter') await expireAlerts(deps);
    },
    async () => {
      if (role === 'alerter') await evaluateMissed(deps);
    },
    async () => {
      if (role === 'aggregator') await wakeBacktests(deps);
    },
    async () => {
      if (role === 'aggregator') await publishMissed(deps);
    },
    async () => {
      if (role === 'aggregator' && (await isRefoldDue(db))) producer.wake('refold-candles', {});
    },
  ]);
}

/** When the traces of the former release are looked for again after a look that succeeded, by the producer of the process. */
const nextFormerLook = oncePerOwner((_producer: object) => ({ atMs: 0 }));

/** Publishes the rows of timelines whose marks a publisher of the former release took: it does not know them. */
async function publishMissed({ db, producer }: ProcessContext): Promise<void> {
  const look = nextFormerLook(producer);
  if (performance.now() < look.atMs) return;
  await republishResolutions(db);
  look.atMs = performance.now() + FORMER_EVERY_MS;
}

/** Results are evaluated again for this time after an alerter of the former release was seen. */
const AFTER_FORMER_MS = 300_000;
/** At the start: alerters of the former release may have ended before. */
const BEFORE_START_SECONDS = 3_600;
/** When a process saw alerters of the former release last. */
const lastFormer = oncePerOwner((_producer: object) => ({
  atMs: Number.NEGATIVE_INFINITY,
  nextLookMs: 0,
  isFirst: true,
}));

/**
 * Evaluates results again whose marks an alerter of the former release took: it knows neither alerts nor events on results. Each result has one
 * event, however often it is evaluated.
 */
async function evaluateMissed({ db, producer }: ProcessContext): Promise<void> {
  const last = lastFormer(producer);
  if (performance.now() < last.nextLookMs) return;
  if (await runsFormerAlerter(db)) last.atMs = performance.now();
  const isAfter = performance.now() < last.atMs + AFTER_FORMER_MS;
  if (isAfter || last.isFirst) {
    const keys = await markResultsAgain(db, last.isFirst ? BEFORE_START_SECONDS : AFTER_FORMER_MS / 1_000);
    last.isFirst = false;
    producer.wakeStage('evaluate-alerts', shardsOf(keys));
  }
  last.nextLookMs = performance.now() + FORMER_EVERY_MS;
}

/**
 * Removes the schedules of single polls when no poller of the former release runs. Such a poller makes them again, and its jobs are polls
 * here too, so neither release stops the polls of the other.
 */
async function removeFormerSchedules({ db, producer, config, log }: ProcessContext): Promise<void> {
  const look = nextFormerLook(producer);
  if (performance.now() < look.atMs) return;
  for (const venue of config.venues) {
    const queue = venueQueue(venue);
    const former = new Set<string>(POLL_JOBS.map((job) => `${job}.${venue}`));
    const schedules = await producer.queue(queue).getJobSchedulers();
    const ids = schedules.flatMap(({ key }) => (former.has(key) ? [key] : []));
    if (ids.length === 0 || (await hasPresence(db, queue, POLL_QUEUE))) continue;
    for (const id of ids) await producer.queue(queue).removeJobScheduler(id);
    log.info({ schedules: ids }, 'schedules of the former release removed');
  }
  look.atMs = performance.now() + FORMER_EVERY_MS;
}

/** Expires alerts whose end has passed; nothing else happens at that moment. */
async function expireAlerts({ db, producer, metrics, log }: ProcessContext): Promise<void> {
  const { alerts, subscriptionPks } = await expireDueAlerts(db);
  metrics.alertsExpired.inc(alerts.length);
  for (const alertId of alerts) log.info({ alertId }, 'alert expired');
  if (subscriptionPks.length > 0) producer.wakeDeliveries(subscriptionPks);
}

/** Wakes the backtests that no process runs. */
async function wakeBacktests({ db, producer }: Pick<ProcessContext, 'db' | 'producer'>): Promise<void> {
  for (const pk of await dueBacktests(db, MAX_WOKEN)) producer.wake('run-backtest', { backtestPk: String(pk) });
}

/** Wakes every stage with pending marks or due rows, because an ended process may have committed them without a wake-up. */
export async function wakePending({ db, producer }: Pick<ProcessContext, 'db' | 'producer'>): Promise<void> {
  for (const stage of Object.values(LANE_STAGES)) producer.wakeStage(stage, await waitingShards(db, stage));
  producer.wakeDeliveries(await dueSubscriptions(db, MAX_WOKEN));
  await wakeBacktests({ db, producer });
}

/** Wakes the venues with markets that wait for older trades, and measures the backlog. */
async function wakeHistories({ config, db, metrics, producer }: ProcessContext): Promise<void> {
  const counts = await countTradeHistories(db);
  metrics.historyBackfills.reset();
  for (const venue of config.venues) {
    const ofVenue = counts.filter((count) => count.venue === venue);
    for (const { status, walks } of ofVenue) metrics.historyBackfills.set({ venue, status }, walks);
    if (ofVenue.some(({ due }) => due > 0)) producer.wake('backfill-trades', { venue });
  }
}

/**
 * Retries the dead-lettered marks of the stages of a role, because a new release may process them. Marks that fail again are
 * dead-lettered again.
 */
export async function retryDeadLetters(role: Role, { db, log }: ProcessContext): Promise<void> {
  for (const stage of STAGES.filter((name) => JOBS[name].role === role)) {
    const released = await releaseDeadLetters(db, stage);
    if (released > 0) log.warn({ stage, marks: released }, 'dead letters released');
  }
}
