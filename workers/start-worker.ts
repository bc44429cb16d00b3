import { readFile } from 'node:fs/promises';
import type { Config } from '../src/config/config.ts';
import { VERSION } from '../src/config/version.ts';
import type { VenueName } from '../src/domain/markets/venue.ts';
import { logLimited } from '../src/observe/limited-lines.ts';
import type { Logger } from '../src/observe/logger.ts';
import type { Metrics } from '../src/observe/metrics.ts';
import { concurrencyOf, JOB_NAMES, JOBS, type JobName, queuesOfRole, type Role } from '../src/queues/jobs.ts';
import { wakeVenuePolls } from '../src/queues/schedules.ts';
import { inOrder } from '../src/runtime/lifecycle.ts';
import type { ProcessContext } from '../src/runtime/process-context.ts';
import { type RunningProcess, startProcess } from '../src/runtime/start-process.ts';
import { WindowMemory } from '../src/store/alerts/windows.ts';
import { startPublisher } from '../src/store/journal/publisher.ts';
import { LANE_CHANNEL } from '../src/store/marks/lane-signals.ts';
import { waitingShards } from '../src/store/marks/marks.ts';
import type { OpenLedger } from '../src/venues/http/rate-ledger.ts';
import type { KalshiKey } from '../src/venues/kalshi/feed/key.ts';
import { createAdapters, createTokenAdapters, createWalletAdapters } from '../src/venues/registry.ts';
import { createSender } from '../src/webhooks/sender.ts';
import { PriceConfirmations } from './ingest/price-confirmations.ts';
import { archiveDay } from './jobs/archive-day.ts';
import { backfillTrades } from './jobs/backfill-trades.ts';
import { deliverDue } from './jobs/deliver-due.ts';
import { deliverWebhook } from './jobs/deliver-webhook.ts';
import { evaluateAlertsJob } from './jobs/evaluate-alerts.ts';
import { fetchBook } from './jobs/fetch-book.ts';
import { foldCandlesJob } from './jobs/fold-candles.ts';
import { maintainStorage } from './jobs/maintain-storage.ts';
import { measureFreshnessJob } from './jobs/measure-freshness.ts';
import { pollBooks } from './jobs/poll-books.ts';
import { pollMarkets } from './jobs/poll-markets.ts';
import { pollPrices } from './jobs/poll-prices.ts';
import { pollTokens } from './jobs/poll-tokens.ts';
import { pollTrades } from './jobs/poll-trades.ts';
import { pollVenue } from './jobs/poll-venue.ts';
import { pollWallets } from './jobs/poll-wallets.ts';
import { refoldCandlesJob } from './jobs/refold-candles.ts';
import { runBacktestJob } from './jobs/run-backtest.ts';
import { sampleSnapshotsJob } from './jobs/sample-snapshots.ts';
import { witnessTrades } from './jobs/witness-trades.ts';
import { PollLeases } from './polling/poll-leases.ts';
import { venueObserver } from './polling/venue-observer.ts';
import { releaseAbsent } from './process/absent-process.ts';
import { assertOwnFolder } from './process/archiving.ts';
import { closeWorkers } from './process/close-workers.ts';
import { createProcessor, type DefinedJob } from './process/define.ts';
import type { WorkerDeps } from './process/deps.ts';
import { createHostLedgers } from './process/host-ledgers.ts';
import { kalshiKeyOf } from './process/kalshi-key.ts';
import { LANE_STAGES, reconcile, retryDeadLetters, startReconciling } from './process/reconcile.ts';
import { gaugesOf } from './process/role-gauges.ts';
import { WaitingLanes } from './process/waiting-lanes.ts';

