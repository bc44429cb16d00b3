import { setTimeout as delay } from 'node:timers/promises';
import { decimal } from '../../src/domain/values/decimal.ts';
import { Partitions } from '../../src/store/db/partitions.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { PUBLISH_CHANNEL } from '../../src/store/marks/lane-signals.ts';
import { writeBooks } from '../../src/store/series/books.ts';
import { percentile } from './numbers.ts';
import { cpuSeconds } from './process-usage.ts';
import type { Api } from './read-load.ts';
import { openStreams } from './stream-load.ts';

const FIRST_TOKENS = sql(
  'bench_first_tokens',
  `SELECT o.token_id FROM market m JOIN outcome o ON o.market_id = m.id AND o.ordinal = 0
   WHERE m.venue_market_id = ANY ($1::text[]) ORDER BY array_position($1::text[], m.venue_market_id)`,
);
/** As the writers of books do after their commit. */
const WAKE = sql('bench_wake_publisher', `SELECT pg_notify('${PUBLISH_CHANNEL}', '')`);
const LEVELS = 50;
const ROUND_MS = 100;
/** The first values of all clients are sent in this time. */
const IDLE_MS = 3_000;
/** Changes are numbered in the last three of six digits of their prices. */
const NUMBERS = 1_000;

interface ExecutableLoad {
  api: Api;
  db: Database;
  marketIds: readonly string[];
  clients: number;
  changesPerSecond: number;
  seconds: number;
}

/** Changes books while each client follows three sizes of its own on one of them. Milliseconds from the commit of a book to a client. */
export async function measureExecutable({ api, db, marketIds, clients, changesPerSecond, seconds }: ExecutableLoad) {
  await new Partitions(db).ensureAroundNow('book_history');
  const tokens = (await db.query<{ tokenId: bigint }>(FIRST_TOKENS, [marketIds])).map(({ tokenId }) => tokenId);
  const committedMs = new Map<number, number>();
  let made = 0;
  const side = (firstPrice: number, step: number, number: number) =>
    Array.from({ length: LEVELS }, (_, level) => ({
      price: decimal(`0.${String((firstPrice + step * level) * NUMBERS + number).padStart(6, '0')}`),
      size: decimal('100'),
    }));

  async function write(some: readonly bigint[]): Promise<void> {
    const books = some.map((tokenId) => {
      made += 1;
      const number = made % NUMBERS;
      return { tokenId, number, asOfMs: Date.now(), bids: side(400, -1, number), asks: side(500, 1, number) };
    });
    await writeBooks(db, books);
    for (const { number } of books) committedMs.set(number, Date.now());
    await db.query(WAKE);
  }

  const delaysIn = (text: string, nowMs: number) =>
    [...text.matchAll(/"type":"executable".*?"worst_price":0\.(\d+)/g)].flatMap(([, digits = '']) => {
      const atMs = committedMs.get(Number(digits.padEnd(6, '0').slice(3)));
      return atMs === undefined ? [] : [nowMs - atMs];
    });
  const pathOf = (n: number) => {
    // Clients whose messages are read are spread over all, and so over the markets.
    const outcomeId = `${marketIds[Math.floor((n * marketIds.length) / clients)]}:yes`;
    const sizes = [50, 500, 2_000].map((size) => size + n);
    return `/v1/polymarket/stream?channels=executable&outcome_ids=${outcomeId}&sizes=${sizes.join(',')}&side=buy`;
  };
  await write(tokens);
  const load = await openStreams(api.address, pathOf, clients, delaysIn);
  try {
    await delay(IDLE_MS);
    load.delaysMs.length = 0;
    const cpuBefore = await cpuSeconds(api.pid);
    const each = (changesPerSecond * ROUND_MS) / 1_000;
    const begunMs = performance.now();
    for (let round = 1; round <= (seconds * 1_000) / ROUND_MS; round += 1) {
      await write(Array.from({ length: each }, (_, n) => tokens[(round * each + n) % tokens.length] ?? 0n));
      await delay(Math.max(0, begunMs + round * ROUND_MS - performance.now()));
    }
    const cpu = ((await cpuSeconds(api.pid)) - cpuBefore) / seconds;
    await delay(ROUND_MS);
    const { delaysMs } = load;
    return { p50Ms: percentile(delaysMs, 0.5), p99Ms: percentile(delaysMs, 0.99), cpu, messages: delaysMs.length };
  } finally {
    load.close();
  }
}
