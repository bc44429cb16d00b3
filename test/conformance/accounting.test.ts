import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { BookRecord, MarketRecord, PriceRecord, TradeRecord } from '../../src/domain/markets/market.ts';
import type { VenueName } from '../../src/domain/markets/venue.ts';
import { Partitions } from '../../src/store/db/partitions.ts';
import { sql } from '../../src/store/db/tx.ts';
import { type TestDatabase, useTestDatabase } from '../support/postgres/database.ts';
import { listRecordedFiles, printTable, reportedFiles, venueDataFolder } from '../support/venue-data.ts';
import { storePage } from './store-page.ts';
import { NOT_APPLICABLE, WALLET_READERS } from './venue-adapter/recordings/other.ts';
import { RECORDED_VENUES, type RecordedVenue } from './venue-adapter/recordings/venues.ts';
import type { ParsedRecords, PollKind, RecordedFile } from './venue-adapter/venue-under-test.ts';

/**
 * Every recorded file is read or named with a reason, and every record of a file that is read becomes a row, a duplicate, a rejection or a
 * skip.
 */
const folder = venueDataFolder('.');

/** Documents each skip reason. */
const VENUES_PAGE = readFileSync('docs/venues.md', 'utf8');

interface Account {
  received: number;
  rows: number;
  duplicates: number;
  rejected: number;
  skipped: number;
}

const COUNTS = sql(
  'test_accounted_rows',
  `SELECT (SELECT count(*)::int FROM market) AS markets, (SELECT count(*)::int FROM trade) AS trades,
     (SELECT count(*)::int FROM latest_price) AS prices, (SELECT count(*)::int FROM book_latest) AS books`,
);

/** The key by which a record equals a stored one. */
/** Paths below the folder of all recordings: a venue's `feeds/` are in a folder of their own. */
function pathOf(venue: string, file: string): string {
  if (file.startsWith('reports/')) return file;
  return file.startsWith('feeds/') ? file.replace('feeds/', `feeds/${venue}/`) : `${venue}/${file}`;
}

const KEYS: Readonly<Record<PollKind, (record: unknown) => string>> = {
  markets: (record) => (record as MarketRecord).marketId,
  trades: (record) => {
    const { outcomeId, tsMs, tradeId } = record as TradeRecord;
    return [outcomeId, tsMs, tradeId].join(' ');
  },
  prices: (record) => (record as PriceRecord).outcomeId,
  books: (record) => (record as BookRecord).outcomeId,
};

/** The records of a file, counted like `ingest_received_total`: an accepted row counts once for each of its records. */
function receivedOf({ recordsPerRow }: RecordedVenue, { kind, records }: RecordedFile, batch: ParsedRecords): number {
  const accepted = records.length - batch.rejected.length - (batch.skipped?.length ?? 0);
  return records.length + ((recordsPerRow?.[kind] ?? 1) - 1) * accepted;
}

