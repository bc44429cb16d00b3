import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { markMissing } from '../src/store/catalog/market-sightings.ts';
import { writeMarkets } from '../src/store/catalog/markets.ts';
import { Partitions } from '../src/store/db/partitions.ts';
import { sql } from '../src/store/db/tx.ts';
import { aCatalogPage } from '../test/factories/markets.ts';
import { createTestDatabase, type TestDatabase } from '../test/support/postgres/database.ts';
import type { Goal } from './support/figure.ts';
import { mib, sizeOf, whole } from './support/numbers.ts';
import { note, report } from './support/report.ts';
import { databaseBytes } from './support/stored-trades.ts';

/** BENCH_MARKETS=100000 for the published figure (250,000 outcomes); the default is a quick run. */
const MARKETS = sizeOf('BENCH_MARKETS', 20_000);
const PAGE = 500;
const START_MS = Date.UTC(2026, 5, 1);
const HOUR_MS = 3_600_000;

const STORED = sql(
  'bench_catalog',
  `SELECT (SELECT count(*)::int FROM market) AS markets, (SELECT count(*)::int FROM outcome) AS outcomes,
     (SELECT count(*)::int FROM market_version) AS versions`,
);

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
  await new Partitions(test.db).ensureAroundNow('price_history');
});
afterAll(() => test.drop());

/** A whole sweep; memory never contains more than one page. Seconds for all, and for the last tenth of the pages. */
async function sweep(startedAtMs: number): Promise<{ seconds: number; lastTenthSeconds: number; changed: number }> {
  const begunMs = performance.now();
  const lastTenthFrom = Math.floor(MARKETS * 0.9);
  let lastTenthBegunMs = begunMs;
  let changed = 0;
  for (let from = 0; from < MARKETS; from += PAGE) {
    if (from <= lastTenthFrom) lastTenthBegunMs = performance.now();
    const page = aCatalogPage(from, Math.min(PAGE, MARKETS - from));
    changed += (await test.db.transaction((tx) => writeMarkets(tx, 'v', 'USD', page, startedAtMs, startedAtMs)))
      .changed;
  }
  const endedMs = performance.now();
  return { seconds: (endedMs - begunMs) / 1_000, lastTenthSeconds: (endedMs - lastTenthBegunMs) / 1_000, changed };
}

/** The market rows, copied from one table into another of the same shape, with index and text search; seconds. */
async function copyOfMarkets(): Promise<number> {
  const client = new pg.Client({ connectionString: test.url });
  await client.connect();
  await client.query('CREATE TABLE copied (LIKE market INCLUDING ALL)');
  const columns = `venue, venue_market_id, event_id, title, description, tags, status, has_book, created_at, content_hash`;
  function* rows(): Generator<string> {
    for (let from = 0; from < MARKETS; from += PAGE) {
      for (const market of aCatalogPage(from, Math.min(PAGE, MARKETS - from))) {
        const { marketId, eventId, title, description, status } = market;
        yield `${['v', marketId, eventId, title, description, '{weather}', status, 't', '2026-01-01', `\\\\x${'00'.repeat(32)}`].join('\t')}\n`;
      }
    }
  }
  const begunMs = performance.now();
  await pipeline(Readable.from(rows()), client.query(copyFrom(`COPY copied (${columns}) FROM STDIN`)));
  const seconds = (performance.now() - begunMs) / 1_000;
  const [copied] = (await client.query<{ n: number }>('SELECT count(*)::int AS n FROM copied')).rows;
  expect(copied?.n).toBe(MARKETS);
  await client.query('DROP TABLE copied');
  await client.end();
  return seconds;
}

it('syncs the catalog twice, against plain COPY of its markets', async () => {
  const rssBefore = process.memoryUsage().rss;
  const first = await sweep(START_MS);
  const second = await sweep(START_MS + HOUR_MS);
  const rssAfter = process.memoryUsage().rss;
  const begunMs = performance.now();
  const missing = await test.db.transaction((tx) => markMissing(tx, 'v', START_MS + HOUR_MS));
  const missingMs = performance.now() - begunMs;
  const copySeconds = await copyOfMarkets();

  const [stored] = await test.db.query<{ markets: number; outcomes: number; versions: number }>(STORED);
  expect(stored).toMatchObject({ markets: MARKETS, versions: 0 });
  expect([first.changed, second.changed, missing]).toEqual([MARKETS, 0, 0]);
  const baseline = `COPY ${whole(MARKETS / copySeconds)} markets/s`;
  const figure = (title: string, seconds: number, goal: Goal) => ({
    title,
    measured: `${whole(MARKETS / seconds)} markets/s`,
    baseline,
    ratio: copySeconds / seconds,
    goal,
  });
  report([
    figure(`first sync of ${whole(MARKETS)} markets, ${whole(stored?.outcomes ?? 0)} outcomes`, first.seconds, {
      atLeast: 0.25,
    }),
    figure('second sync: sightings only', second.seconds, { atLeast: 1 }),
  ]);
  const tenth = (sync: { seconds: number; lastTenthSeconds: number }) =>
    ((10 * sync.lastTenthSeconds) / sync.seconds).toFixed(2);
  note(`cost of a page in the last tenth against the mean: first ${tenth(first)}, second ${tenth(second)}`);
  note(`end of a sweep: ${whole(missingMs)} ms; memory: ${mib(rssBefore)} before, ${mib(rssAfter)} after`);
  note(`database size: ${mib(await databaseBytes(test.db))}`);
});
