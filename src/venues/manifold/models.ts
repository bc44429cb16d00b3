import { z } from 'zod';
import { VENUE_ID } from './outcome-ids.ts';

/**
 * The fields of Manifold's payloads that oddswire reads; other fields are ignored. Fields that decide identity, status or money are strict:
 * a wrong type rejects the record instead of changing its meaning. Decorative fields are lenient: a wrong type counts as absent.
 */

const id = z.string().regex(VENUE_ID);
const decorativeText = z.string().nullish().catch(undefined);
const decorativeNumber = z.number().nullish().catch(undefined);
const decorativeTexts = z
  .array(z.unknown())
  .nullish()
  .catch(undefined)
  .transform((items) => (items ?? []).filter((item) => typeof item === 'string'));

/** These fields decide whether a record is read at all. */
export const marketKind = z.object({
  outcomeType: z.string().min(1).max(60),
  mechanism: z.string().min(1).max(60),
  token: z.string().max(60).nullish(),
});

const answer = z.object({
  id,
  text: z.string(),
  resolution: z.string().nullish(),
  resolutionProbability: z.number().nullish(),
});

/** A `LiteMarket` or a `FullMarket`. */
export const manifoldMarket = z.object({
  id,
  question: z.string(),
  isResolved: z.boolean(),
  resolution: z.string().nullish(),
  resolutionProbability: z.number().nullish(),
  closeTime: z.number().nullish(),
  /** Absent in listings. */
  answers: z.array(answer).nullish(),
  createdTime: decorativeNumber,
  resolutionTime: decorativeNumber,
  lastUpdatedTime: decorativeNumber,
  url: decorativeText,
  /** Formerly text, now rich text as an object; `textDescription` is its text. */
  description: decorativeText,
  textDescription: decorativeText,
  groupSlugs: decorativeTexts,
  tags: decorativeTexts,
  volume: decorativeNumber,
  volume24Hours: decorativeNumber,
  totalLiquidity: decorativeNumber,
});
export type ManifoldMarket = z.infer<typeof manifoldMarket>;

const fill = z.object({
  amount: z.number(),
  shares: z.number(),
  timestamp: z.number(),
  /** The bet on the other side; null for the pool. */
  matchedBetId: z.string().nullish(),
  /** Only on fills that the bet took when it was placed; absent on old bets. */
  fees: z.unknown().optional(),
});

export const manifoldBet = z.object({
  id,
  contractId: id,
  createdTime: z.number(),
  amount: z.number(),
  shares: z.number(),
  outcome: z.string().min(1).max(200),
  answerId: id.nullish(),
  isRedemption: z.boolean().nullish(),
  isAnte: z.boolean().nullish(),
  /** Present on limit orders only. */
  limitProb: z.number().nullish(),
  /** Probability of YES. */
  probBefore: decorativeNumber,
  fills: z.array(fill).nullish(),
});
export type ManifoldBet = z.infer<typeof manifoldBet>;
