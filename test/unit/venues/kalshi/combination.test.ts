import { describe, expect, it } from 'vitest';
import { isCombination, isCombinationTicker } from '../../../../src/venues/kalshi/combination.ts';
import { parseBooks } from '../../../../src/venues/kalshi/parse-book.ts';
import { parseMarkets } from '../../../../src/venues/kalshi/parse-market.ts';
import { parsePrices } from '../../../../src/venues/kalshi/parse-price.ts';
import { collectTrades, readFeed } from '../../../../src/venues/kalshi/parse-trade.ts';

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
const plain = { ...market, ticker: 'KXA' };
const trade = {
  trade_id: 't1',
  ticker: TICKER,
  count_fp: '1.00',
  yes_price_dollars: '0.3000',
  no_price_dollars: '0.7000',
  created_time: '2026-07-25T05:51:39Z',
};
const book = { ticker: TICKER, orderbook_fp: { yes_dollars: [], no_dollars: [['0.8120', '369.00']] } };

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
  it.each([
    ['parseMarkets', () => parseMarkets([market, plain])],
    [
      'parsePrices',
      () =>
        parsePrices(
          [
            { ...market, yes_ask_dollars: '0.2' },
            { ...plain, yes_ask_dollars: '0.2' },
          ],
          NOW,
        ),
    ],
    ['parseBooks', () => parseBooks([book, { ...book, ticker: 'KXA' }], NOW)],
    ['collectTrades', () => collectTrades(readFeed([trade, { ...trade, ticker: 'KXA', trade_id: 't2' }], NOW))],
  ])('%s skips a combination with a reason and keeps its neighbour', (_, parse) => {
    const { records, rejected, skipped } = parse();
    expect(skipped).toEqual(['combination']);
    expect(rejected).toEqual([]);
    expect(records.length).toBeGreaterThan(0);
    expect(JSON.stringify(records)).not.toContain(TICKER);
  });

  it('reject a combination with a fault', () => {
    expect(parseMarkets([{ ...market, status: 7 }])).toMatchObject({
      skipped: [],
      rejected: [{ reason: 'invalid_field' }],
    });
    const broken = collectTrades(readFeed([{ ...trade, count_fp: '-1' }], NOW));
    expect(broken).toMatchObject({ skipped: [], rejected: [{ reason: 'size_not_positive' }] });
  });
});
