import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ArchiveFolder } from '../../../../api/reads/archive-folder.ts';
import { ArchiveHistory } from '../../../../api/reads/archive-history.ts';
import { ArchiveReader } from '../../../../src/archive/reader.ts';
import { ARCHIVE_KIND_NAMES, type ArchiveKind, fileColumns } from '../../../../src/domain/archive/kinds.ts';
import type { TradeRecord } from '../../../../src/domain/markets/market.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { readDueDays, switchArchiveOn } from '../../../../src/store/archive/catalog.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { listPartitions, Partitions, readSeam } from '../../../../src/store/db/partitions.ts';
import { type Database, sql } from '../../../../src/store/db/tx.ts';
import { foldCandles } from '../../../../src/store/series/candles.ts';
import { readMarketTrades } from '../../../../src/store/series/market-series.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { archiveDay } from '../../../../workers/jobs/archive-day.ts';
import { maintainStorage } from '../../../../workers/jobs/maintain-storage.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { eventually } from '../../../support/eventually.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { jobContext, testConfig, wakeRecorder } from '../../workers/worker-harness.ts';
import { type Client, startTestApi, type TestApi } from '../api-harness.ts';

/** A database whose history moves to files, and one with the same writes that never archives. */
const archived = useTestDatabase();
const kept = useTestDatabase();
const log = createLogger({ process: 'test', level: 'silent' });

const NOW = Date.parse('2026-02-26T12:00:00Z');
/** Files alone have the finer candles of January then. */
const LATER = Date.parse('2026-04-01T00:00:00Z');
const FIRST = Date.parse('2026-01-29T00:00:00Z');
/** The first day that stays in Postgres alone. */
const UNARCHIVED = Date.parse('2026-02-06T00:00:00Z');
const DAY_MS = 86_400_000;
/** Random reads beside the move of each day. */
const READS_AT_ONCE = 3;
const INSERT_PRICE = sql(
  'test_seam_price',
  'INSERT INTO price_history (token_id, received_at, as_of, price, bid, ask) VALUES ($1, $2, $2, $3, $4, $5)',
);
const INSERT_BOOK = sql(
  'test_seam_book',
  'INSERT INTO book_history (token_id, received_at, as_of, bids, asks) VALUES ($1, $2, $2, $3, $4)',
);
const SNAPSHOTS = sql(
  'test_seam_snapshots',
  `INSERT INTO snapshot (token_id, ts, price, bid, ask)
   SELECT t.id, at, (at / 60 % 97 + 1) / 100.0, CASE WHEN at % 420 = 0 THEN 0.3 END, NULL
   FROM token t, generate_series($1::bigint, $2::bigint, 1140) AS at WHERE t.mint LIKE 'm%' AND at % 7 <> 0`,
);
const FORMER_VERSIONS = sql(
  'test_seam_versions',
  `INSERT INTO market_version (market_id, known_from, known_until, facts)
   SELECT m.id, v.at, v.at + interval '2 days', to_jsonb(m) - ARRAY['id', 'venue', 'venue_market_id', 'content_hash', 'updated_at', 'search',
       'resolution_turn', 'gone_at', 'fee_id']
     || jsonb_build_object('title', 'Will it rain on ' || v.at || '?', 'payouts', '[]'::jsonb, 'outcomes', (
          SELECT jsonb_agg(jsonb_build_array(t.mint, o.label) ORDER BY o.ordinal) FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = m.id))
   FROM market m, (SELECT m.id, m.updated_at - n * interval '2 days' AS at FROM market m, generate_series(1, 2) AS n) v WHERE v.id = m.id`,
);
const AGE_TOKENS = sql('test_seam_age', 'UPDATE token SET created_at = $1');
const AGE_MARKETS = sql('test_seam_age_markets', 'UPDATE market SET updated_at = $1');
const RESOLVE = sql(
  'test_seam_resolve',
  `UPDATE market SET status = 'resolved', updated_at = $2 WHERE venue_market_id = $1`,
);
const MARKS = sql('test_seam_marks', `DELETE FROM mark WHERE stage = 'fold-candles' RETURNING id, key, detail`);
const AGE_FILES = sql('test_seam_age_files', `UPDATE archive_file SET made_at = made_at - interval '2 hours'`);
const CORRECTIONS = sql('test_seam_corrections', 'SELECT count(*)::int AS count FROM archive_correction');

