import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Receiver, startReceiver } from '../../../../sim/receiver.ts';
import { newId } from '../../../../src/domain/values/ids.ts';
import { parseSecretsKeys } from '../../../../src/domain/values/secret-keys.ts';
import { generateSecret, verifyBody } from '../../../../src/domain/webhooks/signature.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { recoverDeliveries, retryDelivery } from '../../../../src/store/deliveries/recovery.ts';
import { rotateSecret } from '../../../../src/store/deliveries/subscriptions.ts';
import { createSecretBox } from '../../../../src/webhooks/secret-box.ts';
import { createSender, type Sender } from '../../../../src/webhooks/sender.ts';
import { deliverWebhook } from '../../../../workers/jobs/deliver-webhook.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { aDelivery, storedAttempts, storedDelivery, storedSubscription } from '../../../factories/deliveries.ts';
import { allowing } from '../../../support/address-rules.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/postgres/database.ts';
import { type ContextFields, capturedLog, jobContext, RING, testConfig } from '../worker-harness.ts';

const SCHEDULE = { WEBHOOK_RETRY_SCHEDULE: '60,600' };
const MAKE_DUE = sql('test_make_due_again', 'UPDATE delivery SET next_attempt_at = now() WHERE subscription_pk = $1');
const END_OVERLAP = sql(
  'test_end_overlap',
  'UPDATE webhook_subscription SET previous_secret_until = now() WHERE pk = $1',
);
const SPOIL_PREVIOUS = sql(
  'test_spoil_previous',
  'UPDATE webhook_subscription SET previous_sealed_secret = $2 WHERE pk = $1',
);

let test: TestDatabase;
let receiver: Receiver;
let sender: Sender;
let accountId: bigint;
let seen = 0;
const box = createSecretBox(parseSecretsKeys(RING));

beforeAll(async () => {
  test = await createTestDatabase();
  receiver = await startReceiver();
  sender = createSender({ version: 'test', rules: allowing('127.0.0.0/8'), extraCaPem: receiver.caPem });
});
afterAll(async () => {
  await sender.close();
  await receiver.close();
  await test.drop();
});
beforeEach(async () => {
  receiver.replyWith({});
  seen = receiver.requests.length;
  accountId = await anAccount(test.db);
});

const newRequests = () => receiver.requests.slice(seen);

async function subscribed(secret = generateSecret()) {
  const id = newId('wh');
  const pk = await aSubscription(test.db, {
    accountId,
    id,
    url: `${receiver.url}/hook`,
    sealedSecret: box.seal(secret, id),
  });
  return { id, pk, secret };
}

const due = (subscriptionPk: bigint) => aDelivery(test.db, { accountId, subscriptionPk });
const run = (subscriptionPk: bigint, fields: Partial<ContextFields> = {}) =>
  deliverWebhook.run(
    { subscriptionPk: String(subscriptionPk) },
    jobContext({ db: test.db, config: testConfig(test.url, SCHEDULE), sender, ...fields }),
  );

describe('a delivery during the rotation of a secret', () => {
  const rotate = (id: string, secret: string) =>
    test.db.transaction((tx) => rotateSecret(tx, accountId, id, box.seal(secret, id), () => false));

  it.each([
    ['generated secrets', generateSecret(), generateSecret()],
    ['secrets of the client', 'correct horse battery staple', 'another one, quite as good'],
  ])(
    'verifies with both %s, the new one first, and after a day with the new one only',
    async (_name, before, after) => {
      const { id, pk } = await subscribed(before);
      await rotate(id, after);
      await due(pk);
      await run(pk);
      await test.db.query(END_OVERLAP, [pk]);
      await due(pk);
      await run(pk);
      const [both, alone] = newRequests();
      const format = (secret: string) => (secret.startsWith('whsec_') ? undefined : ({ format: 'raw' } as const));
      const verify = (request: typeof both, secret: string) => () =>
        new Webhook(secret, format(secret)).verify(
          request?.body.toString('utf8') ?? '',
          request?.headers as Record<string, string>,
        );
      const signatures = (request: typeof both) => String(request?.headers['webhook-signature']).split(' ');
      expect(verify(both, before)).not.toThrow();
      expect(verify(both, after)).not.toThrow();
      expect(verify(alone, after)).not.toThrow();
      expect(verify(alone, before)).toThrow();
      expect([signatures(both).length, signatures(alone).length]).toEqual([2, 1]);
      for (const request of [both, alone]) {
        const header = String(request?.headers['x-webhook-signature']);
        expect(verifyBody(after, request?.body ?? '', header)).toBe(true);
        expect(verifyBody(before, request?.body ?? '', header)).toBe(false);
      }
      // Receivers that do not read a list use the first part, so it belongs to the new secret.
      const headers = { ...(both?.headers as Record<string, string>), 'webhook-signature': signatures(both)[0] ?? '' };
      const first = () => new Webhook(after, format(after)).verify(both?.body.toString('utf8') ?? '', headers);
      expect(first).not.toThrow();
    },
  );

  it('drops the oldest secret at a second rotation', async () => {
    const { id, pk, secret } = await subscribed();
    const [second, third] = [generateSecret(), generateSecret()];
    await rotate(id, second);
    await rotate(id, third);
    await due(pk);
    await run(pk);
    const [request] = newRequests();
    const verify = (by: string) => () =>
      new Webhook(by).verify(request?.body.toString('utf8') ?? '', request?.headers as Record<string, string>);
    expect(verify(third)).not.toThrow();
    expect(verify(second)).not.toThrow();
    expect(verify(secret)).toThrow();
  });

  it('skips a corrupt previous secret, and waits when its key is missing', async () => {
    const { id, pk } = await subscribed();
    await rotate(id, generateSecret());
    await test.db.query(SPOIL_PREVIOUS, [pk, 'garbage']);
    const spoiled = await due(pk);
    const { log, lines } = capturedLog();
    await run(pk, { log });
    expect(await storedDelivery(test.db, spoiled.pk)).toMatchObject({ status: 'delivered' });
    expect(lines.join('')).toContain('previous secret unusable');

    const otherBox = createSecretBox(parseSecretsKeys(`k2:${Buffer.alloc(32, 2).toString('base64')}`));
    await test.db.query(SPOIL_PREVIOUS, [pk, otherBox.seal(generateSecret(), id)]);
    const waiting = await due(pk);
    await run(pk);
    expect(await storedDelivery(test.db, waiting.pk)).toMatchObject({ status: 'pending', attemptCount: 0 });
  });
});

