/** Numbers of the trading wallets, see `walletOf`. */

/** Wallets of the control route: one pushes the price, the other holds it. */
export const AGGRESSOR = 0;
export const STRONG_MAKER = 1;
/** Quotes close to the belief, small. */
export const TIGHT_MAKER = 2;
/** Quotes further out, large. */
export const DEEP_MAKER = 3;
/** All other wallets: `FIRST_RETAIL .. FIRST_RETAIL + RETAIL_WALLETS - 1`; the first of them is `REGULAR`. */
export const FIRST_RETAIL = 4;
export const RETAIL_WALLETS = 400;
/** A wallet to watch: it makes one of this many retail trades, several per minute. */
export const REGULAR = FIRST_RETAIL;
export const REGULAR_COUNTS_FOR = 8;