const TOKEN = sql('test_seam_token', 'SELECT id FROM token WHERE mint = $1');
const FIRST_FILE = sql(
  'test_seam_first_file',
  `SELECT file, date::text AS date FROM archive_file WHERE kind = 'trades' AND superseded_at IS NULL AND file IS NOT NULL ORDER BY date LIMIT 1`,
);
const MERGED_FILES = sql(
  'test_seam_merged_files',
  `SELECT file, date::text AS date FROM archive_file
   WHERE kind = 'trades' AND superseded_at IS NULL AND (revision > 1 OR date < '2026-01-29') AND file IS NOT NULL`,
);
const NOTE = sql(
  'test_seam_note',
  `INSERT INTO archive_change (kind, token_id, date, xid) VALUES ('trades', $1, $2::date, pg_current_xact_id())`,
);
const NOTES = sql(
  'test_seam_notes',
  `SELECT count(*)::int AS count FROM archive_change c
   WHERE kind = 'trades' AND date < (SELECT (until AT TIME ZONE 'UTC')::date FROM archive_seam WHERE kind = 'trades')`,
);
const FINER_CANDLES = sql(
  'test_seam_finer_candles',
  `SELECT count(*)::int AS count FROM candle
   WHERE interval_seconds < 900 AND to_timestamp(bucket) < (SELECT until FROM archive_seam WHERE kind = 'candles')`,
);
const SET_MOVES_AT = sql(
  'test_seam_moves_at',
  `UPDATE archive_seam SET moves_at = clock_timestamp() + $1::interval WHERE kind = 'candles'`,
);
const FORMER_CANDLE = sql(
  'test_seam_former_candle',
  `INSERT INTO candle (token_id, interval_seconds, bucket, open, high, low, close, volume, notional, trades) VALUES ($1, 60, $2, 1, 1, 1, 1, 1, 1, 1)`,
);
/** The databases receive a trade at different moments. */
const SET_RECEIPTS = ['trade', 'archive_correction'].map((table) =>
  sql(
    `test_seam_receipts_${table}`,
    `UPDATE ${table} SET received_at = ts + interval '2.9 seconds' WHERE received_at > ts + interval '1 day'`,
  ),
);
const CANDLE_FILES = sql(
  'test_seam_candle_files',
  `SELECT sum(f.rows)::int AS rows, max(f.revision) AS revision FROM archive_file f JOIN archive_seam s ON s.kind = f.kind AND f.date < s.until::date
   WHERE f.kind = 'candles' AND f.superseded_at IS NULL AND f.dropped_at IS NOT NULL`,
);
const SET_SCHEMA = sql('test_seam_schema', 'UPDATE archive_file SET schema_version = $2 WHERE file = $1');

let dir = '';
let reader: ArchiveReader;
let apis: { archived: TestApi; kept: TestApi };
let clients: { archived: Client; kept: Client };
const MARKETS = ['m1', 'm2', 'quiet'];

const variables = () => ({
  ARCHIVE_DIR: dir,
  ARCHIVE_KEEP_DAYS: '20',
  RETENTION_PRICE_HISTORY_DAYS: '20',
  RETENTION_BOOK_HISTORY_DAYS: '20',
});
const context = (nowMs = NOW) =>
  jobContext({
    db: archived.db,
    config: testConfig(archived.url, variables()),
    producer: wakeRecorder(),
    now: () => nowMs,
  });

async function both<T>(work: (db: Database) => Promise<T>): Promise<[T, T]> {
  return [await work(archived.db), await work(kept.db)];
}

/** Stores trades as the poller does, and folds them. */
async function store(db: Database, trades: readonly TradeRecord[]): Promise<void> {
  const partitions = new Partitions(db);
  await partitions.ensure(
    'trade',
    trades.map(({ tsMs }) => tsMs),
  );
  await partitions.ensureAroundNow('observation');
  await db.transaction(async (tx) => {
    await writeTrades(tx, trades, 'USDC');
    for (const statement of SET_RECEIPTS) await tx.query(statement);
  });
  await db.transaction(async (tx) => {
    await foldCandles(tx, await tx.query(MARKS));
  });
}

