import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../src/domain/values/ids.ts';
import { parseSecretsKeys } from '../../src/domain/values/secret-keys.ts';
import { sql } from '../../src/store/db/tx.ts';
import { createSecretBox } from '../../src/webhooks/secret-box.ts';
import { anAccount, aSubscription } from '../factories/alerts.ts';
import { aDelivery } from '../factories/deliveries.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import { OddswireProcess, type Surroundings, startSurroundings, WEBHOOK_SECRET } from '../support/processes/system.ts';

/** The claim of the killed process does not end by its time during the test. */
const HOLD_DELIVERY = sql(
  'test_hold_delivery',
  `UPDATE delivery SET locked_until = now() + interval '1 hour' WHERE pk = $1 AND locked_until IS NOT NULL`,
);
const HOLD_POLLS = sql(
  'test_hold_polls',
  `UPDATE poll_state SET lease_until = now() + interval '1 hour' WHERE lease_token = ANY ($1::text[])`,
);
const HELD_POLLS = sql(
  'test_held_polls',
  'SELECT kind, lease_token AS token FROM poll_state WHERE lease_until > clock_timestamp()',
);
const SUCCEEDED = sql('test_succeeded', 'SELECT kind FROM poll_state WHERE last_success_at IS NOT NULL');

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

async function start(name: 'poller' | 'deliverer'): Promise<OddswireProcess> {
  const process = new OddswireProcess(name, surroundings.environment);
  processes.push(process);
  await process.start();
  return process;
}

describe('a second process', () => {
  it('repeats the attempt of a killed deliverer without waiting for the end of its claim', async () => {
    const { receiver, environment } = surroundings;
    const { db } = database;
    receiver.replyWith(() => undefined);
    const accountId = await anAccount(db);
    const id = newId('wh');
    const box = createSecretBox(parseSecretsKeys(environment['SECRETS_KEYS'] ?? ''));
    const sealedSecret = box.seal(WEBHOOK_SECRET, id);
    const subscriptionPk = await aSubscription(db, { id, accountId, url: `${receiver.url}/hook`, sealedSecret });
    const { pk, eventId } = await aDelivery(db, { accountId, subscriptionPk });
    const first = await start('deliverer');
    await receiver.waitForCount(1, 60_000);
    await start('deliverer');
    receiver.replyWith({});

    await first.end('SIGKILL');
    await db.query(HOLD_DELIVERY, [pk]);

    const requests = await receiver.waitForCount(2, 60_000);
    expect(requests.map(({ headers }) => headers['webhook-id'])).toEqual([eventId, eventId]);
    expect(requests.map(({ headers }) => headers['x-webhook-attempt'])).toEqual(['1', '1']);
  });

  it('continues the polls of a killed poller without waiting for the end of their leases', async () => {
    const { exchange } = surroundings;
    const { db } = database;
    exchange.addFault({ host: '*', kind: 'hang' });
    const first = await start('poller');
    const held = await eventually(
      () => db.query<{ kind: string; token: string }>(HELD_POLLS),
      (polls) => polls.length > 0,
    );
    await start('poller');

    await first.end('SIGKILL');
    await db.query(HOLD_POLLS, [held.map(({ token }) => token)]);
    exchange.clearFaults();

    await eventually(
      async () => (await db.query<{ kind: string }>(SUCCEEDED)).map(({ kind }) => kind),
      (kinds) => held.every(({ kind }) => kinds.includes(kind)),
    );
  });
});
