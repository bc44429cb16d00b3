import { describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { withApi } from '../with-api.ts';

const { api, client, stranger } = withApi();

interface Webhook {
  id: string;
  url: string;
  events: string[];
  status: string;
  createdAt: string;
  secret?: string;
}

const URL_OK = 'https://receiver.example.com/hook';

async function aWebhook(body: object = {}, owner = client): Promise<Webhook> {
  const answer = await owner.account('POST', '/v1/webhooks', { url: URL_OK, events: ['price_alert'], ...body });
  expect(answer.status).toBe(201);
  return answer.body.data as Webhook;
}

const ROW = sql('test_subscription', 'SELECT * FROM webhook_subscription WHERE id = $1');
const rowOf = async (id: string) => (await api.db.query<Record<string, unknown>>(ROW, [id]))[0];

const DELIVERIES = sql(
  'test_deliveries',
  `SELECT d.status, d.is_test, e.type, e.body FROM delivery d JOIN event e ON e.pk = d.event_pk
   JOIN webhook_subscription w ON w.pk = d.subscription_pk WHERE w.id = $1 ORDER BY d.pk`,
);
const deliveriesOf = (id: string) =>
  api.db.query<{ status: string; isTest: boolean; type: string; body: string }>(DELIVERIES, [id]);

const PEND = sql(
  'test_pending_delivery',
  `WITH e AS (INSERT INTO event (id, account_id, type, body) SELECT 'evt_' || $2, account_id, 'price_alert', '{}'
     FROM webhook_subscription WHERE id = $1 RETURNING pk)
   INSERT INTO delivery (id, event_pk, subscription_pk) SELECT 'dlv_' || $2, e.pk, w.pk FROM e, webhook_subscription w
   WHERE w.id = $1`,
);

describe('POST /v1/webhooks', () => {
  it('answers 201 with the secret, which no other answer has, and seals it for the subscription', async () => {
    const secret = 'a-secret-of-my-own-choice';
    const answer = await client.account('POST', '/v1/webhooks', {
      url: URL_OK,
      events: ['price_alert', 'transaction', 'price_alert'],
      secret,
    });
    expect(answer.status).toBe(201);
    const made = answer.body.data as Webhook;
    expect(answer.body).toEqual({
      success: true,
      data: {
        id: expect.stringMatching(/^wh_/),
        url: URL_OK,
        events: ['price_alert', 'transaction'],
        secret,
        status: 'active',
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
    });
    expect(answer.headers.get('location')).toBe(`/v1/webhooks/${made.id}`);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const sealed = String((await rowOf(made.id))?.['sealedSecret']);
    expect(sealed).not.toContain(secret);
    expect(api.secretBox.open(sealed, made.id)).toBe(secret);

    const { secret: _shown, ...rest } = made;
    const again = await client.account('GET', `/v1/webhooks/${made.id}`);
    expect(again.body).toEqual({ success: true, data: rest });
    const list = await client.account('GET', '/v1/webhooks');
    expect(list.text).not.toContain(secret);
    expect(list.body.data).toContainEqual({ id: made.id, url: URL_OK, events: made.events, status: 'active' });
  });

  it('generates a secret when the request has none', async () => {
    expect((await aWebhook()).secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  });

  it.each([
    [{}, ['url', 'events']],
    [{ url: 'http://receiver.example.com', events: ['price_alert'] }, ['url']],
    [{ url: 'https://127.0.0.1/', events: ['price_alert'] }, ['url']],
    [{ url: 'https://0x7f.1/', events: ['price_alert'] }, ['url']],
    [{ url: 'https://localhost/', events: ['price_alert'] }, ['url']],
    [{ url: 'https://u:p@example.com/', events: ['price_alert'] }, ['url']],
    [{ url: 'https://example.com:22/', events: ['price_alert'] }, ['url']],
    [{ url: 7, events: 'price_alert' }, ['url', 'events']],
    [{ url: URL_OK, events: [] }, ['events']],
    [{ url: URL_OK, events: ['price_alert', 'test'] }, ['events.1']],
    [{ url: URL_OK, events: ['price_alert'], secret: 'short' }, ['secret']],
    [{ url: URL_OK, events: ['price_alert'], secret: 'whsec_not*base64*at*all' }, ['secret']],
    [{ url: URL_OK, events: ['price_alert'], secret: null }, ['secret']],
    [{ url: URL_OK, events: ['price_alert'], status: 'paused', colour: 'red' }, ['status', 'colour']],
    [[], ['body']],
    ['text', ['body']],
    [null, ['body']],
  ])('rejects %j and names the fields', async (body, paths) => {
    const answer = await client.account('POST', '/v1/webhooks', body);
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request']);
    expect(answer.body.error.details?.map(({ path }) => path)).toEqual(paths);
  });

  it('never repeats a rejected secret', async () => {
    const answer = await client.account('POST', '/v1/webhooks', { url: URL_OK, events: [], secret: 'tiny-secret' });
    expect(answer.status).toBe(400);
    expect(answer.text).not.toContain('tiny-secret');
  });
});

describe('PUT /v1/webhooks/{id}', () => {
  it('updates only the given fields', async () => {
    const { id } = await aWebhook();
    const url = 'https://other.example.com:8443/x';
    const answer = await client.account('PUT', `/v1/webhooks/${id}`, { url, events: ['balance_change'] });
    expect(answer.body).toMatchObject({
      success: true,
      data: { id, url, events: ['balance_change'], status: 'active' },
    });
    const same = await client.account('PUT', `/v1/webhooks/${id}`, {});
    expect(same.body.data).toEqual(answer.body.data);
    const bad = await client.account('PUT', `/v1/webhooks/${id}`, {
      url: 'https://10.0.0.1',
      status: 'off',
      secret: 'x',
    });
    expect(bad.body.error.details?.map(({ path }) => path).sort()).toEqual(['secret', 'status', 'url']);
  });

  it('cancels pending deliveries except test events when it pauses the webhook', async () => {
    const { id } = await aWebhook();
    await api.db.query(PEND, [id, `pause-${id}`]);
    await client.account('POST', `/v1/webhooks/${id}/test`);
    const paused = await client.account('PUT', `/v1/webhooks/${id}`, { status: 'paused' });
    expect(paused.body.data).toMatchObject({ status: 'paused' });
    expect((await deliveriesOf(id)).map(({ status, isTest }) => [status, isTest])).toEqual([
      ['cancelled', false],
      ['pending', true],
    ]);
  });

  it('clears the pause reason when it activates the webhook', async () => {
    const { id } = await aWebhook();
    await api.db.query(
      sql(
        'test_auto_pause',
        `UPDATE webhook_subscription SET status = 'paused', pause_reason = 'failing', failing_since = now(), exhausted_count = 12
         WHERE id = $1`,
      ),
      [id],
    );
    expect((await client.account('GET', `/v1/webhooks/${id}`)).body.data).toMatchObject({ pauseReason: 'failing' });
    const active = await client.account('PUT', `/v1/webhooks/${id}`, { status: 'active' });
    expect(active.body.data).toMatchObject({ status: 'active' });
    expect(active.body.data).not.toHaveProperty('pauseReason');
    expect(await rowOf(id)).toMatchObject({ pauseReason: null, failingSince: null, exhaustedCount: 0 });
  });
});

describe('DELETE /v1/webhooks/{id}', () => {
  it('removes the webhook and its secret, and cancels its pending deliveries', async () => {
    const { id } = await aWebhook();
    await api.db.query(PEND, [id, `delete-${id}`]);
    await client.account('POST', `/v1/webhooks/${id}/test`);
    const answer = await client.account('DELETE', `/v1/webhooks/${id}`);
    expect([answer.status, answer.body]).toEqual([
      200,
      { success: true, data: { id, deleted: true, alertsChanged: 0 } },
    ]);
    expect(await rowOf(id)).toMatchObject({ sealedSecret: '', deletedAt: expect.any(Date) });
    expect((await deliveriesOf(id)).map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
    for (const [method, path, body] of [
      ['GET', `/v1/webhooks/${id}`, undefined],
      ['PUT', `/v1/webhooks/${id}`, { status: 'active' }],
      ['DELETE', `/v1/webhooks/${id}`, undefined],
      ['POST', `/v1/webhooks/${id}/test`, {}],
    ] as const) {
      const again = await client.account(method, path, body);
      expect([method, again.status, again.body.error.code]).toEqual([method, 404, 'webhook_not_found']);
    }
    expect((await client.account('GET', '/v1/webhooks')).text).not.toContain(id);
  });

  it('gives its active alerts back to the default webhook and states their number', async () => {
    const { id } = await aWebhook();
    const { id: other } = await aWebhook();
    const alert = async (webhookId?: string) => {
      const body = { tokenMint: 't', condition: 'above', price: 1, ...(webhookId !== undefined && { webhookId }) };
      return ((await client.account('POST', '/v1/alerts', body)).body.data as { id: string }).id;
    };
    const [first, second, fired, elsewhere] = [await alert(id), await alert(id), await alert(id), await alert(other)];
    await alert();
    await api.db.query(sql('test_fire', `UPDATE alert SET status = 'triggered' WHERE id = $1`), [fired]);
    const answer = await client.account('DELETE', `/v1/webhooks/${id}`);
    expect(answer.body.data).toEqual({ id, deleted: true, alertsChanged: 2 });
    const webhookOf = async (alertId: string) =>
      ((await client.account('GET', `/v1/alerts/${alertId}`)).body.data as { webhookId?: string }).webhookId;
    expect(await Promise.all([first, second, fired, elsewhere].map((each) => webhookOf(each ?? '')))).toEqual([
      undefined,
      undefined,
      id,
      other,
    ]);
  });
});

describe('POST /v1/webhooks/{id}/test', () => {
  it('answers 202 with the delivery and its final body, and wakes the deliverer', async () => {
    const { id } = await aWebhook();
    api.wakes.length = 0;
    const answer = await client.account('POST', `/v1/webhooks/${id}/test`, {});
    expect(answer.status).toBe(202);
    expect(answer.body).toEqual({
      success: true,
      data: {
        id: expect.stringMatching(/^dlv_/),
        eventId: expect.stringMatching(/^evt_/),
        eventType: 'test',
        status: 'pending',
        attempts: 0,
        createdAt: expect.stringMatching(/\.\d{3}Z$/),
        nextAttemptAt: expect.stringMatching(/\.\d{3}Z$/),
      },
    });
    const pk = BigInt(String((await rowOf(id))?.['pk']));
    expect(api.wakes).toEqual([{ job: 'deliver-webhook', targets: [pk] }]);
    const [delivery] = await deliveriesOf(id);
    expect(delivery).toMatchObject({ status: 'pending', isTest: true, type: 'test' });
    expect(JSON.parse(delivery?.body ?? '')).toEqual({
      id: (answer.body.data as { eventId: string }).eventId,
      type: 'test',
      timestamp: new Date(api.clock.nowMs).toISOString(),
      data: { test: true, webhookId: id },
    });
  });

  it.each([
    [
      'price_alert',
      ['alertId', 'condition', 'currentPrice', 'marketId', 'targetPrice', 'tokenMint', 'tokenSymbol', 'venue'],
    ],
    [
      'transaction',
      [
        'marketId',
        'price',
        'side',
        'size',
        'status',
        'timestamp',
        'transactionId',
        'transfers',
        'type',
        'value',
        'venue',
        'wallet',
      ],
    ],
    [
      'balance_change',
      [
        'change',
        'currentBalance',
        'marketId',
        'previousBalance',
        'tokenMint',
        'tokenSymbol',
        'transactionId',
        'venue',
        'wallet',
      ],
    ],
  ])('sends a sample of %s, also while the webhook is paused', async (eventType, fields) => {
    const { id } = await aWebhook();
    await client.account('PUT', `/v1/webhooks/${id}`, { status: 'paused' });
    const answer = await client.account('POST', `/v1/webhooks/${id}/test`, { eventType });
    expect([answer.status, (answer.body.data as { eventType: string }).eventType]).toEqual([202, eventType]);
    const body = JSON.parse((await deliveriesOf(id))[0]?.body ?? '') as { type: string; data: object };
    expect(body.type).toBe(eventType);
    expect(Object.keys(body.data).sort()).toEqual(fields);
  });

  it('needs no body and rejects unknown event types', async () => {
    const { id } = await aWebhook();
    expect((await client.account('POST', `/v1/webhooks/${id}/test`)).status).toBe(202);
    const answer = await client.account('POST', `/v1/webhooks/${id}/test`, { eventType: 'earthquake' });
    expect([answer.status, answer.body.error.details?.[0]?.path]).toEqual([400, 'eventType']);
  });
});

describe('a webhook route', () => {
  it('answers another account as for an unknown webhook', async () => {
    const { id } = await aWebhook();
    const answers = await Promise.all([
      stranger.account('GET', `/v1/webhooks/${id}`),
      stranger.account('PUT', `/v1/webhooks/${id}`, { status: 'paused' }),
      stranger.account('DELETE', `/v1/webhooks/${id}`),
      stranger.account('POST', `/v1/webhooks/${id}/test`, {}),
      stranger.account('GET', '/v1/webhooks/wh_unknown'),
    ]);
    const unknown = answers.at(-1)?.body.error;
    for (const answer of answers) expect([answer.status, answer.body.error]).toEqual([404, unknown]);
    expect((await stranger.account('GET', '/v1/webhooks')).body).toEqual({ success: true, data: [] });
    expect((await client.account('GET', `/v1/webhooks/${id}`)).body.data).toMatchObject({ status: 'active' });
    expect(await deliveriesOf(id)).toEqual([]);
  });
});

describe('GET /v1/webhooks', () => {
  it('returns each webhook once, newest first, while others arrive, with meta only for pages', async () => {
    const owner = await api.client();
    const made: string[] = [];
    for (let i = 0; i < 7; i++) made.push((await aWebhook({}, owner)).id);
    expect((await owner.account('GET', '/v1/webhooks')).body).not.toHaveProperty('meta');
    const seen: string[] = [];
    let cursor: string | null | undefined;
    do {
      const answer = await owner.account('GET', `/v1/webhooks?limit=3${cursor ? `&cursor=${cursor}` : ''}`);
      seen.push(...(answer.body.data as Webhook[]).map(({ id }) => id));
      cursor = answer.body.meta.next_cursor;
      await aWebhook({}, owner);
    } while (cursor);
    expect(seen).toEqual(made.reverse());
    for (const bad of ['limit=0', 'limit=1001', 'limit=x', 'cursor=zzz']) {
      expect((await owner.account('GET', `/v1/webhooks?${bad}`)).status).toBe(400);
    }
  });
});
