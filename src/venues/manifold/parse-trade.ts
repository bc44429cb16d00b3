import type { TradeRecord } from '../../domain/markets/market.ts';
import {
  addDecimals,
  type Decimal,
  decimal,
  divideDecimals,
  ONE,
  parseDecimal,
  subtractDecimals,
  ZERO,
} from '../../domain/values/decimal.ts';
import { emptyBatch, type ParsedBatch, type UnknownValue } from '../parsed-batch.ts';
import { isPlausibleQuantity, isPositive, isUnitPrice } from '../quantity.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import { MAX_AHEAD_MS } from '../venue-time.ts';
import { type ManifoldBet, manifoldBet } from './models.ts';
import { outcomeIdOf } from './outcome-ids.ts';

/** Before the venue existed. */
const MIN_MS = Date.UTC(2021, 0, 1);
/**
 * Digits after the point of a price, which is a quotient. The venue sends amounts with up to 17 digits, so this keeps a quotient by a
 * round number of shares exact.
 */
const PRICE_SCALE = 20;

/**
 * Bets as trades; pure. One trade per bet, on the outcome of the bet. YES and NO of a binary market are separate outcomes; both sides of a
 * multiple-choice answer are in terms of its YES (a NO bought at p is a YES sold at 1 - p).
 *
 * Only the part that a bet took when it was placed is a trade (`ownFills`). Amount and fills of a limit order also contain the part that
 * later bets took from it. That part is in the later bets too, so counting it here would double the volume and change a trade afterwards.
 * The venue's own volume counts the same way.
 *
 * Skipped: redemptions (pairs of YES and NO converted to mana), antes, orders that took nothing, bets on old markets with numbers as
 * outcomes. Bets whose trades are stored are not parsed again.
 */
export function parseBets(
  rows: readonly unknown[],
  nowMs: number,
  isStored: (tradeId: string) => boolean = () => false,
): ParsedBatch<TradeRecord> {
  const batch = emptyBatch<TradeRecord>();
  const seen = new Set<string>();
  let known = 0;
  for (const row of rows) {
    const id = idOf(row);
    if (typeof id === 'string' && isStored(id)) {
      known += 1;
      continue;
    }
    const unknowns: UnknownValue[] = [];
    const reading = parseBet(row, nowMs, unknowns);
    if (!reading.ok) {
      batch.rejected.push(rejectRecord('trades', row, reading.rejection, id));
      continue;
    }
    batch.unknowns.push(...unknowns);
    if (typeof reading.value === 'string') {
      batch.skipped.push(reading.value);
    } else if (seen.has(reading.value.tradeId)) {
      const rejection = { reason: 'duplicate_record', detail: 'the same bet id twice in one page' };
      batch.rejected.push(rejectRecord('trades', row, rejection, reading.value.tradeId));
    } else {
      seen.add(reading.value.tradeId);
      batch.records.push(reading.value);
    }
  }
  return known === 0 ? batch : { ...batch, known };
}

/** The time of a raw bet, epoch milliseconds; undefined when it is impossible or unreadable. */
export function betTimeMs(row: unknown, nowMs: number): number | undefined {
  const stamp = row !== null && typeof row === 'object' ? (row as { createdTime?: unknown }).createdTime : undefined;
  const time = typeof stamp === 'number' ? readTime(stamp, nowMs) : undefined;
  return time?.ok ? time.value : undefined;
}

function idOf(row: unknown): unknown {
  return row !== null && typeof row === 'object' ? (row as { id?: unknown }).id : undefined;
}

/** A trade, or its skip reason. */
function parseBet(row: unknown, nowMs: number, unknowns: UnknownValue[]): Reading<TradeRecord | string> {
  const reading = readModel(manifoldBet, row);
  if (!reading.ok) return reading;
  const bet = reading.value;
  const time = readTime(bet.createdTime, nowMs);
  if (!time.ok) return time;
  if (bet.isRedemption) return accept('redemption');
  if (bet.isAnte) return accept('ante');
  if (bet.outcome !== 'YES' && bet.outcome !== 'NO') {
    unknowns.push({ field: 'bet.outcome', value: bet.outcome.slice(0, 100) });
    return accept('outcome');
  }
  const taken = takenAtOnce(bet);
  if (!taken.ok) return taken;
  const { amount, shares } = taken.value;
  if (amount === ZERO) return accept('nothing_taken');
  if (amount.startsWith('-') !== shares.startsWith('-')) {
    return reject('invalid_field', `amount and shares differ in sign: ${amount} ${shares}`.slice(0, 200));
  }
  const size = magnitude(shares);
  if (!isPositive(size)) return reject('size_not_positive', `shares: ${shares}`);
  if (!isPlausibleQuantity(size)) return reject('size_out_of_range', `shares: ${size.slice(0, 40)}`);
  const price = divideDecimals(amount, shares, PRICE_SCALE);
  if (!isUnitPrice(price)) return reject('price_out_of_range', `amount per share: ${price.slice(0, 40)}`);
  const isBuy = !amount.startsWith('-');
  const isMirrored = Boolean(bet.answerId) && bet.outcome === 'NO';
  return accept({
    tradeId: bet.id,
    outcomeId: outcomeIdOf(bet.contractId, bet.answerId || bet.outcome),
    tsMs: time.value,
    price: isMirrored ? subtractDecimals(ONE, price) : price,
    size,
    side: isBuy === isMirrored ? 'sell' : 'buy',
  });
}

