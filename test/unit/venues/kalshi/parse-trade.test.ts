import { describe, expect, it } from 'vitest';
import { collectTrades, readFeed } from '../../../../src/venues/kalshi/parse-trade.ts';

const NOW = Date.UTC(2026, 7, 1);

function row(more: object = {}): object {
  return {
    trade_id: 'c174ce46-46d8-705a-6f03-2e1037bd1dd1',
    ticker: 'KXETH15M-26JUL250200-00',
    count_fp: '12.61',
    yes_price_dollars: '0.3800',
    no_price_dollars: '0.6200',
    taker_side: 'yes',
    taker_outcome_side: 'yes',
    is_block_trade: false,
    created_time: '2026-07-25T05:51:39.54467Z',
    ...more,
  };
}

function parseOne(more: object = {}) {
  const { records, rejected, unknowns } = collectTrades(readFeed([row(more)], NOW));
  return { trade: records[0], reason: rejected[0]?.reason, unknowns };
}

describe('a Kalshi trade', () => {
  it('is one record in terms of YES', () => {
    expect(parseOne().trade).toEqual({
      tradeId: 'c174ce46-46d8-705a-6f03-2e1037bd1dd1',
      outcomeId: 'KXETH15M-26JUL250200-00:yes',
      tsMs: (Date.UTC(2026, 6, 25, 5, 51, 39) * 1000 + 544_670) / 1000,
      price: '0.38',
      size: '12.61',
      side: 'buy',
    });
  });

  it('is a sale when the taker took NO, by the newer field before the older one', () => {
    expect(parseOne({ taker_outcome_side: 'no', taker_side: 'yes' }).trade?.side).toBe('sell');
    expect(parseOne({ taker_outcome_side: undefined, taker_side: 'no' }).trade?.side).toBe('sell');
  });

  it('has no side when it is a block trade, or when its side is unknown and reported', () => {
    expect(parseOne({ is_block_trade: true }).trade).not.toHaveProperty('side');
    const { trade, unknowns } = parseOne({ taker_outcome_side: 'maybe' });
    expect(trade).not.toHaveProperty('side');
    expect(unknowns).toEqual([{ field: 'taker_side', value: 'maybe' }]);
  });

  it('is read from cents and whole contracts when other fields are absent', () => {
    const old = { count_fp: undefined, count: 3, yes_price_dollars: undefined, no_price_dollars: undefined };
    expect(parseOne({ ...old, yes_price: 6, no_price: 94 }).trade).toMatchObject({ price: '0.06', size: '3' });
    expect(parseOne({ ...old, no_price: 94 }).trade?.price).toBe('0.06');
  });

  it.each([
    ['2026-07-25T05:51:39Z', 0],
    ['2026-07-25T05:51:39.5Z', 500_000],
    ['2026-07-25T05:51:39.54Z', 540_000],
    ['2026-07-25T05:51:39.544670Z', 544_670],
  ])('keeps the microseconds of %s', (created_time, micros) => {
    expect(parseOne({ created_time }).trade?.tsMs).toBe((Date.UTC(2026, 6, 25, 5, 51, 39) * 1000 + micros) / 1000);
  });

  it.each([
    [{ yes_price_dollars: '1.3800' }, 'price_out_of_range'],
    [{ no_price_dollars: '0.6100' }, 'price_mismatch'],
    [{ yes_price_dollars: undefined, no_price_dollars: undefined }, 'missing_field'],
    [{ count_fp: '0.00' }, 'size_not_positive'],
    [{ count_fp: '-1.00' }, 'size_not_positive'],
    [{ count_fp: undefined }, 'missing_field'],
    [{ created_time: 'yesterday' }, 'invalid_field'],
    [{ created_time: '2026-08-02T00:00:00Z' }, 'timestamp_in_future'],
    [{ created_time: '2001-01-01T00:00:00Z' }, 'timestamp_out_of_range'],
    [{ trade_id: '' }, 'invalid_field'],
  ])('with %j is rejected: %s', (more, reason) => {
    expect(parseOne(more)).toMatchObject({ trade: undefined, reason });
  });

  it('that occurs twice counts once', () => {
    const { records, rejected } = collectTrades(readFeed([row(), row()], NOW));
    expect(records.length).toBe(1);
    expect(rejected.map((each) => each.reason)).toEqual(['duplicate_record']);
  });
});