describe('a repeated delivery', () => {
  /** A delivery with an exhausted schedule. */
  async function exhausted() {
    const { id, pk } = await subscribed();
    const delivery = await due(pk);
    receiver.replyWith({ status: 500 });
    for (let attempt = 1; attempt <= 3; attempt++) {
      await test.db.query(MAKE_DUE, [pk]);
      await run(pk);
    }
    expect(await storedDelivery(test.db, delivery.pk)).toMatchObject({ status: 'failed', attemptCount: 3 });
    expect(await storedSubscription(test.db, pk)).toMatchObject({ exhaustedCount: 1 });
    return { id, pk, delivery };
  }

  const retry = (id: string, deliveryId: string) =>
    test.db.transaction((tx) => retryDelivery(tx, accountId, id, deliveryId));

  it('makes one attempt with the next number when it was exhausted, and is not exhausted a second time', async () => {
    const { id, pk, delivery } = await exhausted();
    expect(await retry(id, delivery.id)).toMatchObject({ outcome: 'retried' });
    await run(pk);
    expect(await storedDelivery(test.db, delivery.pk)).toMatchObject({ status: 'failed', attemptCount: 4 });
    expect(await storedSubscription(test.db, pk)).toMatchObject({ exhaustedCount: 1 });
    receiver.replyWith({});
    await retry(id, delivery.id);
    await run(pk);
    expect(await storedDelivery(test.db, delivery.pk)).toMatchObject({ status: 'delivered', attemptCount: 5 });
    expect(await storedSubscription(test.db, pk)).toMatchObject({ exhaustedCount: 0, failingSince: null });
    expect(newRequests().map(({ headers }) => headers['x-webhook-attempt'])).toEqual(['1', '2', '3', '4', '5']);
    expect(new Set(newRequests().map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  });

  it('continues with the rest of its schedule when it was cancelled', async () => {
    const { id, pk } = await subscribed();
    const delivery = await aDelivery(test.db, { accountId, subscriptionPk: pk, status: 'cancelled', attemptCount: 1 });
    receiver.replyWith({ status: 500 });
    await retry(id, delivery.id);
    await run(pk);
    const { dueIn, ...stored } = await storedDelivery(test.db, delivery.pk);
    expect(stored).toMatchObject({ status: 'pending', attemptCount: 2 });
    expect(dueIn).toBeGreaterThan(400);
  });

  it('starts its whole schedule again when it is recovered', async () => {
    const { id, pk, delivery } = await exhausted();
    const since = new Date(Date.now() - 3_600_000);
    const recover = () =>
      recoverDeliveries({ db: test.db, accountId, subscriptionId: id, since, onCommit: () => undefined });
    expect(await recover()).toEqual({ outcome: 'recovered', recovered: 1 });
    await run(pk);
    const { dueIn, ...stored } = await storedDelivery(test.db, delivery.pk);
    expect(stored).toMatchObject({ status: 'pending', attemptCount: 4 });
    expect(dueIn).toBeLessThan(100);
    for (let attempt = 5; attempt <= 6; attempt++) {
      await test.db.query(MAKE_DUE, [pk]);
      await run(pk);
    }
    expect(await storedDelivery(test.db, delivery.pk)).toMatchObject({ status: 'failed', attemptCount: 6 });
    expect(await storedAttempts(test.db, delivery.pk)).toHaveLength(6);
    expect(await storedSubscription(test.db, pk)).toMatchObject({ exhaustedCount: 2 });
  });

  it('counts no failure of the receiver when its secret cannot be opened', async () => {
    const { pk } = await subscribed();
    await test.db.query(sql('test_spoil', `UPDATE webhook_subscription SET sealed_secret = 'garbage' WHERE pk = $1`), [
      pk,
    ]);
    const delivery = await due(pk);
    await run(pk);
    expect(await storedDelivery(test.db, delivery.pk)).toMatchObject({ status: 'failed' });
    expect(await storedSubscription(test.db, pk)).toMatchObject({ exhaustedCount: 0, failingSince: null });
  });
});
