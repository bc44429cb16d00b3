import { request } from 'node:http';
import { decimal } from '../../src/domain/values/decimal.ts';
import { type Database, sql, type Tx } from '../../src/store/db/tx.ts';
import { signalLanes } from '../../src/store/marks/lane-signals.ts';
import { writePrices } from '../../src/store/prices/prices.ts';
import { writeTrades } from '../../src/store/series/trades.ts';
import type { Figure } from './figure.ts';
import { percentile, whole } from './numbers.ts';
import { type Api, HEADERS, ROUTES } from './read-load.ts';

const OUTCOMES = sql(
  'bench_read_outcomes',
  `SELECT o.token_id, t.mint, m.venue_market_id AS market_id FROM outcome o JOIN token t ON t.id = o.token_id JOIN market m ON m.id = o.market_id
   WHERE o.ordinal = 0 ORDER BY o.token_id LIMIT $1`,
);

interface Outcome {
  tokenId: bigint;
  mint: string;
  marketId: string;
}

/** The text of an answer, over the connection of the agent of Node. */
function textOf(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers: HEADERS }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('end', () => resolve(Buffer.concat(parts).toString('utf8')));
    });
    asked.on('error', reject);
    asked.end();
  });
}

/**
 * Milliseconds from the commit of `write` until a read shows the text that it added. The writer wakes the publisher, as a poller does, and
 * reads follow each other without a pause.
 */
async function delayOf(db: Database, url: string, write: (tx: Tx) => Promise<unknown>, shown: string): Promise<number> {
  // The answer is in memory before the change.
  await textOf(url);
  await db.transaction(write);
  const committedMs = performance.now();
  const signalled = signalLanes(db, [], true);
  while (!(await textOf(url)).includes(shown));
  const delayMs = performance.now() - committedMs;
  await signalled;
  return delayMs;
}

/** The time after which reads see a commit: `samples` changed quotes and new trades, one after the other. */
export async function readDelayFigures(db: Database, api: Api, samples: number): Promise<Figure[]> {
  const outcomes = await db.query<Outcome>(OUTCOMES, [samples]);
  const samplesOf = { price: [] as number[], trade: [] as number[] };
  const reads: number[] = [];
  for (const [n, { tokenId, mint, marketId }] of outcomes.entries()) {
    const price = decimal((0.9 + n / 1_000_000).toFixed(6));
    const quote = { tokenId, price, asOfMs: Date.now() + 60_000 };
    const priceUrl = api.address + ROUTES.prices(marketId);
    samplesOf.price.push(await delayOf(db, priceUrl, (tx) => writePrices(tx, [quote]), String(price)));
    const tradeId = `seen-${n}`;
    const trade = { tradeId, outcomeId: mint, tsMs: Date.now(), price, size: decimal('1'), side: 'buy' as const };
    const tradeUrl = api.address + ROUTES.trades(marketId);
    samplesOf.trade.push(await delayOf(db, tradeUrl, (tx) => writeTrades(tx, [trade], 'USD'), tradeId));
    const begunMs = performance.now();
    await textOf(priceUrl);
    reads.push(performance.now() - begunMs);
  }
  return Object.entries(samplesOf).map(([what, delays]): Figure => {
    const [p50, p99] = [percentile(delays, 0.5), percentile(delays, 0.99)];
    return {
      title: `commit of a ${what} until a read shows it`,
      measured: `p50 ${whole(p50)} ms, p99 ${whole(p99)} ms`,
      baseline: `a read: p50 ${percentile(reads, 0.5).toFixed(1)} ms`,
      goal: { atMost: 150, of: { name: 'p99', value: p99, unit: 'ms' } },
    };
  });
}
