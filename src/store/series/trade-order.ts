/**
 * The signed price of a trade row: positive for a buy, negative for a sell, 0 without a side. It increases along a buy and along a sell
 * that sweeps a book.
 */
const SIGNED_PRICE = 'coalesce(price * side, 0)';

/**
 * The keys of the single order of trades of an outcome, as columns of a single relation of trade rows. `compareTrades` in
 * `test/support/laws/trade-order.ts` is the same rule. The index leads with `(token_id, ts)`, so that rows of one outcome need an
 * incremental sort of their ties only.
 */
const KEYS = ['ts', 'ordinal', SIGNED_PRICE, 'trade_id COLLATE "C"'] as const;

/** For ORDER BY: oldest first. */
export const TRADE_ORDER = KEYS.join(', ');

/** For ORDER BY: newest first. */
export const TRADE_ORDER_REVERSED = KEYS.map((key) => `${key} DESC`).join(', ');

/** The keys as one row value, to compare with the place of another trade. */
export const TRADE_PLACE = `(${TRADE_ORDER})`;

/** The signed price as a named column, for positions in the tape. */
export const SIGNED_PRICE_COLUMN = `${SIGNED_PRICE} AS signed_price`;

/** Aggregates of the first and of the last price. */
export const OPEN_PRICE = `(array_agg(price ORDER BY ${TRADE_ORDER}))[1]`;
export const CLOSE_PRICE = `(array_agg(price ORDER BY ${TRADE_ORDER_REVERSED}))[1]`;
