import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { executable } from '../../../src/domain/markets/executable.ts';
import type { FeeRule } from '../../../src/domain/markets/fee.ts';
import {
  addDecimals,
  type Decimal,
  decimal,
  multiplyDecimals,
  ONE,
  roundedText,
  subtractDecimals,
  ZERO,
} from '../../../src/domain/values/decimal.ts';
import { parseMarkets as parseKalshi } from '../../../src/venues/kalshi/parse-market.ts';
import { readRecordedJson, venueDataFolder } from '../../support/venue-data.ts';

/*
 * The figures of the venues themselves: recorded fills and settlements, and the examples of their documents. A fill that the present rule
 * does not give is listed with its difference.
 */

type Curve = Extract<FeeRule, { model: 'price_curve' }>;

/** Kalshi rounds the fee of a fill to 6 digits since August 2026. Before it was 4. */
const kalshi = (multiplier: string, over: Partial<Curve> = {}): FeeRule => ({
  model: 'price_curve',
  takerRate: multiplyDecimals(decimal('0.07'), decimal(multiplier)),
  exponent: 1,
  digits: 6,
  rounding: 'up',
  balanceDigits: 4,
  ...over,
});
const polymarket = (rate: string): FeeRule => ({
  model: 'price_curve',
  takerRate: decimal(rate),
  exponent: 1,
  digits: 5,
  rounding: 'half_up',
});

function feeOf(rule: FeeRule, price: string, size: string, side: 'buy' | 'sell' = 'buy'): Decimal | null {
  const level = [{ price: decimal(price), size: decimal(size) }];
  const book = { bids: side === 'sell' ? level : [], asks: side === 'buy' ? level : [] };
  return executable(book, { side, by: 'size', amount: decimal(size) }, { fee: rule, sizeDigits: 2 }).fee;
}

interface Fill {
  ticker: string;
  count_fp: string;
  yes_price_dollars: string;
  no_price_dollars: string;
  outcome_side: string;
  fee_cost: string;
}

interface Settlement {
  ticker: string;
  yes_total_cost_dollars: string;
  no_total_cost_dollars: string;
  fee_cost: string;
}

/** The multiplier of the series: recorded for some, and the only one that gives the fee for the others. */
const HALVED = ['KXMLBGAME', 'KXMLBSPREAD', 'KXMLBKS'];
const multiplierOf = (ticker: string) => (HALVED.includes(ticker.split('-')[0] ?? '') ? '0.5' : '1');

const folder = venueDataFolder('kalshi');

describe.skipIf(folder === undefined)('fees of recorded fills of Kalshi', () => {
  const read = (file: string) => readRecordedJson(join(folder ?? '', '2026-08_cockpit', file)) as { payload: never };
  const fills = () => (read('portfolio_fills_redacted.json').payload as { fills: Fill[] }).fills;
  const feeByRule = ({ ticker, count_fp, outcome_side, ...prices }: Fill, over?: Partial<Curve>) =>
    feeOf(
      kalshi(multiplierOf(ticker), over),
      outcome_side === 'yes' ? prices.yes_price_dollars : prices.no_price_dollars,
      count_fp,
    );

  it('are those of the rule of their day', () => {
    const recorded = fills();
    expect(recorded).toHaveLength(33);
    expect(recorded.map((fill) => feeByRule(fill, { digits: 4 }))).toEqual(
      recorded.map(({ fee_cost }) => decimal(fee_cost)),
    );
  });

  it('differ by the present rule in one fill', () => {
    const different = fills().flatMap((fill) => {
      const fee = feeByRule(fill) ?? ZERO;
      const difference = subtractDecimals(fee, decimal(fill.fee_cost));
      return difference === '0' ? [] : [{ price: fill.yes_price_dollars, size: fill.count_fp, difference }];
    });
    expect(different).toEqual([{ price: '0.0130', size: '71.94', difference: '-0.0001' }]);
  });

  it('add up to the fees of the recorded settlements', () => {
    // The tickers of both files are redacted apart: markets are equal in their series and their cost.
    const seriesOf = (ticker: string) => ticker.split('-')[0];
    const sums = new Map<string, { cost: Decimal; fee: Decimal }>();
    for (const fill of fills()) {
      const { ticker, count_fp, outcome_side, yes_price_dollars, no_price_dollars } = fill;
      const sum = sums.get(ticker) ?? { cost: ZERO, fee: ZERO };
      const price = decimal(outcome_side === 'yes' ? yes_price_dollars : no_price_dollars);
      sums.set(ticker, {
        cost: addDecimals(sum.cost, multiplyDecimals(price, decimal(count_fp))),
        fee: addDecimals(sum.fee, feeByRule(fill, { digits: 4 }) ?? ZERO),
      });
    }
    const expected = [...sums].map(([ticker, { cost, fee }]) => `${seriesOf(ticker)} ${cost} ${fee}`);
    const { settlements } = read('portfolio_settlements_redacted.json').payload as { settlements: Settlement[] };
    expect(settlements).toHaveLength(22);
    for (const { ticker, yes_total_cost_dollars, no_total_cost_dollars, fee_cost } of settlements) {
      const cost = addDecimals(decimal(yes_total_cost_dollars), decimal(no_total_cost_dollars));
      expect(expected).toContain(`${seriesOf(ticker)} ${cost} ${decimal(fee_cost)}`);
    }
  });

  it('have the multipliers that the recorded series state', () => {
    const { payloads } = readRecordedJson(join(folder ?? '', '2026-08_cockpit', 'series_fee_fields.json')) as {
      payloads: Record<string, { series: { ticker: string } }>;
    };
    const rates = Object.values(payloads).map(({ series }) => {
      const event = { event_ticker: 'E', series_ticker: series.ticker, title: 'An event' };
      const row = { ticker: 'M', event_ticker: 'E', title: 'A market', status: 'active', event, series };
      const [rule] = parseKalshi([row]).records[0]?.fees?.periods.map((period) => period.rule) ?? [];
      return [series.ticker, rule?.model === 'price_curve' ? [rule.takerRate, rule.makerRate] : rule];
    });
    expect(Object.fromEntries(rates)).toEqual({
      KXMLBGAME: ['0.035', '0.00875'],
      KXMLBSPREAD: ['0.035', '0'],
      KXATPDOUBLES: ['0.07', '0'],
      KXWNBAGAME: ['0.07', '0.0175'],
    });
  });
});

