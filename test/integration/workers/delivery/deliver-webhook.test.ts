import type { Worker } from 'bullmq';
import { Webhook } from 'standardwebhooks';
import { afterEach, describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { parseSecretsKeys } from '../../../../src/domain/values/secret-keys.ts';
import { headersOwner } from '../../../../src/domain/webhooks/headers.ts';
import { generateSecret } from '../../../../src/domain/webhooks/signature.ts';
import { createProducer } from '../../../../src/queues/producer.ts';
import { Database, sql, type Tx } from '../../../../src/store/db/tx.ts';
import { claimTogether, MAX_IN_FLIGHT } from '../../../../src/store/deliveries/claims.ts';
import { findDeliveryWithLog } from '../../../../src/store/deliveries/reads.ts';
import { createSecretBox } from '../../../../src/webhooks/secret-box.ts';
import { deliverWebhook } from '../../../../workers/jobs/deliver-webhook.ts';
import { createProcessor } from '../../../../workers/process/define.ts';
import { storedAttempts, storedDelivery, storedSubscription } from '../../../factories/deliveries.ts';
import { GUARD_MS } from '../../../support/eventually.ts';
import { gate } from '../../../support/gate.ts';
import { BACKENDS, createTestBackend, isAvailable } from '../../../support/redis/queue-backends.ts';
import { capturedLog, LosableDatabase, RING, until, wakeRecorder } from '../worker-harness.ts';
import { deliveryDesk } from './delivery-desk.ts';

const COUNT = sql(
  'test_count_deliveries',
  `SELECT status, count(*)::int AS rows, count(locked_until)::int AS locked FROM delivery
   WHERE subscription_pk = $1 GROUP BY status ORDER BY status`,
);
const ATTEMPT_TEXT = sql('test_attempt_text', 'SELECT a::text AS text FROM delivery_attempt a WHERE delivery_pk = $1');
const MAKE_DUE = sql('test_make_due', 'UPDATE delivery SET next_attempt_at = now() WHERE subscription_pk = $1');

const desk = deliveryDesk();
const { context, due, newRequests, run, subscribed } = desk;

describe('a delivery', () => {
  it.each([
    ['a generated secret', generateSecret(), undefined],
    ['a secret of the client', 'correct horse battery staple', { format: 'raw' } as const],
  ])('with %s arrives once, with both signatures over the stored bytes', async (_name, secret, format) => {
    const { id, pk } = await subscribed({ secret });
    const body = '{"id":"evt","type":"price_alert","data":{"price":0.10,"title":"Ż 🎲 \\u0000"}}';
    const delivery = await due(pk, { body });
    expect(await run(pk)).toEqual({ attempts: 1 });
    const [request, ...others] = newRequests();
    expect(others).toEqual([]);
    const text = request?.body.toString('utf8') ?? '';
    expect(text).toBe(body);
    const headers = request?.headers as Record<string, string>;
    expect(new Webhook(secret, format).verify(text, headers)).toEqual(JSON.parse(body));
    expect(headers).toMatchObject({
      'webhook-id': delivery.eventId,
      'x-webhook-id': id,
      'x-webhook-event': 'price_alert',
      'x-webhook-delivery': delivery.id,
      'x-webhook-attempt': '1',
      'x-webhook-signature': expect.stringMatching(/^sha256=[0-9a-f]{64}$/),
    });
    expect(await storedDelivery(desk.db, delivery.pk)).toMatchObject({ status: 'delivered', attemptCount: 1 });
    expect(await storedAttempts(desk.db, delivery.pk)).toMatchObject([
      { attemptNumber: 1, outcome: 'delivered', statusCode: 200, responseExcerpt: Buffer.from('{"received":true}') },
    ]);
  });

  it('is postponed by the schedule when the receiver rejects it, with a wake-up for its retry', async () => {
    const { pk } = await subscribed();
    const delivery = await due(pk);
    desk.receiver.replyWith({ status: 503, headers: { 'retry-after': '20' }, body: 'busy' });
    const producer = wakeRecorder();
    const startedMs = performance.now();
    await run(pk, { producer }, { WEBHOOK_RETRY_SCHEDULE: '10,3600' });
    const { dueIn, ...stored } = await storedDelivery(desk.db, delivery.pk);
    const passedSeconds = (performance.now() - startedMs) / 1_000;
    expect(stored).toMatchObject({ status: 'pending', attemptCount: 1, lastStatusCode: 503, isLocked: false });
    expect(dueIn + passedSeconds).toBeGreaterThanOrEqual(20);
    expect(dueIn).toBeLessThanOrEqual(24);
    expect(producer.woken).toEqual([expect.stringMatching(new RegExp(`^deliver-webhook ${pk} in 2[0-4]\\d{3}$`))]);

    await desk.db.query(MAKE_DUE, [pk]);
    await run(pk, { producer }, { WEBHOOK_RETRY_SCHEDULE: '10,3600' });
    expect(producer.woken).toHaveLength(1);
    expect((await storedDelivery(desk.db, delivery.pk)).dueIn).toBeGreaterThan(2_800);

    await desk.db.query(MAKE_DUE, [pk]);
    await run(pk, { producer }, { WEBHOOK_RETRY_SCHEDULE: '10,3600' });
    expect(await storedDelivery(desk.db, delivery.pk)).toMatchObject({ status: 'failed', attemptCount: 3 });
    expect(newRequests().map(({ headers }) => headers['x-webhook-attempt'])).toEqual(['1', '2', '3']);
    expect(await storedSubscription(desk.db, pk)).toMatchObject({ exhaustedCount: 1, status: 'active' });
    expect(await run(pk)).toEqual({ attempts: 0 });
  });

  it('pauses the subscription and cancels the rest when the receiver is gone', async () => {
    const { pk } = await subscribed();
    for (let count = 0; count < 20; count++) await due(pk, { dueInSeconds: -count });
    desk.receiver.replyWith({ status: 410 });
    const { log, lines } = capturedLog();
    await run(pk, { log });
    expect(newRequests().length).toBeLessThanOrEqual(MAX_IN_FLIGHT);
    expect(await storedSubscription(desk.db, pk)).toMatchObject({ status: 'paused', pauseReason: 'gone' });
    const rows = await desk.db.query<{ status: string; rows: number }>(COUNT, [pk]);
    expect(rows.map((row) => row.status)).toEqual(['cancelled', 'failed']);
    expect(lines.filter((line) => line.includes('subscription paused'))).toHaveLength(1);
  });

  it('of a test event is sent during a pause, in one attempt', async () => {
    const { pk } = await subscribed({ status: 'paused' });
    const real = await due(pk);
    const sample = await due(pk, { isTest: true });
    desk.receiver.replyWith({ status: 500 });
    await run(pk);
    expect(newRequests().map(({ headers }) => headers['x-webhook-event'])).toEqual(['test']);
    expect(await storedDelivery(desk.db, sample.pk)).toMatchObject({ status: 'failed', attemptCount: 1 });
    expect(await storedDelivery(desk.db, real.pk)).toMatchObject({ status: 'cancelled' });
    expect(await storedSubscription(desk.db, pk)).toMatchObject({ failingSince: null, exhaustedCount: 0 });
  });

  it('stores the headers of the answer without any value that may be a secret, also not in the log', async () => {
    const secret = generateSecret();
    const ownHeader = 'own-header-value';
    const id = newId('wh');
    const { pk } = await subscribed({
      id,
      secret,
      path: 'T0123456789abcdef0/x?key=query-value',
      sealedHeaders: desk.box.seal(JSON.stringify({ 'X-Own': ownHeader }), headersOwner(id)),
    });
    const delivery = await due(pk);
    const values = [
      'cookie-value',
      'authorization-value',
      'proxy-value',
      'challenge-value',
      'bearer-value',
      'location-value',
    ];
    desk.receiver.replyWith(({ headers }) => ({
      status: 302,
      headers: {
        'X-Request-Id': 'r-1',
        'Set-Cookie': 'sid=cookie-value',
        Authorization: 'authorization-value',
        'Proxy-Authenticate': 'NTLM proxy-value',
        'WWW-Authenticate': 'Negotiate challenge-value',
        'X-Upstream': 'Bearer bearer-value',
        'X-Echo-Own': String(headers['x-own']),
        'X-Echo-Secret': secret,
        'X-Echo-Address': 'https://a.test/T0123456789abcdef0/x',
        'X-Echo-Query': 'query-value',
        'X-Echo-Signature': String(headers['webhook-signature']),
        Location: 'https://a.test/login?next=location-value',
      },
    }));
    const { log, lines } = capturedLog();
    await run(pk, { log });
    const [stored] = await desk.db.query<{ text: string }>(ATTEMPT_TEXT, [delivery.pk]);
    const all = [stored?.text ?? '', ...lines].join('');
    const hidden = [...values, secret.slice('whsec_'.length), ownHeader, 'T0123456789abcdef0', 'query-value', 'v1,'];
    expect(hidden.filter((value) => all.includes(value))).toEqual([]);
    const [attempt] = (await findDeliveryWithLog(desk.db, pk, delivery.id))?.attemptLog ?? [];
    expect(attempt?.responseHeaders).toMatchObject({
      headers: expect.arrayContaining([
        ['x-request-id', 'r-1'],
        ['location', 'https://a.test/login?…'],
      ]),
      removed: 10,
      omitted: 0,
    });
  });

  it('writes no secret, signature or body to the log', async () => {
    const secret = generateSecret();
    const { pk } = await subscribed({ secret });
    await due(pk, { body: '{"marker":"body-text"}' });
    const { log, lines } = capturedLog();
    await run(pk, { log });
    const all = lines.join('');
    expect(all).toContain('delivery attempted');
    expect(all).not.toContain(secret.slice('whsec_'.length));
    expect(all).not.toContain('body-text');
    expect(all).not.toContain('sha256=');
  });
});

describe('a delivery with a fault on our side', () => {
  it('waits without using up an attempt when a key is missing', async () => {
    const { pk } = await subscribed();
    const delivery = await due(pk);
    const otherRing = createSecretBox(parseSecretsKeys(`k2:${Buffer.alloc(32, 2).toString('base64')}`));
    const { log, lines } = capturedLog();
    await run(pk, { secretBox: otherRing, log });
    expect(lines.map((line) => JSON.parse(line)).filter(({ level }) => level === 'error')).toEqual([
      expect.objectContaining({
        msg: 'delivery postponed: SECRETS_KEYS has no key for the secret of the webhook',
        kid: parseSecretsKeys(RING)[0]?.kid,
        deliveryId: delivery.id,
      }),
    ]);
    const { dueIn, ...stored } = await storedDelivery(desk.db, delivery.pk);
    expect(stored).toMatchObject({ status: 'pending', attemptCount: 0, lastError: 'internal_error' });
    expect(dueIn).toBeGreaterThan(20);
    expect(await storedAttempts(desk.db, delivery.pk)).toEqual([]);
    expect(newRequests()).toEqual([]);
    await desk.db.query(MAKE_DUE, [pk]);
    await run(pk);
    expect(await storedDelivery(desk.db, delivery.pk)).toMatchObject({ status: 'delivered', attemptCount: 1 });
  });

  it.each([
    ['belongs to another row', 'a secret of some length', { sealedFor: 'wh_other' }],
    ['was overwritten', 'a secret of some length', { sealedSecret: 'garbage' }],
    ['cannot sign', 'whsec_***', {}],
  ])('ends without a request when its secret %s', async (_name, secret, fields) => {
    const { pk } = await subscribed({ secret, ...fields });
    const delivery = await due(pk);
    await run(pk);
    expect(newRequests()).toEqual([]);
    expect(await storedDelivery(desk.db, delivery.pk)).toMatchObject({
      status: 'failed',
      attemptCount: 1,
      lastError: 'protocol_error',
    });
  });

  it('keeps its row when the database is lost, and the job waits for attempts in flight before it fails', async () => {
    const { pk } = await subscribed();
    const quick = await due(pk, { dueInSeconds: -2 });
    const slow = await due(pk, { dueInSeconds: -1 });
    const mayAnswer = gate();
    desk.receiver.replyWith(async ({ headers }) => {
      if (headers['webhook-id'] === slow.eventId) await mayAnswer.opened;
      return {};
    });
    const db = new LosableDatabase(desk.db.dataSource);
    // The first transaction claims both, the second finishes the quick one, the third would claim new due deliveries.
    const claimLost = gate();
    db.loseBefore = (transaction) => {
      if (transaction === 3) claimLost.open();
      return transaction === 3;
    };
    let isSettled = false;
    const job = run(pk, { db }).finally(() => {
      isSettled = true;
    });
    const outcome = expect(job).rejects.toThrow('terminating connection');
    await until(
      () => storedDelivery(desk.db, quick.pk),
      (row) => row.status === 'delivered',
    );
    await due(pk);
    await claimLost.opened;
    expect(isSettled).toBe(false);
    mayAnswer.open();
    await outcome;
    expect(await storedDelivery(desk.db, slow.pk)).toMatchObject({ status: 'delivered' });
  });

  it('repeats the attempt after the end of the lease when the process dies before the commit', async () => {
    const { pk } = await subscribed();
    const delivery = await due(pk);
    const db = new LosableDatabase(desk.db.dataSource);
    db.loseAtCommit = (transaction) => transaction === 2;
    await expect(run(pk, { db })).rejects.toThrow('terminating connection');
    expect(await storedDelivery(desk.db, delivery.pk)).toMatchObject({
      status: 'pending',
      attemptCount: 0,
      isLocked: true,
    });
    expect(await run(pk)).toEqual({ attempts: 0 });
    await desk.db.query(sql('test_end_leases', 'UPDATE delivery SET locked_until = now() WHERE subscription_pk = $1'), [
      pk,
    ]);
    await run(pk);
    const ids = newRequests().map(({ headers }) => headers['webhook-id']);
    expect(ids).toEqual([delivery.eventId, delivery.eventId]);
    expect(await storedAttempts(desk.db, delivery.pk)).toHaveLength(1);
  });
});

describe('deliver-webhook', () => {
  it('sends each delivery once, with at most eight in flight, when two workers share a subscription', async () => {
    const { pk } = await subscribed();
    const rows = await Promise.all(Array.from({ length: 60 }, () => due(pk)));
    let flying = 0;
    let most = 0;
    desk.receiver.replyWith(async () => {
      flying += 1;
      most = Math.max(most, flying);
      await new Promise((resolve) => setImmediate(() => setTimeout(resolve, 10)));
      flying -= 1;
      return {};
    });
    const reports = await Promise.all([run(pk), run(pk), run(pk)]);
    expect(reports.reduce((sum, report) => sum + Number(report['attempts']), 0)).toBe(60);
    expect(most).toBeLessThanOrEqual(MAX_IN_FLIGHT);
    expect(most).toBeGreaterThan(1);
    const sent = newRequests().map(({ headers }) => String(headers['webhook-id']));
    expect(sent.sort()).toEqual(rows.map(({ eventId }) => eventId).sort());
    expect(await desk.db.query(COUNT, [pk])).toEqual([{ status: 'delivered', rows: 60, locked: 0 }]);
  });

  it('finishes its attempts in flight and claims no more when the worker stops', async () => {
    const { pk } = await subscribed();
    for (let count = 0; count < 12; count++) await due(pk);
    const mayAnswer = gate();
    desk.receiver.replyWith(async () => {
      await mayAnswer.opened;
      return {};
    });
    const stopping = new AbortController();
    const job = run(pk, { stopping: stopping.signal });
    await desk.receiver.waitForCount(desk.seen + MAX_IN_FLIGHT, GUARD_MS);
    stopping.abort();
    mayAnswer.open();
    expect(await job).toEqual({ attempts: MAX_IN_FLIGHT });
    expect(await desk.db.query(COUNT, [pk])).toEqual([
      { status: 'delivered', rows: MAX_IN_FLIGHT, locked: 0 },
      { status: 'pending', rows: 4, locked: 0 },
    ]);
    expect(newRequests()).toHaveLength(MAX_IN_FLIGHT);
    expect(await run(pk, { stopping: stopping.signal })).toEqual({ attempts: 0 });
    expect((await claimTogether(desk.db, { subscriptionPk: pk, limit: 8 }))?.deliveries).toHaveLength(4);
  });

  it('does not end with due and unclaimed rows when slots become free during a claim', async () => {
    const { pk } = await subscribed();
    for (let count = 0; count < MAX_IN_FLIGHT + 3; count++) await due(pk);
    // Another worker holds a slot, so the first claim of the job takes fewer rows than are due.
    expect((await claimTogether(desk.db, { subscriptionPk: pk, limit: 1 }))?.deliveries).toHaveLength(1);
    const [mayAnswer, mayReturn] = [gate(), gate()];
    desk.receiver.replyWith(async () => {
      await mayAnswer.opened;
      return {};
    });
    class SlowDatabase extends Database {
      #transactions = 0;
      override async transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
        this.#transactions += 1;
        const isSecondClaim = this.#transactions === 2;
        const result = await super.transaction(work);
        if (isSecondClaim) {
          // The claim found every slot taken. Its answer arrives after all slots of the job are free.
          mayAnswer.open();
          await mayReturn.opened;
        }
        return result;
      }
    }
    const { log, lines } = capturedLog();
    const job = run(pk, { db: new SlowDatabase(desk.db.dataSource), log });
    const attempted = async () => lines.filter((line) => line.includes('delivery attempted')).length;
    await until(attempted, (count) => count === MAX_IN_FLIGHT - 1);
    mayReturn.open();
    expect(await job).toEqual({ attempts: MAX_IN_FLIGHT + 2 });
  });

  it('uses free slots while a slow attempt is in flight', async () => {
    const { pk } = await subscribed();
    const slow = await due(pk, { dueInSeconds: -5 });
    for (let count = 0; count < 20; count++) await due(pk);
    const mayAnswer = gate();
    desk.receiver.replyWith(async ({ headers }) => {
      if (headers['webhook-id'] === slow.eventId) await mayAnswer.opened;
      return {};
    });
    const job = run(pk);
    await desk.receiver.waitForCount(desk.seen + 21, GUARD_MS);
    mayAnswer.open();
    expect(await job).toEqual({ attempts: 21 });
  });
});

