import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ensureTokens } from '../../../../src/store/catalog/tokens.ts';
import { listPartitions, type PartitionedTable, Partitions } from '../../../../src/store/db/partitions.ts';
import { Database, sql } from '../../../../src/store/db/tx.ts';
import { retirePartitions } from '../../../../src/store/series/retention.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aTrade } from '../../../factories/trades.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { blockedSessions, untilBlocked } from '../../../support/postgres/postgres-lock.ts';
import { LosableDatabase } from '../../workers/worker-harness.ts';

const INSERT_PRICES = sql(
  'test_insert_prices',
  `INSERT INTO price_history (token_id, received_at, as_of, price, bid)
   SELECT token_id, received_at, received_at - interval '1 second', price, 0.1
   FROM unnest($1::bigint[], $2::timestamptz[], $3::numeric[]) AS p (token_id, received_at, price)`,
);
const INSERT_BOOKS = sql(
  'test_insert_books',
  `INSERT INTO book_history (token_id, received_at, as_of, bids, asks)
   SELECT token_id, received_at, received_at, '[["0.1","5"]]', '[]' FROM unnest($1::bigint[], $2::timestamptz[]) AS p (token_id, received_at)`,
);
const PRICES = sql(
  'test_price_rows',
  `SELECT received_at, as_of, price, bid FROM price_history WHERE token_id = $1 ORDER BY received_at`,
);
const BOOKS = sql(
  'test_book_rows',
  `SELECT received_at, bids FROM book_history WHERE token_id = $1 ORDER BY received_at`,
);
const AS_OF = sql(
  'test_price_as_of',
  `SELECT price FROM price_history WHERE token_id = $1 AND received_at <= $2 ORDER BY received_at DESC LIMIT 1`,
);
const MARKET_OVER = sql(
  'test_market_over',
  `UPDATE market SET status = $2, updated_at = $3, gone_at = $4 WHERE id = $1`,
);
const READ_PRICES = sql('test_read_prices', 'SELECT count(*)::int AS rows FROM price_history');

const JANUARY = Date.UTC(2025, 0);
const FEBRUARY = Date.UTC(2025, 1);
const MARCH = Date.UTC(2025, 2);
const MID_MARCH = Date.UTC(2025, 2, 15);
const DAY_MS = 86_400_000;

const test = useTestDatabase({ poolSize: 12 });
let partitions: Partitions;
let tokens: bigint[];
beforeAll(async () => {
  tokens = [...(await ensureTokens(test.db, ['a', 'b', 'c'], 'USD')).values()];
});
beforeEach(async () => {
  for (const table of ['trade', 'price_history', 'book_history', 'observation'] as const) {
    for (const { name } of await listPartitions(test.db, table)) await test.db.dataSource.query(`DROP TABLE ${name}`);
  }
  partitions = new Partitions(test.db);
});

const retire = (
  table: PartitionedTable,
  beforeMs: number,
  over: Partial<Parameters<typeof retirePartitions>[0]> = {},
) => retirePartitions({ db: test.db, partitions, table, beforeMs, lockTimeoutMs: 20, pauseMs: 5, tries: 2, ...over });
const names = async (table: PartitionedTable) => (await listPartitions(test.db, table)).map(({ name }) => name);
const token = (index: number) => tokens[index] ?? 0n;

async function price(...rows: (readonly [token: number, atMs: number, price: string])[]): Promise<void> {
  await partitions.ensure(
    'price_history',
    rows.map(([, atMs]) => atMs),
  );
  await test.db.query(INSERT_PRICES, [
    rows.map(([index]) => token(index)),
    rows.map(([, atMs]) => new Date(atMs).toISOString()),
    rows.map(([, , value]) => value),
  ]);
}
const prices = (index: number) =>
  test.db.query<{ receivedAt: Date; asOf: Date; price: string; bid: string }>(PRICES, [token(index)]);
const priceAsOf = async (index: number, atMs: number) =>
  (await test.db.query<{ price: string }>(AS_OF, [token(index), new Date(atMs).toISOString()]))[0]?.price;

