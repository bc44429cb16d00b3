import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, inject, it } from 'vitest';
import { decimal } from '../src/domain/values/decimal.ts';
import { newId } from '../src/domain/values/ids.ts';
import { createLogger } from '../src/observe/logger.ts';
import { createQueueBackend } from '../src/queues/backend.ts';
import { createProducer, type Producer } from '../src/queues/producer.ts';
import { ensureTokens } from '../src/store/catalog/tokens.ts';
import { Partitions } from '../src/store/db/partitions.ts';
import { sql } from '../src/store/db/tx.ts';
import { signalLanes } from '../src/store/marks/lane-signals.ts';
import { shardsOf } from '../src/store/marks/marks.ts';
import { writePrices } from '../src/store/prices/prices.ts';
import { isAvailable } from '../test/support/redis/queue-backends.ts';
import { type BareReceiver, startBareReceiver } from './support/bare-peer.ts';
import { aDeliveryWorld, type DeliveryWorld } from './support/delivery-world.ts';
import { percentile, sizeOf, whole } from './support/numbers.ts';
import { report } from './support/report.ts';

/** BENCH_SECONDS=20 for publishable figures; the default is a quick run. */
const SECONDS = sizeOf('BENCH_SECONDS', 5);
/** Alerts for the warm-up of the fresh processes; not counted. */
const WARM_UP = 50;
const PER_SECOND = 50;

let receiver: BareReceiver;
let world: DeliveryWorld;
beforeAll(async () => {
  receiver = await startBareReceiver();
});
beforeEach(async () => {
  world = await aDeliveryWorld(receiver);
});
afterEach(() => world.stop());
afterAll(() => receiver.stop());

const INSERT_ALERTS = sql(
  'bench_alerts',
  `INSERT INTO alert (id, account_id, token_id, condition, target, webhook_pk)
   SELECT id, $1, token_id, 'above', 0.5, $4 FROM unnest($2::text[], $3::bigint[]) AS a (id, token_id)`,
);

const EVENTS_OF_TOKENS = sql(
  'bench_events_of_tokens',
  'SELECT event_id, token_id FROM alert WHERE event_id IS NOT NULL',
);

/** One alert per token, with prices stored as by the poller, at a steady pace. */
async function priceSeenLatencies(producer: Producer, webhookPk: bigint) {
  const { db, accountId } = world;
  const outcomeIds = Array.from({ length: WARM_UP + SECONDS * PER_SECOND }, (_, index) => `token-${index}`);
  const tokens = await db.transaction((tx) => ensureTokens(tx, outcomeIds, 'USD'));
  const tokenIds = outcomeIds.map((outcomeId) => tokens.get(outcomeId) ?? 0n);
  await db.query(INSERT_ALERTS, [
    accountId,
    tokenIds.map(() => newId('alert')),
    tokenIds.map(String),
    String(webhookPk),
  ]);
  await receiver.forget();
  const seenAtMs: number[] = [];
  const storingMs: number[] = [];
  for (const tokenId of tokenIds) {
    const nextAtMs = performance.now() + 1_000 / PER_SECOND;
    const atMs = Date.now();
    seenAtMs.push(atMs);
    const { movedTokenIds } = await db.transaction((tx) =>
      writePrices(tx, [{ tokenId, asOfMs: atMs, price: decimal('0.6') }]),
    );
    producer.wakeStage('evaluate-alerts', shardsOf(movedTokenIds));
    storingMs.push(Date.now() - atMs);
    await delay(Math.max(0, nextAtMs - performance.now()));
  }
  const arrivals = await receiver.arrivals(tokenIds.length);
  const order = new Map(
    (await db.query<{ eventId: string; tokenId: bigint }>(EVENTS_OF_TOKENS)).map((row) => [row.eventId, row.tokenId]),
  );
  const latenciesMs = arrivals.map(([eventId, atMs]) => {
    const index = tokenIds.indexOf(order.get(eventId) ?? -1n);
    return atMs - (seenAtMs[index] ?? Number.NaN);
  });
  return { latenciesMs: latenciesMs.slice(WARM_UP), storingMs: storingMs.slice(WARM_UP) };
}

describe.each(['postgres', 'redis'] as const)('over %s', (kind) => {
  it.skipIf(!isAvailable(kind))('measures a price from its receipt to its POST at the receiver', async () => {
    const prefix = `b${randomBytes(6).toString('hex')}`;
    const redisUrl = kind === 'redis' ? inject('redisUrl') : null;
    const log = createLogger({ process: 'bench', level: 'warn' });
    const redis = redisUrl === null ? {} : { redisUrl };
    const backend = createQueueBackend({ databaseUrl: world.databaseUrl, prefix, workers: 0, log, ...redis });
    const producer = createProducer({
      backend,
      log,
      signal: (lanes, wakesPublisher) => signalLanes(world.db, lanes, wakesPublisher),
    });
    const environment: Record<string, string> = {
      QUEUE_PREFIX: prefix,
      ...(redisUrl !== null && { REDIS_URL: redisUrl }),
    };
    await new Partitions(world.db).ensureAroundNow('observation');
    await new Partitions(world.db).ensureAroundNow('price_history');
    const [webhook = 0n] = await world.subscribe(['/hook/1']);
    await world.start('alerter', environment);
    await world.start('deliverer', environment);
    const seen = await priceSeenLatencies(producer, webhook);
    await producer.close();
    await backend.close();
    const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => percentile(seen.latenciesMs, share)) as [
      number,
      number,
      number,
    ];
    const baseline = `storing the price alone: p50 ${whole(percentile(seen.storingMs, 0.5))} ms`;
    report([
      {
        title: `price seen to POST received, ${kind}, ${PER_SECOND} alerts/s`,
        measured: `p50 ${p50} ms, p95 ${p95} ms`,
        baseline,
        goal: { atMost: 100, of: { name: 'p95', value: p95, unit: 'ms' } },
      },
      {
        title: `price seen to POST received, ${kind}, ${PER_SECOND} alerts/s`,
        measured: `p50 ${p50} ms, p99 ${p99} ms`,
        baseline,
        ratio: p50 / percentile(seen.storingMs, 0.5),
        goal: { atMost: 250, of: { name: 'p99', value: p99, unit: 'ms' } },
      },
    ]);
  });
});
