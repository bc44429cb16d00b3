import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { checkArchive } from '../../src/archive/check/check-archive.ts';
import { folderOf } from '../../src/domain/archive/file.ts';
import { addDecimals, decimal } from '../../src/domain/values/decimal.ts';
import { readDueDays, readPresentFile, readUndescribedDays } from '../../src/store/archive/catalog.ts';
import { listPartitions, Partitions, readSeam } from '../../src/store/db/partitions.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { insertMarksSql, minuteOf } from '../../src/store/marks/detail.ts';
import { aStoredMarket } from '../factories/stored-market.ts';
import { eventually } from '../support/eventually.ts';
import { OddswireProcess } from '../support/processes/system.ts';
import { BACKENDS, isAvailable } from '../support/redis/queue-backends.ts';
import { hasS3 } from '../support/s3/server.ts';
import {
  foldLedger,
  inOrder,
  readCandles,
  readFiles,
  readLedger,
  readTape,
  storeLateTrade,
} from './campaign/archive-reads.ts';
import { startArchiveSystem } from './campaign/archive-system.ts';
import { SEED, streamOf } from './campaign/seed.ts';

const KILLS = Math.ceil(Number(process.env['FAULTS_KILLS'] ?? 100) / BACKENDS.length);
const DAYS = 12;
const DAY_MS = 86_400_000;
/** Postgres keeps finer candles at least for so long. */
const KEEP_DAYS = 45;
const KEPT_FROM = new Date(Date.now() - KEEP_DAYS * DAY_MS);
/** The days lie around the end of the last month whose partition is dropped when all its days are archived. */
const SEAM_MS = Date.UTC(KEPT_FROM.getUTCFullYear(), KEPT_FROM.getUTCMonth());
const FIRST_MS = SEAM_MS - (DAYS / 2) * DAY_MS;
const WITHIN = { timeoutMs: 300_000, everyMs: 100 };
const PAIRS = (['trades', 'candles', 'prices'] as const).map((kind) => ({ kind, venue: 'polymarket' }));

const FILL = [
  sql(
    'test_fill_trades',
    `INSERT INTO trade (token_id, ts, trade_id, price, size, side, ordinal)
     SELECT $1, to_timestamp($2::float8 / 1000) + n * interval '61 seconds 7 microseconds', 'trade ' || n, 1.0 / (n % 97 + 1), n + 0.1234567890123456789, 1, n % 3
     FROM generate_series(0, $3::int * 1416 - 1) AS n`,
  ),
  sql(
    'test_fill_candles',
    `INSERT INTO candle (token_id, interval_seconds, bucket, open, high, low, close, volume, notional, trades)
     SELECT token_id, s, floor(extract(epoch FROM ts) / s)::bigint * s, (array_agg(price ORDER BY ts))[1], max(price), min(price),
       (array_agg(price ORDER BY ts DESC))[1], sum(size), sum(price * size), count(*)
     FROM trade CROSS JOIN unnest(ARRAY[60, 300, 900, 3600, 14400, 86400]) AS s
     WHERE token_id = $1 AND ts >= to_timestamp($2::float8 / 1000) AND $3::int > 0 GROUP BY 1, 2, 3`,
  ),
  sql(
    'test_fill_prices',
    `INSERT INTO price_history (token_id, received_at, as_of, price, bid, ask)
     SELECT $1, at, at, 0.5, 0.4, NULL FROM generate_series(to_timestamp($2::float8 / 1000), to_timestamp($2::float8 / 1000) + ($3::int * 1440 - 1) * interval '1 minute', '1 minute') AS at`,
  ),
] as const;
const AGE_TOKENS = sql('test_age_tokens', 'UPDATE token SET created_at = to_timestamp($1::float8 / 1000)');
const FORMER_PARTITION = sql(
  'test_late_partition',
  `SELECT create_partition('trade', to_timestamp($1::float8 / 1000))`,
);
const FORMER_TRADE = sql(
  'test_late_trade',
  `WITH made AS (
     INSERT INTO trade (token_id, ts, trade_id, price, size, ordinal) VALUES ($1, to_timestamp($2::float8 / 1000), $3, 0.5, 1, 0) RETURNING token_id, ts)
   ${insertMarksSql('fold-candles', `SELECT token_id, ${minuteOf('ts')} FROM made`)}`,
);
const CORRECTIONS = sql('test_archive_corrections', 'SELECT count(*)::int AS corrections FROM archive_correction');
const AGE_FILES = sql('test_age_files', `UPDATE archive_file SET made_at = made_at - interval '2 hours'`);
const COUNT_FILES = sql('test_archive_files', 'SELECT count(*)::int AS files FROM archive_file');
const COARSER_CANDLES = sql(
  'test_coarser_candles',
  `SELECT interval_seconds, sum(trades)::int AS trades, sum(volume)::text AS volume FROM candle WHERE interval_seconds >= 900 GROUP BY 1 ORDER BY 1`,
);
const DROPPED_CANDLES = sql(
  'test_dropped_candles',
  'SELECT count(*)::int AS candles FROM candle WHERE interval_seconds < 900 AND bucket < $1',
);
const CHANGED = sql('test_archive_changes', 'SELECT count(*)::int AS changes FROM archive_change');