describe('retirePartitions', () => {
  it('drops only partitions that ended before the limit', async () => {
    const at = [Date.UTC(2025, 10, 15), Date.UTC(2025, 11, 15), Date.UTC(2026, 0, 15)];
    await partitions.ensure('trade', at);
    const trades = at.map((tsMs) => aTrade({ tsMs }));
    await test.db.transaction((tx) => writeTrades(tx, trades, 'USD'));
    expect(await retire('trade', Date.UTC(2026, 0, 1) - 1)).toMatchObject({ dropped: ['trade_202511'], postponed: [] });
    expect(await retire('trade', Date.UTC(2026, 0, 1))).toMatchObject({ dropped: ['trade_202512'], carried: 0 });
    expect(await retire('trade', Date.UTC(2026, 0, 1))).toEqual({ dropped: [], carried: 0, postponed: [] });
    expect(await names('trade')).toEqual(['trade_202601']);
    // A late row recreates a dropped partition.
    await partitions.ensure('trade', at);
    expect(await test.db.transaction((tx) => writeTrades(tx, trades, 'USD'))).toMatchObject({ inserted: 2 });
  });

  it('drops each partition once when several processes run at once', async () => {
    const days = Array.from({ length: 5 }, (_, day) => Date.UTC(2020, 0, 1) + day * DAY_MS);
    await partitions.ensure('observation', days);
    const all = await Promise.all(Array.from({ length: 4 }, () => retire('observation', Date.UTC(2021, 0))));
    const dropped = all.flatMap((each) => each.dropped);
    expect(new Set(dropped).size).toBe(dropped.length);
    expect([...dropped].sort()).toEqual(
      days.map((ms) => `observation_${new Date(ms).toISOString().slice(0, 10).replaceAll('-', '')}`),
    );
    expect(await names('observation')).toEqual([]);
  });

  it('stops between partitions on abort', async () => {
    await partitions.ensure('observation', [JANUARY, JANUARY + DAY_MS]);
    const result = await retire('observation', MARCH, { signal: AbortSignal.abort() });
    expect(result).toMatchObject({ dropped: [], postponed: ['observation_20250101', 'observation_20250102'] });
  });
});

describe('retirePartitions with the last row of a partition', () => {
  it('carries the row to the start of the next partition, unchanged except for its time of receipt', async () => {
    await price([0, JANUARY + 1, '0.1'], [0, JANUARY + 2, '0.2'], [1, JANUARY + 3, '0.3'], [1, FEBRUARY + 9, '0.4']);
    expect(await retire('price_history', FEBRUARY)).toEqual({
      dropped: ['price_history_202501'],
      carried: 2,
      postponed: [],
    });
    expect(await prices(0)).toEqual([
      { receivedAt: new Date(FEBRUARY), asOf: new Date(JANUARY + 2 - 1000), price: '0.2', bid: '0.1' },
    ]);
    expect((await prices(1)).map((row) => row.price)).toEqual(['0.3', '0.4']);
    expect(await priceAsOf(1, FEBRUARY + 8)).toBe('0.3');
  });

  it('keeps an existing row with the same time instead', async () => {
    await price([0, JANUARY, '0.1'], [0, FEBRUARY, '0.9']);
    expect(await retire('price_history', FEBRUARY)).toMatchObject({ carried: 0 });
    expect((await prices(0)).map((row) => row.price)).toEqual(['0.9']);
  });

  it('carries the row through all dropped partitions and gaps to the start of the readable range', async () => {
    await price([0, JANUARY + 5, '0.1'], [1, FEBRUARY + 5, '0.2'], [2, MID_MARCH, '0.3']);
    expect(await retire('price_history', MARCH)).toMatchObject({ carried: 3 });
    for (const [index, value] of ['0.1', '0.2'].entries()) expect(await priceAsOf(index, MARCH)).toBe(value);
    expect(await priceAsOf(2, MARCH)).toBeUndefined();
    expect(await names('price_history')).toEqual(['price_history_202503']);

    const june = Date.UTC(2025, 5, 20);
    expect(await retire('price_history', june)).toMatchObject({ dropped: ['price_history_202503'], carried: 3 });
    expect(await names('price_history')).toEqual(['price_history_202506']);
    for (const [index, value] of ['0.1', '0.2', '0.3'].entries()) {
      expect(await priceAsOf(index, Date.UTC(2025, 5, 1))).toBe(value);
    }
  });

  it('carries the row across a gap no further than the start of the readable range', async () => {
    await price([0, JANUARY + 5, '0.1'], [1, Date.UTC(2025, 8, 1), '0.2']);
    await retire('price_history', MID_MARCH);
    expect(await names('price_history')).toEqual(['price_history_202503', 'price_history_202509']);
    expect(await priceAsOf(0, MID_MARCH)).toBe('0.1');
  });

  it('carries no row of a market that was over or gone before the readable range', async () => {
    const cases = [
      { status: 'settled', knownMs: JANUARY, isCarried: false },
      { status: 'resolved', knownMs: JANUARY, isCarried: false },
      { status: 'resolved', knownMs: MARCH + 1, isCarried: true },
      { status: 'closed', knownMs: JANUARY, isCarried: true },
      { status: 'open', knownMs: JANUARY, goneMs: JANUARY, isCarried: false },
      { status: 'open', knownMs: JANUARY, goneMs: MARCH + 1, isCarried: true },
    ];
    const markets = await Promise.all(cases.map(() => aStoredMarket(test.db)));
    for (const [index, { status, knownMs, goneMs }] of cases.entries()) {
      const gone = goneMs === undefined ? null : new Date(goneMs).toISOString();
      await test.db.query(MARKET_OVER, [markets[index]?.pk, status, new Date(knownMs).toISOString(), gone]);
    }
    const ids = markets.map((market) => market.outcomes[0]?.tokenId ?? 0n);
    await partitions.ensure('price_history', [FEBRUARY]);
    const at = ids.map(() => new Date(FEBRUARY + 1).toISOString());
    await test.db.query(INSERT_PRICES, [ids, at, ids.map(() => '0.5')]);
    expect(await retire('price_history', MARCH)).toMatchObject({ dropped: ['price_history_202502'] });
    const left = await Promise.all(ids.map((id) => test.db.query(PRICES, [id])));
    expect(left.map((rows) => rows.length === 1)).toEqual(cases.map(({ isCarried }) => isCarried));
  });

  it('carries the last book of each day', async () => {
    await partitions.ensure('book_history', [JANUARY, JANUARY + DAY_MS]);
    await test.db.query(INSERT_BOOKS, [[token(0)], [new Date(JANUARY + 7).toISOString()]]);
    expect(await retire('book_history', JANUARY + DAY_MS)).toMatchObject({
      dropped: ['book_history_20250101'],
      carried: 1,
    });
    expect(await test.db.query(BOOKS, [token(0)])).toEqual([
      { receivedAt: new Date(JANUARY + DAY_MS), bids: [['0.1', '5']] },
    ]);
  });

  it('keeps the row when the database fails at any statement', async () => {
    await price([0, JANUARY + 5, '0.1'], [1, FEBRUARY + 5, '0.2'], [2, MARCH, '0.3']);
    for (let lost = 1; lost <= 2; lost += 1) {
      const db = new LosableDatabase(test.db.dataSource);
      db.loseAtCommit = (transaction) => transaction === lost;
      await expect(retire('price_history', MARCH, { db })).rejects.toThrow('terminating connection');
      expect(await priceAsOf(0, MARCH)).toBe('0.1');
    }
    expect(await retire('price_history', MARCH)).toMatchObject({ postponed: [] });
    expect(await names('price_history')).toEqual(['price_history_202503']);
    expect([await priceAsOf(0, MARCH), await priceAsOf(1, MARCH), await priceAsOf(2, MARCH)]).toEqual([
      '0.1',
      '0.2',
      '0.3',
    ]);
  });
});

