import {
  type BookRecord,
  MARKET_STATUSES,
  type MarketRecord,
  type PriceLevel,
  type PriceRecord,
  type TradeRecord,
} from '../../../src/domain/markets/market.ts';
import { compareDecimals, type Decimal, ONE, parseDecimal, ZERO } from '../../../src/domain/values/decimal.ts';
import { isStorableText } from '../../../src/domain/values/text.ts';
import type { RejectedRecord } from '../../../src/venues/port.ts';
import type { PollKind } from './venue-under-test.ts';

/** Invariants of every record that an adapter yields, for any payload. Each check throws when its invariant is broken. */
export const invariants: Readonly<Record<PollKind, (record: unknown, nowMs: number) => void>> = {
  markets: (record, nowMs) => checkMarket(record as MarketRecord, nowMs),
  prices: (record, nowMs) => checkPrice(record as PriceRecord, nowMs),
  books: (record, nowMs) => checkBook(record as BookRecord, nowMs),
  trades: (record, nowMs) => checkTrade(record as TradeRecord, nowMs),
};

const EARLIEST_MS = Date.UTC(2000, 0, 1);
const LATEST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
/** The greatest lead of a venue's clock. */
const AHEAD_MS = 300_000;

/** `expect` costs a hundred times as much, and these checks run for every level of every mutated book. */
export function must(holds: boolean, what: string, of: unknown): asserts holds {
  if (!holds) throw new Error(`${what}: ${JSON.stringify(of)?.slice(0, 300)}`);
}

function checkId(id: string): void {
  must(typeof id === 'string' && id.length > 0 && id.length <= 300, 'an id is a short text', id);
  must(isStorableText(id), 'an id is storable', id);
}

function checkDecimal(value: Decimal, least: Decimal, most?: Decimal): void {
  must(parseDecimal(value) === value, 'a decimal is canonical', value);
  must(compareDecimals(value, least) >= 0, `a decimal is at least ${least}`, value);
  must(most === undefined || compareDecimals(value, most) <= 0, `a decimal is at most ${most}`, value);
}

function checkTime(ms: number | undefined, latestMs: number): void {
  if (ms === undefined) return;
  must(Number.isSafeInteger(ms) && ms >= EARLIEST_MS && ms <= latestMs, 'a time is plausible', ms);
}

function checkMarket(market: MarketRecord, nowMs: number): void {
  checkId(market.marketId);
  must(MARKET_STATUSES.includes(market.status), 'a status is known', market.status);
  for (const text of [market.title, market.description, ...market.tags, ...market.outcomes.map((each) => each.label)]) {
    must(typeof text === 'string' && isStorableText(text), 'a text is storable', text);
  }
  for (const text of [market.category, market.resolutionCriteria, market.url, market.eventId]) {
    must(text === undefined || isStorableText(text), 'a text is storable', text);
  }
  const ids = market.outcomes.map((each) => each.outcomeId);
  ids.forEach(checkId);
  must(ids.length > 0 && new Set(ids).size === ids.length, 'outcomes are distinct', ids);
  for (const { payout } of market.outcomes) if (payout !== undefined) checkDecimal(payout, ZERO, ONE);
  checkMarketTimes(market, nowMs);
  for (const amount of [market.volume, market.volume24h, market.liquidity]) {
    if (amount !== undefined) checkDecimal(amount, ZERO);
  }
  const isFinal = market.status === 'resolved' || market.status === 'settled';
  must(
    isFinal || (market.resolution === undefined && market.resolvedAtMs === undefined),
    'only a final market is resolved',
    market,
  );
  if (market.winningOutcomeId === undefined) return;
  must(market.resolution === 'outcome' && ids.includes(market.winningOutcomeId), 'the winner is an outcome', market);
}

/** Plans may have any time: venues do send closes before the opening or the creation. Past events have times in the past, in order. */
function checkMarketTimes({ createdAtMs, openAtMs, closeAtMs, resolvedAtMs }: MarketRecord, nowMs: number): void {
  for (const ms of [openAtMs, closeAtMs]) checkTime(ms, LATEST_MS);
  for (const ms of [createdAtMs, resolvedAtMs]) checkTime(ms, nowMs + AHEAD_MS);
  must((resolvedAtMs ?? LATEST_MS) >= (createdAtMs ?? EARLIEST_MS), 'nothing is resolved before it was created', [
    createdAtMs,
    resolvedAtMs,
  ]);
}

function checkPrice(price: PriceRecord, nowMs: number): void {
  checkId(price.outcomeId);
  checkTime(price.asOfMs, nowMs + AHEAD_MS);
  for (const value of [price.price, price.bid, price.ask]) if (value !== undefined) checkDecimal(value, ZERO, ONE);
  if (price.bid === undefined || price.ask === undefined) return;
  must(compareDecimals(price.bid, price.ask) <= 0, 'quotes do not cross', price);
}

function checkSide(levels: readonly PriceLevel[], order: 1 | -1): void {
  for (const [index, level] of levels.entries()) {
    checkDecimal(level.price, ZERO, ONE);
    checkDecimal(level.size, ZERO);
    must(level.size !== '0', 'no level is empty', level);
    const before = levels[index - 1];
    must(before === undefined || compareDecimals(level.price, before.price) === order, 'levels are sorted', levels);
  }
}

function checkBook(book: BookRecord, nowMs: number): void {
  checkId(book.outcomeId);
  checkTime(book.asOfMs, nowMs + AHEAD_MS);
  checkSide(book.bids, -1);
  checkSide(book.asks, 1);
  const [bid] = book.bids;
  const [ask] = book.asks;
  must(!bid || !ask || compareDecimals(bid.price, ask.price) <= 0, 'a book does not cross', [bid, ask]);
}

function checkTrade(trade: TradeRecord, nowMs: number): void {
  checkId(trade.tradeId);
  checkId(trade.outcomeId);
  checkTime(Math.floor(trade.tsMs), nowMs + AHEAD_MS);
  checkDecimal(trade.price, ZERO, ONE);
  checkDecimal(trade.size, ZERO);
  must(trade.size !== '0', 'a trade has a size', trade);
  must(trade.side === undefined || trade.side === 'buy' || trade.side === 'sell', 'a side is known', trade);
}

/** Invariants of a quarantine entry, which is shown to people and stored unchanged. */
export function checkRejected(rejected: RejectedRecord): void {
  must(/^[a-z][a-z_]{2,39}$/.test(rejected.reason), 'a reason is groupable', rejected.reason);
  must(rejected.detail.length <= 500, 'a detail is bounded', rejected.detail);
  must(Buffer.byteLength(rejected.sample) <= 4096, 'a sample is bounded', rejected.sample.length);
  for (const text of [rejected.detail, rejected.sample, rejected.recordId ?? '']) {
    must(isStorableText(text), 'a quarantine entry is storable', text);
  }
}