let made = 0;
function aTrade(marketId: string, tsMs: number, values: Partial<TradeRecord> = {}): TradeRecord {
  made += 1;
  return {
    outcomeId: `${marketId}:${made % 2 ? 'yes' : 'no'}`,
    tradeId: `t${String(made).padStart(6, '0')}`,
    tsMs,
    price: decimal(((made % 97) + 1) / 100),
    size: decimal((made % 13) + 0.5),
    side: made % 3 === 0 ? 'buy' : 'sell',
    ordinal: made % 2,
    ...values,
  } as TradeRecord;
}

/** Archives the days that are due, with the work of `beside` while each of them moves. */
async function archiveAll(
  kinds: readonly ArchiveKind[] = ['trades', 'candles', 'prices', 'books'],
  beside: (move: () => Promise<unknown>) => Promise<void> = async (move) => void (await move()),
): Promise<void> {
  const pairs = kinds.map((kind) => ({ kind, venue: 'polymarket' }));
  for (;;) {
    const days = await readDueDays(archived.db, { pairs, afterHours: 1, limit: 200 });
    const past = days.filter(({ date }) => Date.parse(date) < UNARCHIVED);
    if (past.length === 0) return;
    for (const day of past) await beside(() => archiveDay.run(day, context()));
  }
}

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'seam-'));
  await switchArchiveOn(archived.db, ARCHIVE_KIND_NAMES);
  for (const marketId of MARKETS) await both((db) => aStoredMarket(db, { marketId }));
  await both((db) => db.query(AGE_TOKENS, [new Date(FIRST).toISOString()]));
  // Retention carries no value of a market that is over.
  await both((db) => db.query(AGE_MARKETS, [new Date(FIRST + 4 * DAY_MS).toISOString()]));
  await both((db) => db.query(FORMER_VERSIONS));
  await both((db) => db.query(SNAPSHOTS, [FIRST / 1000, UNARCHIVED / 1000]));
  await both((db) => db.query(RESOLVE, ['quiet', new Date(FIRST + 3 * DAY_MS).toISOString()]));
  const trades = [
    // Several trades share a moment, some days have none.
    ...Array.from({ length: 900 }, (_, n) => aTrade(n % 3 ? 'm1' : 'm2', FIRST + Math.floor(n / 4) * 4_900_000)),
    aTrade('m1', FIRST + 2 * DAY_MS, { price: decimal(`0.${'1'.repeat(25)}`), size: decimal(`1${'0'.repeat(22)}`) }),
    aTrade('quiet', FIRST + DAY_MS),
  ];
  await both((db) => store(db, trades));
  for (let n = 0; n < 150; n++) {
    const at = new Date(FIRST + n * 7_300_000);
    await both(async (db) => {
      await new Partitions(db).ensure('price_history', [at.getTime()]);
      await new Partitions(db).ensure('book_history', [at.getTime()]);
      const market = MARKETS[n % 7 === 6 ? 2 : n % 2] ?? '';
      const [token] = await db.query<{ id: bigint }>(TOKEN, [`${market}:${n % 3 ? 'yes' : 'no'}`]);
      const price = `0.${String((n % 89) + 10)}`;
      await db.query(INSERT_PRICE, [token?.id, at.toISOString(), price, n % 2 ? price : null, null]);
      await db.query(INSERT_BOOK, [token?.id, at.toISOString(), JSON.stringify([[price, '10']]), '[]']);
    });
  }
  reader = new ArchiveReader(dir);
  const start = async (db: typeof archived, past: boolean) =>
    startTestApi(
      {
        history: past
          ? new ArchiveHistory({ db: db.db, folder: new ArchiveFolder(dir, log), reader, log })
          : new ArchiveHistory({ db: db.db, log }),
      },
      { beside: { databaseUrl: db.url } },
    );
  apis = { archived: await start(archived, true), kept: await start(kept, false) };
  clients = { archived: await apis.archived.client(), kept: await apis.kept.client() };
});
afterAll(async () => {
  await Promise.all([apis.archived.close(), apis.kept.close(), reader.close()]);
  await rm(dir, { recursive: true, force: true });
});

/** The answers of both to one request; a cursor belongs to the database that made it. */
async function compare(path: string): Promise<{ status: number; body: { data?: unknown } }> {
  const [one, other] = await Promise.all([clients.archived.market(path), clients.kept.market(path)]);
  expect([one.status, one.body.data], path).toEqual([other.status, other.body.data]);
  return one;
}