const PROCESSORS: { readonly [Name in JobName]: DefinedJob<Name> } = {
  'poll-venue': pollVenue,
  'poll-markets': pollMarkets,
  'poll-prices': pollPrices,
  'poll-books': pollBooks,
  'fetch-book': fetchBook,
  'poll-trades': pollTrades,
  'poll-tokens': pollTokens,
  'backfill-trades': backfillTrades,
  'witness-trades': witnessTrades,
  'poll-wallets': pollWallets,
  'fold-candles': foldCandlesJob,
  'sample-snapshots': sampleSnapshotsJob,
  'maintain-storage': maintainStorage,
  'measure-freshness': measureFreshnessJob,
  'refold-candles': refoldCandlesJob,
  'run-backtest': runBacktestJob,
  'archive-day': archiveDay,
  'evaluate-alerts': evaluateAlertsJob,
  'deliver-webhook': deliverWebhook,
  'deliver-due': deliverDue,
};

/** Starts one worker process. The signal ends the wait for the database. A stop finishes the running jobs, then closes. */
export function startWorker(role: Role, config: Config, log: Logger, signal: AbortSignal): Promise<RunningProcess> {
  const processors = JOB_NAMES.filter((name) => JOBS[name].role === role).map((name) => PROCESSORS[name]);
  const names = queuesOfRole(role, config.venues);
  return startProcess(role, { config, log, signal, workers: names.length }, async (context, onStop) => {
    const { backend, metrics, presence, tracker } = context;
    if (role === 'aggregator') await assertOwnFolder(context);
    const ledgers = createHostLedgers(context);
    const adapters = await adaptersOf(role, config, { metrics, log, openLedger: ledgers.open });
    const opened = Object.values(adapters).flatMap((map) => [...map.values()]);
    onStop(() => Promise.all(opened.map((adapter) => adapter.close())));
    const sender = await senderOf(config);
    onStop(() => sender.close());
    const lanes = lanesOf(role, context);
    onStop(async () => lanes?.close());
    const pollLeases = new PollLeases(context);
    onStop(() => pollLeases.close());
    const confirmations = new PriceConfirmations(context);
    onStop(() => confirmations.flush());
    const own = { confirmations, sender, windows: new WindowMemory(), pollLeases, ...(lanes && { lanes }) };
    const deps: WorkerDeps = { ...context, ...adapters, ...own };
    const processor = createProcessor(processors, deps);
    metrics.collectors.add(...gaugesOf(role, deps), ledgers.gauge(metrics));
    // A full disk or a full Redis must not end the process: the timer tries again.
    const restart = async () => {
      if (role === 'poller') await wakeVenuePolls(context.producer, config.venues, Date.now());
    };
    await inOrder([() => retryDeadLetters(role, deps), () => reconcile(role, deps), restart]).catch((error: unknown) =>
      log.warn({ err: error }, 'queue not restored at start; the timer retries'),
    );
    const workers = names.map((name) => {
      tracker.queue(name, concurrencyOf(name));
      const worker = backend.worker(name, processor, concurrencyOf(name));
      // An overloaded or distant store causes errors as often as a worker asks it.
      return worker.on('error', (error) =>
        logLimited(log, { level: 'warn', fields: { err: error, queue: name }, message: 'worker error', kind: name }),
      );
    });
    onStop(() => closeWorkers(workers, backend, () => tracker.isAtWork));
    const ids = Object.fromEntries(workers.map(({ name, id }) => [name, id]));
    const ofLanes = lanes && {
      channel: LANE_CHANNEL,
      onMessage: (payload: string) => lanes.receive(payload),
      onLost: () => lanes.lost(),
    };
    // Postgres wakes every listening session at each notification.
    const ofPoller = role === 'poller' ? [ledgers.listen, pollLeases.requests.listen] : [];
    const listen = ofLanes ? [ofLanes] : ofPoller;
    await presence.register(ids, (key) => releaseAbsent(key, context), listen);
    for (const worker of workers) {
      worker.run().catch((error: unknown) => log.error({ err: error, queue: worker.name }, 'worker loop ended'));
    }
    const reconciling = startReconciling(role, deps);
    onStop(() => reconciling.stop());
    const publishing = startPublishing(role, deps);
    onStop(() => publishing.stop());
  });
}

