import { isDeepStrictEqual } from 'node:util';
import { type Exchange, startExchange } from '../../../sim/exchange.ts';
import { isPool, tokenIdOf as limitlessTokenOf } from '../../../sim/limitless/wire.ts';
import type { Config } from '../../../src/config/config.ts';
import { isTight } from '../../../src/domain/markets/quoted-price.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import type { Logger } from '../../../src/observe/logger.ts';
import { type Database, sql } from '../../../src/store/db/tx.ts';
import type { FeedTiming } from '../../../src/venues/feeds/connection.ts';
import { feedOf } from '../../../src/venues/feeds/feeds.ts';
import { readKalshiKey } from '../../../src/venues/kalshi/feed/key.ts';
import { outcomeIdsOf } from '../../../src/venues/kalshi/tickers.ts';
import { createAdapters } from '../../../src/venues/registry.ts';
import { pollMarkets } from '../../../workers/jobs/poll-markets.ts';
import { pollTrades } from '../../../workers/jobs/poll-trades.ts';
import { startFeeds } from '../../../workers/streamer/streamer.ts';
import { eventually } from '../../support/eventually.ts';
import { jobContext, testConfig, wakeRecorder } from '../workers/worker-harness.ts';

export type FeedVenue = 'polymarket' | 'kalshi' | 'limitless' | 'manifold';

/** Detection within a second, so that a test waits briefly. */
export const QUICK: Partial<FeedTiming> = {
  quietAfterMs: 300,
  probeAfterMs: 300,
  silentAfterMs: 900,
  firstBackoffMs: 20,
  maxBackoffMs: 100,
  snapshotPauseMs: 20,
  checkEveryMs: 20,
};

/** A paused exchange, and a configuration that points at it. */
export async function startFeedWorld(databaseUrl: string, seed: number) {
  const exchange = await startExchange({
    seed,
    markets: 12,
    liveMarkets: 12,
    historyHours: 0.1,
    rollingSeconds: 0,
    paused: true,
  });
  const config = testConfig(databaseUrl, {
    VENUES: 'polymarket,kalshi,limitless,manifold',
    POLYMARKET_GAMMA_URL: exchange.gammaUrl,
    POLYMARKET_CLOB_URL: exchange.clobUrl,
    POLYMARKET_DATA_URL: exchange.dataUrl,
    KALSHI_API_URL: exchange.kalshiUrl,
    MANIFOLD_API_URL: exchange.manifoldUrl,
    LIMITLESS_API_URL: exchange.limitlessUrl,
    LIMITLESS_REQUESTS_PER_SECOND: '1000',
  });
  return { exchange, config };
}

/** Stores the catalog of a venue, as the poller does. */
export async function storeCatalog(db: Database, config: Config, venue: FeedVenue): Promise<void> {
  const adapters = createAdapters({ venues: [venue], urls: config.venueUrls });
  try {
    await pollMarkets.run({ venue }, jobContext({ db, config, adapters }));
  } finally {
    for (const adapter of adapters.values()) await adapter.close();
  }
}

/** Reads the trades of a venue once, as the poller does. */
export async function pollTape(db: Database, config: Config, venue: FeedVenue): Promise<void> {
  const adapters = createAdapters({ venues: [venue], urls: config.venueUrls });
  try {
    await pollTrades.run({ venue }, jobContext({ db, config, adapters }));
  } finally {
    for (const adapter of adapters.values()) await adapter.close();
  }
}

interface StreamerFields {
  db: Database;
  config: Config;
  exchange: Exchange;
  venue: FeedVenue;
  streamer: string;
  /** Default: a valid one. `privateKey` in PEM form. */
  key?: { id: string; privateKey: string };
  log?: Logger;
  /** Epoch milliseconds. */
  now?: () => number;
  timing?: Partial<FeedTiming>;
}

