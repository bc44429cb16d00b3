import { readFile } from 'node:fs/promises';
import type { Config } from '../../src/config/config.ts';
import { FEED_VENUES, type FeedVenue } from '../../src/config/feeds.ts';
import { asError } from '../../src/domain/values/errors.ts';
import { type FeedOrReason, feedOf } from '../../src/venues/feeds.ts';
import { type KalshiKey, readKalshiKey } from '../../src/venues/kalshi/feed-key.ts';

/**
 * The feed of each enabled venue, or the reason why it is off: `disabled` by FEEDS, `not_supported` by the venue, `no_address` because its
 * API has another address, `no_key`, or `key_unreadable` with a detail.
 */
export async function openFeeds({
  venues,
  feeds,
}: Pick<Config, 'venues' | 'feeds'>): Promise<Map<string, FeedOrReason>> {
  const found = new Map<string, FeedOrReason>();
  for (const venue of venues) {
    if (!isFeedVenue(venue)) found.set(venue, { off: 'not_supported' });
    else if (!feeds.venues.includes(venue)) found.set(venue, { off: 'disabled' });
    else if (feeds.urls[venue] === undefined) found.set(venue, { off: 'no_address' });
    else found.set(venue, await openFeed(venue, feeds));
  }
  return found;
}

async function openFeed(venue: FeedVenue, { urls, kalshiKey }: Config['feeds']): Promise<FeedOrReason> {
  const { polymarket = '', kalshi = '', manifold = '', limitless = '' } = urls;
  const all = { polymarket, kalshi, manifold, limitless };
  if (venue !== 'kalshi' || kalshiKey === undefined) return feedOf(venue, { urls: all });
  let key: KalshiKey;
  try {
    key = readKalshiKey(kalshiKey.id, await readFile(kalshiKey.file, 'utf8'));
  } catch (error) {
    return { off: `key_unreadable: ${asError(error).message}` };
  }
  return feedOf(venue, { urls: all, kalshiKey: key });
}

function isFeedVenue(venue: string): venue is FeedVenue {
  return (FEED_VENUES as readonly string[]).includes(venue);
}
