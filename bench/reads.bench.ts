import { afterAll, beforeAll, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../test/support/postgres/database.ts';
import { type BareServer, startBareServer } from './support/bare-server.ts';
import type { Figure } from './support/figure.ts';
import { mib, sizeOf, whole } from './support/numbers.ts';
import { type Api, ROUTES, readRate, startApi } from './support/read-load.ts';
import { note, report } from './support/report.ts';
import { storeHistory } from './support/stored-history.ts';
import { databaseBytes } from './support/stored-trades.ts';

/** BENCH_TRADES=1000000 for the published figure; BENCH_SECONDS is the length of one measurement. */
const TRADES = sizeOf('BENCH_TRADES', 100_000);
const SECONDS = sizeOf('BENCH_SECONDS', 1);
const MARKETS = 2_000;
const DAYS = 60;
/** Paths whose answers the bare server copies. */
const TAUGHT = 50;

let database: TestDatabase;
let api: Api;
let bare: BareServer;
let marketIds: string[];
beforeAll(async () => {
  bare = startBareServer();
  database = await createTestDatabase();
  marketIds = await storeHistory(database.db, { markets: MARKETS, trades: TRADES, days: DAYS });
  api = await startApi(database.url);
});
afterAll(async () => {
  bare.stop();
  await api.stop();
  await database.drop();
});

it('answers reads, beside a bare server that sends the same bytes', async () => {
  const figures: Figure[] = [];
  for (const [name, pathOf] of Object.entries(ROUTES)) {
    for (const [label, count] of [
      ['one market', 1],
      [`${whole(MARKETS)} markets in turn`, MARKETS],
    ] as const) {
      const paths = marketIds.slice(0, count).map(pathOf);
      const taught = paths.slice(0, TAUGHT);
      const bareUrl = await bare.teach(api.address, taught);
      const length = { seconds: SECONDS };
      const ours = await readRate([api.address], { paths, length });
      const theirs = await readRate([bareUrl], { paths: taught, length });
      const again = await readRate([api.address], { paths, length });
      const rate = (ours.rate + again.rate) / 2;
      figures.push({
        title: `${name}, ${label}`,
        measured: `${whole(rate)} requests/s, p99 ${Math.max(ours.p99Ms, again.p99Ms)} ms`,
        baseline: `bare server ${whole(theirs.rate)} requests/s`,
        ratio: rate / theirs.rate,
        goal: { atLeast: 0.5 },
      });
    }
  }
  report(figures);
  note(`${whole(TRADES)} trades, database size: ${mib(await databaseBytes(database.db))}`);
});
