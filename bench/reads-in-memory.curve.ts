import { it } from 'vitest';
import { createTestDatabase } from '../test/support/postgres/database.ts';
import { startBareServer } from './support/bare-server.ts';
import { startChanges } from './support/live-changes.ts';
import { sizeOf, whole } from './support/numbers.ts';
import { readFigures } from './support/read-figures.ts';
import { startApi } from './support/read-load.ts';
import { note, report } from './support/report.ts';
import { storeHistory } from './support/stored-history.ts';

const MARKETS = sizeOf('BENCH_MEMORY_MARKETS', 100_000);
const SECONDS = sizeOf('BENCH_SECONDS', 10);
const CHANGES = sizeOf('BENCH_CHANGES', 500);
const TRADES_PER_MARKET = 20;
const GOALS = { prices: 0.35, market: 0.35, candles: 0.1, trades: 0.1, executable: 0.1 };

it('answers reads of all markets of a large catalog in turn, during changes', async () => {
  const bare = startBareServer();
  const database = await createTestDatabase();
  try {
    const trades = MARKETS * TRADES_PER_MARKET;
    const marketIds = await storeHistory(database.db, { markets: MARKETS, trades, days: 60 });
    const changes = await startChanges(database.db, database.url, CHANGES);
    const api = await startApi(database.url);
    try {
      const begunMs = performance.now();
      await api.loaded();
      note(`${whole(MARKETS)} markets in memory after ${whole((performance.now() - begunMs) / 1_000)} s`);
      const label = `${whole(MARKETS)} markets in turn`;
      report(await readFigures({ api, bare, marketIds, seconds: SECONDS, label, goals: GOALS }));
    } finally {
      await api.stop();
      await changes.stop();
    }
  } finally {
    bare.stop();
    await database.drop();
  }
});