describe('retirePartitions during a long read', () => {
  it('postpones the drop without blocking other sessions', async () => {
    await price([0, JANUARY + 5, '0.1'], [0, MARCH + 1, '0.3']);
    await test.db.transaction(async (reader) => {
      await reader.query(READ_PRICES);
      const retiring = retire('price_history', MARCH, { lockTimeoutMs: 50, tries: 3 });
      // While the drop waits for the reader, other sessions wait for the drop, at most for one lock timeout.
      let isDone = false;
      const done = retiring.finally(() => {
        isDone = true;
      });
      let reads = 0;
      while (!isDone) {
        await test.db.query(READ_PRICES);
        reads += 1;
      }
      expect(reads).toBeGreaterThan(1);
      expect(await done).toEqual({ dropped: [], carried: 1, postponed: ['price_history_202501'] });
      expect(await blockedSessions(test.db)).toBe(0);
    });
    expect((await prices(0)).map((row) => row.price)).toEqual(['0.1', '0.1', '0.3']);
    expect(await retire('price_history', MARCH)).toEqual({
      dropped: ['price_history_202501'],
      carried: 0,
      postponed: [],
    });
    expect((await prices(0)).map((row) => row.price)).toEqual(['0.1', '0.3']);
  });

  it('drops the partition when the read ends in time', async () => {
    await price([0, JANUARY + 5, '0.1'], [0, MARCH, '0.3']);
    let retiring: ReturnType<typeof retire> | undefined;
    await test.db.transaction(async (reader) => {
      await reader.query(READ_PRICES);
      retiring = retire('price_history', MARCH, { lockTimeoutMs: 10_000 });
      await untilBlocked(test.db);
    });
    expect(await retiring).toMatchObject({ dropped: ['price_history_202501'], postponed: [] });
  });

  it('carries the last rows without blocking writers', async () => {
    await price([0, JANUARY + 5, '0.1'], [0, MARCH, '0.3']);
    const other = new Database(test.db.dataSource);
    await test.db.transaction(async (reader) => {
      await reader.query(READ_PRICES);
      const retiring = retire('price_history', MARCH, { tries: 3 });
      await partitions.ensure('price_history', [Date.UTC(2025, 3)]);
      await other.query(INSERT_PRICES, [[token(1)], [new Date(MID_MARCH).toISOString()], ['0.7']]);
      expect(await retiring).toMatchObject({ dropped: [] });
    });
    expect((await prices(1)).map((row) => row.price)).toEqual(['0.7']);
  });
});
