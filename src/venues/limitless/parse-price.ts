import type { PriceRecord } from '../../domain/markets/market.ts';
import { type Quotes, quotedPrice } from '../../domain/markets/quoted-price.ts';
import {
  addDecimals,
  compareDecimals,
  type Decimal,
  decimal,
  multiplyDecimals,
  ONE,
  parseDecimal,
  subtractDecimals,
} from '../../domain/values/decimal.ts';
import { emptyBatch, type ParsedBatch } from '../parsed-batch.ts';
import { isUnitPrice } from '../quantity.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import { textOf } from './listing.ts';
import { type LimitlessPrices, limitlessPrices } from './models.ts';
import { type OutcomeIds, outcomeIdsOf } from './outcome-ids.ts';
import { isGroup, tradeTypeOf } from './parse-market.ts';

const PERCENT = decimal('0.01');
/** How far the prices of both outcomes may be from their sum before the unit counts as unknown, in prices from 0 to 1. */
const SUM_SLACK = decimal('0.02');

/**
 * Market objects as prices of both outcomes; pure. A market with a book has its best quotes in `tradePrices`, which give a price
 * by `quotedPrice`. Its `prices` are the middle of any book, 0.5 for an empty one, and are not read. A market without a book has the
 * prices of its pool. The venue gives no time: `asOfMs` is that of the answer.
 */
export function parsePrices(rows: readonly unknown[], asOfMs: number): ParsedBatch<PriceRecord> {
  const batch = emptyBatch<PriceRecord>();
  const seen = new Set<string>();
  for (const row of rows) {
    if (isGroup(row)) {
      batch.skipped.push('group');
      continue;
    }
    const reading = parseRow(row, asOfMs, seen);
    if (!reading.ok) {
      batch.rejected.push(rejectRecord('prices', row, reading.rejection, textOf(row, 'slug')));
      continue;
    }
    const { slug, prices } = reading.value;
    seen.add(slug);
    if (typeof prices === 'string') batch.skipped.push(prices);
    else batch.records.push(...prices);
  }
  return batch;
}

/** The prices of a market, or the reason for their absence. */
function parseRow(
  row: unknown,
  asOfMs: number,
  seen: ReadonlySet<string>,
): Reading<{ slug: string; prices: PriceRecord[] | string }> {
  const reading = readModel(limitlessPrices, row);
  if (!reading.ok) return reading;
  const market = reading.value;
  const { slug, tokens } = market;
  if (seen.has(slug)) return reject('duplicate_record', 'slug: the same market twice in one answer');
  const ids = outcomeIdsOf(slug, tokens);
  if (ids[0] === ids[1]) return reject('duplicate_outcome', 'tokens: YES and NO are the same');
  if (tradeTypeOf(market) === 'clob') {
    const quotes = readQuotes(market);
    if (!quotes.ok) return quotes;
    const price = quotedPrice(quotes.value, undefined);
    const prices = price === undefined ? 'no_price' : bothSides(ids, asOfMs, price, quotes.value);
    return accept({ slug, prices });
  }
  const price = readPoolPrice(market);
  if (!price.ok) return price;
  const { value } = price;
  return accept({
    slug,
    prices: value === 'no_price' || value === 'price_unit' ? value : bothSides(ids, asOfMs, value, {}),
  });
}

/** A market order on YES buys at the best ask and sells at the best bid. */
function readQuotes({ tradePrices }: LimitlessPrices): Reading<Quotes> {
  const ask = readQuote('buy', tradePrices?.buy?.market?.[0]);
  if (!ask.ok) return ask;
  const bid = readQuote('sell', tradePrices?.sell?.market?.[0]);
  if (!bid.ok) return bid;
  if (bid.value !== undefined && ask.value !== undefined && compareDecimals(bid.value, ask.value) > 0) {
    return reject('crossed_quote', `bid ${bid.value} above ask ${ask.value}`);
  }
  return accept({ bid: bid.value, ask: ask.value });
}

/** 0 and 1 mean "no order": an order to sell for nothing or to buy for the whole payout makes no sense. */
function readQuote(side: string, raw: unknown): Reading<Decimal | undefined> {
  if (raw === undefined) return accept(undefined);
  const quote = parseDecimal(raw);
  if (quote === null) return reject('invalid_field', `tradePrices.${side}.market.0: not a number`);
  if (!isUnitPrice(quote)) return reject('price_out_of_range', `tradePrices.${side}.market.0: ${quote.slice(0, 40)}`);
  return accept(quote === '0' || quote === ONE ? undefined : quote);
}

/** The price of YES. The venue writes fractions or percents, which only the sum of both outcomes distinguishes. */
function readPoolPrice({ prices }: LimitlessPrices): Reading<Decimal | 'no_price' | 'price_unit'> {
  if (!prices || prices.length === 0) return accept('no_price');
  const [yes, no] = prices.map((each) => parseDecimal(each));
  if (!yes || !no) return reject('invalid_field', 'prices: not two numbers');
  if (yes.startsWith('-') || no.startsWith('-'))
    return reject('price_out_of_range', `prices: ${yes} ${no}`.slice(0, 100));
  const sum = addDecimals(yes, no);
  const unit = [ONE, PERCENT].find((each) => isNearOne(multiplyDecimals(sum, each)));
  if (unit === undefined) return accept('price_unit');
  const price = multiplyDecimals(yes, unit);
  return isUnitPrice(price) ? accept(price) : reject('price_out_of_range', `prices.0: ${yes.slice(0, 40)}`);
}

function isNearOne(sum: Decimal): boolean {
  const least = subtractDecimals(ONE, SUM_SLACK);
  return compareDecimals(sum, least) >= 0 && compareDecimals(sum, addDecimals(ONE, SUM_SLACK)) <= 0;
}

/** The NO side is the mirror image: its bid is one minus the YES ask. */
function bothSides([yes, no]: OutcomeIds, asOfMs: number, price: Decimal, { bid, ask }: Quotes): PriceRecord[] {
  return [
    { outcomeId: yes, asOfMs, price, ...(bid !== undefined && { bid }), ...(ask !== undefined && { ask }) },
    {
      outcomeId: no,
      asOfMs,
      price: subtractDecimals(ONE, price),
      ...(ask !== undefined && { bid: subtractDecimals(ONE, ask) }),
      ...(bid !== undefined && { ask: subtractDecimals(ONE, bid) }),
    },
  ];
}
