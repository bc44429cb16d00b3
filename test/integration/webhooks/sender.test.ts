import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Receiver, startReceiver } from '../../../sim/receiver.ts';
import { generateSecret } from '../../../src/domain/webhooks/signature.ts';
import type { NameResolver } from '../../../src/webhooks/resolver.ts';
import { createSender, type Sender } from '../../../src/webhooks/sender.ts';
import { GUARD_MS } from '../../support/eventually.ts';
import { delivery, fixedResolver, LOOPBACK, SECRET, testSender } from './deliveries.ts';

describe('one attempt against a well-behaved receiver', () => {
  let receiver: Receiver;
  let sender: Sender;
  let seen = 0;

  beforeAll(async () => {
    receiver = await startReceiver({ secrets: [SECRET] });
    sender = await testSender({ extraCaPem: receiver.caPem });
  });
  beforeEach(() => {
    receiver.replyWith({});
    seen = receiver.requests.length;
  });
  afterAll(async () => {
    await sender.close();
    await receiver.close();
  });

  const newRequests = () => receiver.requests.slice(seen);

  it('posts the documented headers, signed both ways, to path and query', async () => {
    const outcome = await sender.send(delivery(`${receiver.url}/a/b?c=d#not-sent`, { attemptNumber: 3 }));
    expect(outcome).toMatchObject({ kind: 'delivered', statusCode: 200 });
    const [request, ...others] = newRequests();
    expect(others).toEqual([]);
    expect(request).toMatchObject({ method: 'POST', path: '/a/b?c=d', bodySignature: 'ok', standardSignature: 'ok' });
    expect(request?.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'oddswire/1.2.3',
      'x-webhook-id': 'wh_1',
      'x-webhook-event': 'price_alert',
      'x-webhook-delivery': 'dlv_1',
      'x-webhook-attempt': '3',
      'webhook-id': 'evt_1',
      host: `127.0.0.1:${receiver.port}`,
    });
    expect(request?.headers).not.toHaveProperty('accept-encoding');
    expect(request?.headers).not.toHaveProperty('traceparent');
  });

  it('sends exactly the bytes that it signs, for any text', async () => {
    const body = '{"z":1,"a":12345678901234567890.5,"s":"Żółć 選挙 🗳️ \\u0000 \u2028","z2":1e400}';
    await sender.send(delivery(receiver.url, { body }));
    const request = newRequests()[0];
    expect(request?.body.equals(Buffer.from(body, 'utf8'))).toBe(true);
    const expected = createHmac('sha256', SECRET)
      .update(request?.body ?? '')
      .digest('hex');
    expect(request?.headers['x-webhook-signature']).toBe(`sha256=${expected}`);
  });

  it('verifies with the standardwebhooks library, with both secrets of a rotation', async () => {
    const secret = generateSecret();
    await sender.send(delivery(receiver.url, { secrets: [secret, SECRET] }));
    const request = newRequests()[0];
    const headers = request?.headers as Record<string, string>;
    const payload = request?.body.toString('utf8') ?? '';
    expect(new Webhook(secret).verify(payload, headers)).toEqual(JSON.parse(payload));
    expect(new Webhook(SECRET, { format: 'raw' }).verify(payload, headers)).toEqual(JSON.parse(payload));
    const current = createHmac('sha256', secret).update(payload).digest('hex');
    expect(headers['x-webhook-signature']).toBe(`sha256=${current}`);
  });

  it('has its own time in each attempt', async () => {
    const { caPem } = receiver;
    const early = createSender({ version: '1', rules: LOOPBACK, extraCaPem: caPem, now: () => 1_700_000_000_999 });
    await early.send(delivery(receiver.url));
    await early.close();
    expect(newRequests()[0]?.headers['webhook-timestamp']).toBe('1700000000');
    expect(newRequests()[0]).toMatchObject({ bodySignature: 'ok', standardSignature: 'bad' });
  });

  it('keeps connections for the next deliveries', async () => {
    const fresh = await testSender({ extraCaPem: receiver.caPem });
    const ports = new Set<number | undefined>();
    receiver.replyWith((_request, response) => {
      ports.add(response.req.socket.remotePort);
      return {};
    });
    for (let index = 0; index < 20; index += 1) await fresh.send(delivery(receiver.url));
    await fresh.close();
    // Two, because undici pauses a connection for one turn of the event loop after each answer.
    expect(ports.size).toBeLessThanOrEqual(2);
  });

  it('counts the size of each answer separately, for many answers over one connection', async () => {
    const fresh = await testSender({ extraCaPem: receiver.caPem });
    const ports = new Set<number | undefined>();
    receiver.replyWith((_request, response) => {
      ports.add(response.req.socket.remotePort);
      return { body: Buffer.alloc(15 * 1024) };
    });
    const answers = (2.5 * (256 * 1024)) / (15 * 1024);
    for (let index = 0; index < answers; index += 1) {
      expect(await fresh.send(delivery(receiver.url))).toMatchObject({ kind: 'delivered' });
    }
    await fresh.close();
    expect(ports.size).toBeLessThanOrEqual(2);
  });

  it.each([200, 201, 202, 204, 299])('is delivered on %i', async (status) => {
    receiver.replyWith({ status, ...(status === 204 ? { body: '' } : {}) });
    expect(await sender.send(delivery(receiver.url))).toMatchObject({ kind: 'delivered', statusCode: status });
  });

  it.each([400, 404, 410, 429, 500, 502, 503])('is a failure with its status on %i', async (status) => {
    receiver.replyWith({ status, body: 'no thanks' });
    const outcome = await sender.send(delivery(receiver.url));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'http_status', statusCode: status });
    expect(Buffer.from(outcome.responseExcerpt ?? []).toString()).toBe('no thanks');
    expect(outcome).not.toHaveProperty('retryAfterSeconds');
  });

  it.each([300, 301, 302, 303, 307, 308, 304])('is a failure and follows no redirect on %i', async (status) => {
    const target = await startReceiver();
    receiver.replyWith({
      status,
      headers: { location: `${target.url}/secret` },
      ...(status === 304 ? { body: '' } : {}),
    });
    const outcome = await sender.send(delivery(receiver.url));
    expect(outcome).toMatchObject({ kind: 'failed', errorCode: 'redirect', statusCode: status });
    expect(newRequests()).toHaveLength(1);
    expect(target.requests).toHaveLength(0);
    await target.close();
  });

  it.each([429, 503])(
    'parses Retry-After on %i as seconds and as a date, and ignores invalid values',
    async (status) => {
      const atMs = Date.parse('2026-01-02T03:04:05Z');
      const timed = await testSender({ extraCaPem: receiver.caPem, now: () => atMs });
      const asked = async (value: string) => {
        receiver.replyWith({ status, headers: { 'retry-after': value } });
        const outcome = await timed.send(delivery(receiver.url));
        return outcome.kind === 'failed' ? outcome.retryAfterSeconds : outcome.kind;
      };
      expect(await asked('17')).toBe(17);
      expect(await asked('1.5')).toBe(1.5);
      expect(await asked('Fri, 02 Jan 2026 03:05:05 GMT')).toBe(60);
      expect(await asked('Thu, 01 Jan 2026 03:05:05 GMT')).toBe(0);
      expect(await asked('soon')).toBeUndefined();
      await timed.close();
    },
  );

  it('keeps the first 4 KiB of the answer, as bytes', async () => {
    const body = Buffer.from(Array.from({ length: 10_000 }, (_, index) => index % 256));
    receiver.replyWith({ status: 500, body });
    const { responseExcerpt } = await sender.send(delivery(receiver.url));
    expect(Buffer.from(responseExcerpt ?? []).equals(body.subarray(0, 4096))).toBe(true);
  });

  it('reaches localhost by name when loopback is allowed', async () => {
    const outcome = await sender.send(delivery(`https://localhost:${receiver.port}/`));
    expect(outcome).toMatchObject({ kind: 'delivered' });
    expect(newRequests()[0]?.headers.host).toBe(`localhost:${receiver.port}`);
  });

  it('arrives once when there are many at the same time', async () => {
    const ids = Array.from({ length: 300 }, (_, index) => `evt_many_${index}`);
    const outcomes = await Promise.all(ids.map((eventId) => sender.send(delivery(receiver.url, { eventId }))));
    expect(outcomes.every(({ kind }) => kind === 'delivered')).toBe(true);
    expect(
      newRequests()
        .map(({ headers }) => headers['webhook-id'])
        .sort(),
    ).toEqual(ids.sort());
  });
});

