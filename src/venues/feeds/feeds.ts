import { createKalshiSession } from '../kalshi/feed/feed.ts';
import { describeKalshiRefusal, type KalshiKey, signedHeaders } from '../kalshi/feed/key.ts';
import { createLimitlessSession } from '../limitless/feed/feed.ts';
import { createManifoldSession } from '../manifold/feed/feed.ts';
import { createPolymarketSession } from '../polymarket/feed/feed.ts';
import type { FeedRefusal, RefusalReason, VenueFeed } from './port.ts';

/** The WebSocket addresses by venue. */
interface FeedUrls {
  readonly polymarket: string;
  readonly kalshi: string;
  readonly manifold: string;
  readonly limitless: string;
}

interface FeedOptions {
  readonly urls: FeedUrls;
  /** Without a key, Kalshi has no feed. */
  readonly kalshiKey?: KalshiKey | undefined;
}

const MEBIBYTE = 1024 * 1024;
/** The initial list of books is the largest frame. */
const MAX_FRAME_BYTES = 32 * MEBIBYTE;

/** The feed of a venue; a reason where it has none. */
export type FeedOrReason = { readonly feed: VenueFeed } | { readonly off: string };

/** Limits and their sources: docs/feeds.md#limits. */
const MAKERS: Readonly<Record<keyof FeedUrls, (options: FeedOptions) => FeedOrReason>> = {
  polymarket: ({ urls }) => ({
    feed: {
      venue: 'polymarket',
      url: urls.polymarket,
      limits: { marketsPerConnection: 200, connections: 10, pingEveryMs: 10_000, maxFrameBytes: MAX_FRAME_BYTES },
      hasSnapshots: true,
      createSession: createPolymarketSession,
      headers: () => ({}),
      describeRefusal: describeStatus,
    },
  }),
  kalshi: ({ urls, kalshiKey }) => {
    if (kalshiKey === undefined) return { off: 'no_key' };
    return {
      feed: {
        venue: 'kalshi',
        url: urls.kalshi,
        limits: { marketsPerConnection: 500, connections: 4, pingEveryMs: 10_000, maxFrameBytes: 8 * MEBIBYTE },
        hasSnapshots: true,
        createSession: () => createKalshiSession(),
        headers: (nowMs) => signedHeaders(kalshiKey, nowMs),
        describeRefusal: describeKalshiRefusal,
      },
    };
  },
  manifold: ({ urls }) => ({
    feed: {
      venue: 'manifold',
      url: urls.manifold,
      limits: { marketsPerConnection: 2_000, connections: 1, pingEveryMs: 15_000, maxFrameBytes: 4 * MEBIBYTE },
      hasSnapshots: false,
      createSession: createManifoldSession,
      headers: () => ({}),
      describeRefusal: describeStatus,
    },
  }),
  limitless: ({ urls }) => ({
    feed: {
      venue: 'limitless',
      url: urls.limitless,
      limits: { marketsPerConnection: 25, connections: 10, pingEveryMs: 25_000, maxFrameBytes: 4 * MEBIBYTE },
      hasSnapshots: true,
      createSession: createLimitlessSession,
      headers: () => ({ 'user-agent': 'oddswire' }),
      describeRefusal: describeStatus,
    },
  }),
};

/** The feed of this venue; `not_supported` for a venue without one. */
export function feedOf(venue: string, options: FeedOptions): FeedOrReason {
  return isFeedVenue(venue) ? MAKERS[venue](options) : { off: 'not_supported' };
}

function isFeedVenue(venue: string): venue is keyof FeedUrls {
  return Object.hasOwn(MAKERS, venue);
}

function describeStatus({ statusCode }: FeedRefusal): RefusalReason {
  return { detail: `status ${statusCode}`, isOfCredentials: statusCode === 401 || statusCode === 403 };
}
