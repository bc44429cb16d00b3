import { z } from 'zod';

/**
 * The fields of Polymarket's payloads that oddswire reads; other fields are ignored. Fields that decide identity, status or money are
 * strict: a wrong type rejects the record instead of changing its meaning. Decorative fields are lenient: a wrong type counts as absent.
 */

/** A list. Gamma sends it as JSON in a text; fixtures and protocol v2 as a plain list. */
function jsonList<T extends z.ZodType>(item: T) {
  const fromText = z.string().transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch (error) {
      context.addIssue({ code: 'custom', message: `not a JSON list: ${error instanceof Error ? error.message : ''}` });
      return z.NEVER;
    }
  });
  return z.union([z.array(z.unknown()), fromText]).pipe(z.array(item));
}

const decorativeText = z.string().nullish().catch(undefined);
const decorativeAmount = z.union([z.string(), z.number()]).nullish().catch(undefined);
const flag = z.boolean().nullish();
const id = z.string().min(1).max(200);
const amount = z.union([z.string(), z.number()]);

const tags = z
  .array(z.union([z.string(), z.object({ label: decorativeText, slug: decorativeText })]))
  .nullish()
  .catch(undefined);

const gammaEvent = z.object({
  id: z.union([z.string(), z.number()]).nullish().catch(undefined),
  slug: decorativeText,
  title: decorativeText,
  category: decorativeText,
  tags,
});

export const gammaMarket = z.object({
  conditionId: id,
  question: z.string(),
  closed: z.boolean(),
  outcomes: jsonList(z.string()),
  clobTokenIds: jsonList(id).nullish(),
  positionIds: jsonList(id).nullish(),
  outcomePrices: jsonList(amount).nullish(),
  version: z.string().nullish(),
  active: flag,
  archived: flag,
  acceptingOrders: flag,
  enableOrderBook: flag,
  umaResolutionStatus: z.string().nullish(),
  /** The former words of `umaResolutionStatus`, oldest first. */
  umaResolutionStatuses: jsonList(z.string()).nullish().catch(undefined),
  description: decorativeText,
  resolutionSource: decorativeText,
  /** The label that distinguishes the market in its event. */
  groupItemTitle: decorativeText,
  slug: decorativeText,
  category: decorativeText,
  tags,
  events: z.array(gammaEvent).nullish().catch(undefined),
  createdAt: decorativeText,
  startDate: decorativeText,
  endDate: decorativeText,
  acceptingOrdersTimestamp: decorativeText,
  closedTime: decorativeText,
  umaEndDate: decorativeText,
  volume: decorativeAmount,
  volumeNum: decorativeAmount,
  volume24hr: decorativeAmount,
  liquidity: decorativeAmount,
  liquidityNum: decorativeAmount,
  feesEnabled: flag.catch(undefined),
  feeType: decorativeText,
  feeSchedule: z
    .object({ rate: amount, exponent: amount, takerOnly: z.boolean().nullish().catch(undefined) })
    .nullish()
    .catch(undefined),
});
export type GammaMarket = z.infer<typeof gammaMarket>;

const bookLevel = z.object({ price: amount, size: amount });

export const clobBook = z.object({
  asset_id: id,
  timestamp: z.union([z.string(), z.number()]).nullish(),
  bids: z.array(bookLevel),
  asks: z.array(bookLevel),
});
export type ClobBook = z.infer<typeof clobBook>;

export const clobLastTrade = z.object({ token_id: id, price: amount, side: z.string().nullish() });

export const dataTrade = z.object({
  transaction_hash: id,
  token_id: id,
  condition_id: decorativeText,
  slug: decorativeText,
  side: z.string().min(1).max(20),
  size: amount,
  price: amount,
  timestamp: z.union([z.number(), z.string()]),
  proxy_wallet: id,
});
export type DataTrade = z.infer<typeof dataTrade>;

/** Pending rows have prices as texts of integers with 18 decimals, `69` for none, and seconds as a text; resolved rows have ISO times. */
export const dataResolution = z.object({
  condition_id: id,
  status: z.string(),
  proposed_price: decorativeText,
  reproposed_price: decorativeText,
  transaction_hash: decorativeText,
  last_update_timestamp: decorativeText,
});
export type DataResolution = z.infer<typeof dataResolution>;
