import { afterAll, beforeAll, expect, it } from 'vitest';
import { decimal } from '../src/domain/decimal.ts';
import { evaluateAlerts } from '../src/store/alert-evaluation.ts';
import { createAlert } from '../src/store/alerts.ts';
import { waitingShards } from '../src/store/marks.ts';
import { Partitions } from '../src/store/partitions.ts';
import { writePrices } from '../src/store/prices.ts';
import { workShard } from '../src/store/stage.ts';
import { ensureTokens } from '../src/store/tokens.ts';
import { sql } from '../src/store/tx.ts';
import { anAccount, aSubscription } from '../test/factories/alerts.ts';
import { createTestDatabase, type TestDatabase } from '../test/support/database.ts';
import { percentile, printFigures, whole } from './table.ts';

/** BENCH_ALERTS=1000000 for the figure of the design (250,000 tokens); the default is a quick look. */
const ALERTS = Number(process.env['BENCH_ALERTS'] ?? 100_000);
const FEW_ALERTS = 10_000;
const TOKENS = ALERTS / 4;
const BATCH = 1_000;
const ROUNDS = 15;
/** A statement is planned anew in its first five runs on a connection. */
const WARM_UP_ROUNDS = 6;
const CROWD = 10_000;
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
/** Four to a token, none of which the batches meet: they move between 0.5 and 0.51. */
const INSERT_ALERTS = sql(
  'bench_alerts',
  `INSERT INTO alert (id, account_id, token_id, condition, target)
   SELECT 'bench-' || n, $1, t.id, CASE n % 2 WHEN 0 THEN 'above' ELSE 'below' END,
     CASE n % 2 WHEN 0 THEN 0.6 ELSE 0.1 END + (n * 7919 % 300)::numeric / 1000
   FROM generate_series(1, $2::bigint) n JOIN token t ON t.mint = 'bench-' || (n % $3::bigint + 1)`,
);
const INSERT_CROWD = sql(
  'bench_crowd',
  `INSERT INTO alert (id, account_id, token_id, condition, target)
   SELECT 'crowd-' || n, $1, $2, 'above', 0.9 + (n % 50)::numeric / 1000 FROM generate_series(1, $3::bigint) n`,
);
/** The least that firing is: as many rows into the same tables by one statement each, of what the database knows itself. */
const PLAIN_FIRING = [
  sql(
    'bench_plain_events',
    `INSERT INTO event (id, account_id, type, body, dedupe_key)
     SELECT 'plain-' || pk, account_id, 'price_alert', (SELECT body FROM event LIMIT 1), 'plain-' || pk FROM alert
     WHERE id LIKE 'crowd-%'`,
  ),
  sql(
    'bench_plain_deliveries',
    `INSERT INTO delivery (id, event_pk, subscription_pk)
     SELECT id, pk, (SELECT pk FROM webhook_subscription LIMIT 1) FROM event WHERE id LIKE 'plain-%'`,
  ),
  sql('bench_plain_flips', `UPDATE alert SET triggered_at = now() WHERE id LIKE 'crowd-%'`),
] as const;
const ANALYZE = sql('bench_analyze', 'ANALYZE');
const STORED = sql(
  'bench_fired',
  `SELECT (SELECT count(*)::int FROM alert WHERE id LIKE 'crowd-%' AND status = 'triggered') AS triggered,
     (SELECT count(*)::int FROM event) AS events, (SELECT count(*)::int FROM delivery) AS deliveries`,
);

/** Two databases that differ in the number of alerts only: measured in turn, so that a busy machine is busy for both. */
interface World {
  test: TestDatabase;
  accountId: bigint;
}

let few: World;
let many: World;
beforeAll(async () => {
  few = await aWorld(FEW_ALERTS);
  many = await aWorld(ALERTS);
}, 600_000);
afterAll(async () => {
  await few.test.drop();
  await many.test.drop();
});

async function aWorld(alerts: number): Promise<World> {
  const test = await createTestDatabase();
  const partitions = new Partitions(test.db);
  for (const table of ['observation', 'price_history'] as const) await partitions.ensureAroundNow(table);
  const accountId = await anAccount(test.db);
  await aSubscription(test.db, { accountId });
  await test.db.query(INSERT_TOKENS, [TOKENS]);
  await test.db.query(INSERT_MARKETS, [TOKENS]);
  await test.db.query(INSERT_ALERTS, [accountId, alerts, TOKENS]);
  await test.db.query(ANALYZE);
  return { test, accountId };
}

interface Work {
  ms: number;
  /** The longest of its transactions. */
  longestMs: number;
  transactions: number;
  fired: number;
}

/** The alerter's part: all that waits, shard by shard. */
async function evaluateAll({ test }: World): Promise<Work> {
  const work = { ms: 0, longestMs: 0, transactions: 0, fired: 0 };
  for (;;) {
    const shards = await waitingShards(test.db, STAGE);
    if (shards.length === 0) return work;
    for (const shard of shards) {
      const begunMs = performance.now();
      const done = await workShard(test.db, STAGE, shard, { limit: BATCH, order: 'oldest' }, evaluateAlerts);
      const ms = performance.now() - begunMs;
      expect(done.parked).toEqual([]);
      work.ms += ms;
      work.longestMs = Math.max(work.longestMs, ms);
      work.transactions += 1;
      for (const { fired } of done.results) work.fired += fired.length;
    }
  }
}

