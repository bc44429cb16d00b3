import { afterAll, beforeAll, expect, it } from 'vitest';
import { decimal } from '../src/domain/values/decimal.ts';
import { createAlert } from '../src/store/alerts/alerts.ts';
import { ensureTokens } from '../src/store/catalog/tokens.ts';
import { sql } from '../src/store/db/tx.ts';
import {
  type AlertWorld,
  anAlertWorld,
  BATCH,
  batchCosts,
  evaluateAll,
  price,
  spread,
} from './support/alert-worlds.ts';
import { mib, percentile, sizeOf, whole } from './support/numbers.ts';
import { note, report } from './support/report.ts';

/** BENCH_ALERTS=1000000 for the published figure (250,000 tokens); the default is a quick run. */
const ALERTS = sizeOf('BENCH_ALERTS', 100_000);
const FEW_ALERTS = 10_000;
const TOKENS = ALERTS / 4;
const CROWD = 10_000;

const INSERT_CROWD = sql(
  'bench_crowd',
  `INSERT INTO alert (id, account_id, token_id, condition, target)
   SELECT 'crowd-' || n, $1, $2, 'above', 0.9 + (n % 50)::numeric / 1000 FROM generate_series(1, $3::bigint) n`,
);
/** The baseline of firing: as many rows into the same tables, by one statement each, from data inside the database. */
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
const STORED = sql(
  'bench_fired',
  `SELECT (SELECT count(*)::int FROM alert WHERE id LIKE 'crowd-%' AND status = 'triggered') AS triggered,
     (SELECT count(*)::int FROM event) AS events, (SELECT count(*)::int FROM delivery) AS deliveries`,
);

/** Two databases that differ in the number of alerts only. */
let few: AlertWorld;
let many: AlertWorld;
beforeAll(async () => {
  few = await anAlertWorld({ alerts: FEW_ALERTS, tokens: TOKENS });
  many = await anAlertWorld({ alerts: ALERTS, tokens: TOKENS });
});
afterAll(async () => {
  await few.test.drop();
  await many.test.drop();
});

it('evaluates a batch of a thousand prices, beside the same batch with few alerts', async () => {
  const [besideFew = [], besideMany = []] = await batchCosts([few, many]);
  report([
    {
      title: `${whole(BATCH)} changed prices, ${whole(ALERTS)} alerts, ${whole(TOKENS)} tokens`,
      measured: spread(besideMany),
      baseline: `${whole(FEW_ALERTS)} alerts: ${spread(besideFew)}`,
      ratio: percentile(besideMany, 0.5) / percentile(besideFew, 0.5),
      goal: { atMost: 2 },
    },
  ]);
});

it('fires ten thousand alerts on one token at once', async () => {
  const { test, accountId } = many;
  const tokenMint = 'crowded';
  const tokenId = (await ensureTokens(test.db, [tokenMint], 'USD')).get(tokenMint) ?? 0n;
  await test.db.query(INSERT_CROWD, [accountId, tokenId, CROWD]);
  const created: { idle: number[]; meanwhile: number[] } = { idle: [], meanwhile: [] };
  const create = async (samples: number[]) => {
    const begunMs = performance.now();
    const request = { tokenMint, condition: 'below', target: decimal('0.01') } as const;
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

  report([
    {
      title: `firing ${whole(CROWD)} alerts on one token`,
      measured: `${whole((CROWD * 1_000) / firedMs)} alerts/s, events and deliveries with them`,
      baseline: `plain INSERT .. SELECT: ${whole((CROWD * 1_000) / plainMs)}/s`,
      ratio: firedMs / plainMs,
      goal: { atMost: 10 },
    },
    {
      title: 'creating alerts on that token meanwhile',
      measured: `${spread(created.meanwhile)} (${created.meanwhile.length})`,
      baseline: `no other load: ${spread(created.idle)}`,
      ratio: percentile(created.meanwhile, 0.5) / percentile(created.idle, 0.5),
    },
  ]);
  note(
    `firing: ${fired.transactions} transactions, the longest ${whole(fired.longestMs)} ms; ` +
      `memory ${mib(rssBefore)} before, ${mib(rssPeak)} at most`,
  );
});
