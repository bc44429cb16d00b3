import type { TradeRecord } from '../../domain/markets/market.ts';
import { type Decimal, parseDecimal } from '../../domain/values/decimal.ts';
import { isStorableText } from '../../domain/values/text.ts';
import { createOrdinals, tradeIdOf } from '../ordinal-ids.ts';
import { emptyBatch, type ParsedBatch } from '../parsed-batch.ts';
import type { RejectedRecord } from '../port.ts';
import { isPlausibleQuantity, isPositive, isUnitPrice } from '../quantity.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import { MAX_AHEAD_MS } from '../venue-time.ts';
import { wholeConditionId } from './condition-ids.ts';
import { type DataTrade, dataTrade } from './models.ts';

/** 2018-01-01 in seconds: before the venue existed. */
const MIN_SECOND = 1_514_764_800;

/** One row of the trade feed, before it has an id. */
export interface FeedRow {
  /** Epoch seconds; undefined when the row has no usable time. */
  second: number | undefined;
  /** The condition id of the row, if any. */
  marketId?: string;
  trade?: Omit<TradeRecord, 'tradeId'>;
  canonical?: string;
  unknownSide?: string;
  rejected?: RejectedRecord;
  /** The skip reason of a sound row. */
  skipped?: string;
}

/**
 * A fill of a combination, whose legs are outcomes of several markets. Its condition id has 31 bytes, of which the first names the
 * module: 3 for combinations, 1 and 2 for markets of the second protocol. With the byte of an outcome after it, it looks like an id of
 * the first protocol.
 */
const COMBINATION = /^0x03[0-9a-f]{60}$/i;
const COMBINATION_OUTCOME = /^0x03[0-9a-f]{60}0[01]$/i;
const OTHER_MODULE = /^0x(?!0[12])[0-9a-f]{62}$/i;

/**
 * The rows of one answer of Data API `GET /v2/trades`, in its order; pure. Rows before `floor`, epoch seconds, are read for their time only,
 * unless another row is rejected: whether a whole page is unreadable depends on all of them.
 */
export function readFeed(rows: readonly unknown[], nowMs: number, floor = Number.NEGATIVE_INFINITY): FeedRow[] {
  const read = rows.map((raw) => {
    const second = secondOf(raw, nowMs);
    return second.ok && second.value < floor ? { second: second.value } : readRow(raw, second);
  });
  const isSound = floor === Number.NEGATIVE_INFINITY || !read.some((row: FeedRow) => row.rejected);
  return isSound ? read : readFeed(rows, nowMs);
}

function secondOf(raw: unknown, nowMs: number): Reading<number> {
  const stamp = raw !== null && typeof raw === 'object' ? (raw as { timestamp?: unknown }).timestamp : undefined;
  return readSecond(stamp, nowMs);
}

function readRow(raw: unknown, second: Reading<number>): FeedRow {
  const parsed = parseRow(raw, second);
  if (parsed.ok) return { second: second.ok ? second.value : undefined, ...parsed.value };
  const hash =
    raw !== null && typeof raw === 'object' ? (raw as { transaction_hash?: unknown }).transaction_hash : undefined;
  return {
    second: second.ok ? second.value : undefined,
    rejected: rejectRecord('trades', raw, parsed.rejection, hash),
  };
}

