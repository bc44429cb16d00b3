import { z } from 'zod';
import { SLUG, TOKEN_ID } from './outcome-ids.ts';

/**
 * The parts of Limitless' payloads that are read. Unknown fields are ignored. Fields that decide identity, status or money are
 * strict: a wrong type there must reject the record and not change its meaning. Decorative ones are lenient: a wrong type
 * there is the same as absent.
 */

const decorativeText = z.string().nullish().catch(undefined);
const decorativeTexts = z
  .array(z.unknown())
  .nullish()
  .catch(undefined)
  .transform((items) => (items ?? []).filter((item) => typeof item === 'string'));
const amount = z.union([z.string(), z.number()]);
const slug = z.string().regex(SLUG);
const tokenId = z.string().regex(TOKEN_ID);

const collateralToken = z
  .object({ symbol: z.string().max(40), decimals: z.number().int().min(0).max(36) })
  .nullish()
  .catch(undefined);

const group = z
  .object({
    slug: slug.nullish().catch(undefined),
    title: decorativeText,
    description: decorativeText,
    categories: decorativeTexts,
    tags: decorativeTexts,
    tradeType: decorativeText,
    collateralToken,
  })
  .nullish()
  .catch(undefined);

/** The fields that identify a market and its outcomes. */
const identity = {
  slug,
  tokens: z.object({ yes: tokenId, no: tokenId }).nullish(),
  tradeType: z.string().max(60).nullish(),
  group,
};

export const limitlessMarket = z.object({
  ...identity,
  title: z.string(),
  status: z.string().min(1).max(60),
  expired: z.boolean().nullish(),
  /** Epoch milliseconds. */
  expirationTimestamp: z.number().nullish(),
  /** 0: YES, 1: NO. */
  winningOutcomeIndex: z.number().nullish(),
  createdAt: decorativeText,
  startAt: decorativeText,
  description: decorativeText,
  categories: decorativeTexts,
  tags: decorativeTexts,
  collateralToken,
  /** In millionths of the collateral, by its decimals. */
  volume: amount.nullish().catch(undefined),
  liquidity: amount.nullish().catch(undefined),
  metadata: z.object({ fee: z.boolean().nullish() }).nullish().catch(undefined),
});
export type LimitlessMarket = z.infer<typeof limitlessMarket>;

const quotePair = z.object({ market: z.array(amount).max(10).nullish() }).nullish();

export const limitlessPrices = z.object({
  ...identity,
  /** YES and NO. */
  prices: z.array(amount).max(10).nullish(),
  /** The present prices of market orders, of YES and of NO. */
  tradePrices: z.object({ buy: quotePair, sell: quotePair }).nullish(),
});
export type LimitlessPrices = z.infer<typeof limitlessPrices>;

const levels = z.array(z.object({ price: amount, size: amount }));

export const limitlessBook = z.object({
  /** Of the requested market: YES and NO. */
  outcomeIds: z.tuple([z.string().min(1).max(300), z.string().min(1).max(300)]),
  /** YES. */
  tokenId: z.string().nullish(),
  bids: levels,
  asks: levels,
});
export type LimitlessBook = z.infer<typeof limitlessBook>;

export const limitlessEvent = z.object({
  tokenId,
  price: amount,
  /** In millionths of a share. */
  matchedSize: amount,
  /** 0 buys, 1 sells; the taker's. */
  side: amount.nullish(),
  txHash: z.string().max(200).nullish(),
  makerAmount: amount.nullish(),
  takerAmount: amount.nullish(),
  profile: z
    .object({ account: z.string().max(200).nullish() })
    .nullish()
    .catch(undefined),
});
export type LimitlessEvent = z.infer<typeof limitlessEvent>;
