import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { newId } from '../../src/domain/values/ids.ts';
import { parseSecretsKeys } from '../../src/domain/values/secret-keys.ts';
import { sql } from '../../src/store/db/tx.ts';
import { createSecretBox } from '../../src/webhooks/secret-box.ts';
import { anAccount, aSubscription } from '../factories/alerts.ts';
import { emitOrdered } from '../factories/deliveries.ts';
import { eventually } from '../support/eventually.ts';
import { expectMarked, expectOrdered } from '../support/ordered-receipts.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import { OddswireProcess, type Surroundings, startSurroundings, WEBHOOK_SECRET } from '../support/processes/system.ts';
import { replayCommand, streamOf } from './campaign/seed.ts';

const KILLS = 20;
const MARKETS = ['a', 'b', 'c', 'd', 'e', 'f'];
const PENDING = sql('test_left_ordered', `SELECT count(*)::int AS rows FROM delivery WHERE status = 'pending'`);

/** One event in 32: the receiver knows it before the test does. */
const isRejected = (eventId: string) => Number.parseInt(eventId.slice(-2), 16) < 8;

let database: TestDatabase;
let surroundings: Surroundings;
const processes: OddswireProcess[] = [];
beforeEach(async () => {
  database = await createTestDatabase();
  surroundings = await startSurroundings({ databaseUrl: database.url });
});
afterEach(async () => {
  await Promise.all(processes.splice(0).map((process) => process.end('SIGTERM')));
  await surroundings?.close();
  await database?.drop();
});

async function start(): Promise<OddswireProcess> {
  const environment = { ...surroundings.environment, WEBHOOK_RETRY_SCHEDULE: '1,1' };
  const process = new OddswireProcess('deliverer', environment);
  processes.push(process);
  await process.start();
  return process;
}

it('an ordered webhook gets the events of each key in order when deliverers are killed', async () => {
  const random = streamOf('ordered kills', 'postgres');
  const { receiver, environment } = surroundings;
  const { db } = database;
  const accountId = await anAccount(db);
  const id = newId('wh');
  const sealedSecret = createSecretBox(parseSecretsKeys(environment['SECRETS_KEYS'] ?? '')).seal(WEBHOOK_SECRET, id);
  const url = `${receiver.url}/hook`;
  const subscriptionPk = await aSubscription(db, { id, accountId, url, sealedSecret, orderBy: 'market' });
  const rejected = new Set<string>();
  receiver.replyWith(({ headers }) => ({
    status: isRejected(String(headers['webhook-id'])) ? 500 : 200,
    // Long enough that a kill often meets an attempt in flight.
    delayMs: 30,
  }));
  const emitted = new Map(MARKETS.map((market) => [market, [] as string[]]));
  let isOver = false;
  const emitting = (async () => {
    while (!isOver) {
      const markets = Array.from({ length: random.between(1, 8) }, () => random.pick(MARKETS));
      const ids = await emitOrdered(db, accountId, subscriptionPk, markets);
      for (const [index, eventId] of ids.entries()) {
        emitted.get(markets[index] ?? '')?.push(eventId);
        if (isRejected(eventId)) rejected.add(eventId);
      }
      await delay(random.between(20, 200));
    }
  })();
  try {
    const running = [await start(), await start()];
    for (let kill = 0; kill < KILLS; kill += 1) {
      await delay(random.between(200, 1_500));
      const [victim] = running.splice(random.between(0, 1), 1);
      await victim?.end('SIGKILL');
      running.push(await start());
    }
  } finally {
    isOver = true;
    await emitting;
  }
  await eventually(
    async () => (await db.query<{ rows: number }>(PENDING))[0]?.rows ?? 0,
    (left) => left === 0,
    { timeoutMs: 180_000 },
  );
  const events = [...emitted.values()].flat().length;
  process.stdout.write(`ordered: ${events} events, ${receiver.requests.length} requests, ${rejected.size} skipped\n`);
  try {
    expectOrdered(receiver.requests, emitted);
    expectMarked(receiver.requests, emitted, rejected);
    expect(events).toBeGreaterThan(KILLS);
  } catch (error) {
    process.stdout.write(`${replayCommand()}\n`);
    throw error;
  }
});
