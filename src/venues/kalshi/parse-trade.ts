import type { TradeRecord } from '../../domain/markets/market.ts';
import { addDecimals, type Decimal, ONE, parseDecimal } from '../../domain/values/decimal.ts';
import { isStorableText } from '../../domain/values/text.ts';
import { emptyBatch, type ParsedBatch } from '../parsed-batch.ts';
import type { RejectedRecord } from '../port.ts';
import { isPlausibleQuantity, isPositive } from '../quantity.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import { MAX_AHEAD_MS, parsePreciseVenueTimeMs } from '../venue-time.ts';
import { isAbsent, otherSide, readPrice } from './dollars.ts';
import { fieldOf, type KalshiTrade, kalshiTrade } from './models.ts';
import { COMBINATION, isCombinationTicker, outcomeIdsOf } from './tickers.ts';

/** Before the venue existed. */
const MIN_MS = Date.UTC(2018, 0, 1);

/** One row of the trade feed. */
export interface FeedRow {
  /** Epoch seconds; undefined when the row has no usable time. */
  second?: number;
  trade?: TradeRecord;
  unknownSide?: string;
  /** The skip reason of a sound trade. */
  skipped?: string;
  rejected?: RejectedRecord;
  /** Its trade is stored, so the row was not parsed further. */
  isKnown?: true;
}

/** The rows of one answer of `GET /markets/trades`, in its order; pure. Rows whose trades are stored are not parsed again. */
export function readFeed(
  rows: readonly unknown[],
  nowMs: number,
  isStored: (tradeId: string) => boolean = () => false,
): FeedRow[] {
  return rows.map((raw) => {
    const time = readTime(fieldOf(raw, 'created_time'), nowMs);
    const second = time.ok ? { second: Math.floor(time.value / 1000) } : {};
    const id = fieldOf(raw, 'trade_id');
    if (time.ok && typeof id === 'string' && isStored(id)) return { ...second, isKnown: true };
    const parsed = parseRow(raw, time);
    if (parsed.ok) return { ...second, ...parsed.value };
    return { ...second, rejected: rejectRecord('trades', raw, parsed.rejection, id) };
  });
}

/**
 * One trade as one record, in terms of YES: its price, and `buy` when the taker bought YES. A block trade was agreed outside the book and
 * has no taker.
 */
function parseRow(raw: unknown, time: Reading<number>): Reading<Pick<FeedRow, 'trade' | 'unknownSide' | 'skipped'>> {
  const reading = readModel(kalshiTrade, raw);
  if (!reading.ok) return reading;
  if (!time.ok) return time;
  const row = reading.value;
  const price = readYesPrice(row);
  if (!price.ok) return price;
  const size = parseDecimal(isAbsent(row.count_fp) ? row.count : row.count_fp);
  if (size === null) {
    const isMissing = isAbsent(row.count_fp) && isAbsent(row.count);
    return reject(isMissing ? 'missing_field' : 'invalid_field', 'count: not a number');
  }
  if (!isPositive(size)) return reject('size_not_positive', `count: ${size.slice(0, 40)}`);
  if (!isPlausibleQuantity(size)) return reject('size_out_of_range', `count: ${size.slice(0, 40)}`);
  if (!isStorableText(row.trade_id)) return reject('unstorable_text', 'trade_id');
  if (!isStorableText(row.ticker)) return reject('unstorable_text', 'ticker');
  const taker = row.is_block_trade === true ? undefined : row.taker_outcome_side || row.taker_side || undefined;
  const side = taker === 'yes' ? ('buy' as const) : taker === 'no' ? ('sell' as const) : undefined;
  return accept({
    trade: {
      tradeId: row.trade_id,
      outcomeId: outcomeIdsOf(row.ticker).yes,
      tsMs: time.value,
      price: price.value,
      size,
      ...(side !== undefined && { side }),
    },
    ...(taker !== undefined && side === undefined && { unknownSide: taker }),
    ...(isCombinationTicker(row.ticker) && { skipped: COMBINATION }),
  });
}

/** Both prices of a trade state the same fact. When they differ, neither is reliable. */
function readYesPrice(row: KalshiTrade): Reading<Decimal> {
  const yes = readPrice('yes_price', row.yes_price_dollars, row.yes_price);
  if (!yes.ok) return yes;
  const no = readPrice('no_price', row.no_price_dollars, row.no_price);
  if (!no.ok) return no;
  if (yes.value === undefined) {
    return no.value === undefined ? reject('missing_field', 'yes_price_dollars') : accept(otherSide(no.value));
  }
  // A renamed field can leave dollars on one side and rounded cents on the other, which do not add up.
  const isSameUnit = isAbsent(row.yes_price_dollars) === isAbsent(row.no_price_dollars);
  if (no.value !== undefined && isSameUnit && addDecimals(yes.value, no.value) !== ONE) {
    return reject('price_mismatch', `yes ${yes.value} and no ${no.value} do not add up to 1`);
  }
  return accept(yes.value);
}

function readTime(text: unknown, nowMs: number): Reading<number> {
  if (isAbsent(text)) return reject('missing_field', 'created_time');
  const ms = parsePreciseVenueTimeMs(text);
  if (ms === undefined) return reject('invalid_field', 'created_time: not a time');
  if (ms < MIN_MS) return reject('timestamp_out_of_range', `created_time: ${ms}`);
  return ms > nowMs + MAX_AHEAD_MS ? reject('timestamp_in_future', `created_time: ${ms}`) : accept(ms);
}

/** The records of feed rows. The second row of one trade is rejected. */
export function collectTrades(rows: readonly FeedRow[]): ParsedBatch<TradeRecord> {
  const batch = emptyBatch<TradeRecord>();
  const seen = new Set<string>();
  let known = 0;
  for (const { trade, rejected, unknownSide, skipped, isKnown } of rows) {
    if (isKnown) known += 1;
    if (rejected) batch.rejected.push(rejected);
    if (unknownSide !== undefined) batch.unknowns.push({ field: 'taker_side', value: unknownSide.slice(0, 100) });
    if (trade === undefined) continue;
    if (seen.has(trade.tradeId)) {
      const rejection = { reason: 'duplicate_record', detail: 'the same trade_id twice in one page' };
      batch.rejected.push(rejectRecord('trades', trade, rejection, trade.tradeId));
      continue;
    }
    seen.add(trade.tradeId);
    if (skipped === undefined) batch.records.push(trade);
    else batch.skipped.push(skipped);
  }
  return known === 0 ? batch : { ...batch, known };
}
