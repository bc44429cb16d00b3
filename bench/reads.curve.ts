import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createTestDatabase } from '../test/support/postgres/database.ts';
import { type CurvePoint, curve } from './support/curve.ts';
import { mib, percentile, sizesOf, whole } from './support/numbers.ts';
import { type Api, HEADERS, ROUTES, readRate, startApi } from './support/read-load.ts';
import { note, report } from './support/report.ts';
import { storeHistory } from './support/stored-history.ts';
import { databaseBytes } from './support/stored-trades.ts';

/** The curve's numbers of markets: BENCH_CURVE_MARKETS=1000,10000 for a quick run. */
const MARKETS = sizesOf('BENCH_CURVE_MARKETS', [1_000, 100_000]);
const TRADES_PER_MARKET = 20;
const DAYS = 60;
/** Markets of one pass, each read once: a second read within a second would be answered from memory. */
const PASS = Math.min(1_000, ...MARKETS);
const ANSWERS_LIVE_MS = 1_000;
/** The first is not counted. */
const PASSES = 6;
/** Pages read one after another, if the list has as many. */
const PAGES = 50;
const SEARCHES = 40;

/** Requests per second over each market of a pass; successive passes use other markets as far as possible. */
async function pointReads(api: Api, marketIds: readonly string[], pathOf: (id: string) => string): Promise<number> {
  const stride = Math.floor(marketIds.length / PASS);
  const rates: number[] = [];
  for (let pass = 0; pass < PASSES; pass++) {
    const ids = Array.from({ length: PASS }, (_, n) => marketIds[n * stride + (pass % stride)] ?? '');
    const { rate } = await readRate([api.address], { paths: ids.map(pathOf), length: 'once' });
    if (pass > 0) rates.push(rate);
    await delay(ANSWERS_LIVE_MS);
  }
  return percentile(rates, 0.5);
}

interface Page {
  data: unknown[];
  meta: { next_cursor: string | null };
}

/** One read on an idle server, and its duration. */
async function timedRead(api: Api, path: string): Promise<{ ms: number; page: Page }> {
  const begunMs = performance.now();
  const response = await fetch(api.address + path, { headers: HEADERS });
  const page = (await response.json()) as Page;
  expect(response.status).toBe(200);
  return { ms: performance.now() - begunMs, page };
}

/** Milliseconds per page of whole walks through all markets; each walk reads at least this number of pages. */
async function listPages(api: Api, markets: number): Promise<number[]> {
  const samples: number[] = [];
  // A different page size makes a different list, which the cache of the previous walk cannot answer.
  for (let limit = 100; samples.length < PAGES; limit--) {
    let cursor: string | null = '';
    let seen = 0;
    while (cursor !== null) {
      const after = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const { ms, page } = await timedRead(api, `/v1/polymarket/markets?limit=${limit}${after}`);
      samples.push(ms);
      seen += page.data.length;
      cursor = page.meta.next_cursor;
    }
    expect(seen).toBe(markets);
  }
  return samples;
}

/** The n-th search text; titles are `Will event number 4711 happen before the end of the year?`. */
const SEARCHED = {
  'search of a rare word': (n: number, markets: number) =>
    `q=${Math.ceil((n + 1) * (markets / (SEARCHES + 1)))}&limit=20`,
  'search of words in every title': (n: number) => `q=event+happen&limit=${20 + n}`,
  'search of a misspelt word': (n: number) => `q=hapen+befroe&limit=${20 + n}`,
} as const;

interface Reads {
  points: Map<string, CurvePoint>;
  markets: number;
}

async function readsOf(markets: number): Promise<Reads> {
  const database = await createTestDatabase();
  try {
    const begunMs = performance.now();
    const ids = await storeHistory(database.db, { markets, trades: markets * TRADES_PER_MARKET, days: DAYS });
    note(
      `${whole(markets)} markets, ${whole(markets * TRADES_PER_MARKET)} trades: made in ` +
        `${whole((performance.now() - begunMs) / 1_000)} s, database ${mib(await databaseBytes(database.db))}`,
    );
    const api = await startApi(database.url);
    try {
      return { markets, points: await measure(api, ids) };
    } finally {
      await api.stop();
    }
  } finally {
    await database.drop();
  }
}

async function measure(api: Api, ids: readonly string[]): Promise<Map<string, CurvePoint>> {
  const size = `${whole(ids.length)} markets`;
  const points = new Map<string, CurvePoint>();
  for (const [name, pathOf] of Object.entries(ROUTES)) {
    const rate = await pointReads(api, ids, pathOf);
    points.set(`${name}, markets in turn`, { size, measured: `${whole(rate)} requests/s`, value: rate });
  }
  const timed = (name: string, samples: readonly number[]) => {
    const [p50, p99] = [percentile(samples, 0.5), percentile(samples, 0.99)];
    points.set(name, { size, measured: `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`, value: p50 });
  };
  timed('market list, a page of 100', await listPages(api, ids.length));
  for (const [name, queryOf] of Object.entries(SEARCHED)) {
    const samples: number[] = [];
    for (let n = 0; n < SEARCHES; n++) {
      const { ms, page } = await timedRead(api, `/v1/polymarket/markets?${queryOf(n, ids.length)}`);
      expect(page.data.length).toBeGreaterThan(0);
      samples.push(ms);
    }
    timed(name, samples);
  }
  return points;
}

it('answers reads with more and more markets', async () => {
  const all: Reads[] = [];
  for (const markets of MARKETS) all.push(await readsOf(markets));
  for (const name of all[0]?.points.keys() ?? []) {
    report(
      curve(
        name,
        all.flatMap(({ points }) => points.get(name) ?? []),
      ),
    );
  }
  note(
    'point reads compare rates (1 is as fast as with the fewest markets, less is slower), the others times (more is slower)',
  );
});
