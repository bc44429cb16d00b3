import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../test/support/postgres/database.ts';
import { mib, sizeOf, whole } from './support/numbers.ts';
import { note, report } from './support/report.ts';
import { databaseBytes } from './support/stored-trades.ts';
import { BATCH, copyTape, ingest, OUTCOMES, preparePartitions, storedCounts } from './support/tape.ts';

/** BENCH_TRADES=10000000 for the published figure; the default is a quick run. */
const TRADES = sizeOf('BENCH_TRADES', 100_000);

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.drop());

it('ingests trades with all candles, against plain COPY into the same table', async () => {
  const all = { from: 0, count: TRADES };
  await preparePartitions(test.db, all);
  const { seconds, writtenAtMs } = await ingest(test.db, all);
  const stored = await storedCounts(test.db);
  expect(stored).toMatchObject({ trades: TRADES, folded: [TRADES] });
  const bytes = await databaseBytes(test.db);
  const copySeconds = await copyTape(test.url, all);
  report([
    {
      title: `ingest of ${whole(TRADES)} trades over ${OUTCOMES} outcomes, ${whole(stored.candles)} candles`,
      measured: `${whole(TRADES / seconds)} trades/s`,
      baseline: `COPY ${whole(TRADES / copySeconds)} rows/s`,
      ratio: copySeconds / seconds,
      goal: { atLeast: 0.25 },
    },
  ]);
  const tenth = Math.floor(writtenAtMs.length / 10);
  const [first, last] = [writtenAtMs.slice(0, tenth + 1), writtenAtMs.slice(-tenth - 1)].map(
    (times) => (tenth * BATCH * 1_000) / ((times.at(-1) ?? 0) - (times[0] ?? 0)),
  );
  note(`writer: first tenth ${whole(first ?? 0)} trades/s, last tenth ${whole(last ?? 0)} trades/s`);
  note(`database size: ${mib(bytes)}`);
});
