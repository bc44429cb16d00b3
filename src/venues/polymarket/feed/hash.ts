import { hash } from 'node:crypto';

/** A level in the venue's own digits, which the hash covers. */
export interface WireLevel {
  readonly price: string;
  readonly size: string;
}

/** A book as the hash covers it. The texts are JSON lists of `WireLevel`, bids rising and asks falling, so that the best level is the last one. */
export interface WireBook {
  readonly market: string;
  readonly assetId: string;
  readonly timestamp: string;
  readonly bidsText: string;
  readonly asksText: string;
}

/** The JSON text of a level, its keys in the order of the hash. */
export function levelText({ price, size }: WireLevel): string {
  return JSON.stringify({ price, size });
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
 * The venue's hash of a book under a context: SHA-1 of compact JSON with the keys in this order and an empty `hash`. It reproduces every
 * untrimmed book of the recordings (docs/feeds.md). Most of the time of a busy feed is spent here, so the text of the levels is made once
 * for all contexts, and no hash has an object of its own.
 */
function hasherOf({ market, assetId, timestamp, bidsText, asksText }: WireBook): (context: HashContext) => string {
  const fields = JSON.stringify({ market, asset_id: assetId, timestamp, hash: '' });
  const levels = `${fields.slice(0, -1)},"bids":${bidsText},"asks":${asksText},`;
  return (context) => {
    const rest = JSON.stringify({
      min_order_size: context.minOrderSize,
      tick_size: context.tickSize,
      neg_risk: context.negRisk,
      last_trade_price: context.lastTradePrice,
    });
    return hash('sha1', levels + rest.slice(1), 'hex');
  };
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
export function findContext(book: WireBook, wanted: string, candidates: Candidates): HashContext | undefined {
  const { known, tickSize, lastTradePrices } = candidates;
  const ticks = tickSize !== undefined ? [tickSize] : known ? [known.tickSize] : TICK_SIZES;
  const sizes = known ? [known.minOrderSize] : MIN_ORDER_SIZES;
  const risks = known ? [known.negRisk] : [false, true];
  const hashUnder = hasherOf(book);
  for (const lastTradePrice of new Set(lastTradePrices)) {
    for (const tick of ticks) {
      for (const negRisk of risks) {
        for (const minOrderSize of sizes) {
          const context = { minOrderSize, tickSize: tick, negRisk, lastTradePrice };
          if (hashUnder(context) === wanted) return context;
        }
      }
    }
  }
  return undefined;
}
