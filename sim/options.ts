import type { SimRequest } from './server/reply.ts';
import type { RequestRecord } from './server/request-log.ts';

/** Every option has a default; the same seed, `nowSecond` and number of steps give the same tape byte for byte. */
export interface ExchangeOptions {
  /** 0 (the default) takes a free port. */
  readonly port?: number | undefined;
  /** Default 127.0.0.1. */
  readonly host?: string | undefined;
  /** Default 1. */
  readonly seed?: number | undefined;
  /** Markets that exist or are planned at the start, the rolling series included. Default 24, up to 100,000. */
  readonly markets?: number | undefined;
  /** The number of markets with live traders. Default: all, at most 48. */
  readonly liveMarkets?: number | undefined;
  /**
   * The share of the other markets whose quotes move per minute, by the seed and the second alone: 0.02 for every fiftieth. Default 0:
   * they keep their opening quotes.
   */
  readonly quietMovesPerMinute?: number | undefined;
  /** Hours of history played at the start. Default 6. */
  readonly historyHours?: number | undefined;
  /** This number of markets traded for `deepDays` before the history, `deepPrints` times each. Default 0, 5, 3,000. */
  readonly deepMarkets?: number | undefined;
  readonly deepDays?: number | undefined;
  readonly deepPrints?: number | undefined;
  /** Multiplies the activity of traders in live time. Default 1. */
  readonly speed?: number | undefined;
  /** Length of the rolling up-or-down markets in seconds, 0 for none. Default 900. */
  readonly rollingSeconds?: number | undefined;
  /** The second at which history ends and live time begins. Default: the wall clock's. */
  readonly nowSecond?: number | undefined;
  /** Starts with the clock stopped: only `step` advances time. Default false. */
  readonly paused?: boolean | undefined;
  /** Trades kept in all, and per market. Default 200,000 and 20,000. */
  readonly tapeCapacity?: number | undefined;
  readonly perMarketCapacity?: number | undefined;
  /**
   * Hours before `nowSecond`: older prints and settlements on Kalshi are on its historical routes only. Default 2,160, the venue's
   * three months.
   */
  readonly kalshiLiveHours?: number | undefined;
  /** Kalshi lists planned markets before they open, as `initialized`. Default false. */
  readonly kalshiUnopened?: boolean | undefined;
  /** Combinations of markets on Kalshi, with prints of their own on the tape. Default 3. */
  readonly kalshiCombinations?: number | undefined;
  /** Whether Kalshi's events carry the deprecated `category`. Default true. */
  readonly kalshiEventCategory?: boolean | undefined;
  /** How Kalshi's `/events` treats `tickers`. Default `served`. */
  readonly kalshiEventTickers?: 'served' | 'ignored' | 'refused' | undefined;
  /** Whether the simulated Solana has traffic of its own. Default true. */
  readonly solanaTraffic?: boolean | undefined;
  /** The share of version 1 transactions among them, 0 to 1. Default 0.4. */
  readonly solanaV1Share?: number | undefined;
  /** The time that every answer takes, and a page of Kalshi's lists of markets and events. Default 0; that of other requests. */
  readonly delayMs?: number | undefined;
  readonly kalshiPageDelayMs?: number | undefined;
  /** Requests above the documented rates of the venues get 429. Default false. */
  readonly enforcesRates?: boolean | undefined;
  /** Serve this folder of recorded payloads instead of the engine. */
  readonly recorded?: string | undefined;
  /** A PEM file with a private key, which Kalshi's feed accepts under the id `PRESET_KEY_ID`. Default: only created keys. */
  readonly kalshiKeyFile?: string | undefined;
  /** Receives each finished request to a venue host, answered or not. */
  readonly onAnswered?: ((request: SimRequest, record: RequestRecord) => void) | undefined;
}

/** At the start four rolling markets have begun: three are over, one is open. */
const ROLLING_AT_START = 4;

/** The world's options, defaults filled in. */
export function worldOptions(options: ExchangeOptions, wallSecond: number) {
  const rollingSeconds = options.rollingSeconds ?? 900;
  const total = options.markets ?? 24;
  const deepMarkets = options.deepMarkets ?? 0;
  const planned = rollingSeconds > 0 ? Math.max(1, total - ROLLING_AT_START) : total;
  return {
    seed: options.seed ?? 1,
    nowSecond: options.nowSecond ?? wallSecond,
    historySeconds: Math.round((options.historyHours ?? 6) * 3600),
    deep: {
      markets: deepMarkets,
      prints: options.deepPrints ?? 3_000,
      seconds: deepMarkets > 0 ? Math.round((options.deepDays ?? 5) * 86_400) : 0,
    },
    markets: planned,
    liveMarkets: Math.min(planned, options.liveMarkets ?? 48),
    quietMovesPerMinute: options.quietMovesPerMinute ?? 0,
    speed: options.speed ?? 1,
    rollingSeconds,
    tapeCapacity: options.tapeCapacity ?? 200_000,
    perMarketCapacity: options.perMarketCapacity ?? 20_000,
  };
}
