import { describe, expect, it } from 'vitest';
import { parseMarkets } from '../../../../src/venues/kalshi/parse-market.ts';
import { collectTrades, readFeed } from '../../../../src/venues/kalshi/parse-trade.ts';
import { isCombination, isCombinationTicker } from '../../../../src/venues/kalshi/tickers.ts';

const NOW = Date.UTC(2026, 7, 9);
const TICKER = 'KXMVESPORTSMULTIGAMEEXTENDED-S20269E879FDB0C2-92BDDDE5192';
const LEGS = [{ event_ticker: 'KXNBA-27', market_ticker: 'KXNBA-27-LAL', side: 'yes' }];
const market = {
  ticker: TICKER,
  event_ticker: 'KXMVE',
  title: 'yes A,yes B',
  status: 'active',
  yes_bid_dollars: '0.1',
};
const trade = {
  trade_id: 't1',
  ticker: TICKER,
  count_fp: '1.00',
  yes_price_dollars: '0.3000',
  no_price_dollars: '0.7000',
  created_time: '2026-07-25T05:51:39Z',
};

describe('isCombination', () => {
  it('knows a combination by its ticker, its collection or its legs', () => {
    expect(isCombination(market)).toBe(true);
    expect(isCombination({ ticker: 'KXA', mve_collection_ticker: 'KXMVE-R' })).toBe(true);
    expect(isCombination({ ticker: 'KXA', mve_selected_legs: LEGS })).toBe(true);
  });

  it.each([
    { ticker: 'KXA' },
    { ticker: 'KXA-KXMVE' },
    { ticker: 'KXA', mve_collection_ticker: '' },
    { ticker: 'KXA', mve_collection_ticker: null, mve_selected_legs: null },
    { ticker: 'KXA', mve_selected_legs: [] },
    { ticker: 7, mve_collection_ticker: 7, mve_selected_legs: {} },
    null,
    'KXMVE',
  ])('rejects other rows: %j', (row) => {
    expect(isCombination(row)).toBe(false);
  });

  it('reads the prefix of strings only', () => {
    expect([TICKER, 'KXMV-1', undefined, { ticker: TICKER }].map(isCombinationTicker)).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

describe('the parsers of Kalshi', () => {
  it('reject a combination with a fault', () => {
    expect(parseMarkets([{ ...market, status: 7 }])).toMatchObject({
      skipped: [],
      rejected: [{ reason: 'invalid_field' }],
    });
    const broken = collectTrades(readFeed([{ ...trade, count_fp: '-1' }], NOW));
    expect(broken).toMatchObject({ skipped: [], rejected: [{ reason: 'size_not_positive' }] });
  });
});
