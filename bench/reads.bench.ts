import { afterAll, beforeAll, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../test/support/postgres/database.ts';
import { type BareServer, startBareServer } from './support/bare-server.ts';
import { type LiveChanges, startChanges } from './support/live-changes.ts';
import { mib, sizeOf, whole } from './support/numbers.ts';
import { readDelayFigures } from './support/read-delay.ts';
import { readFigures } from './support/read-figures.ts';
import { type Api, startApi } from './support/read-load.ts';
import { note, report } from './support/report.ts';
import { storeHistory } from './support/stored-history.ts';
import { databaseBytes } from './support/stored-trades.ts';

/** BENCH_TRADES=1000000 for the published figure; BENCH_SECONDS is the length of one measurement. */
const TRADES = sizeOf('BENCH_TRADES', 100_000);
const SECONDS = sizeOf('BENCH_SECONDS', 1);
/** Changed quotes per second during all measurements. */
const CHANGES = sizeOf('BENCH_CHANGES', 500);
const MARKETS = 2_000;
const DAYS = 60;
/** Commits that are followed until a read shows them. */
const COMMITS = sizeOf('BENCH_COMMITS', 100);
const GOALS = { prices: 0.35, market: 0.35, candles: 0.35, trades: 0.35, executable: 0.35 };

let database: TestDatabase;
let api: Api;
let bare: BareServer;
let changes: LiveChanges;
let marketIds: string[];
beforeAll(async () => {
  bare = startBareServer();
  database = await createTestDatabase();
  marketIds = await storeHistory(database.db, { markets: MARKETS, trades: TRADES, days: DAYS });
  changes = await startChanges(database.db, database.url, CHANGES);
  api = await startApi(database.url);
  await api.loaded();
});
afterAll(async () => {
  bare.stop();
  await api.stop();
  await changes.stop();
  await database.drop();
});

it('answers reads during changes, beside a bare server that sends the same bytes', async () => {
  const options = { api, bare, seconds: SECONDS, goals: GOALS };
  const hot = await readFigures({ ...options, marketIds: marketIds.slice(0, 1), label: 'one market' });
  const goals = { ...GOALS, executable: 0.25 };
  const spread = await readFigures({ ...options, goals, marketIds, label: `${whole(MARKETS)} markets in turn` });
  report([...hot, ...spread]);
  note(`${whole(TRADES)} trades, database size: ${mib(await databaseBytes(database.db))}; ${whole(CHANGES)} changes/s`);
});

it('shows a commit to reads during other changes', async () => {
  report(await readDelayFigures(database.db, api, COMMITS));
});