/** Stores a trade as a process of this or of the former release does. */
async function storeLate(db: Database, late: { tokenId: bigint; tsMs: number; tradeId: string }, isFormer: boolean) {
  const { tokenId, tsMs, tradeId } = late;
  if (!isFormer) return storeLateTrade(db, { tsMs, tradeId });
  await db.query(FORMER_PARTITION, [tsMs]);
  await db.query(FORMER_TRADE, [tokenId, tsMs, tradeId]);
}

const RANGE = { start: FIRST_MS / 1000, end: FIRST_MS / 1000 + (DAYS + 1) * 86_400 };

const due = (db: Database) => readDueDays(db, { pairs: PAIRS, afterHours: 1, limit: 1 });

/** With an object store the tape is read on another machine: each of its files comes from the store. */
const PLACES = [...BACKENDS.map((kind) => [kind, 'a folder'] as const), ['postgres', 'an object store'] as const];

describe.each(PLACES)('archive-day, queues on %s, files in %s', (kind, place) => {
  const isStored = place === 'an object store';
  it.skipIf(!isAvailable(kind) || (isStored && !hasS3()))(
    `loses no row and writes none twice when it is killed again and again (seed ${SEED})`,
    async () => {
      const random = streamOf('archive', isStored ? 'store' : kind);
      const system = await startArchiveSystem(kind, {
        isStored,
        environment: {
          ARCHIVE_KINDS: 'trades,candles,prices',
          ARCHIVE_AFTER_HOURS: '1',
          ARCHIVE_KEEP_DAYS: String(KEEP_DAYS),
        },
      });
      const { db, dir, store, history, log, signal } = system;
      const aggregator = new OddswireProcess('aggregator', system.environment);
      try {
        const market = await aStoredMarket(db, { marketId: 'm' });
        const token = market.outcomes[0]?.tokenId ?? 0n;
        const partitions = new Partitions(db);
        const days = Array.from({ length: DAYS + 1 }, (_, day) => FIRST_MS + day * DAY_MS);
        for (const table of ['trade', 'price_history'] as const) await partitions.ensure(table, days);
        for (const statement of FILL) await db.query(statement, [token, FIRST_MS, DAYS]);
        await db.query(AGE_TOKENS, [FIRST_MS]);
        const ledger = await readLedger(db, ['m:yes']);
        const filled = foldLedger(ledger, 60);
        const ledgerIds = () => ledger.map(({ tradeId }) => tradeId).sort();

        for (let kill = 1; kill <= KILLS; kill += 1) {
          await aggregator.start();
          // Each life has another part of the steps.
          await delay(random.between(0, 1_500));
          const tradeId = `late ${kill}`;
          const tsMs = FIRST_MS + random.below(DAYS) * DAY_MS + 1_000 + kill;
          // A drop at this moment refuses the row, as it does for a process.
          await eventually(
            () =>
              storeLate(db, { tokenId: token, tsMs, tradeId }, kill % 2 === 0).then(
                () => true,
                () => false,
              ),
            Boolean,
            WITHIN,
          );
          ledger.push({ tradeId, price: '0.5', size: '1', minute: Math.floor(tsMs / 60_000) * 60 });
          expect((await readTape(db, history)).sort()).toEqual(ledgerIds());
          // Late trades reach their candles with the file of their day.
          const candles = await readCandles(db, history, { seconds: 60, range: RANGE });
          const lacking = [...filled].filter(([minute, { trades }]) => (candles.get(minute)?.trades ?? 0) < trades);
          expect(lacking).toEqual([]);
          await aggregator.end('SIGKILL');
          await db.query(AGE_FILES);
        }
        await aggregator.start();
        await eventually(
          async () => {
            await db.query(AGE_FILES);
            const seams = [await readSeam(db, 'trades'), await readSeam(db, 'candles')];
            const isDropped = seams.every((seam) => seam === SEAM_MS);
            return isDropped && (await due(db)).length + (await readUndescribedDays(db, 1, store?.url)).length === 0;
          },
          Boolean,
          WITHIN,
        );
        await aggregator.end('SIGTERM');

        expect(await db.query(CHANGED)).toEqual([{ changes: 0 }]);
        for (const dayMs of days.slice(0, DAYS)) {
          for (const pair of PAIRS) {
            const day = { ...pair, date: new Date(dayMs).toISOString().slice(0, 10) };
            const file = await readPresentFile(db, day);
            const path = join(dir, folderOf(day), file?.file ?? '');
            expect(
              createHash('sha256')
                .update(await readFile(path))
                .digest('hex'),
            ).toBe(file?.sha256);
          }
        }
        const archived =
          await readFiles(`SELECT trade_id, coalesce(price_text, price::VARCHAR) AS price, coalesce(size_text, size::VARCHAR) AS size
        FROM read_parquet('${dir}/trades/*/*/*.parquet') ORDER BY trade_id`);
        const digits = (text: unknown) => String(text).replace(/\.?0+$/, '');
        ledger.sort((one, other) => (one.tradeId < other.tradeId ? -1 : 1));
        expect(archived.map((row) => [row['trade_id'], digits(row['price']), digits(row['size'])])).toEqual(
          ledger.map(({ tradeId, price, size }) => [tradeId, digits(price), digits(size)]),
        );
        expect((await readTape(db, history)).sort()).toEqual(ledgerIds());
        expect(await db.query(CORRECTIONS)).toEqual([{ corrections: 0 }]);
        expect(await db.query(DROPPED_CANDLES, [SEAM_MS / 1000])).toEqual([{ candles: 0 }]);
        for (const seconds of [60, 300]) {
          const candles = await readCandles(db, history, { seconds, range: RANGE });
          expect(inOrder(candles)).toEqual(inOrder(foldLedger(ledger, seconds)));
        }
        const volume = ledger.reduce((sum, { size }) => addDecimals(sum, decimal(size)), decimal('0'));
        for (const coarser of await db.query<{ trades: number; volume: string }>(COARSER_CANDLES)) {
          expect([coarser.trades, decimal(coarser.volume)]).toEqual([ledger.length, volume]);
        }
        expect((await listPartitions(db, 'trade'))[0]?.fromMs).toBe(SEAM_MS);
        expect((await db.query<{ files: number }>(COUNT_FILES))[0]?.files).toBeGreaterThanOrEqual(DAYS * PAIRS.length);
        // Files of the work folder are those of killed lives; no other folder has unfinished ones.
        const names = (await readdir(dir, { recursive: true })).filter((name) => !name.startsWith('.work'));
        expect(names.filter((name) => /\.(csv|spill)$/.test(name))).toEqual([]);
        if (store !== undefined) {
          const ofDays = (all: readonly string[]) => all.filter((name) => /date=.*(parquet|json)$/.test(name)).sort();
          expect(ofDays((await store.list('', signal)).map(({ key }) => key))).toEqual(ofDays(names));
          const argv = { db, dir, store, filter: {}, isRepair: false, log, signal, tag: 'campaign' };
          const { findings } = await checkArchive({ ...argv, onDay: () => undefined });
          // Killed lives leave objects and files that no row names.
          expect(findings.filter(({ place: at }) => !at.includes('.former/'))).toEqual([]);
        }
      } finally {
        await aggregator.end('SIGKILL');
        await system.close();
      }
    },
  );
});
