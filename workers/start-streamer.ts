import type { Config } from '../src/config/config.ts';
import { type FeedVenue, feedOffReason, isFeedVenue } from '../src/config/feeds.ts';
import { asError } from '../src/domain/values/errors.ts';
import { newToken } from '../src/domain/values/ids.ts';
import type { Logger } from '../src/observe/logger.ts';
import { STREAMER } from '../src/queues/jobs.ts';
import { type RunningProcess, startProcess } from '../src/runtime/start-process.ts';
import { type FeedOrReason, feedOf } from '../src/venues/feeds/feeds.ts';
import type { KalshiKey } from '../src/venues/kalshi/feed/key.ts';
import { kalshiKeyOf } from './process/kalshi-key.ts';
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

/** The feed of each enabled venue, or the reason why it is off: that of the configuration, or `key_unreadable` with a detail. */
async function openFeeds({ venues, feeds }: Pick<Config, 'venues' | 'feeds'>): Promise<Map<string, FeedOrReason>> {
  const found = new Map<string, FeedOrReason>();
  for (const venue of venues) {
    const off = feedOffReason(venue, feeds);
    if (off !== undefined) found.set(venue, { off });
    else if (isFeedVenue(venue)) found.set(venue, await openFeed(venue, feeds));
  }
  return found;
}

async function openFeed(venue: FeedVenue, { urls, kalshiKey }: Config['feeds']): Promise<FeedOrReason> {
  const { polymarket = '', kalshi = '', manifold = '', limitless = '' } = urls;
  const all = { polymarket, kalshi, manifold, limitless };
  if (venue !== 'kalshi' || kalshiKey === undefined) return feedOf(venue, { urls: all });
  let key: KalshiKey | undefined;
  try {
    key = await kalshiKeyOf({ kalshiKey });
  } catch (error) {
    return { off: `key_unreadable: ${asError(error).message}` };
  }
  return feedOf(venue, { urls: all, ...(key && { kalshiKey: key }) });
}