describe.skipIf(folder === undefined)('the account of all recordings', () => {
  const root = folder ?? '.';
  /** All recordings by name: those of the venues' folders and the reports beside them. */
  const paths = new Map([
    ...(folder === undefined ? [] : listRecordedFiles(root)).map((file) => [file, join(root, file)] as const),
    ...(folder === undefined ? [] : reportedFiles()).map(({ name, path }) => [name, path] as const),
  ]);

  it('names every recorded file once: as read, or as not applicable with a reason', () => {
    const named = new Map<string, string[]>();
    const add = (file: string, as: string) => named.set(file, [...(named.get(file) ?? []), as]);
    for (const { name, recordings } of RECORDED_VENUES) {
      const { files, unread } = recordings() ?? { files: [], unread: new Map() };
      for (const file of new Set(files.map((each) => each.file))) add(pathOf(name, file), 'read');
      for (const [file, reason] of unread) {
        const isWallet = WALLET_READERS.some(({ pattern }) => pattern.test(`${name}/${file}`));
        expect(reason, file).not.toBe('unaccounted');
        if (!isWallet) add(`${name}/${file}`, reason);
      }
    }
    const all = [...paths.keys()];
    for (const file of all) {
      if (WALLET_READERS.some(({ pattern }) => pattern.test(file))) add(file, 'read');
      for (const { pattern, reason } of NOT_APPLICABLE) if (pattern.test(file)) add(file, reason);
    }
    expect(all.length).toBeGreaterThan(200);
    expect(all.filter((file) => named.get(file)?.length !== 1).map((file) => [file, named.get(file)])).toEqual([]);
    expect([...named.keys()].filter((file) => !all.includes(file))).toEqual([]);
    for (const { pattern } of NOT_APPLICABLE)
      expect(
        all.some((file) => pattern.test(file)),
        `${pattern}`,
      ).toBe(true);
  });

  it('leaves no remainder among the records of wallets', () => {
    for (const { pattern, read, parse } of WALLET_READERS) {
      const files = [...paths].filter(([file]) => pattern.test(file));
      expect(files.length, `${pattern}`).toBeGreaterThan(0);
      for (const [file, path] of files) {
        const rows = read(path);
        const { records, rejected } = parse(rows);
        expect(rows.length, file).toBeGreaterThan(0);
        expect(records.length + rejected.length, file).toBe(rows.length);
      }
    }
  });

  describe.each(RECORDED_VENUES)('of $name', (venue) => {
    const test = useTestDatabase();
    let partitions: Partitions;
    beforeAll(async () => {
      partitions = new Partitions(test.db);
      for (const table of ['price_history', 'book_history', 'observation'] as const)
        await partitions.ensureAroundNow(table);
    });

    it('leaves no remainder: each record is a row, a duplicate, a rejection or a skip', async () => {
      const { files = [] } = venue.recordings() ?? {};
      const table: Record<string, string | number>[] = [];
      for (const [kind, parse] of Object.entries(venue.parse) as [PollKind, (typeof venue.parse)[PollKind]][]) {
        const account: Account = { received: 0, rows: 0, duplicates: 0, rejected: 0, skipped: 0 };
        const stored = new Set<string>();
        const before = await countOf(test, kind);
        for (const recorded of files.filter((each) => each.kind === kind)) {
          const batch = parse?.(recorded.records, recorded.nowMs) ?? { records: [], rejected: [] };
          await accountFor(recorded, batch, account, stored);
        }
        table.push({ kind, ...account });
        expect(account.received, kind).toBeGreaterThan(0);
        expect(account.received, kind).toBe(account.rows + account.duplicates + account.rejected + account.skipped);
        // The tables hold each record once. Payouts of resolved markets are prices as well.
        const gained = (await countOf(test, kind)) - before;
        if (kind === 'prices') expect(gained, kind).toBeLessThanOrEqual(stored.size);
        else expect(gained, kind).toBe(stored.size);
      }
      printTable(`${venue.name}: account of the recordings`, table);

      async function accountFor(recorded: RecordedFile, batch: ParsedRecords, account: Account, keys: Set<string>) {
        const { file, kind, nowMs } = recorded;
        const page = { venue: venue.name as VenueName, kind, nowMs };
        const fresh = new Set(batch.records.map(KEYS[kind]).filter((key) => !keys.has(key)));
        const { written, rejected } = await storePage(test.db, partitions, page, batch);
        // A new record is always a row. A known one is a row only where records may change: never among trades.
        expect(written, file).toBeGreaterThanOrEqual(kind === 'prices' ? 0 : fresh.size);
        if (kind === 'trades') expect(written, file).toBe(fresh.size);
        const again = await storePage(test.db, partitions, page, { records: batch.records, rejected: [] });
        expect(again.written, `${file} again`).toBe(0);
        for (const key of fresh) keys.add(key);
        account.received += receivedOf(venue, recorded, batch);
        account.rows += written;
        account.duplicates += batch.records.length - (rejected.length - batch.rejected.length) - written;
        account.rejected += rejected.length;
        account.skipped += batch.skipped?.length ?? 0;
        for (const reason of batch.skipped ?? []) expect(VENUES_PAGE, `${file}: reason`).toContain(`\`${reason}\``);
      }
    });
  });
});

async function countOf(test: TestDatabase, kind: PollKind): Promise<number> {
  const [counts] = await test.db.query<Record<PollKind, number>>(COUNTS);
  return counts?.[kind] ?? 0;
}