function readTime(stamp: number, nowMs: number): Reading<number> {
  const ms = Math.floor(stamp);
  if (!Number.isSafeInteger(ms) || ms < MIN_MS) return reject('timestamp_out_of_range', `createdTime: ${stamp}`);
  return ms > nowMs + MAX_AHEAD_MS ? reject('timestamp_in_future', `createdTime: ${stamp}`) : accept(ms);
}

/** Mana and shares that moved when the bet was placed, both negative for a sale. */
function takenAtOnce(bet: ManifoldBet): Reading<{ amount: Decimal; shares: Decimal }> {
  const own = ownFills(bet);
  if (own.length === (bet.fills ?? []).length) return both(bet);
  let sum = { amount: ZERO, shares: ZERO };
  for (const fill of own) {
    const part = both(fill);
    if (!part.ok) return part;
    sum = {
      amount: addDecimals(sum.amount, part.value.amount),
      shares: addDecimals(sum.shares, part.value.shares),
    };
  }
  return accept(sum);
}

function both(of: { amount: number; shares: number }): Reading<{ amount: Decimal; shares: Decimal }> {
  const amount = parseDecimal(of.amount);
  const shares = parseDecimal(of.shares);
  return amount === null || shares === null
    ? reject('invalid_field', `${amount === null ? 'amount' : 'shares'}: not a number`)
    : accept({ amount, shares });
}

function magnitude(value: Decimal): Decimal {
  return value.startsWith('-') ? decimal(value.slice(1)) : value;
}

type Fill = NonNullable<ManifoldBet['fills']>[number];

/**
 * The venue computes all fills of a new bet in one loop without I/O, while other bets on the market wait for a lock that ends with a
 * commit. Fills of one bet therefore lie within milliseconds of each other, and the fills of the next bet do not.
 */
const SAME_BET_MS = 20;
/** Prices are binary fractions: closer ones are equal. */
const PRICE_ERROR = 1e-6;
/** A market that rests at a limit price may differ from it by the venue's rounding. */
const AT_LIMIT = 1e-4;

/**
 * The fills that a bet took when it was placed, without fills in which later bets took from it. Later fills are in the fills of the later
 * bets too, so counting them here would count their volume twice. The venue appends fills, so a bet's own fills come first:
 *
 * 1. A bet without a limit has no later fills.
 * 2. A fill against the pool (`matchedBetId` null) is the bet's own. So is a fill with `fees`, which only takers pay.
 * 3. When one of its fills against bets has fees, its fills against bets without fees are later ones.
 * 4. Without fees (old bets) time decides. The venue stamps a bet after computing its fills: own fills are not later than `createdTime`. A
 *    stamp of a whole second may be rounded, so it decides nothing. A fill at a better price than the limit is then the bet's own, since
 *    later bets pay the limit exactly, and so are fills within milliseconds of it. When all fills are at the limit, the bet took them only
 *    if the market was already at the limit (`probBefore`). An order at the market's price that rested and was filled within the second of
 *    its stamp looks the same and counts too.
 */
function ownFills(bet: ManifoldBet): readonly Fill[] {
  const fills = bet.fills ?? [];
  if (bet.limitProb === undefined || bet.limitProb === null) return fills;
  const lastCertain = fills.findLastIndex((fill) => fill.matchedBetId === null || hasFees(fill));
  if (fills.some((fill) => fill.matchedBetId !== null && hasFees(fill))) return fills.slice(0, lastCertain + 1);
  if (bet.createdTime % 1000 !== 0) {
    const lastInTime = fills.findLastIndex((fill) => fill.timestamp <= bet.createdTime);
    return fills.slice(0, Math.max(lastCertain, lastInTime) + 1);
  }
  const limit = bet.outcome === 'YES' ? bet.limitProb : 1 - bet.limitProb;
  const lastBetter = fills.findLastIndex((fill) => fill.amount / fill.shares < limit - PRICE_ERROR);
  const lastKnown = Math.max(lastCertain, lastBetter);
  const anchor = lastKnown >= 0 ? fills[lastKnown] : firstAtLimit(bet, bet.limitProb, fills);
  if (anchor === undefined) return [];
  const firstLater = fills.findIndex(
    (fill, index) => index > lastKnown && Math.abs(fill.timestamp - anchor.timestamp) > SAME_BET_MS,
  );
  return firstLater < 0 ? fills : fills.slice(0, firstLater);
}

function hasFees({ fees }: Fill): boolean {
  return fees !== undefined && fees !== null;
}

/** The first fill of a bet with all fills at its limit, if it can be the bet's own. */
function firstAtLimit(bet: ManifoldBet, limitProb: number, [first]: readonly Fill[]): Fill | undefined {
  const { probBefore, createdTime } = bet;
  const wasAtLimit = probBefore === undefined || probBefore === null || Math.abs(probBefore - limitProb) <= AT_LIMIT;
  return first !== undefined && wasAtLimit && Math.abs(first.timestamp - createdTime) < 1000 ? first : undefined;
}