/** A streamer of one venue in this process. `db` can be one that loses its connection. */
export function runStreamer(fields: StreamerFields) {
  const { db, config, exchange, venue, streamer, key = exchange.createKalshiKey(), log, now, timing } = fields;
  const { id, privateKey } = key;
  const { clob, kalshi, manifold, limitless } = exchange.feedUrls;
  const made = feedOf(venue, {
    urls: { polymarket: clob, kalshi, manifold, limitless },
    kalshiKey: readKalshiKey(id, privateKey),
  });
  if ('off' in made) throw new Error(made.off);
  let handshakes = 0;
  const feed = {
    ...made.feed,
    limits: { ...made.feed.limits, pingEveryMs: 400 },
    headers(nowMs: number) {
      handshakes += 1;
      return made.feed.headers(nowMs);
    },
  };
  const producer = wakeRecorder();
  const context = jobContext({ db, config, producer, ...(log && { log }), ...(now && { now }) });
  const running = startFeeds({
    deps: context,
    streamer,
    feeds: new Map([[venue, { feed }]]),
    timing: { ...QUICK, ...timing },
  });
  return { ...running, producer, metrics: context.metrics, handshakes: () => handshakes };
}

const QUOTES = sql(
  'test_feed_quotes',
  `SELECT t.mint, l.bid, l.ask FROM latest_price l JOIN token t ON t.id = l.token_id JOIN outcome o ON o.token_id = t.id
   JOIN market m ON m.id = o.market_id WHERE m.venue = $1 AND m.status = 'open'`,
);

/**
 * The stored best prices by outcome, and those of the exchange: of every outcome that has a price by its best levels alone, stored or not,
 * and of each other outcome that is stored.
 */
async function tops(db: Database, exchange: Exchange, venue: FeedVenue) {
  const rows = await db.query<{ mint: string; bid: string | null; ask: string | null }>(QUOTES, [venue]);
  const side = (text: string | undefined) => (text === undefined ? undefined : decimal(text));
  const number = (text: string | null | undefined) => (text === null || text === undefined ? null : Number(text));
  const stored = Object.fromEntries(rows.map(({ mint, bid, ask }) => [mint, [number(bid), number(ask)]]));
  const truth: Record<string, unknown> = {};
  for (const market of exchange.state().markets) {
    if (market.phase !== 'open') continue;
    const tokens = market.outcomes.map(({ tokenId }) => tokenId);
    const ticker = outcomeIdsOf(`KXSIM-${market.id}`);
    const isInPool = isPool({ tokenId: tokens[0] ?? '', negRisk: market.negRisk });
    const ids = {
      polymarket: tokens,
      kalshi: [ticker.yes, ticker.no],
      limitless: isInPool ? [] : tokens.map(limitlessTokenOf),
      manifold: [],
    }[venue];
    market.outcomes.forEach(({ bestBid, bestAsk }, index) => {
      const id = ids[index];
      if (id === undefined) return;
      // Otherwise the price is that of the last trade, and before it there is no quote.
      const hasPrice = isTight({ bid: side(bestBid), ask: side(bestAsk) });
      if (hasPrice || id in stored) truth[id] = [number(bestBid), number(bestAsk)];
    });
  }
  return { stored, truth };
}

/** The number of quotes of the exchange, and those that are stored differently or not at all. */
export async function quoteDifferences(
  db: Database,
  exchange: Exchange,
  venue: FeedVenue,
): Promise<{ quotes: number; differing: [outcomeId: string, stored: unknown, truth: unknown][] }> {
  const { stored, truth } = await tops(db, exchange, venue);
  const differing = Object.keys(truth).filter((id) => !isDeepStrictEqual(stored[id], truth[id]));
  return { quotes: Object.keys(truth).length, differing: differing.map((id) => [id, stored[id], truth[id]]) };
}

/** Waits until all quotes of the exchange are stored, as the exchange has them. */
export async function quotesAgree(
  db: Database,
  exchange: Exchange,
  venue: FeedVenue,
  within: { timeoutMs?: number; everyMs: number } = { everyMs: 50 },
): Promise<void> {
  await eventually(
    () => quoteDifferences(db, exchange, venue),
    ({ quotes, differing }) => quotes > 6 && differing.length === 0,
    within,
  );
}