describe('fees of the examples of Kalshi', () => {
  it('are those of the document on rounding for accounts whose balance has cents', () => {
    expect(feeOf(kalshi('1', { balanceDigits: 2 }), '0.055', '1')).toBe('0.005');
  });

  it.each([
    ['0.01', '0.07', '0.01'],
    ['0.05', '0.34', '0.01'],
    ['0.1', '0.63', '0.01'],
    ['0.15', '0.9', '0.01'],
    ['0.2', '1.12', '0.02'],
    ['0.25', '1.32', '0.02'],
    ['0.3', '1.47', '0.02'],
    ['0.35', '1.6', '0.02'],
    ['0.4', '1.68', '0.02'],
    ['0.45', '1.74', '0.02'],
    ['0.5', '1.75', '0.02'],
  ])('are those of the table of the fee schedule at a price of %s', (price, ofHundred, ofOne) => {
    const rule = kalshi('1', { balanceDigits: 2 });
    const mirrored = subtractDecimals(ONE, decimal(price));
    expect([feeOf(rule, price, '100'), feeOf(rule, mirrored, '100')]).toEqual([ofHundred, ofHundred]);
    expect([feeOf(rule, price, '1'), feeOf(rule, mirrored, '1')]).toEqual([ofOne, ofOne]);
  });

  it('round the sum of a seller down', () => {
    const fee = feeOf(kalshi('1'), '0.013', '71.94', 'sell');
    expect(fee).toBe('0.06462');
    expect(roundedText(subtractDecimals(multiplyDecimals(decimal('0.013'), decimal('71.94')), fee ?? ONE), 4)).toBe(
      '0.8706',
    );
  });
});

describe('fees of the examples of Polymarket', () => {
  it.each([
    ['0.07', ['0.07', '0.33', '0.63', '0.89', '1.31', '1.47', '1.73', '1.75']],
    ['0.05', ['0.05', '0.24', '0.45', '0.64', '0.94', '1.05', '1.24', '1.25']],
    ['0.04', ['0.04', '0.19', '0.36', '0.51', '0.75', '0.84', '0.99', '1.00']],
  ])('are those of the document for 100 shares at a rate of %s', (rate, shown) => {
    const prices = ['0.01', '0.05', '0.1', '0.15', '0.25', '0.3', '0.45', '0.5'];
    expect(prices.map((price) => roundedText(feeOf(polymarket(rate), price, '100') ?? ONE, 2))).toEqual(shown);
  });

  it.each([
    ['0.05', '0.52', '22.84', '0.28504'],
    ['0.05', '0.9', '7.44', '0.03348'],
  ])('are those of recorded activity at a rate of %s and a price of %s', (rate, price, size, fee) => {
    expect(feeOf(polymarket(rate), price, size)).toBe(fee);
  });
});
