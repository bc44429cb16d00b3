import {
  type OutcomePayout,
  type PayoutReason,
  RESOLUTION_FACTS,
  type ResolutionFacts,
  type ResolutionSource,
  type ResolutionState,
  type ResolutionTransition,
} from '../markets/resolution.ts';
import { type ApiJson, numberField } from '../values/api-json.ts';
import { type Decimal, multiplyDecimals } from '../values/decimal.ts';
import type { EventFilter } from './filter.ts';

/** A result of a market that differs from the one that an earlier event reported. */
export interface CorrectedResult {
  /** Null: the earlier event named no winner, or reported that the result was undone. */
  previousWinner: string | null;
  /** The known payouts now. */
  payouts: readonly OutcomePayout[];
}

/** The fields of a correction, of the event of an alert and of `market_status`. */
export function correctionFields({ previousWinner, payouts }: CorrectedResult) {
  return {
    correction: true as const,
    previousWinningOutcomeId: previousWinner,
    payouts: payoutFields(payouts),
  };
}

function payoutFields(payouts: readonly OutcomePayout[]) {
  return payouts.map(({ outcomeId, payout }) => ({ outcomeId, payout: numberField(payout) }));
}

/** The market of a broadcast. */
interface BroadcastMarket {
  venue: string;
  marketId: string;
  /** The venue's event: a group of markets. */
  eventId?: string | undefined;
  title: string;
  category?: string | undefined;
}

const marketOf = ({ venue, marketId, eventId, title, category }: BroadcastMarket) => ({
  venue,
  marketId,
  eventId,
  title,
  category,
});

interface MarketStatus extends BroadcastMarket {
  status: string;
  previousStatus: string;
  /** Of a resolved market. */
  winningOutcomeId?: string | undefined;
  resolution?: string | undefined;
  observedAt: Date;
  corrected?: CorrectedResult | undefined;
}

/** The data of `market_status`: a market halted, closed or got its result, or a reported result changed. */
export function marketStatusData(event: MarketStatus): ApiJson {
  const { status, previousStatus, winningOutcomeId, resolution, observedAt, corrected } = event;
  return {
    ...marketOf(event),
    status,
    previousStatus,
    winningOutcomeId,
    resolution,
    ...(corrected && correctionFields(corrected)),
    observedAt: observedAt.toISOString(),
  };
}

interface MarketResolution extends BroadcastMarket, ResolutionFacts {
  transition: ResolutionTransition;
  /** The state after it, and before it. */
  state: ResolutionState;
  previousState: ResolutionState;
  round?: number | undefined;
  /** The venue's time. */
  at?: Date | undefined;
  payouts: readonly OutcomePayout[] | null;
  reason?: PayoutReason | undefined;
  source: ResolutionSource;
  observedAt: Date;
}

/** The data of `market_resolution`: the result of a market was proposed, disputed, determined, corrected, paid or taken back. */
export function marketResolutionData(event: MarketResolution): ApiJson {
  const { transition, state, previousState, round, at, payouts, reason, source, observedAt } = event;
  return {
    ...marketOf(event),
    transition,
    resolutionState: state,
    previousResolutionState: previousState,
    round,
    at: at?.toISOString(),
    payouts: payouts && payoutFields(payouts),
    reason,
    source,
    ...Object.fromEntries(RESOLUTION_FACTS.map((name) => [name, event[name]])),
    observedAt: observedAt.toISOString(),
  };
}

interface NewMarket extends BroadcastMarket {
  status: string;
  createdAt?: Date | undefined;
  closeAt?: Date | undefined;
  url?: string | undefined;
  observedAt: Date;
}

/** The data of `new_market`: a market was stored for the first time. */
export function newMarketData(event: NewMarket): ApiJson {
  const { status, createdAt, closeAt, url, observedAt } = event;
  return {
    ...marketOf(event),
    status,
    createdAt: createdAt?.toISOString(),
    closeAt: closeAt?.toISOString(),
    url,
    observedAt: observedAt.toISOString(),
  };
}

