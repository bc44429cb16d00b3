import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PriceLevel } from '../../../src/domain/markets/market.ts';
import { isTight, priceOfBook, quotesOf } from '../../../src/domain/markets/quoted-price.ts';
import { ONE, subtractDecimals } from '../../../src/domain/values/decimal.ts';
import { parseBooks } from '../../../src/venues/polymarket/parse-book.ts';
import { parseMarkets } from '../../../src/venues/polymarket/parse-market.ts';
import { identifyTrades, readFeed } from '../../../src/venues/polymarket/parse-trade.ts';
import { readRecordedJson, venueDataFolder } from '../../support/venue-data.ts';
import { polymarketRecordings } from './recordings/polymarket.ts';

const recordings = polymarketRecordings();

interface RecordedEvent {
  markets: object[];
}

function countOf(values: readonly (string | undefined)[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value ?? ''] = (counts[value ?? ''] ?? 0) + 1;
  return counts;
}

/** Known facts of these recordings beyond their soundness. */
describe.skipIf(recordings === undefined)('the Polymarket recordings', () => {
  const file = (name: RegExp) => {
    const found = recordings?.files.filter((each) => name.test(each.file)) ?? [];
    expect(found.length).toBeGreaterThan(0);
    return found;
  };

  it('count 22 open, 302 resolved, 2 void and 1 closed full market objects, and no unreadable time', () => {
    const counts = new Map<string, number>();
    for (const each of recordings?.files ?? []) {
      // Hand-trimmed fixtures and the field subset have statuses of their own.
      if (each.kind !== 'markets' || /^nautilus_py|^gamma_resolved/.test(each.file)) continue;
      const { records, unknowns, rejected } = parseMarkets(each.records, each.nowMs);
      expect(unknowns).toEqual([]);
      expect(rejected).toEqual([]);
      for (const { status, resolution } of records) {
        const key = resolution === 'void' ? 'void' : status;
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
    }
    expect(Object.fromEntries(counts)).toEqual({ open: 22, resolved: 302, void: 2, closed: 1 });
  });

  it('show 22 markets with a sibling label, and no two of an event with the same title or label', () => {
    const all = (recordings?.files ?? []).filter(({ kind }) => kind === 'markets');
    const records = all.flatMap((each) => parseMarkets(each.records, each.nowMs).records);
    const markets = [...new Map(records.map((each) => [each.marketId, each])).values()];
    expect(markets.filter(({ siblingLabel }) => siblingLabel !== undefined).length).toBe(22);
    const grouped = markets.filter(({ eventId }) => eventId !== undefined);
    const titles = grouped.map(({ eventId, title }) => JSON.stringify([eventId, title]));
    expect(titles.length - new Set(titles).size).toBe(0);
    const labelled = grouped.filter(({ siblingLabel }) => siblingLabel !== undefined);
    const labels = labelled.map(({ eventId, siblingLabel }) => JSON.stringify([eventId, siblingLabel]));
    expect(labels.length - new Set(labels).size).toBe(0);
  });

  it('show five-minute markets with the recorded winner', () => {
    for (const { records, nowMs } of file(/btc5m/)) {
      const raw = records as { outcomePrices: string }[];
      for (const [index, record] of parseMarkets(records, nowMs).records.entries()) {
        const prices = JSON.parse(raw[index]?.outcomePrices ?? '[]') as string[];
        expect(record.winningOutcomeId).toBe(record.outcomes[prices.indexOf('1')]?.outcomeId);
      }
    }
  });

  it('show resolved markets of 2024-25 with the recorded winner', () => {
    for (const { records, nowMs } of file(/gamma_resolved/)) {
      const raw = records as { conditionId: string; resolvedOutcome: string | null }[];
      const named = new Map(raw.map((row) => [row.conditionId, row.resolvedOutcome]));
      const winners = parseMarkets(records, nowMs).records.filter((record) => record.winningOutcomeId !== undefined);
      expect(winners.length).toBe(5_520);
      for (const { marketId, outcomes, winningOutcomeId } of winners) {
        expect(outcomes.find((outcome) => outcome.outcomeId === winningOutcomeId)?.label).toBe(named.get(marketId));
      }
    }
  });

  it('show resolved markets of 2024-25 with tags and the category of the top-level tag', () => {
    for (const { records, nowMs } of file(/gamma_resolved/)) {
      const markets = parseMarkets(records, nowMs).records;
      expect(markets.filter((record) => record.tags.length === 0)).toEqual([]);
      expect(
        markets.filter((record) => ['all', 'parent-for-derivative'].some((tag) => record.tags.includes(tag))),
      ).toEqual([]);
      expect(countOf(markets.map((record) => record.category))).toEqual({
        Geopolitics: 4_565,
        Mentions: 671,
        Elections: 449,
        Crypto: 3,
        Sports: 1,
      });
    }
  });

  it('show markets of events with the category of the tags of the event', () => {
    const categories = file(/(gamma-event|gamma-search|gamma_event|search_response)\.json$/).map(({ file: name }) => {
      const json = readRecordedJson(join(venueDataFolder('polymarket') ?? '', name)) as { events?: RecordedEvent[] };
      const events = (Array.isArray(json) ? json : (json.events ?? [json])) as RecordedEvent[];
      const rows = events.flatMap(({ markets, ...event }) => markets.map((row) => ({ ...row, events: [event] })));
      return [
        name.split('/').at(-1),
        ...new Set(parseMarkets(rows, Date.UTC(2026, 9, 1)).records.map((each) => each.category)),
      ];
    });
    expect(categories).toEqual([
      ['gamma-event.json', 'Economy'],
      ['gamma-search.json', 'Economy'],
      ['gamma_event.json', 'Elections'],
      ['search_response.json', 'Crypto'],
    ]);
  });

  it('show a five-minute market, a market past its end and one of negative risk, all open with a book', () => {
    const markets = file(/^reports\/polymarket_gamma/).flatMap(
      (each) => parseMarkets(each.records, each.nowMs).records,
    );
    const iso = (ms = 0) => new Date(ms).toISOString();
    const facts = markets.map(({ status, hasBook, closeAtMs, siblingLabel }) => {
      return [status, hasBook, iso(closeAtMs), siblingLabel];
    });
    expect(facts).toEqual([
      ['open', true, '2028-11-07T00:00:00.000Z', 'Gavin Newsom'],
      ['open', true, '2026-06-01T00:00:00.000Z', undefined],
      ['open', true, '2026-08-22T16:05:00.000Z', undefined],
    ]);
  });

  it('show a book without asks that never traded: it has bids and no price', () => {
    const [empty] = file(/^reports\/polymarket_clob/);
    const parse = (kind: 'books' | 'prices') => parseBooks(kind, empty?.records ?? [], empty?.nowMs ?? 0);
    const { records, rejected } = parse('books');
    expect([records[0]?.bids[0]?.price, records[0]?.asks, rejected]).toEqual(['0.002', [], []]);
    expect(records.map((book) => priceOfBook(book))).toEqual([undefined]);
  });

  it('show trades of version 2 with the ratio of the fill as their price', () => {
    const [trades] = file(/trades_captured/);
    const { records, rejected } = identifyTrades(readFeed(trades?.records ?? [], trades?.nowMs ?? 0));
    expect(rejected).toEqual([]);
    expect(records.map(({ price, size, side }) => [price, size, side])).toEqual([
      ['0.2972581967', '244', 'buy'],
      ['0.709999959', '1.464786', 'buy'],
      ['0.7', '92.59', 'sell'],
    ]);
  });

  it('show unknown tags, not empty ones, on markets recorded without tags', () => {
    const rows = file(/polymarket_markets|btc5m/).flatMap(({ records }) => records);
    const { records } = parseMarkets(rows, Date.UTC(2026, 9, 1));
    expect(records.length).toBe(298);
    expect(records.filter((record) => !record.isUntagged)).toEqual([]);
  });

  it('contain 3 and 9 exact duplicates on the tapes, which survive', () => {
    const duplicates = (name: RegExp) =>
      file(name).reduce((sum, { records, nowMs }) => {
        const batch = identifyTrades(readFeed(records, nowMs));
        expect(new Set(batch.records.map((trade) => trade.tradeId)).size).toBe(records.length);
        return sum + records.length - new Set(records.map((row) => JSON.stringify(row))).size;
      }, 0);
    expect(duplicates(/^wallet_trades/)).toBe(3);
    expect(duplicates(/^trade_tape/)).toBe(9);
  });

  it('show books with the best price last, and one last trade price in both books of a market', () => {
    const [books] = file(/clob-books/);
    const { records } = parseBooks('books', books?.records ?? [], books?.nowMs ?? 0);
    expect(records.every((book) => isTight(quotesOf(book)))).toBe(true);
    const rows = books?.records as { market: string; last_trade_price: string; bids: { price: string }[] }[];
    for (const [index, record] of records.entries()) {
      expect(record.bids[0]?.price).toBe(String(Number(rows[index]?.bids.at(-1)?.price)));
    }
    expect(new Set(rows.map((row) => `${row.market} ${row.last_trade_price}`)).size).toBe(rows.length / 2);
  });

  it('show the second book of a market as the exact mirror of the first, level by level', () => {
    const [books] = file(/clob-books/);
    const { records } = parseBooks('books', books?.records ?? [], books?.nowMs ?? 0);
    const pairs = Array.from({ length: records.length / 2 }, (_, at) => records.slice(2 * at, 2 * at + 2));
    const mirror = (levels: readonly PriceLevel[] = []) =>
      levels.map(({ price, size }) => ({ price: subtractDecimals(ONE, price), size }));
    for (const [one, other] of pairs) {
      expect(other).toMatchObject({ asOfMs: one?.asOfMs, bids: mirror(one?.asks), asks: mirror(one?.bids) });
    }
    expect(pairs).toHaveLength(5);
  });

  it('show yes prices of one event that add up to about 1', () => {
    const [event] = file(/gamma-event/);
    const [books] = file(/clob-books/);
    const firsts = parseMarkets(event?.records ?? [], event?.nowMs ?? 0).records.map(
      (record) => record.outcomes[0]?.outcomeId,
    );
    const tight = parseBooks('prices', books?.records ?? [], books?.nowMs ?? 0).records;
    const sum = tight
      .filter((book) => firsts.includes(book.outcomeId))
      .reduce((total, book) => total + (Number(book.bids[0]?.price) + Number(book.asks[0]?.price)) / 2, 0);
    expect(sum).toBeCloseTo(1.0015, 6);
  });
});
