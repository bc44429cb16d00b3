import { beforeAll, describe, expect, it } from 'vitest';
import { EXPORT_KINDS, type ExportKind, headerOf, LINE_FORMATS } from '../../../../src/domain/archive/exported.ts';
import { INTERVALS } from '../../../../src/domain/markets/candle.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import {
  countExportedOutcomes,
  type ExportPlace,
  type ExportRequest,
  exportPages,
  storedSince,
} from '../../../../src/store/series/export.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { storedCandles, storedTrades } from '../../../factories/stored-series.ts';
import { csvRows } from '../../../support/csv.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const test = useTestDatabase();

const PRICES = sql(
  'test_export_prices',
  `INSERT INTO price_history (token_id, received_at, as_of, price, bid, ask)
   SELECT $1, $2::timestamptz + n * interval '1.000001 second', $2::timestamptz, n / 7.0, CASE n % 2 WHEN 0 THEN 0.10 END, NULL
   FROM generate_series(0, $3::int - 1) AS n`,
);
const BOOKS = sql(
  'test_export_books',
  `INSERT INTO book_history (token_id, received_at, as_of, bids, asks)
   SELECT $1, $2::timestamptz + n * interval '1 second', $2::timestamptz, jsonb_build_array(jsonb_build_array('0.3', n::text, 2)), '[]'
   FROM generate_series(0, $3::int - 1) AS n`,
);
const MANY = sql(
  'test_export_trades',
  `INSERT INTO trade (token_id, ts, trade_id, price, size, side)
   SELECT $1, $2::timestamptz + (n / 3) * interval '1 microsecond', n::text, 0.25, n, (n % 3 - 1)::smallint FROM generate_series(1, $3::int) AS n`,
);

const NOON = Date.UTC(2026, 1, 28, 12);
let market: TestMarket;
let others: TestMarket[];

beforeAll(async () => {
  market = await aStoredMarket(test.db, { venue: 'kalshi', marketId: 'M,"1"\n=x' });
  others = [];
  for (let i = 0; i < 130; i++)
    others.push(await aStoredMarket(test.db, { venue: 'kalshi', marketId: `K-${i}`, labels: ['Yes'] }));
  await aStoredMarket(test.db, { venue: 'manifold', marketId: 'elsewhere' });
  const [yes, no] = tokens(market);
  await storedTrades(test.db, [
    {
      tokenId: yes,
      at: new Date(NOON),
      tradeId: 'quote " comma , line \r\n end',
      price: '0.123456789012345678',
      size: '12345678901234567890.000000000000000001',
      side: 'buy',
      ordinal: 3,
    },
    { tokenId: yes, at: new Date(NOON + 1), tradeId: '', price: '0.50', size: '10', side: 'sell' },
    // In the next partition.
    { tokenId: yes, at: new Date(NOON + 86_400_000), tradeId: '雨', price: '1', size: '0.00000001' },
    { tokenId: no, at: new Date(NOON - 1), tradeId: ' space', price: '0.4', size: '1' },
    ...others.map(({ outcomes }, i) => ({
      tokenId: outcomes[0]?.tokenId ?? 0n,
      at: new Date(NOON + i * 1_000),
      tradeId: `t${i}`,
    })),
  ]);
  // More than one page of an outcome, with three trades per microsecond.
  await test.db.query(MANY, [others[7]?.outcomes[0]?.tokenId, new Date(NOON).toISOString(), 25_000]);
  await test.db.query(MANY, [others[8]?.outcomes[0]?.tokenId, new Date(NOON).toISOString(), 99]);
  for (const [index, seconds] of [60, 300, 86_400].entries()) {
    await storedCandles(
      test.db,
      yes,
      seconds,
      Array.from({ length: 150 }, (_, n) => ({ bucket: 1_772_236_800 - n * seconds, close: `0.${index + 1}` })),
    );
  }
  const partitions = new Partitions(test.db);
  for (const table of ['price_history', 'book_history'] as const)
    await partitions.ensure(table, [NOON, NOON + 43_200_000]);
  await test.db.query(PRICES, [yes, new Date(NOON).toISOString(), 250]);
  await test.db.query(BOOKS, [yes, new Date(NOON).toISOString(), 450]);
  await test.db.query(BOOKS, [no, new Date(NOON).toISOString(), 9]);
});

const tokens = ({ outcomes }: TestMarket) => outcomes.map(({ tokenId }) => tokenId) as [bigint, bigint];
const request = (over: Partial<ExportRequest> = {}): ExportRequest => ({
  kind: 'trades',
  format: 'csv',
  venue: 'kalshi',
  range: { start: 0, end: 2_000_000_000 },
  intervals: INTERVALS,
  decimalFormat: 'number',
  ...over,
});

interface Page {
  text: string;
  rows: number;
  outcomes: number;
  place: ExportPlace;
}

async function pagesOf(asked: ExportRequest, after?: ExportPlace): Promise<Page[]> {
  const pages: Page[] = [];
  for await (const page of exportPages(test.db, asked, after)) pages.push(page);
  return pages;
}

async function textOf(asked: ExportRequest): Promise<string> {
  return headerOf(asked.kind, asked.format) + (await pagesOf(asked)).map(({ text }) => text).join('');
}