function parseRow(raw: unknown, second: Reading<number>): Reading<Omit<FeedRow, 'second' | 'rejected'>> {
  const reading = readModel(dataTrade, raw);
  if (!reading.ok) return reading;
  if (!second.ok) return second;
  const row = reading.value;
  const price = parseDecimal(row.price);
  const size = parseDecimal(row.size);
  if (price === null || size === null)
    return reject('invalid_field', `${price === null ? 'price' : 'size'}: not a number`);
  if (isCombination(row)) return accept({ skipped: 'combination' });
  if (!isUnitPrice(price)) return reject('price_out_of_range', `price: ${price}`);
  if (!isPositive(size)) return reject('size_not_positive', `size: ${size}`);
  if (!isPlausibleQuantity(size)) return reject('size_out_of_range', `size: ${size.slice(0, 40)}`);
  if (!isStorableText(row.token_id)) return reject('unstorable_text', 'token_id');
  const side = row.side.toUpperCase();
  const isKnownSide = side === 'BUY' || side === 'SELL';
  return accept({
    ...(row.condition_id && { marketId: row.condition_id }),
    trade: {
      outcomeId: row.token_id,
      tsMs: second.value * 1000,
      price,
      size,
      ...(isKnownSide && { side: side === 'BUY' ? ('buy' as const) : ('sell' as const) }),
    },
    canonical: canonicalTrade({
      second: second.value,
      transactionHash: row.transaction_hash,
      tokenId: row.token_id,
      side: row.side,
      size,
      price,
      wallet: row.proxy_wallet,
    }),
    ...(!isKnownSide && { unknownSide: row.side }),
  });
}

/** An id that may be another one is a combination only when the row has no slug of a market. */
function isCombination({ condition_id, slug }: DataTrade): boolean {
  const conditionId = condition_id ?? '';
  const maybe = OTHER_MODULE.test(conditionId) || COMBINATION_OUTCOME.test(conditionId);
  return COMBINATION.test(conditionId) || (maybe && !slug);
}

/** Epoch seconds in the forms of the Data API, neither before the venue existed nor in the future. */
export function readSecond(stamp: unknown, nowMs: number): Reading<number> {
  if (stamp === undefined || stamp === null) return reject('missing_field', 'timestamp');
  const second =
    typeof stamp === 'number' ? stamp : typeof stamp === 'string' && stamp !== '' ? Number(stamp) : Number.NaN;
  if (!Number.isSafeInteger(second)) return reject('invalid_field', 'timestamp: not whole seconds');
  if (second < MIN_SECOND) return reject('timestamp_out_of_range', `timestamp: ${second}`);
  return second * 1000 > nowMs + MAX_AHEAD_MS ? reject('timestamp_in_future', `timestamp: ${second}`) : accept(second);
}

/**
 * Gives rows their ids and their order, oldest first. Each second among the rows must be complete, and each row must occur once. The order
 * counts the trades of one market within one second, so the global feed and the feed of the market agree.
 */
export function identifyTrades(newestFirst: readonly FeedRow[]): ParsedBatch<TradeRecord> {
  const batch = emptyBatch<TradeRecord>();
  const ordinalOf = createOrdinals();
  const orderOf = createOrdinals();
  for (const row of [...newestFirst].reverse()) {
    if (row.rejected) batch.rejected.push(row.rejected);
    if (row.skipped !== undefined) batch.skipped.push(row.skipped);
    if (row.unknownSide !== undefined) batch.unknowns.push({ field: 'side', value: row.unknownSide });
    if (row.trade === undefined || row.canonical === undefined) continue;
    const tradeId = tradeIdOf(row.canonical, ordinalOf(row.canonical));
    const market = row.marketId === undefined ? row.trade.outcomeId : wholeConditionId(row.marketId);
    const ordinal = orderOf(`${row.second}|${market}`);
    batch.records.push({ tradeId, ...row.trade, ordinal });
  }
  return batch;
}

/** The identity of a trade on a venue without trade ids. */
interface TradeIdentity {
  /** Epoch seconds. A transaction lies within one second. Without this field, equal rows of two seconds would share their first ordinal. */
  second: number;
  transactionHash: string;
  tokenId: string;
  side: string;
  size: Decimal;
  price: Decimal;
  wallet: string;
}

/** The canonical text of a row: equal trades have equal texts in every notation of numbers and hex digits. */
function canonicalTrade(trade: TradeIdentity): string {
  const { second, transactionHash, tokenId, side, size, price, wallet } = trade;
  const hash = transactionHash.toLowerCase();
  return [hash, tokenId, side.toUpperCase(), size, price, wallet.toLowerCase(), second].join('|');
}
