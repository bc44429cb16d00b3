import { createHash } from 'node:crypto';

/** A level in the venue's own digits, which the hash covers. */
export interface WireLevel {
  readonly price: string;
  readonly size: string;
}

/** A book in the order of the wire: bids ascending, asks descending, so that the best level is the last one of each side. */
export interface WireBook {
  readonly market: string;
  readonly assetId: string;
  readonly timestamp: string;
  readonly bids: readonly WireLevel[];
  readonly asks: readonly WireLevel[];
}

/** The hashed fields that the deltas do not contain. */
export interface HashContext {
  readonly minOrderSize: string;
  readonly tickSize: string;
  readonly negRisk: boolean;
  /** One price per market, for both tokens, with three decimals; '' without a trade. */
  readonly lastTradePrice: string;
}

/**
 * The venue's hash of a book: SHA-1 of compact JSON with the keys in this order and an empty `hash`. It reproduces every untrimmed book of
 * the recordings (docs/feeds.md).
 */
export function bookHash(book: WireBook, context: HashContext): string {
  const text = JSON.stringify({
    market: book.market,
    asset_id: book.assetId,
    timestamp: book.timestamp,
    hash: '',
    bids: book.bids.map(({ price, size }) => ({ price, size })),
    asks: book.asks.map(({ price, size }) => ({ price, size })),
    min_order_size: context.minOrderSize,
    tick_size: context.tickSize,
    neg_risk: context.negRisk,
    last_trade_price: context.lastTradePrice,
  });
  return createHash('sha1').update(text).digest('hex');
}

/** Minimum order sizes in recorded books, most frequent first. The feed does not send them. */
const MIN_ORDER_SIZES = ['5', '15', '1', '10', '0'];
const TICK_SIZES = ['0.01', '0.001', '0.0025', '0.005', '0.1', '0.0001'];

/** The values that a search may use; unknown fields are tried in all known values. */
interface Candidates {
  known?: HashContext | undefined;
  tickSize?: string | undefined;
  /** Prices that the market's last trade may have. */
  lastTradePrices: readonly string[];
}

/** The context under which a book has this hash; undefined when none of the candidates fits. */
export function findContext(book: WireBook, hash: string, candidates: Candidates): HashContext | undefined {
  const { known, tickSize, lastTradePrices } = candidates;
  const ticks = tickSize !== undefined ? [tickSize] : known ? [known.tickSize] : TICK_SIZES;
  const sizes = known ? [known.minOrderSize] : MIN_ORDER_SIZES;
  const risks = known ? [known.negRisk] : [false, true];
  for (const lastTradePrice of new Set(lastTradePrices)) {
    for (const tick of ticks) {
      for (const negRisk of risks) {
        for (const minOrderSize of sizes) {
          const context = { minOrderSize, tickSize: tick, negRisk, lastTradePrice };
          if (bookHash(book, context) === hash) return context;
        }
      }
    }
  }
  return undefined;
}
