import type { Decimal } from '../values/decimal.ts';
import type { FeeStatement } from './fee.ts';
import type { ResolutionStep } from './resolution.ts';

/** The sides of an order that takes from the book. A buy takes asks, a sell takes bids. */
export const ORDER_SIDES = ['buy', 'sell'] as const;

export type OrderSide = (typeof ORDER_SIDES)[number];

/** The normalized life of a market. A closed market may open again: venues correct their own states. */
export const MARKET_STATUSES = ['created', 'open', 'halted', 'closed', 'resolved', 'settled'] as const;
export type MarketStatus = (typeof MARKET_STATUSES)[number];

/** The orders of a list of markets. */
export const MARKET_SORTS = ['created', 'volume_24h', 'close_at', 'updated'] as const;
export type MarketSort = (typeof MARKET_SORTS)[number];

/** The status of an event is the first of these that any of its markets has: an event with an open market is open. */
export const EVENT_STATUS_ORDER = [
  'open',
  'halted',
  'created',
  'closed',
  'resolved',
  'settled',
] as const satisfies readonly MarketStatus[];

/** One tradable side of a market. Alerts call its `outcomeId` `tokenMint`. */
export interface OutcomeRecord {
  outcomeId: string;
  label: string;
  /** The payout per unit, known once the market is resolved. */
  payout?: Decimal;
}

/** A market as an adapter yields it (specification section 2.3): ids of the venue, unknown fields absent, times in epoch milliseconds. */
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
  /** `void` when the market resolves without a winner. */
  resolution?: 'outcome' | 'void';
  winningOutcomeId?: string;
  /** The steps of its resolution that the venue names, oldest first; the last one is the present state. Absent: no result is proposed. */
  resolutionSteps?: readonly ResolutionStep[];
  resolutionCriteria?: string;
  /** Where the venue reads the result, when it states it apart from the criteria. */
  settlementSource?: string;
  url?: string;
  /** Absent: the answer says nothing about the fee, so the store keeps the last statement. */
  fees?: FeeStatement;
  /** The age of the oldest fact behind `fees`, milliseconds; absent: that of the answer. A newer statement is not replaced. */
  feesAgeMs?: number;
  /** Lifetime volume, 24 h volume and resting liquidity in the venue's own unit. */
  volume?: Decimal;
  volume24h?: Decimal;
  liquidity?: Decimal;
  /** The listing omits description, resolution criteria, settlement source, category and tags, so the store keeps the stored values. */
  isSummary?: true;
  /** The answer has no list of tags, not even an empty one, so the store keeps the stored category and tags. */
  isUntagged?: true;
  /**
   * The age of the answer in a cache of the venue, milliseconds; absent when fresh. The store keeps its own changes of this period,
   * because they are newer than the answer.
   */
  ageMs?: number;
  /** When the venue last changed the record: an earlier one does not replace a later one. */
  statedAtMs?: number;
  /** Whether the venue serves an orderbook for this market. */
  hasBook: boolean;
}

/** A price snapshot of one outcome (specification section 2.4). `asOfMs` is the venue's time, else the request's time (docs/venues.md). */
export interface PriceRecord {
  outcomeId: string;
  asOfMs: number;
  /** The time of the answer, when `asOfMs` is a time of the venue that does not advance with each answer. */
  seenAtMs?: number;
  price: Decimal;
  bid?: Decimal;
  ask?: Decimal;
}

export interface PriceLevel {
  price: Decimal;
  size: Decimal;
  /** The number of orders at this level, when the venue states it. */
  count?: number;
}

/** One outcome's book (specification section 2.6): bids descending, asks ascending, equal prices merged, no level of size zero. */
export interface BookRecord {
  outcomeId: string;
  asOfMs: number;
  /** See `PriceRecord`. */
  seenAtMs?: number;
  bids: PriceLevel[];
  asks: PriceLevel[];
}

/** One print (specification section 2.7). `tradeId` is the venue's own, or a stable hash when the venue has no id. */
export interface TradeRecord {
  tradeId: string;
  outcomeId: string;
  /** Epoch milliseconds; a fraction holds the venue's microseconds. */
  tsMs: number;
  price: Decimal;
  size: Decimal;
  side?: 'buy' | 'sell';
  /** The venue's own ascending order among trades of one instant; absent when the venue gives none. */
  ordinal?: number;
}
