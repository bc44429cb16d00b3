import { describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../src/domain/markets/market.ts';
import { compareDecimals, decimal, ONE, subtractDecimals } from '../../../src/domain/values/decimal.ts';
import { parseBooks } from '../../../src/venues/kalshi/parse-book.ts';
import { parseMarkets } from '../../../src/venues/kalshi/parse-market.ts';
import { parsePrices } from '../../../src/venues/kalshi/parse-price.ts';
import { collectTrades, readFeed } from '../../../src/venues/kalshi/parse-trade.ts';
import { createSeriesDirectory } from '../../../src/venues/kalshi/series-directory.ts';
import { isCombinationTicker } from '../../../src/venues/kalshi/tickers.ts';
import { kalshiRecordings } from './recordings/kalshi.ts';
import type { PollKind } from './venue-under-test.ts';

const recordings = kalshiRecordings();

/** Known facts of these recordings beyond their soundness. */
describe.skipIf(recordings === undefined)('the Kalshi recordings', () => {
  const files = (kind: PollKind, name = /./) => {
    const found = recordings?.files.filter((each) => each.kind === kind && name.test(each.file)) ?? [];
    expect(found.length).toBeGreaterThan(0);
    return found;
  };
  const tally = (words: readonly string[]) => {
    const counts: Record<string, number> = {};
    for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
    return counts;
  };

  it('count 681 market objects: 613 open, 43 settled, 2 closed, 23 combinations, and no unknown time or value', () => {
    const statuses: string[] = [];
    const skipped: string[] = [];
    for (const { records } of files('markets')) {
      const batch = parseMarkets(records);
      expect(batch.unknowns).toEqual([]);
      expect(batch.rejected).toEqual([]);
      skipped.push(...batch.skipped);
      statuses.push(...batch.records.map((record) => record.status));
    }
    expect(tally(statuses)).toEqual({ open: 613, settled: 43, closed: 2 });
    expect(tally(skipped)).toEqual({ combination: 23 });
  });

  it('count 23 markets and 21 books of combinations, all with the prefix, and no other record with it', () => {
    const isPrefixed = (row: unknown) => isCombinationTicker((row as { ticker?: unknown }).ticker);
    const rows = files('markets').flatMap(({ records }) => records) as Record<string, unknown>[];
    const combinations = rows.filter((row) => 'mve_collection_ticker' in row);
    expect(combinations.length).toBe(23);
    expect(combinations.every((row) => Array.isArray(row['mve_selected_legs']))).toBe(true);
    expect(rows.filter(isPrefixed)).toEqual(combinations);
    expect(files('books').flatMap(({ records }) => records.filter(isPrefixed)).length).toBe(21);
    expect(files('trades').flatMap(({ records }) => records.filter(isPrefixed)).length).toBe(0);
  });

  it('count 246 series, all readable, 195 of them with tags', async () => {
    const tagged: boolean[] = [];
    for (const series of recordings?.series ?? []) {
      const directory = createSeriesDirectory({ listSeries: async () => ({ rows: [...series] }) }, expect.fail);
      const rows = series.map(({ ticker }) => ({
        ...{ ticker: `${ticker}-1`, event_ticker: `${ticker}-1`, title: 'Title', status: 'active' },
        event: { series_ticker: ticker },
      }));
      const batch = parseMarkets(await directory.complete(rows, 0, new AbortController().signal));
      expect(batch.rejected).toEqual([]);
      expect(batch.records.map(({ category, tags }) => ({ category, tags }))).toEqual(
        series.map(({ category, tags }) => ({ category, tags: tags ?? [] })),
      );
      expect(batch.records.some((record) => record.isSummary)).toBe(false);
      tagged.push(...batch.records.map(({ tags }) => tags.length > 0));
    }
    expect(tally(tagged.map(String))).toEqual({ true: 195, false: 51 });
  });

  it('show settled markets whose winner is the side that the recording names, and pays 1', () => {
    let settled = 0;
    for (const { records } of files('markets')) {
      const results = new Map(
        (records as { ticker: string; result: string; settlement_ts?: string }[]).map((row) => [row.ticker, row]),
      );
      for (const record of parseMarkets(records).records) {
        if (record.status !== 'settled') continue;
        settled += 1;
        const raw = results.get(record.marketId);
        expect(record.winningOutcomeId).toBe(`${record.marketId}:${raw?.result}`);
        expect(record.outcomes.map((each) => each.payout)).toEqual(raw?.result === 'yes' ? ['1', '0'] : ['0', '1']);
        expect(record.resolvedAtMs).toBe(Date.parse(raw?.settlement_ts ?? ''));
      }
    }
    expect(settled).toBe(43);
  });

  it('show open markets, of which 57 of 601 share the title with a sibling, but not the label', () => {
    const all = files('markets').flatMap(({ records }) => parseMarkets(records).records);
    const open = [
      ...new Map(all.filter(({ status }) => status === 'open').map((each) => [each.marketId, each])).values(),
    ];
    const sharing = (nameOf: (market: MarketRecord) => unknown) => {
      const counts = tally(open.map((market) => JSON.stringify([market.eventId, nameOf(market)])));
      return Object.values(counts).filter((count) => count > 1);
    };
    const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
    expect(open.length).toBe(601);
    expect(sum(sharing(({ title }) => title))).toBe(57);
    expect(sum(sharing(({ title, siblingLabel }) => [title, siblingLabel]))).toBe(0);
    // Markets without an event title come from lists that contain the ticker of the event only.
    expect(open.filter(({ siblingLabel }) => siblingLabel === undefined)).toEqual([]);
    expect(open.filter(({ eventTitle }) => eventTitle !== undefined).length).toBe(570);
  });

  it('show markets of one event with the same id, category and tags', () => {
    const [sports] = files('markets', /events_sports_nested/);
    const records = parseMarkets(sports?.records ?? []).records.filter((each) => each.eventId === 'KXNBA-27');
    expect(records.length).toBe(30);
    expect(tally(records.map(({ category, tags }) => `${category}: ${tags.join(', ')}`))).toEqual({
      'Sports: Pro Basketball (M), Future': 30,
    });
  });

  it('show quotes that never cross, consistent sides, and prices from the middle, a trade or the payout', () => {
    const sources: string[] = [];
    for (const { records, nowMs } of files('prices')) {
      const batch = parsePrices(records, nowMs);
      expect(batch.rejected).toEqual([]);
      const prices = new Map(batch.records.map((record) => [record.outcomeId, record]));
      for (const row of records as Record<string, string>[]) {
        if (isCombinationTicker(row['ticker'])) continue;
        const yes = prices.get(`${row['ticker']}:yes`);
        if (yes?.bid !== undefined) expect(decimal(row['no_ask_dollars'] ?? '')).toBe(subtractDecimals(ONE, yes.bid));
        if (yes?.ask !== undefined) expect(decimal(row['no_bid_dollars'] ?? '')).toBe(subtractDecimals(ONE, yes.ask));
        const hasBoth = yes?.bid !== undefined && yes.ask !== undefined;
        const isWide = hasBoth && Number(yes.ask) - Number(yes.bid) > 0.1 + 1e-9;
        if (isWide) expect(yes.price).toBe(decimal(row['last_price_dollars'] ?? ''));
        const other = row['status'] === 'finalized' ? 'payout' : isWide ? 'last of wide quotes' : 'last';
        sources.push(yes === undefined ? 'none' : hasBoth && !isWide ? 'middle' : other);
      }
    }
    // A market with a one-sided, wide or absent quote that never traded has no price.
    expect(tally(sources)).toEqual({ middle: 527, last: 39, 'last of wide quotes': 13, payout: 43, none: 36 });
  });

  it('count 3,938 polled books: 995 without a yes bid, 994 without a no bid, 0 crossed', () => {
    let total = 0;
    let withoutYes = 0;
    let withoutNo = 0;
    for (const { records, nowMs } of files('books', /orderbook_polls/)) {
      const books = parseBooks(records, nowMs).records.filter((book) => book.outcomeId.endsWith(':yes'));
      total += books.length;
      withoutYes += books.filter((book) => book.bids.length === 0).length;
      withoutNo += books.filter((book) => book.asks.length === 0).length;
    }
    expect([total, withoutYes, withoutNo]).toEqual([3_938, 995, 994]);
  });

  it('show the market of 2026-08-09 with equal quotes in its book, its object and its nested object', () => {
    const [book] = files('books', /market_single/).flatMap(({ records, nowMs }) => parseBooks(records, nowMs).records);
    const prices = files('prices', /market_single/).flatMap(
      ({ records, nowMs }) => parsePrices(records, nowMs).records,
    );
    expect(book?.bids[0]?.price).toBe('0.89');
    expect(book?.asks[0]).toEqual({ price: '0.94', size: '641' });
    for (const price of prices.filter((each) => each.outcomeId.endsWith(':yes'))) {
      expect(price).toMatchObject({ price: '0.915', bid: '0.89', ask: '0.94' });
    }
    for (const price of prices.filter((each) => each.outcomeId.endsWith(':no'))) {
      expect(price).toMatchObject({ price: '0.085', bid: '0.06', ask: '0.11' });
    }
    expect(prices.length).toBe(4);
  });

  it('show unique trade ids over all tapes, and a side on every tape trade', () => {
    const trades = files('trades', /trade_tape/).flatMap(
      ({ records, nowMs }) => collectTrades(readFeed(records, nowMs)).records,
    );
    expect(trades.length).toBe(15_610);
    expect(new Set(trades.map((trade) => trade.tradeId)).size).toBe(trades.length);
    expect(tally(trades.map((trade) => trade.side ?? 'none'))).toEqual({ buy: 9_337, sell: 6_273 });
    expect(trades.every((trade) => compareDecimals(trade.price, ONE) <= 0)).toBe(true);
  });
});
