import { expect, it } from 'vitest';
import { createTestDatabase } from '../test/support/postgres/database.ts';
import { type CurvePoint, curve } from './support/curve.ts';
import { mib, sizeOf, sizesOf, whole } from './support/numbers.ts';
import { note, report } from './support/report.ts';
import { databaseBytes, settle } from './support/stored-trades.ts';
import { copyTape, ingest, preparePartitions, storedCounts, storeTape } from './support/tape.ts';

/** The curve's numbers of stored trades: BENCH_CURVE_TRADES=100000,1000000 for a quick run. */
const STORED = sizesOf('BENCH_CURVE_TRADES', [1_000_000, 10_000_000, 50_000_000]);
/** Trades that are ingested after them. */
const FRESH = sizeOf('BENCH_CURVE_FRESH', 100_000);
/** A warm-up that is not counted: it creates plans and loads index pages into memory. */
const WARM_UP = 20_000;

async function onTopOf(stored: number): Promise<CurvePoint> {
  const test = await createTestDatabase();
  try {
    const begunMs = performance.now();
    await storeTape(test.db, stored);
    const madeSeconds = (performance.now() - begunMs) / 1_000;
    const warmUp = { from: stored, count: WARM_UP };
    const fresh = { from: stored + WARM_UP, count: FRESH };
    await preparePartitions(test.db, { from: stored, count: WARM_UP + FRESH });
    await ingest(test.db, warmUp);
    await settle(test.db);

    const rssBefore = process.memoryUsage().rss;
    const { seconds } = await ingest(test.db, fresh);
    const rssAfter = process.memoryUsage().rss;
    const copySeconds = await copyTape(test.url, fresh);

    const counts = await storedCounts(test.db);
    const total = stored + WARM_UP + FRESH;
    expect(counts).toMatchObject({ trades: total, folded: [total] });
    note(
      `${whole(stored)} stored trades: made in ${whole(madeSeconds)} s; afterwards ${whole(counts.candles)} candles, ` +
        `database ${mib(await databaseBytes(test.db))}; memory of the writing process ${mib(rssBefore)} before, ${mib(rssAfter)} after`,
    );
    return {
      size: `${whole(stored)} stored`,
      measured: `${whole(FRESH / seconds)} trades/s, ${(copySeconds / seconds).toFixed(2)} of COPY`,
      value: FRESH / seconds,
    };
  } finally {
    await test.drop();
  }
}

it('ingests trades with all candles, on top of more and more history', async () => {
  const points: CurvePoint[] = [];
  for (const stored of STORED) points.push(await onTopOf(stored));
  // Flat means within a fifth, the usual difference between two runs.
  report(curve(`ingest of ${whole(FRESH)} trades`, points, { atLeast: 0.8 }));
});