async function compareTape(query: string): Promise<number> {
  const cursors: (string | null)[] = [null, null];
  let trades = 0;
  for (let page = 0; page < 200; page++) {
    const answers = await Promise.all(
      [clients.archived, clients.kept].map((client, n) =>
        client.market(`/v1/polymarket/markets/${query}${cursors[n] ? `&cursor=${cursors[n]}` : ''}`),
      ),
    );
    for (const { status, body } of answers) expect(status, `${query}: ${JSON.stringify(body)}`).toBe(200);
    expect(answers[0]?.body.data, query).toEqual(answers[1]?.body.data);
    trades += ((answers[0]?.body.data ?? []) as unknown[]).length;
    for (const [n, answer] of answers.entries())
      cursors[n] = (answer.body.meta['next_cursor'] ?? null) as string | null;
    expect(cursors[0] === null).toBe(cursors[1] === null);
    if (cursors[0] === null) return trades;
  }
  throw new Error('the tape does not end');
}

const seconds = (ms: number) => Math.floor(ms / 1000);
const moment = fc.integer({ min: seconds(FIRST - DAY_MS), max: seconds(NOW) });
const interval = fc.constantFrom<[string, number]>(['1m', 60], ['5m', 300], ['15m', 900], ['1h', 3_600]);
/** A read of intervals, of a market or of one outcome; `route` ends with the name of the interval's parameter. */
const seriesOf = (route: string) =>
  fc
    .tuple(
      fc.constantFrom(...MARKETS),
      fc.constantFrom('', 'yes', 'no'),
      interval,
      moment,
      fc.integer({ min: 1, max: 400 }),
    )
    .map(
      ([market, outcome, [name, length], start, count]) =>
        `${market}/${route}=${name}&start=${start}&end=${start + count * length}${outcome && `&outcome_id=${market}:${outcome}`}`,
    );
const request = fc.oneof(
  fc
    .tuple(fc.constantFrom(...MARKETS), moment, moment, fc.constantFrom('asc', 'desc'), fc.integer({ min: 1, max: 60 }))
    .map(
      ([market, a, b, direction, limit]) =>
        `${market}/trades?start=${Math.min(a, b)}&end=${Math.max(a, b) + 1}&direction=${direction}&limit=${limit}`,
    ),
  fc
    .tuple(fc.constantFrom(...MARKETS), fc.constantFrom('', '/prices'), moment)
    .map(([market, route, at]) => `${market}${route}?as_of=${at}`),
  seriesOf('snapshots?interval'),
  fc
    .tuple(fc.constantFrom(...MARKETS), fc.constantFrom('yes', 'no'), moment)
    .map(([market, outcome, at]) => `${market}/orderbook?outcome_id=${market}:${outcome}&as_of=${at}`),
  fc
    .tuple(
      fc.constantFrom(...MARKETS),
      fc.constantFrom('', 'previous'),
      interval,
      moment,
      fc.integer({ min: 1, max: 400 }),
    )
    .map(
      ([market, fill, [name, length], start, count]) =>
        `${market}/candles?interval=${name}&start=${start}&end=${start + count * length}${fill && `&fill=${fill}`}`,
    ),
  seriesOf('volume?window'),
);

async function compareRandom(numRuns: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(request, async (query) => {
      await compare(`/v1/polymarket/markets/${query}`);
    }),
    { numRuns },
  );
}

/** Compares random requests again and again: from the begin of the work until its end. */
async function compareDuring(work: () => Promise<unknown>, numRuns: number): Promise<void> {
  let isMoving = true;
  const moved = work().finally(() => {
    isMoving = false;
  });
  let during = 0;
  const reading = async () => {
    while (isMoving || during === 0) {
      during += 1;
      await compareRandom(numRuns);
    }
  };
  await Promise.all([moved, reading()]);
}

/** Reads hold the partition for moments, so a drop can need a later run. */
async function dropPartition(name: string): Promise<void> {
  await eventually(
    async () => {
      await maintainStorage.run({}, context());
      return (await listPartitions(archived.db, 'trade')).some((partition) => partition.name === name);
    },
    (isThere) => !isThere,
  );
}