describe('the sender', () => {
  it('waits on close for attempts in flight, then rejects more as a fault of this machine', async () => {
    const receiver = await startReceiver({ reply: { delayMs: 100 } });
    const sender = await testSender({ extraCaPem: receiver.caPem });
    const sending = sender.send(delivery(receiver.url));
    await receiver.waitForCount(1, GUARD_MS);
    const closing = sender.close();
    await expect(sender.send(delivery(receiver.url))).rejects.toThrow('the sender is closed');
    await closing;
    expect(await sending).toMatchObject({ kind: 'delivered' });
    await expect(sender.send(delivery(receiver.url))).rejects.toMatchObject({ code: 'sender_fault', retryable: true });
    await receiver.close();
  });

  it('closes a resolver that was passed in, after the last attempt', async () => {
    const steps: string[] = [];
    const names = fixedResolver({});
    const resolver: NameResolver = {
      resolve: (name) => names.resolve(name).finally(() => steps.push('resolved')),
      close: () => steps.push('closed'),
    };
    const sender = await testSender({ resolver });
    const sending = sender.send(delivery('https://nowhere.test/'));
    await sender.close();
    expect(await sending).toMatchObject({ errorCode: 'dns_error' });
    expect(steps).toEqual(['resolved', 'closed']);
  });

  it('measures the duration of an attempt, also of a refused one', async () => {
    const receiver = await startReceiver({ reply: { delayMs: 50 } });
    const sender = await testSender({ extraCaPem: receiver.caPem });
    const startedMs = performance.now();
    const refused = await sender.send(delivery('https://10.0.0.1/'));
    const answered = await sender.send(delivery(receiver.url));
    const tookMs = Math.ceil(performance.now() - startedMs);
    expect(refused.durationMs).toBeGreaterThanOrEqual(0);
    expect(answered.durationMs).toBeGreaterThanOrEqual(49);
    expect(refused.durationMs + answered.durationMs).toBeLessThanOrEqual(tookMs + 1);
    await sender.close();
    await receiver.close();
  });

  it('throws for errors that only a programming error can cause', async () => {
    const receiver = await startReceiver();
    const sender = await testSender({ extraCaPem: receiver.caPem });
    await expect(sender.send(delivery(receiver.url, { webhookId: 'wh_1\r\nX-Evil: 1' }))).rejects.toMatchObject({
      code: 'UND_ERR_INVALID_ARG',
    });
    await expect(sender.send(delivery(receiver.url, { secrets: ['whsec_***'] }))).rejects.toMatchObject({
      code: 'invalid_secret',
    });
    expect(receiver.requests).toHaveLength(0);
    await sender.close();
    await receiver.close();
  });

  it.each(['', 'not a certificate', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'])(
    'rejects the extra CA %j at the start',
    (extraCaPem) => expect(() => createSender({ version: '1', extraCaPem })).toThrow(TypeError),
  );
});
