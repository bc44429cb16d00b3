import { z } from 'zod';

/** The fields of the WebSocket v2 messages that oddswire reads; other fields are ignored. */

const ticker = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[^\s,:]+$/);
const dollars = z.string().min(1).max(40);
const count = z.string().min(1).max(400);
const number = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER);
const levels = z.array(z.tuple([dollars, count])).nullish();
/** Epoch milliseconds. */
const stamp = number.min(1_514_764_800_000);

/** `seq` counts the messages of one `sid`; the ticker channel has none. */
export const kalshiFrame = z.object({
  type: z.string().min(1).max(60),
  id: number.nullish(),
  sid: number.nullish(),
  seq: number.nullish(),
  msg: z.unknown().optional(),
});
export type KalshiFrame = z.infer<typeof kalshiFrame>;

export const subscribed = z.object({ channel: z.string().min(1).max(60), sid: number });

export const feedError = z.object({ code: number, msg: z.string().nullish().catch(undefined) });

/** A side without orders is absent. An unknown market has neither side and an empty `market_id`. */
export const feedSnapshot = z.object({
  market_ticker: ticker,
  market_id: z.string().nullish().catch(undefined),
  yes_dollars_fp: levels,
  no_dollars_fp: levels,
});
export type FeedSnapshot = z.infer<typeof feedSnapshot>;

/** `delta_fp` is the change of the level's size, not its total. */
export const feedDelta = z.object({
  market_ticker: ticker,
  price_dollars: dollars,
  delta_fp: count,
  side: z.enum(['yes', 'no']),
  ts_ms: stamp.nullish(),
});

export const feedTicker = z.object({
  market_ticker: ticker,
  price_dollars: dollars,
  yes_bid_dollars: dollars,
  yes_ask_dollars: dollars,
  ts_ms: stamp.nullish(),
});

/** Times in `ts_ms`, in older messages in `ts` only (epoch seconds). */
export const feedTrade = z.object({
  market_ticker: ticker,
  trade_id: z.string().min(1).max(200),
  ts: number.nullish(),
  ts_ms: stamp.nullish(),
});

/** Epoch seconds. */
const decorativeTime = z.number().positive().max(99_999_999_999).nullish().catch(undefined);
export const feedLifecycle = z.object({
  market_ticker: ticker,
  event_type: z.string().min(1).max(60),
  determination_ts: decorativeTime,
  settled_ts: decorativeTime,
});
