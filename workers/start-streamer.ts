import type { Config } from '../src/config/config.ts';
import { newToken } from '../src/domain/values/ids.ts';
import type { Logger } from '../src/observe/logger.ts';
import { STREAMER } from '../src/queues/jobs.ts';
import { type RunningProcess, startProcess } from '../src/runtime/start-process.ts';
import { openFeeds } from './streamer/open-feeds.ts';
import { startFeeds } from './streamer/streamer.ts';

/** Starts the process that reads the venues' feeds. The signal ends the wait for the database. */
export function startStreamer(config: Config, log: Logger, signal: AbortSignal): Promise<RunningProcess> {
  return startProcess(STREAMER, { config, log, signal, workers: 0 }, async (deps, onStop) => {
    const feeds = await openFeeds(config);
    const reasons = [...feeds].flatMap(([venue, found]) => ('off' in found ? [[venue, found.off]] : []));
    const on = [...feeds].flatMap(([venue, found]) => ('feed' in found ? [venue] : []));
    log.info({ on, off: Object.fromEntries(reasons) }, 'feeds');
    const running = startFeeds({ deps, streamer: newToken(), feeds });
    onStop(() => running.stop());
  });
}