describe('reads across the seam of the archive', () => {
  it('equal those of a database that never archived, before, while and after its partitions are dropped', async () => {
    await archiveAll(undefined, (move) => compareDuring(move, READS_AT_ONCE));
    await compareDuring(() => dropPartition('trade_202601'), 10);
    const partitions = await listPartitions(archived.db, 'trade');
    expect(partitions.map(({ name }) => name)).not.toContain('trade_202601');
    expect(await readSeam(archived.db, 'trades')).toBe(Date.parse('2026-02-01T00:00:00Z'));
    expect(await readSeam(archived.db, 'books')).toBe(Date.parse('2026-02-06T00:00:00Z'));
    await compareRandom(75);
    const at = FIRST / 1000 + 86_400;
    for (const query of ['', '/prices'].map((route) => `m1${route}?as_of=${at}`)) {
      expect((await compare(`/v1/polymarket/markets/${query}`)).status, query).toBe(200);
    }
    const snapshots = await compare(`/v1/polymarket/markets/m1/snapshots?interval=15m&start=${at}&end=${at + 36_000}`);
    expect(snapshots.body.data).toHaveLength(40);
    for (const direction of ['asc', 'desc']) {
      expect(await compareTape(`m1/trades?direction=${direction}&limit=97`)).toBeGreaterThan(500);
      expect(await compareTape(`m2/trades?direction=${direction}&limit=100&outcome_id=m2:yes`)).toBeGreaterThan(100);
    }
  });

  it('equal them before, while and after Postgres drops the finer candles that files have', async () => {
    // API processes of the former release may still run.
    await archived.db.query(SET_MOVES_AT, ['1 hour']);
    await maintainStorage.run({}, context(LATER));
    expect(await readSeam(archived.db, 'candles')).toBe(Date.parse('2026-01-12T00:00:00Z'));
    await archived.db.query(SET_MOVES_AT, ['-1 hour']);
    await maintainStorage.run({}, context(LATER));
    expect(await readSeam(archived.db, 'candles')).toBe(Date.parse('2026-02-01T00:00:00Z'));
    const [before] = await archived.db.query<{ count: number }>(FINER_CANDLES);
    expect(before?.count).toBeGreaterThan(300);
    await archiveAll(undefined, (move) => compareDuring(move, READS_AT_ONCE));
    expect(await archived.db.query(FINER_CANDLES)).toEqual([{ count: 0 }]);
    expect(await archived.db.query(CANDLE_FILES)).toEqual([{ rows: before?.count, revision: 1 }]);
    await compareRandom(100);
  });

  it('have late trades of a dropped day at once, and after its file has them; a repeated trade has no effect', async () => {
    const late = Date.parse('2026-01-29T05:00:00Z');
    const minute = aTrade('m1', late + 10_000);
    const trades = [aTrade('m1', late), minute, aTrade('m2', Date.parse('2026-01-30T00:00:00Z')), minute];
    const repeated: TradeRecord[] = (
      (await clients.kept.market('/v1/polymarket/markets/m1/trades?direction=asc&limit=50')).body.data as {
        trade_id: string;
        outcome_id: string;
        timestamp: number;
        price: number;
        size: number;
      }[]
    ).map((trade) => ({
      outcomeId: trade.outcome_id,
      tradeId: trade.trade_id,
      tsMs: trade.timestamp * 1000,
      price: decimal(trade.price),
      size: decimal(trade.size),
    })) as TradeRecord[];
    await both((db) => store(db, [...trades, ...repeated]));
    expect((await listPartitions(archived.db, 'trade')).map(({ name }) => name)).not.toContain('trade_202601');
    expect(await archived.db.query(CORRECTIONS)).not.toEqual([{ count: 0 }]);
    for (const direction of ['asc', 'desc']) await compareTape(`m1/trades?direction=${direction}&limit=97`);
    await archived.db.query(AGE_FILES);
    // Candles have the late trades with the file of their day.
    const readTapes = async () => {
      for (const direction of ['asc', 'desc']) await compareTape(`m1/trades?direction=${direction}&limit=97`);
    };
    await Promise.all([archiveAll(['trades']), readTapes()]);
    expect(await archived.db.query(CORRECTIONS)).toEqual([{ count: 0 }]);
    for (const direction of ['asc', 'desc']) await compareTape(`m1/trades?direction=${direction}&limit=97`);
    await compareRandom(50);
    for (const interval of ['1m', '5m', '1h', '1d']) {
      const span = interval === '1m' ? DAY_MS : 4 * DAY_MS;
      const range = `start=${seconds(late - 3_600_000)}&end=${seconds(late - 3_600_000 + span)}`;
      await compare(`/v1/polymarket/markets/m1/candles?interval=${interval}&${range}`);
      await compare(`/v1/polymarket/markets/m1/volume?window=${interval}&${range}`);
    }
    const [changed] = await archived.db.query<{ count: number }>(FINER_CANDLES);
    expect(changed?.count).toBeGreaterThan(0);
    await archiveAll();
    expect(await archived.db.query(FINER_CANDLES)).toEqual([{ count: 0 }]);
    expect(await archived.db.query(CANDLE_FILES)).toEqual([{ rows: expect.any(Number), revision: 2 }]);
    await compareRandom(50);
  });

  it('have a trade before the first archived day, whose file has no columns but those of the schema', async () => {
    const early = aTrade('m1', Date.parse('2026-01-27T10:00:00Z'));
    await both((db) => store(db, [early]));
    for (const direction of ['asc', 'desc']) await compareTape(`m1/trades?direction=${direction}&limit=97`);
    await archiveAll();
    expect(await archived.db.query(CORRECTIONS)).toEqual([{ count: 0 }]);
    for (const direction of ['asc', 'desc']) await compareTape(`m1/trades?direction=${direction}&limit=97`);
    const range = `start=${seconds(early.tsMs) - 3_600}&end=${seconds(early.tsMs) + 3_600}`;
    await compare(`/v1/polymarket/markets/m1/candles?interval=1m&${range}`);
    const merged = await archived.db.query<{ file: string; date: string }>(MERGED_FILES);
    expect(merged.length).toBeGreaterThan(1);
    for (const { file, date } of merged) {
      const path = join(dir, 'trades', 'venue=polymarket', `date=${date}`, file);
      const columns = await reader.run(`DESCRIBE SELECT * FROM read_parquet('${path}', hive_partitioning = false)`);
      expect(columns.map((column) => column['column_name'])).toEqual(fileColumns('trades').map(({ name }) => name));
    }
  });

  it('have the trades that a process of the former release writes into a dropped partition, which goes again', async () => {
    const [token] = await archived.db.query<{ id: bigint }>(TOKEN, ['m1:yes']);
    const at = '2026-01-30T09:00:00Z';
    const make = sql('test_seam_make', 'SELECT create_partition($1, $2)');
    const insert = sql(
      'test_seam_former',
      `INSERT INTO trade (token_id, ts, trade_id, price, size, side, ordinal) VALUES ($1, $2, 'former', 0.5, 3, 1, 0) RETURNING trade_id`,
    );
    await archived.db.query(make, ['trade', at]);
    expect(await archived.db.query(insert, [token?.id, at])).toEqual([]);
    await kept.db.query(insert, [token?.id, at]);
    const minute = Date.parse(at) / 1000;
    // It would fold coarser candles without the finer ones that files have.
    await expect(archived.db.query(FORMER_CANDLE, [token?.id, minute])).rejects.toThrow('files of the archive have');
    for (const direction of ['asc', 'desc']) await compareTape(`m1/trades?direction=${direction}&limit=97`);
    await archived.db.query(AGE_FILES);
    await archiveAll();
    await maintainStorage.run({}, context());
    expect((await listPartitions(archived.db, 'trade')).map(({ name }) => name)).not.toContain('trade_202601');
    for (const direction of ['asc', 'desc']) await compareTape(`m1/trades?direction=${direction}&limit=97`);
  });

  it('have the trades of a day that was archived before the market of their outcome was known', async () => {
    const day = { kind: 'trades', venue: 'polymarket', date: '2026-02-20' } as const;
    const trade = aTrade('late', Date.parse(`${day.date}T10:00:00Z`), { outcomeId: 'late:yes' });
    await both((db) => store(db, [trade]));
    expect(await archiveDay.run(day, context())).toMatchObject({ rows: 0 });
    const record = aMarketRecord({ marketId: 'late' });
    await both((db) => db.transaction((tx) => writeMarkets(tx, 'polymarket', 'USDC', [record], NOW)));
    await archived.db.query(AGE_FILES);
    const due = await readDueDays(archived.db, { pairs: [day], afterHours: 1, limit: 200 });
    expect(due).toContainEqual(day);
    expect(await archiveDay.run(day, context())).toMatchObject({ rows: 1 });
    await compareTape('late/trades?direction=asc&limit=10');
  });

  it('stay the same when a process died between the removal of corrections and that of their note', async () => {
    const [token] = await archived.db.query<{ id: bigint }>(TOKEN, ['m1:yes']);
    const [file] = await archived.db.query<{ date: string }>(FIRST_FILE);
    await archived.db.query(NOTE, [token?.id, file?.date]);
    const day = { kind: 'trades', venue: 'polymarket', date: file?.date ?? '' } as const;
    expect(await archiveDay.run(day, context())).toMatchObject({ skipped: 'unchanged' });
    expect(await archived.db.query(NOTES)).toEqual([{ count: 0 }]);
    await compareTape('m1/trades?direction=asc&limit=100');
  });

  it('get 503 with the cause when a file is gone, changed or newer, and on a server without the archive', async () => {
    const path = '/v1/polymarket/markets/m1/trades?direction=asc&limit=5';
    const causeOf = async (client: Client) => {
      const { status, body } = await client.market(path);
      return [status, body.error?.code, body.error?.details?.[0]?.message];
    };
    const [file] = await archived.db.query<{ file: string; date: string }>(FIRST_FILE);
    const place = join(dir, 'trades', 'venue=polymarket', `date=${file?.date}`, String(file?.file));
    const bytes = await readFile(place);
    await rename(place, `${place}.away`);
    expect(await causeOf(clients.archived)).toEqual([503, 'archive_unavailable', 'no_file']);
    await writeFile(place, bytes.subarray(0, bytes.length - 1));
    expect(await causeOf(clients.archived)).toEqual([503, 'archive_unavailable', 'other_size']);
    const changed = Buffer.from(bytes);
    changed[100] = (changed[100] ?? 0) ^ 1;
    await writeFile(place, changed);
    expect(await causeOf(clients.archived)).toEqual([503, 'archive_unavailable', 'other_content']);
    await rename(`${place}.away`, place);
    expect(await causeOf(clients.archived)).toEqual([200, undefined, undefined]);
    await archived.db.query(SET_SCHEMA, [file?.file, 99]);
    expect(await causeOf(clients.archived)).toEqual([503, 'archive_unavailable', 'newer_schema']);
    await archived.db.query(SET_SCHEMA, [file?.file, 1]);
    const without = await startTestApi({}, { beside: { databaseUrl: archived.url } });
    try {
      expect(await causeOf(await without.client())).toEqual([503, 'archive_unavailable', 'off']);
    } finally {
      await without.close();
    }
  });

  it('read a file again where a later revision moved it while the read waited for its turn', async () => {
    const [file] = await archived.db.query<{ file: string; date: string }>(FIRST_FILE);
    const place = join(dir, 'trades', 'venue=polymarket', `date=${file?.date}`, String(file?.file));
    const former = join(dir, '.former', String(file?.file));
    await mkdir(join(dir, '.former'), { recursive: true });
    const statements: string[] = [];
    class WaitingReader extends ArchiveReader {
      override async run(statement: string) {
        if (statements.push(statement) === 1) await rename(place, former);
        return super.run(statement);
      }
    }
    const own = new WaitingReader(dir);
    const history = new ArchiveHistory({ db: archived.db, folder: new ArchiveFolder(dir, log), reader: own, log });
    try {
      const query = { range: {}, direction: 'asc', limit: 5 } as const;
      const read = await readMarketTrades(archived.db, { venues: ['polymarket'], marketId: 'm1' }, query);
      if (!read) throw new TypeError('the market is stored');
      const rows = await history.withPast(read, { ...query, outcomeId: undefined });
      const { body } = await clients.kept.market('/v1/polymarket/markets/m1/trades?direction=asc&limit=6');
      expect(rows.map(({ tradeId }) => tradeId)).toEqual(
        (body.data as { trade_id: string }[]).map((trade) => trade.trade_id),
      );
      expect(statements[0]).toContain(place);
      expect(statements[1]).toContain(former);
    } finally {
      await own.close();
      await rename(former, place);
    }
  });

  it('end at the deadline, and the next read starts a new process', async () => {
    const own = new ArchiveReader(dir);
    try {
      const endless = 'SELECT sum(hash(a.range + b.range)) FROM range(1000000000) a, range(1000000) b';
      await expect(own.run(endless, 1_000)).rejects.toMatchObject({ code: 'archive_busy' });
      expect(await own.run('SELECT 1 AS one')).toEqual([{ one: 1 }]);
      await expect(own.run('SELECT nothing')).rejects.toMatchObject({ code: 'archive_failed' });
      expect(await own.run('SELECT 2 AS two')).toEqual([{ two: 2 }]);
    } finally {
      await own.close();
    }
  });
});