interface ChangedRules extends BroadcastMarket {
  version: number;
  hash: string;
  previousHash: string;
  observedAt: Date;
}

/** The data of `market_rules`: the rules of a known market changed in more than white space. */
export function marketRulesData(event: ChangedRules): ApiJson {
  const { version, hash, previousHash, observedAt } = event;
  return { ...marketOf(event), version, hash, previousHash, observedAt: observedAt.toISOString() };
}

interface TradeMade extends BroadcastMarket {
  tokenMint: string;
  tokenSymbol: string;
  tradeId: string;
  price: Decimal;
  size: Decimal;
  side?: 'buy' | 'sell' | undefined;
  currency: string;
  tradedAt: Date;
  observedAt: Date;
}

/** The data of `trade`. */
export function tradeData(event: TradeMade): ApiJson {
  const { tokenMint, tokenSymbol, tradeId, price, size, side, currency, tradedAt, observedAt } = event;
  return {
    ...marketOf(event),
    tokenMint,
    tokenSymbol,
    tradeId,
    price: numberField(price),
    size: numberField(size),
    notional: numberField(multiplyDecimals(price, size)),
    currency,
    side,
    tradedAt: tradedAt.toISOString(),
    observedAt: observedAt.toISOString(),
  };
}

interface FeedGap {
  venue: string;
  gapId: string;
  /** `books`, `trades` or `markets`. */
  affected: string;
  cause: string;
  from: Date;
  /** Absent while it lasts. */
  to?: Date | undefined;
  markets: number;
  /** Absent when there are more than MAX_GAP_MARKETS. */
  marketIds?: readonly string[] | undefined;
}

export const MAX_GAP_MARKETS = 100;

/** The data of `feed_gap`: a feed may have lost messages. */
export function feedGapData({ venue, gapId, affected, cause, from, to, markets, marketIds }: FeedGap): ApiJson {
  return {
    venue,
    gapId,
    affected,
    cause,
    from: from.toISOString(),
    to: to?.toISOString(),
    markets,
    marketIds,
  };
}

/** The least `data.notional` that bounds a subscription to `trade`, in the currency of the market. */
const MIN_TRADE_NOTIONAL = 1_000;

/** The trades that a filter lets pass: those of markets, of events of venues, or of a least notional. */
export type TradeBound = { by: 'market' | 'event'; ids: readonly string[] } | { by: 'notional'; atLeast: number };

/** The narrowest bound of a filter; null when it excludes too few trades. */
export function tradeBoundOf(filter: EventFilter | null): TradeBound | null {
  const pinned = (field: string) =>
    filter?.find(({ field: name, equal, in: listed }) => name === field && (equal ?? listed) !== undefined);
  for (const [by, field] of [
    ['market', 'data.marketId'],
    ['event', 'data.eventId'],
  ] as const) {
    const pin = pinned(field);
    // A value that is no text equals no id.
    if (pin) return { by, ids: [pin.equal ?? pin.in ?? []].flat().map(String) };
  }
  const least = filter?.flatMap(({ field, above }) =>
    field === 'data.notional' && above !== undefined ? [above] : [],
  );
  const atLeast = Math.max(0, ...(least ?? []));
  return atLeast >= MIN_TRADE_NOTIONAL ? { by: 'notional', atLeast } : null;
}

/** Why a webhook with these events and this filter is not allowed; null when it is. */
export function tradeFilterProblem(events: readonly string[], filter: EventFilter | null): string | null {
  if (!events.includes('trade') || tradeBoundOf(filter) !== null) return null;
  return (
    'the event trade needs a filter with "equal" or "in" on data.marketId or data.eventId, ' +
    `or with "above" of at least ${MIN_TRADE_NOTIONAL} on data.notional`
  );
}
