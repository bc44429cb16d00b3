import type { Config } from '../src/config/config.ts';
import { newToken } from '../src/domain/values/ids.ts';
import { LivenessTracker } from '../src/observe/liveness-tracker.ts';
import type { Logger } from '../src/observe/logger.ts';
import { STREAMER } from '../src/queues/jobs.ts';
import { openProcessContext } from '../src/runtime/process-context.ts';
import { DatabaseClock } from '../src/store/db/database-clock.ts';
import { Partitions } from '../src/store/db/partitions.ts';
import type { StreamerDeps } from './streamer/deps.ts';
import { openFeeds } from './streamer/open-feeds.ts';
import { startFeeds } from './streamer/streamer.ts';

const READ_CLOCK_EVERY_MS = 5_000;

/** Starts the process that reads the venues' feeds. The signal ends the wait for the database. */
export async function startStreamer(
  config: Config,
  log: Logger,
  signal: AbortSignal,
): Promise<{ probeUrl: string; stop(): Promise<void> }> {
  const processContext = await openProcessContext(STREAMER, { config, log, signal, workers: 0 });
  try {
    const { db, metrics, producer, probeUrl } = processContext;
    const stopping = new AbortController();
    const clock = new DatabaseClock(db);
    const readClock = () =>
      clock.read().catch((error: unknown) => log.debug({ err: error }, 'database clock not read'));
    await readClock();
    const reading = setInterval(readClock, READ_CLOCK_EVERY_MS);
    processContext.onStop(async () => clearInterval(reading));
    const deps: StreamerDeps = {
      config,
      db,
      partitions: new Partitions(db),
      producer,
      metrics,
      log,
      stopping: stopping.signal,
      now: clock.now,
    };
    const feeds = await openFeeds(config);
    const tracker = new LivenessTracker();
    const reasons = [...feeds].flatMap(([venue, found]) => ('off' in found ? [[venue, found.off]] : []));
    const on = [...feeds].flatMap(([venue, found]) => ('feed' in found ? [venue] : []));
    log.info({ on, off: Object.fromEntries(reasons) }, 'feeds');
    const running = startFeeds({ deps, streamer: newToken(), feeds, tracker });
    processContext.onStop(() => running.stop());
    processContext.judgeBy(() => tracker.stallReasons(async () => 0));
    return {
      probeUrl,
      async stop() {
        stopping.abort();
        await processContext.stop();
      },
    };
  } catch (error) {
    await processContext.stop();
    throw error;
  }
}
