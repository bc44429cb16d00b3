import { describe, expect, it } from 'vitest';
import { parsePrices } from '../../../../src/venues/kalshi/parse-price.ts';

const NOW = Date.UTC(2026, 7, 9);

function prices(more: object, requested?: ReadonlySet<string>) {
  const row = { ticker: 'KXA', status: 'active', result: '', ...more };
  const { records, rejected } = parsePrices([row], NOW, requested);
  return { yes: records[0], no: records[1], count: records.length, reason: rejected[0]?.reason };
}

function dollars(bid: string, ask: string, last: string): object {
  return { yes_bid_dollars: bid, yes_ask_dollars: ask, last_price_dollars: last };
}

describe('Kalshi prices', () => {
  it('are the exact middle of two real quotes, and one minus that for NO', () => {
    const { yes, no } = prices(dollars('0.8900', '0.9430', '0.9500'));
    expect(yes).toEqual({ outcomeId: 'KXA:yes', asOfMs: NOW, price: '0.9165', bid: '0.89', ask: '0.943' });
    expect(no).toEqual({ outcomeId: 'KXA:no', asOfMs: NOW, price: '0.0835', bid: '0.057', ask: '0.11' });
  });

  it('are the last trade, and one minus it for NO, when the quotes are more than 0.10 apart', () => {
    const { yes, no } = prices(dollars('0.1500', '0.5900', '0.2000'));
    expect(yes).toEqual({ outcomeId: 'KXA:yes', asOfMs: NOW, price: '0.2', bid: '0.15', ask: '0.59' });
    expect(no).toEqual({ outcomeId: 'KXA:no', asOfMs: NOW, price: '0.8', bid: '0.41', ask: '0.85' });
    expect(prices(dollars('0.4000', '0.5000', '0.2000')).yes).toMatchObject({ price: '0.45' });
    expect(prices(dollars('0.4000', '0.5010', '0.2000')).yes).toMatchObject({ price: '0.2' });
    expect(prices(dollars('0.1500', '0.5900', '0.0000'))).toMatchObject({ count: 0, reason: undefined });
  });

  it('are the last trade when a side is empty, written as 0 or 1', () => {
    const { yes, no } = prices(dollars('0.0000', '0.0100', '0.0200'));
    expect(yes).toEqual({ outcomeId: 'KXA:yes', asOfMs: NOW, price: '0.02', ask: '0.01' });
    expect(no).toEqual({ outcomeId: 'KXA:no', asOfMs: NOW, price: '0.98', bid: '0.99' });
    expect(prices(dollars('0.4000', '1.0000', '0.5000')).yes).not.toHaveProperty('ask');
    // The empty market of the older shape.
    expect(prices(dollars('0.0000', '0.0000', '0.3000')).yes).toEqual({
      outcomeId: 'KXA:yes',
      asOfMs: NOW,
      price: '0.3',
    });
  });

  it('are absent without quotes and without a trade', () => {
    expect(prices(dollars('0.0000', '1.0000', '0.0000'))).toMatchObject({ count: 0, reason: undefined });
    expect(prices(dollars('0.4000', '1.0000', '0.0000'))).toMatchObject({ count: 0, reason: undefined });
  });

  it('are read from cents when dollars are absent', () => {
    expect(prices({ yes_bid: 8, yes_ask: 11, last_price: 9 }).yes).toMatchObject({
      price: '0.095',
      bid: '0.08',
      ask: '0.11',
    });
  });

  it('are the payouts of a determined market', () => {
    const settled = { status: 'finalized', result: 'no', settlement_value_dollars: '0.0000' };
    const { yes, no } = prices({ ...settled, ...dollars('0.0000', '1.0000', '0.9900') });
    expect(yes).toEqual({ outcomeId: 'KXA:yes', asOfMs: NOW, price: '0' });
    expect(no).toEqual({ outcomeId: 'KXA:no', asOfMs: NOW, price: '1' });
  });

  it('are the price of the market when its result is disputed', () => {
    const disputed = { status: 'disputed', result: 'no', settlement_value_dollars: '0.0000' };
    expect(prices({ ...disputed, ...dollars('0.0000', '1.0000', '0.9900') }).yes?.price).toBe('0.99');
  });

  it('are rejected when crossed, out of range, not requested, or absent under every name', () => {
    expect(prices(dollars('0.6000', '0.5000', '0.5500')).reason).toBe('crossed_quote');
    expect(prices(dollars('0.6000', '5.0000', '0.5500')).reason).toBe('price_out_of_range');
    expect(prices({ yes_bid: 108, yes_ask: 11, last_price: 9 }).reason).toBe('price_out_of_range');
    expect(prices(dollars('NaN', '0.5000', '0.5500')).reason).toBe('invalid_field');
    expect(prices(dollars('0.4000', '0.5000', '0.5500'), new Set(['KXB'])).reason).toBe('not_requested');
    expect(prices({}).reason).toBe('missing_field');
  });
});
