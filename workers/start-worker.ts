import { readFile } from 'node:fs/promises';
import type { Config } from '../src/config/config.ts';
import { VERSION } from '../src/config/version.ts';
import type { VenueName } from '../src/domain/markets/venue.ts';
import { logLimited } from '../src/observe/limited-lines.ts';
import type { Logger } from '../src/observe/logger.ts';
import type { Metrics } from '../src/observe/metrics.ts';
import { concurrencyOf, queuesOfRole, type Role } from '../src/queues/jobs.ts';
import { wakeVenuePolls } from '../src/queues/schedules.ts';
import { inOrder } from '../src/runtime/lifecycle.ts';
import type { ProcessContext } from '../src/runtime/process-context.ts';
import { type RunningProcess, startProcess } from '../src/runtime/start-process.ts';
import { WindowMemory } from '../src/store/alerts/windows.ts';
import { LANE_CHANNEL } from '../src/store/marks/lane-signals.ts';
import { waitingShards } from '../src/store/marks/marks.ts';
import type { OpenLedger } from '../src/venues/http/rate-ledger.ts';
import type { KalshiKey } from '../src/venues/kalshi/feed/key.ts';
import { createAdapters, createTokenAdapters, createWalletAdapters } from '../src/venues/registry.ts';
import { createSender } from '../src/webhooks/sender.ts';
import { PriceConfirmations } from './ingest/price-confirmations.ts';
import { PollLeases } from './polling/poll-leases.ts';
import { venueObserver } from './polling/venue-observer.ts';
import { releaseAbsent } from './process/absent-process.ts';
import { assertOwnFolder } from './process/archiving.ts';
import { closeWorkers } from './process/close-workers.ts';
import { createProcessor } from './process/define.ts';
import type { WorkerDeps } from './process/deps.ts';
import { createHostLedgers } from './process/host-ledgers.ts';
import { kalshiKeyOf } from './process/kalshi-key.ts';
import { startPublishing } from './process/publishing.ts';
import { LANE_STAGES, reconcile, retryDeadLetters, startReconciling } from './process/reconcile.ts';
import { gaugesOf } from './process/role-gauges.ts';
import { WaitingLanes } from './process/waiting-lanes.ts';
import { processorsOf } from './roles.ts';

/** Starts one worker process. The signal ends the wait for the database. A stop finishes the running jobs, then closes. */
export function startWorker(role: Role, config: Config, log: Logger, signal: AbortSignal): Promise<RunningProcess> {
  const processors = processorsOf(role);
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
