import { z } from 'zod';

/** The fields of the market channel that oddswire reads; other fields are ignored. */

const id = z.string().min(1).max(200);
const tokenId = z.string().regex(/^\d{1,100}$/);
const amount = z.string().min(1).max(400);
/** `"0"` and `"1"` or `""` mean that a side has no orders. */
const best = z.string().max(400).nullish();
/** Epoch milliseconds as text. */
const stamp = z.string().regex(/^\d{1,16}$/);
const side = z.enum(['BUY', 'SELL']);
const wireLevels = z.array(z.object({ price: amount, size: amount }));

export const feedBook = z.object({
  market: id,
  asset_id: tokenId,
  timestamp: stamp,
  hash: z.string().max(100).nullish(),
  bids: wireLevels,
  asks: wireLevels,
  tick_size: z.string().min(1).max(40).nullish(),
  last_trade_price: z.string().max(40).nullish(),
});
export type FeedBookMessage = z.infer<typeof feedBook>;

export const feedChange = z.object({ market: id, timestamp: stamp, price_changes: z.array(z.unknown()) });

export const feedLeg = z.object({
  asset_id: tokenId,
  price: amount,
  size: amount,
  side,
  hash: z.string().max(100).nullish(),
  best_bid: best,
  best_ask: best,
});
export type FeedLeg = z.infer<typeof feedLeg>;

export const feedBestQuotes = z.object({
  market: id,
  asset_id: tokenId,
  best_bid: best,
  best_ask: best,
  timestamp: stamp,
});

export const feedLastTrade = z.object({
  market: id,
  asset_id: tokenId,
  price: amount,
  size: amount,
  side,
  timestamp: stamp,
});

export const feedTickSize = z.object({ asset_id: tokenId, new_tick_size: z.string().min(1).max(40) });

/** `id` is Gamma's id of the market; `market` is its condition id, which oddswire uses. */
/** Epoch milliseconds, as a text. */
export const feedMarketEvent = z.object({
  market: id,
  timestamp: z
    .string()
    .regex(/^\d{13}$/)
    .nullish()
    .catch(undefined),
});
