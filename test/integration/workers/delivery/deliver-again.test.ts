import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { parseSecretsKeys } from '../../../../src/domain/values/secret-keys.ts';
import { generateSecret, verifyBody } from '../../../../src/domain/webhooks/signature.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { recoverDeliveries, retryDelivery } from '../../../../src/store/deliveries/recovery.ts';
import { rotateSecret } from '../../../../src/store/deliveries/subscriptions.ts';
import { createSecretBox } from '../../../../src/webhooks/secret-box.ts';
import { storedAttempts, storedDelivery, storedSubscription } from '../../../factories/deliveries.ts';
import { capturedLog } from '../worker-harness.ts';
import { deliveryDesk } from './delivery-desk.ts';

const MAKE_DUE = sql('test_make_due_again', 'UPDATE delivery SET next_attempt_at = now() WHERE subscription_pk = $1');
const END_OVERLAP = sql(
  'test_end_overlap',
  'UPDATE webhook_subscription SET previous_secret_until = now() WHERE pk = $1',
);
const SPOIL_PREVIOUS = sql(
  'test_spoil_previous',
  'UPDATE webhook_subscription SET previous_sealed_secret = $2 WHERE pk = $1',
);

const desk = deliveryDesk({ WEBHOOK_RETRY_SCHEDULE: '60,600' });
const { box, due, newRequests, run } = desk;
const subscribed = (secret = generateSecret()) => desk.subscribed({ secret });

describe('a delivery during the rotation of a secret', () => {
  const rotate = (id: string, secret: string) =>
    desk.db.transaction((tx) => rotateSecret(tx, desk.accountId, id, box.seal(secret, id), () => false));

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
      await desk.db.query(END_OVERLAP, [pk]);
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
    await desk.db.query(SPOIL_PREVIOUS, [pk, 'garbage']);
    const spoiled = await due(pk);
    const { log, lines } = capturedLog();
    await run(pk, { log });
    expect(await storedDelivery(desk.db, spoiled.pk)).toMatchObject({ status: 'delivered' });
    expect(lines.join('')).toContain('previous secret unusable');

    const otherBox = createSecretBox(parseSecretsKeys(`k2:${Buffer.alloc(32, 2).toString('base64')}`));
    await desk.db.query(SPOIL_PREVIOUS, [pk, otherBox.seal(generateSecret(), id)]);
    const waiting = await due(pk);
    await run(pk);
    expect(await storedDelivery(desk.db, waiting.pk)).toMatchObject({ status: 'pending', attemptCount: 0 });
  });
});

describe('a repeated delivery', () => {
  /** A delivery with an exhausted schedule. */
  async function exhausted() {
    const { id, pk } = await subscribed();
    const delivery = await due(pk);
    desk.receiver.replyWith({ status: 500 });
    for (let attempt = 1; attempt <= 3; attempt++) {
      await desk.db.query(MAKE_DUE, [pk]);
      await run(pk);
    }
    expect(await storedDelivery(desk.db, delivery.pk)).toMatchObject({ status: 'failed', attemptCount: 3 });
    expect(await storedSubscription(desk.db, pk)).toMatchObject({ exhaustedCount: 1 });
    return { id, pk, delivery };
  }

  const retry = (id: string, deliveryId: string) =>
    desk.db.transaction((tx) => retryDelivery(tx, desk.accountId, id, deliveryId));

  it('makes one attempt with the next number when it was exhausted, and is not exhausted a second time', async () => {
    const { id, pk, delivery } = await exhausted();
    expect(await retry(id, delivery.id)).toMatchObject({ outcome: 'retried' });
    await run(pk);
    expect(await storedDelivery(desk.db, delivery.pk)).toMatchObject({ status: 'failed', attemptCount: 4 });
    expect(await storedSubscription(desk.db, pk)).toMatchObject({ exhaustedCount: 1 });
    desk.receiver.replyWith({});
    await retry(id, delivery.id);
    await run(pk);
    expect(await storedDelivery(desk.db, delivery.pk)).toMatchObject({ status: 'delivered', attemptCount: 5 });
    expect(await storedSubscription(desk.db, pk)).toMatchObject({ exhaustedCount: 0, failingSince: null });
    expect(newRequests().map(({ headers }) => headers['x-webhook-attempt'])).toEqual(['1', '2', '3', '4', '5']);
    expect(new Set(newRequests().map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  });

  it('continues with the rest of its schedule when it was cancelled', async () => {
    const { id, pk } = await subscribed();
    const delivery = await due(pk, { status: 'cancelled', attemptCount: 1 });
    desk.receiver.replyWith({ status: 500 });
    await retry(id, delivery.id);
    await run(pk);
    const { dueIn, ...stored } = await storedDelivery(desk.db, delivery.pk);
    expect(stored).toMatchObject({ status: 'pending', attemptCount: 2 });
    expect(dueIn).toBeGreaterThan(400);
  });

  it('starts its whole schedule again when it is recovered', async () => {
    const { id, pk, delivery } = await exhausted();
    const since = new Date(Date.now() - 3_600_000);
    const recover = () =>
      recoverDeliveries({
        db: desk.db,
        accountId: desk.accountId,
        subscriptionId: id,
        since,
        onCommit: () => undefined,
      });
    expect(await recover()).toEqual({ outcome: 'recovered', recovered: 1 });
    await run(pk);
    const { dueIn, ...stored } = await storedDelivery(desk.db, delivery.pk);
    expect(stored).toMatchObject({ status: 'pending', attemptCount: 4 });
    expect(dueIn).toBeLessThan(100);
    for (let attempt = 5; attempt <= 6; attempt++) {
      await desk.db.query(MAKE_DUE, [pk]);
      await run(pk);
    }
    expect(await storedDelivery(desk.db, delivery.pk)).toMatchObject({ status: 'failed', attemptCount: 6 });
    expect(await storedAttempts(desk.db, delivery.pk)).toHaveLength(6);
    expect(await storedSubscription(desk.db, pk)).toMatchObject({ exhaustedCount: 2 });
  });

  it('counts no failure of the receiver when its secret cannot be opened', async () => {
    const { pk } = await subscribed();
    await desk.db.query(sql('test_spoil', `UPDATE webhook_subscription SET sealed_secret = 'garbage' WHERE pk = $1`), [
      pk,
    ]);
    const delivery = await due(pk);
    await run(pk);
    expect(await storedDelivery(desk.db, delivery.pk)).toMatchObject({ status: 'failed' });
    expect(await storedSubscription(desk.db, pk)).toMatchObject({ exhaustedCount: 0, failingSince: null });
  });
});
