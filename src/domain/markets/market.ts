import type { Decimal } from '../values/decimal.ts';

/** The normalized life of a market. Moves are not one-way: a closed market may open again (venues.md section 9.3). */
export const MARKET_STATUSES = ['created', 'open', 'halted', 'closed', 'resolved', 'settled'] as const;
export type MarketStatus = (typeof MARKET_STATUSES)[number];

/** The status of an event is the first of these that one of its markets has: an event is open while any of its markets is. */
export const EVENT_STATUS_ORDER = [
  'open',
  'halted',
  'created',
  'closed',
  'resolved',
  'settled',
] as const satisfies readonly MarketStatus[];

/** One thing that can be priced and traded. Its `outcomeId` is what an alert calls `tokenMint`. */
export interface OutcomeRecord {
  outcomeId: string;
  label: string;
  /** What the outcome pays out per unit, known once the market is resolved. */
  payout?: Decimal;
}

/**
 * A market as an adapter yields it: the venue's own ids, unknown fields absent. All times are epoch milliseconds.
 * Spec section 2.3, DESIGN section 4 "Market".
 */
export interface MarketRecord {
  marketId: string;
  eventId?: string;
  /** The title and the page of its event at the venue. */
  eventTitle?: string;
  eventUrl?: string;
  /** Distinguishes the market from the other markets of its event, which may have the same title. */
  siblingLabel?: string;
  title: string;
  description: string;
  category?: string;
  tags: string[];
  status: MarketStatus;
  outcomes: OutcomeRecord[];
  createdAtMs?: number;
  openAtMs?: number;
  closeAtMs?: number;
  resolvedAtMs?: number;
  /** `void` when nobody won. */
  resolution?: 'outcome' | 'void';
  winningOutcomeId?: string;
  resolutionCriteria?: string;
  url?: string;
  /** Lifetime volume, 24 h volume and resting liquidity in the venue's own unit. */
  volume?: Decimal;
  volume24h?: Decimal;
  liquidity?: Decimal;
  /**
   * The listing it comes from leaves out description, resolution criteria, category and tags: what is stored of these stays.
   */
  isSummary?: true;
  /** The answer has no list of tags, not even an empty one: what is stored of category and tags stays. */
  isUntagged?: true;
  /**
   * How long the answer lay in a cache of the venue, milliseconds; absent when it is fresh. What the store changed within this
   * time is newer than the answer, and stays.
   */
  ageMs?: number;
  /** Whether the venue serves an orderbook for this market. */
  hasBook: boolean;
}

/** A price snapshot of one outcome (spec section 2.4). `asOfMs` is the venue's time, or else the time of the answer (docs/venues.md). */
export interface PriceRecord {
  outcomeId: string;
  asOfMs: number;
  price: Decimal;
  bid?: Decimal;
  ask?: Decimal;
}

export interface PriceLevel {
  price: Decimal;
  size: Decimal;
  /** Aggregated orders at this level, when the venue says. */
  count?: number;
}

/** One outcome's book (spec section 2.6): bids falling, asks rising, equal prices merged, no level of size zero. */
export interface BookRecord {
  outcomeId: string;
  asOfMs: number;
  bids: PriceLevel[];
  asks: PriceLevel[];
}

/** One print (spec section 2.7). `tradeId` is the venue's own, or a stable hash where it has none. */
export interface TradeRecord {
  tradeId: string;
  outcomeId: string;
  /** Epoch milliseconds; a fraction holds the venue's microseconds, where it has them. */
  tsMs: number;
  price: Decimal;
  size: Decimal;
  side?: 'buy' | 'sell';
  /** The venue's own order among trades of one instant, rising; absent where the venue gives none. */
  ordinal?: number;
}
