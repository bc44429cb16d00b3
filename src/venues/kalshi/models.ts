import { z } from 'zod';
import { isStorableText } from '../../domain/values/text.ts';
import { parseVenueTimeMs } from '../venue-time.ts';

/**
 * The fields of Kalshi's payloads that oddswire reads; other fields are ignored. Fields that decide identity, status or money are strict: a
 * wrong type rejects the record instead of changing its meaning. Decorative fields are lenient: a wrong type counts as absent.
 */

const decorativeText = z.string().nullish().catch(undefined);
const decorativeAmount = z.union([z.string(), z.number()]).nullish().catch(undefined);
const id = z.string().min(1).max(200);
const amount = z.union([z.string(), z.number()]);
const optionalAmount = amount.nullish();
/** A ticker is part of comma lists and of `TICKER:yes`, so it contains neither commas, colons nor white space. */
const ticker = id.regex(/^[^\s,:]+$/);

const texts = z
  .array(z.unknown())
  .transform((items) =>
    items.filter((item): item is string => typeof item === 'string' && item !== '' && isStorableText(item)),
  );

const storableText = z.string().min(1).refine(isStorableText);
/** Where the venue reads the result; null for an entry of another form. */
const settlementSources = z
  .array(
    z
      .object({ name: storableText, url: storableText.nullish().catch(undefined) })
      .nullable()
      .catch(null),
  )
  .nullish()
  .catch(undefined);

/** A series of events; it has the category and the tags of their markets. */
export const kalshiSeries = z.object({
  ticker: id,
  category: z.string().refine(isStorableText).nullish().catch(undefined),
  /** All categories of the series; `category` is one of them. */
  categories: texts.nullish().catch(undefined),
  tags: texts.nullish().catch(undefined),
  settlement_sources: settlementSources,
  fee_type: decorativeText,
  fee_multiplier: decorativeAmount,
});
export type KalshiSeries = z.infer<typeof kalshiSeries>;

/** The event of a market, without its markets. */
const kalshiEvent = z.object({
  event_ticker: decorativeText,
  series_ticker: decorativeText,
  title: decorativeText,
  category: decorativeText,
  product_metadata: z.record(z.string(), z.unknown()).nullish().catch(undefined),
  settlement_sources: settlementSources,
  /** Each replaces the value of the series. */
  fee_type_override: decorativeText,
  fee_multiplier_override: decorativeAmount,
  /** Added by the directory of events: when it read them, epoch milliseconds. Absent: the answer has the event itself. */
  read_at_ms: z.number().optional(),
});

const scheduled = z.union([z.string(), z.number()]).transform((at, context) => {
  const atMs = typeof at === 'number' ? at * 1_000 : parseVenueTimeMs(at);
  if (atMs !== undefined && Number.isSafeInteger(atMs)) return atMs;
  context.addIssue({ code: 'custom', message: 'not a time' });
  return z.NEVER;
});

/** A change of the fee of a series. */
export const seriesFeeChange = z
  .object({ scheduled_ts: scheduled, fee_type: z.string(), fee_multiplier: amount })
  .transform((change) => ({ atMs: change.scheduled_ts, type: change.fee_type, multiplier: change.fee_multiplier }));

/** An announced change of the values with which an event replaces those of its series; null ends that. */
export const eventFeeChange = z
  .object({
    scheduled_ts: scheduled,
    fee_type_override: z.string().nullable(),
    fee_multiplier_override: amount.nullable(),
  })
  .transform((change) => ({
    atMs: change.scheduled_ts,
    type: change.fee_type_override,
    multiplier: change.fee_multiplier_override,
  }));
export type KalshiFeeChange = z.infer<typeof seriesFeeChange> | z.infer<typeof eventFeeChange>;

const feeChanges = z.object({
  readAtMs: z.number(),
  ofSeries: z.array(z.custom<KalshiFeeChange>()),
  ofEvent: z.array(z.custom<KalshiFeeChange>()),
});

/** The fields that give the value of a market: dollars as text, or the cents of the shape before 2026. */
const quoteFields = {
  ticker,
  status: z.string(),
  result: z.string().nullish(),
  market_type: decorativeText,
  settlement_value_dollars: optionalAmount,
  settlement_value: optionalAmount,
};

export const kalshiMarket = z.object({
  ...quoteFields,
  event_ticker: id,
  title: decorativeText,
  yes_sub_title: decorativeText,
  /** The same field in the shape before 2026. */
  subtitle: decorativeText,
  rules_primary: decorativeText,
  rules_secondary: decorativeText,
  created_time: decorativeText,
  open_time: decorativeText,
  close_time: decorativeText,
  settlement_ts: decorativeText,
  updated_time: decorativeText,
  expiration_value: decorativeText,
  volume_fp: decorativeAmount,
  volume: decorativeAmount,
  volume_24h_fp: decorativeAmount,
  volume_24h: decorativeAmount,
  strike_type: decorativeText,
  floor_strike: decorativeAmount,
  cap_strike: decorativeAmount,
  custom_strike: z.record(z.string(), z.unknown()).nullish().catch(undefined),
  /** Added by the client: the venue nests markets in events, or names the event by its ticker only. */
  event: kalshiEvent.nullish().catch(undefined),
  /** Added by the series directory, like `is_summary`, which marks a row whose category and tags could not be read. */
  series: kalshiSeries.nullish().catch(undefined),
  is_summary: z.boolean().nullish().catch(undefined),
  fee_waiver_expiration_time: decorativeText,
  /** Added by the directory of changes of fees; absent while they could not be read. */
  fee_changes: feeChanges.optional().catch(undefined),
});
export type KalshiMarket = z.infer<typeof kalshiMarket>;

export const kalshiQuotes = z.object({
  ...quoteFields,
  yes_bid_dollars: optionalAmount,
  yes_ask_dollars: optionalAmount,
  last_price_dollars: optionalAmount,
  yes_bid: optionalAmount,
  yes_ask: optionalAmount,
  last_price: optionalAmount,
});

const levels = z.array(z.tuple([amount, amount])).nullish();
/** Unknown keys stay: they distinguish a renamed book from an empty one. */
const sides = z.looseObject({ yes_dollars: levels, no_dollars: levels, yes: levels, no: levels });
export type KalshiSides = z.infer<typeof sides>;

export const kalshiBook = z.object({
  ticker,
  /** Empty for a market that the venue does not know. */
  market_id: decorativeText,
  orderbook_fp: sides.nullish(),
  orderbook: sides.nullish(),
});
export type KalshiBook = z.infer<typeof kalshiBook>;

export const kalshiTrade = z.object({
  trade_id: id,
  ticker,
  created_time: z.string().min(1),
  count_fp: optionalAmount,
  count: optionalAmount,
  yes_price_dollars: optionalAmount,
  no_price_dollars: optionalAmount,
  yes_price: optionalAmount,
  no_price: optionalAmount,
  taker_outcome_side: z.string().nullish(),
  taker_side: z.string().nullish(),
  is_block_trade: z.boolean().nullish(),
});
export type KalshiTrade = z.infer<typeof kalshiTrade>;

/** A field of a raw row of any type. */
export function fieldOf(row: unknown, field: string): unknown {
  return row !== null && typeof row === 'object' ? (row as Record<string, unknown>)[field] : undefined;
}
