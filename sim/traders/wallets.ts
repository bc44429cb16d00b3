/** Who trades: numbers of wallets, see `walletOf`. */

/** Injected by the control route: the one who pushes the price, and the one who holds it. */
export const AGGRESSOR = 0;
export const STRONG_MAKER = 1;
/** Quotes close to the belief, small. */
export const TIGHT_MAKER = 2;
/** Quotes further out, large. */
export const DEEP_MAKER = 3;
/** Everyone else: `FIRST_RETAIL .. FIRST_RETAIL + RETAIL_WALLETS - 1`; the first of them is `REGULAR`. */
export const FIRST_RETAIL = 4;
export const RETAIL_WALLETS = 400;
/** Trades for so many of them, several times a minute: somebody to watch. */
export const REGULAR = FIRST_RETAIL;
export const REGULAR_COUNTS_FOR = 8;