async function price({ test }: World, tokenIds: readonly bigint[], text: string): Promise<void> {
  const asOfMs = Date.now();
  await test.db.transaction((tx) =>
    writePrices(
      tx,
      tokenIds.map((tokenId) => ({ tokenId, asOfMs, price: decimal(text) })),
    ),
  );
}

/** Batches of a thousand changed prices, all of one shard, hence of one claim: milliseconds of each evaluation. */
async function rounds(): Promise<{ few: number[]; many: number[] }> {
  const ofOneShard = Array.from({ length: Math.floor(TOKENS / 16) }, (_, n) => BigInt(16 * (n + 1)));
  const samples = { few: [] as number[], many: [] as number[] };
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
    const from = (round * BATCH) % Math.max(1, ofOneShard.length - BATCH);
    for (const name of ['few', 'many'] as const) {
      const world = name === 'few' ? few : many;
      await price(world, ofOneShard.slice(from, from + BATCH), String((5_000 + round) / 10_000));
      const work = await evaluateAll(world);
      expect([work.fired, work.transactions]).toEqual([0, 1]);
      if (round >= WARM_UP_ROUNDS) samples[name].push(work.ms);
    }
  }
  return samples;
}

function spread(samples: readonly number[]): string {
  return `p50 ${percentile(samples, 0.5).toFixed(1)} ms, p95 ${percentile(samples, 0.95).toFixed(1)} ms`;
}

it('a batch of a thousand prices, beside the same one with few alerts', async () => {
  const samples = await rounds();
  printFigures([
    {
      what: `${whole(BATCH)} changed prices, ${whole(ALERTS)} alerts, ${whole(TOKENS)} tokens`,
      measured: spread(samples.many),
      baseline: `${whole(FEW_ALERTS)} alerts: ${spread(samples.few)}`,
      ratio: (percentile(samples.many, 0.5) / percentile(samples.few, 0.5)).toFixed(2),
      goal: '<= 2',
    },
  ]);
});

it('ten thousand alerts on one token at once', async () => {
  const { test, accountId } = many;
  const mint = 'crowded';
  const tokenId = (await ensureTokens(test.db, [mint], 'USD')).get(mint) ?? 0n;
  await test.db.query(INSERT_CROWD, [accountId, tokenId, CROWD]);
  const created: { idle: number[]; meanwhile: number[] } = { idle: [], meanwhile: [] };
  const create = async (samples: number[]) => {
    const begunMs = performance.now();
    const request = { tokenMint: mint, condition: 'below', target: decimal('0.01') } as const;
    await test.db.transaction((tx) => createAlert(tx, accountId, request));
    samples.push(performance.now() - begunMs);
  };
  for (let n = 0; n < 50; n++) await create(created.idle);
  await evaluateAll(many);

  const rssBefore = process.memoryUsage().rss;
  let rssPeak = rssBefore;
  await price(many, [tokenId], '0.99');
  const begunMs = performance.now();
  let isDone = false;
  const firing = evaluateAll(many).finally(() => {
    isDone = true;
  });
  while (!isDone) {
    await create(created.meanwhile);
    rssPeak = Math.max(rssPeak, process.memoryUsage().rss);
  }
  const fired = await firing;
  const firedMs = performance.now() - begunMs;
  expect((await test.db.query(STORED))[0]).toEqual({ triggered: CROWD, events: CROWD, deliveries: CROWD });

  const plainBegunMs = performance.now();
  for (const statement of PLAIN_FIRING) await test.db.query(statement);
  const plainMs = performance.now() - plainBegunMs;

  printFigures([
    {
      what: `firing ${whole(CROWD)} alerts on one token`,
      measured: `${whole((CROWD * 1_000) / firedMs)} alerts/s, events and deliveries with them`,
      baseline: `plain INSERT .. SELECT: ${whole((CROWD * 1_000) / plainMs)}/s`,
      ratio: (firedMs / plainMs).toFixed(1),
      goal: '<= 10',
    },
    {
      what: 'creating alerts on that token meanwhile',
      measured: `${spread(created.meanwhile)} (${created.meanwhile.length})`,
      baseline: `nothing else going on: ${spread(created.idle)}`,
      ratio: (percentile(created.meanwhile, 0.5) / percentile(created.idle, 0.5)).toFixed(1),
      goal: 'never waits for the evaluator',
    },
  ]);
  const mib = (bytes: number) => `${whole(bytes / 1_048_576)} MiB`;
  console.log(
    `firing: ${fired.transactions} transactions, the longest ${whole(fired.longestMs)} ms; ` +
      `memory ${mib(rssBefore)} before, ${mib(rssPeak)} at most`,
  );
});