/** The waiting lanes of the stage of a role, if it has one. */
function lanesOf(role: Role, { db, producer, presence, log }: ProcessContext): WaitingLanes | undefined {
  const job = LANE_STAGES[role];
  if (job === undefined) return undefined;
  return new WaitingLanes({ job, session: presence, pendingShards: () => waitingShards(db, job), producer, log });
}

/** Only the poller sends requests to venues. */
async function adaptersOf(
  role: Role,
  config: Config,
  { metrics, log, openLedger }: { metrics: Metrics; log: Logger; openLedger: OpenLedger },
): Promise<Pick<WorkerDeps, 'adapters' | 'walletAdapters' | 'tokenAdapters'>> {
  const venues = role === 'poller' ? config.venues : [];
  warnOfMissingKeys(venues, config, log);
  const kalshiKey = venues.includes('kalshi') ? await readableKey(config, log) : undefined;
  const observer = venueObserver(metrics, log);
  const options = { venues, urls: config.venueUrls, observer, openLedger, ...(kalshiKey && { kalshiKey }) };
  return {
    adapters: createAdapters(options),
    walletAdapters: createWalletAdapters(options),
    tokenAdapters: createTokenAdapters(options),
  };
}

/** The requests to Kalshi need no key, so an unreadable one stops nothing. */
async function readableKey({ feeds }: Config, log: Logger): Promise<KalshiKey | undefined> {
  try {
    return await kalshiKeyOf(feeds);
  } catch (error) {
    log.warn({ venue: 'kalshi', err: error }, 'key not readable: requests go without it');
    return undefined;
  }
}

function warnOfMissingKeys(venues: readonly VenueName[], { venueUrls }: Config, log: Logger): void {
  if (!venues.includes('solana')) return;
  const { rpc, jupiterKey } = venueUrls.solana;
  if (rpc === undefined)
    log.warn({ venue: 'solana' }, 'SOLANA_RPC_URL is not set: wallets are off, token prices are on');
  if (jupiterKey === undefined)
    log.warn(
      { venue: 'solana' },
      'JUPITER_API_KEY is not set: Jupiter allows 0.5 requests per second, or refuses to price',
    );
}

async function senderOf(config: Config) {
  const { addressRules, caFile, timeoutMs, proxyUrl } = config.webhooks;
  return createSender({
    version: VERSION,
    deadlineMs: timeoutMs,
    rules: addressRules,
    ...(caFile !== undefined && { extraCaPem: await readFile(caFile, 'utf8') }),
    ...(proxyUrl !== undefined && { proxyUrl }),
  });
}

/** The process that hosts the publisher: it writes derived data and maintains storage already, and its own work is mostly SQL. */
const HOST: Role = 'aggregator';
/** For liveness: a look for marks takes milliseconds, and a lost session returns within seconds. */
const LOOK_MS = 5_000;

/** Starts the publisher of the journal in its host; elsewhere it does nothing. */
function startPublishing(
  role: Role,
  { config, metrics, log, tracker, producer }: ProcessContext,
): { stop(): Promise<void> } {
  if (role !== HOST) return { stop: async () => undefined };
  const beat = tracker.loop('publisher', LOOK_MS);
  const publisher = startPublisher({
    databaseUrl: config.databaseDirectUrl,
    log,
    ...config.journal,
    onLook: beat,
    onClaimed({ byKind, alertedShards }, seconds) {
      if (alertedShards !== null) producer.wakeStage('evaluate-alerts', alertedShards);
      if (byKind === null) return;
      metrics.journalClaim.observe(seconds);
      for (const [kind, changes] of Object.entries(byKind)) metrics.journalChanges.inc({ kind }, changes);
    },
  });
  producer.hostPublisher(publisher.wake);
  return publisher;
}