describe.each(BACKENDS)('woken over %s', (kind) => {
  const closers: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
  });

  it.skipIf(!isAvailable(kind))('a refused delivery is tried again by itself', async () => {
    const queues = await createTestBackend(kind, 2);
    const { log } = capturedLog();
    const producer = createProducer({ backend: queues.backend, log });
    const deps = context({ producer }, { WEBHOOK_RETRY_SCHEDULE: '1,1' });
    const worker: Worker = queues.backend.worker('deliveries', createProcessor([deliverWebhook], deps), 8);
    worker.on('error', () => undefined);
    closers.push(
      () => worker.close(),
      () => producer.close(),
      () => queues.close(),
    );
    worker.run().catch(() => undefined);
    const { pk } = await subscribed();
    const delivery = await due(pk);
    desk.receiver.replyWith(({ headers }) => ({ status: headers['x-webhook-attempt'] === '1' ? 500 : 200 }));
    producer.wakeDeliveries([pk]);
    const stored = await until(
      () => storedDelivery(desk.db, delivery.pk),
      (row) => row.status === 'delivered',
    );
    expect(stored).toMatchObject({ attemptCount: 2, lastStatusCode: 200, lastError: null });
    expect((await storedAttempts(desk.db, delivery.pk)).map((row) => [row.outcome, row.statusCode])).toEqual([
      ['failed', 500],
      ['delivered', 200],
    ]);
    expect(newRequests().map(({ headers }) => headers['webhook-id'])).toEqual([delivery.eventId, delivery.eventId]);
    expect(newRequests()[1]?.duplicate).toBe(true);
    expect(newRequests()[0]?.body.equals(newRequests()[1]?.body ?? Buffer.alloc(0))).toBe(true);
  });
});
