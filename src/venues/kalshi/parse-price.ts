import type { PriceRecord } from '../../domain/markets/market.ts';
import { type Quotes, quotedPrice } from '../../domain/markets/quoted-price.ts';
import { compareDecimals, type Decimal, ONE, ZERO } from '../../domain/values/decimal.ts';
import { isStorableText } from '../../domain/values/text.ts';
import { emptyBatch, type ParsedBatch, type UnknownValue } from '../parsed-batch.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import { otherSide, readPrice } from './dollars.ts';
import { fieldOf, kalshiQuotes } from './models.ts';
import { kalshiLife } from './status.ts';
import { COMBINATION, isCombination, outcomeIdsOf } from './tickers.ts';

/**
 * Prices of both outcomes from market objects: the payout of a market whose result is determined and not disputed, else `quotedPrice` of the
 * YES side. A last price of 0 means "never traded". The venue gives no time: `asOfMs` is that of the answer; pure.
 */
export function parsePrices(
  rows: readonly unknown[],
  asOfMs: number,
  requested?: ReadonlySet<string>,
): ParsedBatch<PriceRecord> {
  const batch = emptyBatch<PriceRecord>();
  const seen = new Set<string>();
  for (const row of rows) {
    const unknowns: UnknownValue[] = [];
    const reading = parseQuotes(row, asOfMs, seen, requested, unknowns);
    if (!reading.ok) {
      batch.rejected.push(rejectRecord('prices', row, reading.rejection, fieldOf(row, 'ticker')));
      continue;
    }
    seen.add(reading.value.ticker);
    if (isCombination(row)) {
      batch.skipped.push(COMBINATION);
      continue;
    }
    if (reading.value.prices.length === 0) batch.skipped.push('no_price');
    batch.records.push(...reading.value.prices);
    batch.unknowns.push(...unknowns);
  }
  return batch;
}

function parseQuotes(
  row: unknown,
  asOfMs: number,
  seen: ReadonlySet<string>,
  requested: ReadonlySet<string> | undefined,
  unknowns: UnknownValue[],
): Reading<{ ticker: string; prices: PriceRecord[] }> {
  const reading = readModel(kalshiQuotes, row);
  if (!reading.ok) return reading;
  const raw = reading.value;
  const { ticker } = raw;
  if (!isStorableText(ticker)) return reject('unstorable_text', 'ticker');
  if (requested && !requested.has(ticker)) return reject('not_requested', 'ticker: the market was not requested');
  if (seen.has(ticker)) return reject('duplicate_record', 'ticker: the same market twice in one answer');
  const life = kalshiLife(raw, unknowns);
  if (!life.ok) return life;
  const bid = readPrice('yes_bid', raw.yes_bid_dollars, raw.yes_bid);
  if (!bid.ok) return bid;
  const ask = readPrice('yes_ask', raw.yes_ask_dollars, raw.yes_ask);
  if (!ask.ok) return ask;
  const last = readPrice('last_price', raw.last_price_dollars, raw.last_price);
  if (!last.ok) return last;
  if (bid.value === undefined && ask.value === undefined && last.value === undefined) {
    return reject('missing_field', 'yes_bid, yes_ask and last_price: all absent');
  }
  const quotes = { bid: realQuote(bid.value), ask: realQuote(ask.value) };
  if (quotes.bid !== undefined && quotes.ask !== undefined && compareDecimals(quotes.bid, quotes.ask) > 0) {
    return reject('crossed_quote', `bid ${quotes.bid} above ask ${quotes.ask}`);
  }
  const payout = life.value.payouts?.yes;
  if (payout !== undefined) return accept({ ticker, prices: bothSides(ticker, asOfMs, payout, {}) });
  const price = quotedPrice(quotes, last.value === ZERO ? undefined : last.value);
  return accept({ ticker, prices: price === undefined ? [] : bothSides(ticker, asOfMs, price, quotes) });
}

/** 0 and 1 mean "no order" on either side: a bid of 0 and an ask of the whole payout do not exist. */
export function realQuote(quote: Decimal | undefined): Decimal | undefined {
  return quote === ZERO || quote === ONE ? undefined : quote;
}

/** The NO side is the mirror image: its bid is one minus the YES ask. */
export function bothSides(ticker: string, asOfMs: number, price: Decimal, { bid, ask }: Quotes): PriceRecord[] {
  const ids = outcomeIdsOf(ticker);
  return [
    { outcomeId: ids.yes, asOfMs, price, ...(bid !== undefined && { bid }), ...(ask !== undefined && { ask }) },
    {
      outcomeId: ids.no,
      asOfMs,
      price: otherSide(price),
      ...(ask !== undefined && { bid: otherSide(ask) }),
      ...(bid !== undefined && { ask: otherSide(bid) }),
    },
  ];
}