describe('an export', () => {
  it('has the exact digits, both forms of the time, and texts with quotes, ends of lines and spaces', async () => {
    const rows = csvRows(await textOf(request({ marketId: market.marketId })));
    const [no, first, second, third] = rows;
    expect(rows.length).toBe(4);
    const named = { venue: 'kalshi', market_id: market.marketId };
    expect(no).toMatchObject({ outcome_id: market.outcomes[1]?.outcomeId, trade_id: ' space', side: null });
    expect(first).toEqual({
      ...named,
      outcome_id: market.outcomes[0]?.outcomeId,
      trade_id: 'quote " comma , line \r\n end',
      time: '2026-02-28T12:00:00.000000Z',
      epoch: '1772280000.000000',
      price: '0.123456789012345678',
      size: '12345678901234567890.000000000000000001',
      side: 'buy',
      ordinal: '3',
    });
    expect(second).toMatchObject({ trade_id: '', time: '2026-02-28T12:00:00.001000Z', price: '0.5', size: '10' });
    expect(third).toMatchObject({ trade_id: '雨', epoch: '1772366400.000000', price: '1', size: '0.00000001' });
  });

  it.each(EXPORT_KINDS)('has the same values as CSV and as JSON lines (%s)', async (kind) => {
    const rows = csvRows(await textOf(request({ kind })));
    for (const decimalFormat of ['number', 'string'] as const) {
      const lines = (await textOf(request({ kind, format: 'jsonl', decimalFormat }))).split('\n');
      expect(lines.pop()).toBe('');
      expect(lines.length).toBe(rows.length);
      for (const [index, line] of lines.entries()) {
        const values = JSON.parse(line) as Record<string, unknown>;
        expect(Object.keys(values)).toEqual(Object.keys(rows[index] ?? {}));
        for (const [name, value] of Object.entries(values)) {
          const cell = rows[index]?.[name];
          if (value === null || typeof value === 'string') expect([name, cell]).toEqual([name, value]);
          else expect([name, JSON.parse(cell ?? 'null')]).toEqual([name, value]);
        }
      }
    }
    const digits = decimalOf(kind);
    const json = await textOf(request({ kind, format: 'jsonl' }));
    for (const row of rows.slice(0, 5)) if (digits) expect(json).toContain(`"${digits}":${row[digits]}`);
  });

  const decimalOf = (kind: ExportKind) =>
    ({ trades: 'size', candles: 'close', prices: 'price', books: undefined })[kind];

  it.each(EXPORT_KINDS)('has each row once, by outcome and then in the order of its keys (%s)', async (kind) => {
    const rows = csvRows(await textOf(request({ kind })));
    expect(rows.length).toBe({ trades: 4 + 130 + 25_000 + 99, candles: 450, prices: 250, books: 459 }[kind]);
    const keys = rows.map((row) => {
      const interval = kind === 'candles' ? INTERVALS.indexOf(row['interval'] as never) : 0;
      return { outcome: row['outcome_id'] ?? '', interval, time: row['time'] ?? '', id: row['trade_id'] ?? '' };
    });
    const ordered = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
    const sorted = [...keys].sort(
      (a, b) =>
        ordered(a.outcome, b.outcome) || a.interval - b.interval || ordered(a.time, b.time) || ordered(a.id, b.id),
    );
    expect(keys).toEqual(sorted);
    expect(new Set(keys.map((key) => JSON.stringify(key))).size).toBe(keys.length);
  });

  it('continues behind each of its pages with the same rest', async () => {
    for (const kind of EXPORT_KINDS) {
      const pages = await pagesOf(request({ kind }));
      expect(pages.reduce((sum, { outcomes }) => sum + outcomes, 0)).toBe(
        await countExportedOutcomes(test.db, request()),
      );
      for (const [index, { place }] of pages.entries()) {
        const rest = (await pagesOf(request({ kind }), place)).map(({ text }) => text).join('');
        expect([
          kind,
          index,
          rest ===
            pages
              .slice(index + 1)
              .map(({ text }) => text)
              .join(''),
        ]).toEqual([kind, index, true]);
      }
    }
  });

  it('has rows from the start until before the end', async () => {
    const [at] = [NOON / 1_000];
    const asked = (start: number, end: number) => request({ marketId: market.marketId, range: { start, end } });
    const ids = async (start: number, end: number) =>
      csvRows(await textOf(asked(start, end))).map(({ trade_id = null }) => trade_id);
    expect(await ids(at, at + 86_400)).toEqual(['quote " comma , line \r\n end', '']);
    expect(await ids(at + 1, at + 86_401)).toEqual(['雨']);
    const candles = request({ kind: 'candles', range: { start: 1_772_236_800 - 60, end: 1_772_236_800 } });
    expect(csvRows(await textOf(candles)).map(({ interval }) => interval)).toEqual(['1m']);
  });

  it('has the intervals that the request names', async () => {
    const rows = csvRows(await textOf(request({ kind: 'candles', intervals: ['5m'] })));
    expect([rows.length, new Set(rows.map(({ interval }) => interval))]).toEqual([150, new Set(['5m'])]);
  });

  it('has only its header without rows', async () => {
    for (const kind of EXPORT_KINDS)
      for (const format of LINE_FORMATS) {
        const asked = request({ kind, format, venue: 'limitless' });
        expect(await textOf(asked)).toBe(headerOf(asked.kind, asked.format));
      }
  });

  it('knows from when on rows may be stored', async () => {
    expect(await storedSince(test.db, { kind: 'trades', venue: 'kalshi' })).toBe(Date.UTC(2026, 1) / 1_000);
    expect(await storedSince(test.db, { kind: 'candles', venue: 'kalshi' })).toBeUndefined();
  });
});
