import { expect } from 'vitest';
import { decimal } from '../../src/domain/values/decimal.ts';
import { SHARDS } from '../../src/domain/values/shard.ts';
import { laneOf } from '../../src/queues/jobs.ts';
import { evaluateAlerts } from '../../src/store/alerts/evaluate.ts';
import { WindowMemory } from '../../src/store/alerts/windows.ts';
import { Partitions } from '../../src/store/db/partitions.ts';
import { sql } from '../../src/store/db/tx.ts';
import { waitingShards } from '../../src/store/marks/marks.ts';
import { workShards } from '../../src/store/marks/stage.ts';
import { writePrices } from '../../src/store/prices/prices.ts';
import { anAccount, aSubscription } from '../../test/factories/alerts.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres/database.ts';
import { percentile } from './numbers.ts';

/** Prices of one batch. */
export const BATCH = 1_000;
const ROUNDS = 15;
/** Postgres plans a statement anew in its first five runs on a connection. */
const WARM_UP_ROUNDS = 6;
const STAGE = 'evaluate-alerts' as const;

const INSERT_TOKENS = sql(
  'bench_tokens',
  `INSERT INTO token (mint) SELECT 'bench-' || n FROM generate_series(1, $1::bigint) n`,
);
const INSERT_MARKETS = sql(
  'bench_markets',
  `WITH made AS (
     INSERT INTO market (venue, venue_market_id, title, description, tags, status, has_book, content_hash)
     SELECT 'v', n::text, 'Will it?', '', '{}', 'open', true, '\\x00' FROM generate_series(1, $1::bigint / 2) n
     RETURNING id, venue_market_id::bigint AS n)
   INSERT INTO outcome (token_id, market_id, ordinal, label)
   SELECT t.id, made.id, o, 'Yes' FROM made CROSS JOIN generate_series(0, 1) o JOIN token t ON t.mint = 'bench-' || (2 * n - o)`,
);
/** Prices that no batch reaches: batches move between 0.5 and 0.51. */
const INSERT_ALERTS = sql(
  'bench_alerts',
  `INSERT INTO alert (id, account_id, token_id, condition, target)
   SELECT 'bench-' || n, $1, t.id, CASE n % 2 WHEN 0 THEN 'above' ELSE 'below' END,
     CASE n % 2 WHEN 0 THEN 0.6 ELSE 0.1 END + (n * 7919 % 300)::numeric / 1000
   FROM generate_series(1, $2::bigint) n JOIN token t ON t.mint = 'bench-' || (n % $3::bigint + 1)`,
);
const ANALYZE = sql('bench_analyze', 'ANALYZE');

/** A database with this many active alerts. Compared worlds have as many tokens. */
export interface AlertWorld {
  test: TestDatabase;
  accountId: bigint;
  tokens: number;
  /** That of the evaluator. */
  memory: WindowMemory;
}

export async function anAlertWorld({ alerts, tokens }: { alerts: number; tokens: number }): Promise<AlertWorld> {
  const test = await createTestDatabase();
  const partitions = new Partitions(test.db);
  for (const table of ['observation', 'price_history'] as const) await partitions.ensureAroundNow(table);
  const accountId = await anAccount(test.db);
  await aSubscription(test.db, { accountId });
  await test.db.query(INSERT_TOKENS, [tokens]);
  await test.db.query(INSERT_MARKETS, [tokens]);
  await test.db.query(INSERT_ALERTS, [accountId, alerts, tokens]);
  await test.db.query(ANALYZE);
  return { test, accountId, tokens, memory: new WindowMemory() };
}

export interface Evaluation {
  ms: number;
  /** The longest of its transactions. */
  longestMs: number;
  transactions: number;
  fired: number;
}

/** The alerter's part: processes all marks, lane by lane. */
export async function evaluateAll({ test, memory }: AlertWorld): Promise<Evaluation> {
  const work = { ms: 0, longestMs: 0, transactions: 0, fired: 0 };
  for (;;) {
    const shards = await waitingShards(test.db, STAGE);
    if (shards.length === 0) return work;
    for (const lane of new Set(shards.map(laneOf))) {
      const ofLane = shards.filter((shard) => laneOf(shard) === lane);
      const begunMs = performance.now();
      const done = await workShards(test.db, STAGE, ofLane, { limit: BATCH, order: 'oldest' }, (tx, marks) =>
        evaluateAlerts(tx, marks, { memory }),
      );
      const ms = performance.now() - begunMs;
      expect(done.deadLettered).toEqual([]);
      work.ms += ms;
      work.longestMs = Math.max(work.longestMs, ms);
      work.transactions += 1;
      for (const { fired } of done.results) work.fired += fired.length;
    }
  }
}

/** Writes one price of these tokens, as a poller does. */
export async function price({ test }: AlertWorld, tokenIds: readonly bigint[], text: string): Promise<void> {
  const asOfMs = Date.now();
  await test.db.transaction((tx) =>
    writePrices(
      tx,
      tokenIds.map((tokenId) => ({ tokenId, asOfMs, price: decimal(text) })),
    ),
  );
}

/**
 * Batches of a thousand changed prices, all of one shard, so of one claim: milliseconds of each evaluation, by world. The
 * worlds take turns, so that other load affects all of them. `among`: the number of tokens of the shard that take turns.
 */
export async function batchCosts(
  worlds: readonly AlertWorld[],
  { among = Number.POSITIVE_INFINITY } = {},
): Promise<number[][]> {
  const samples = worlds.map((): number[] => []);
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
    for (const [index, world] of worlds.entries()) {
      const ofOneShard = Array.from({ length: Math.min(among, Math.floor(world.tokens / SHARDS)) }, (_, n) =>
        BigInt(SHARDS * (n + 1)),
      );
      const from = (round * BATCH) % Math.max(1, ofOneShard.length - BATCH);
      await price(world, ofOneShard.slice(from, from + BATCH), String((5_000 + round) / 10_000));
      const work = await evaluateAll(world);
      expect([work.fired, work.transactions]).toEqual([0, 1]);
      if (round >= WARM_UP_ROUNDS) samples[index]?.push(work.ms);
    }
  }
  return samples;
}

/** The p50 and p95 of milliseconds. */
export function spread(samples: readonly number[]): string {
  return `p50 ${percentile(samples, 0.5).toFixed(1)} ms, p95 ${percentile(samples, 0.95).toFixed(1)} ms`;
}
