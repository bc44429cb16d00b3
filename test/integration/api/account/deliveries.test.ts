import { describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { anAlert } from '../../../factories/alerts.ts';
import { aDelivery, type DeliveryFields } from '../../../factories/deliveries.ts';
import { withApi } from '../with-api.ts';

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const HOUR_MS = 3_600_000;

const { api, client, stranger } = withApi();

const PK = sql('test_webhook_pk', 'SELECT pk FROM webhook_subscription WHERE id = $1');
const AN_ATTEMPT = sql(
  'test_an_attempt',
  `INSERT INTO delivery_attempt (delivery_pk, attempt_number, started_at, duration_ms, outcome, status_code, error_code, response_excerpt)
   VALUES ($1, $2, '2026-01-02T03:04:05.678Z', 12, $3, $4, $5, $6)`,
);
const OUTCOME = sql(
  'test_outcome',
  'UPDATE delivery SET attempt_count = $2, last_status_code = $3, last_error = $4, delivered_at = $5 WHERE pk = $1',
);
const AGE = sql('test_age_delivery', `UPDATE delivery SET created_at = now() - $2 * interval '1 hour' WHERE pk = $1`);

interface Item {
  id: string;
  status: string;
  [field: string]: unknown;
}

async function aWebhook(owner = client, events = ['price_alert']) {
  const made = await owner.account('POST', '/v1/webhooks', { url: 'https://receiver.example.com/hook', events });
  const { id, secret } = made.body.data as { id: string; secret: string };
  const [row] = await api.db.query<{ pk: bigint }>(PK, [id]);
  const pk = row?.pk ?? 0n;
  return {
    id,
    pk,
    secret,
    path: `/v1/webhooks/${id}`,
    delivery: (fields: Partial<DeliveryFields> = {}) =>
      aDelivery(api.db, { accountId: owner.accountId, subscriptionPk: pk, ...fields }),
  };
}

const list = async (path: string, owner = client) => {
  const answer = await owner.account('GET', path);
  expect(answer.status).toBe(200);
  return { items: answer.body.data as Item[], next: answer.body.meta?.next_cursor, body: answer.body };
};

describe('the list of deliveries', () => {
  it('shows the known fields of each delivery, newest first', async () => {
    const hook = await aWebhook();
    const pending = await hook.delivery();
    const failed = await hook.delivery({ status: 'failed' });
    const delivered = await hook.delivery({ status: 'delivered', isTest: true });
    await api.db.query(OUTCOME, [failed.pk, 10, 503, 'http_status', null]);
    await api.db.query(OUTCOME, [delivered.pk, 1, 200, null, '2026-01-02T03:04:05.678Z']);
    const { body } = await list(`${hook.path}/deliveries`);
    const createdAt = expect.stringMatching(ISO);
    expect(body).toEqual({
      success: true,
      data: [
        {
          id: delivered.id,
          eventId: delivered.eventId,
          eventType: 'test',
          status: 'delivered',
          attempts: 1,
          createdAt,
          deliveredAt: '2026-01-02T03:04:05.678Z',
          lastStatusCode: 200,
        },
        {
          id: failed.id,
          eventId: failed.eventId,
          eventType: 'price_alert',
          status: 'failed',
          attempts: 10,
          createdAt,
          lastStatusCode: 503,
          lastError: 'http_status',
        },
        {
          id: pending.id,
          eventId: pending.eventId,
          eventType: 'price_alert',
          status: 'pending',
          attempts: 0,
          createdAt,
          nextAttemptAt: expect.stringMatching(ISO),
        },
      ],
    });
  });

  it('combines the filters by status, event type and time', async () => {
    const hook = await aWebhook();
    type Row = { id: string; status: string; type: string; hours: number };
    const rows: Row[] = [];
    // In time order, the oldest first.
    for (const hours of [30, 24.5, 2]) {
      for (const status of ['failed', 'delivered'] as const) {
        for (const type of ['price_alert', 'transaction'] as const) {
          const { pk, id } = await hook.delivery({ status, type });
          await api.db.query(AGE, [pk, hours]);
          rows.push({ id, status, type, hours });
        }
      }
    }
    const since = new Date(Date.now() - 24 * HOUR_MS);
    const withOffset = `${new Date(since.getTime() + 2 * HOUR_MS).toISOString().slice(0, -1)}%2B02:00`;
    for (const [query, wanted] of [
      ['status=failed', (row: Row) => row.status === 'failed'],
      ['eventType=transaction', (row) => row.type === 'transaction'],
      [`since=${since.toISOString()}`, (row) => row.hours === 2],
      [`since=${withOffset}`, (row) => row.hours === 2],
      ['since=2026-01-01', () => true],
      // The document accepts any time, and nothing is older than 1970.
      ['since=0000-01-01', () => true],
      [
        `status=delivered&eventType=price_alert&since=${since.toISOString()}`,
        (row) => row.status === 'delivered' && row.type === 'price_alert' && row.hours === 2,
      ],
      ['status=cancelled', () => false],
    ] as [string, (row: Row) => boolean][]) {
      const { items } = await list(`${hook.path}/deliveries?${query}`);
      expect([query, items.map(({ id }) => id).sort()]).toEqual([
        query,
        rows
          .filter(wanted)
          .map(({ id }) => id)
          .sort(),
      ]);
    }
  });

  it('returns each existing delivery exactly once while deliveries are added and changed', async () => {
    const hook = await aWebhook();
    const there: string[] = [];
    for (let i = 0; i < 11; i++) there.push((await hook.delivery({ status: 'failed' })).id);
    const seen: string[] = [];
    let cursor: string | null | undefined;
    do {
      const page = await list(`${hook.path}/deliveries?status=failed&limit=4${cursor ? `&cursor=${cursor}` : ''}`);
      seen.push(...page.items.map(({ id }) => id));
      cursor = page.next;
      await hook.delivery({ status: 'failed' });
      // A delivery of an earlier page changes.
      await client.account('POST', `${hook.path}/deliveries/${page.items[0]?.id}/retry`);
    } while (cursor);
    expect(seen).toEqual(there.reverse());
  });

  it('binds a cursor to the webhook and the filters', async () => {
    const [hook, other] = [await aWebhook(), await aWebhook()];
    for (let i = 0; i < 3; i++) await hook.delivery({ status: 'failed' });
    const { next } = await list(`${hook.path}/deliveries?limit=1&status=failed`);
    expect((await list(`${hook.path}/deliveries?limit=2&status=failed&cursor=${next}`)).items).toHaveLength(2);
    for (const path of [
      `${hook.path}/deliveries?cursor=${next}`,
      `${hook.path}/deliveries?status=failed&since=2026-01-01&cursor=${next}`,
      `${other.path}/deliveries?status=failed&cursor=${next}`,
      `/v1/webhooks?cursor=${next}`,
    ]) {
      const answer = await client.account('GET', path);
      expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_cursor']);
    }
  });

  it('reports all faults of the filters', async () => {
    const hook = await aWebhook();
    const query = 'status=late&eventType=earthquake&since=yesterday&limit=0';
    const answer = await client.account('GET', `${hook.path}/deliveries?${query}`);
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request']);
    expect(answer.body.error.details?.map(({ path }) => path).sort()).toEqual([
      'eventType',
      'limit',
      'since',
      'status',
    ]);
    for (const since of ['1767225600', '2026-02-30', '2026-01-01T00:00:00', '2026-13-01T00:00:00Z', '']) {
      expect([since, (await client.account('GET', `${hook.path}/deliveries?since=${since}`)).status]).toEqual([
        since,
        400,
      ]);
    }
  });
});

describe('one delivery', () => {
  it('includes its attempts and the payload with unchanged digits', async () => {
    const hook = await aWebhook();
    const body =
      '{"id":"evt","type":"price_alert","timestamp":"2026-01-01T00:00:00.000Z","data":{"alertId":"a","tokenMint":"t",' +
      '"tokenSymbol":"é\\u0000","condition":"above","targetPrice":0.10000000000000000001,"currentPrice":123456789012345678901}}';
    const { id, pk } = await hook.delivery({ status: 'failed', body });
    await api.db.query(AN_ATTEMPT, [pk, 1, 'failed', null, 'connection_refused', null]);
    await api.db.query(AN_ATTEMPT, [pk, 2, 'failed', 500, 'http_status', Buffer.from('an error: ☂')]);
    await api.db.query(AN_ATTEMPT, [pk, 3, 'failed', 500, 'http_status', Buffer.from([0xff, 0, 0x41])]);
    const answer = await client.account('GET', `${hook.path}/deliveries/${id}`);
    expect(answer.status).toBe(200);
    expect(answer.text).toContain(`"payload":${body}`);
    const startedAt = '2026-01-02T03:04:05.678Z';
    expect(answer.body.data).toMatchObject({
      id,
      status: 'failed',
      attemptLog: [
        { attempt: 1, startedAt, durationMs: 12, outcome: 'failed', errorCode: 'connection_refused' },
        {
          attempt: 2,
          startedAt,
          durationMs: 12,
          outcome: 'failed',
          statusCode: 500,
          errorCode: 'http_status',
          responseBody: 'an error: ☂',
        },
        { attempt: 3, statusCode: 500, responseBody: '/wBB', responseEncoding: 'base64' },
      ],
    });
    const [first] = (answer.body.data as { attemptLog: object[] }).attemptLog;
    expect(Object.keys(first ?? {})).toEqual(['attempt', 'startedAt', 'durationMs', 'outcome', 'errorCode']);
    expect(answer.text).not.toContain(hook.secret);
  });
});

describe('retry', () => {
  it('answers 202 with the delivery, due now, and wakes the deliverer after the commit', async () => {
    const hook = await aWebhook();
    const { id } = await hook.delivery({ status: 'failed', attemptCount: 10, dueInSeconds: -900 });
    api.wakes.length = 0;
    const answer = await client.account('POST', `${hook.path}/deliveries/${id}/retry`);
    expect([answer.status, answer.body]).toEqual([
      202,
      {
        success: true,
        data: expect.objectContaining({
          id,
          status: 'pending',
          attempts: 10,
          nextAttemptAt: expect.stringMatching(ISO),
        }),
      },
    ]);
    expect(api.wakes).toEqual([{ job: 'deliver-webhook', targets: [hook.pk] }]);
    const again = await client.account('POST', `${hook.path}/deliveries/${id}/retry`, {});
    expect([again.status, again.body.error.code]).toEqual([409, 'conflict']);
    expect(api.wakes).toHaveLength(1);
  });

  it('is 409 while the webhook is paused, 404 after its deletion, and 400 with body fields', async () => {
    const hook = await aWebhook();
    const { id } = await hook.delivery({ status: 'failed' });
    const retry = (body?: unknown) => client.account('POST', `${hook.path}/deliveries/${id}/retry`, body);
    const odd = await retry({ now: true });
    expect([odd.status, odd.body.error.details?.[0]?.path]).toEqual([400, 'now']);
    await client.account('PUT', hook.path, { status: 'paused' });
    const paused = await retry();
    expect([paused.status, paused.body.error.code]).toEqual([409, 'conflict']);
    expect(paused.body.error.message).toContain('paused');
    await client.account('DELETE', hook.path);
    const deleted = await retry();
    expect([deleted.status, deleted.body.error.code]).toEqual([404, 'webhook_not_found']);
  });
});

describe('recover', () => {
  const ago = (hours: number) => new Date(Date.now() - hours * HOUR_MS).toISOString();

  it('answers 202 with the count and wakes the deliverer, and a repetition recovers nothing', async () => {
    const owner = await api.client();
    const hook = await aWebhook(owner);
    await hook.delivery({ status: 'failed' });
    await hook.delivery({ status: 'delivered' });
    await hook.delivery();
    await owner.account('PUT', hook.path, { status: 'paused' });
    await owner.account('PUT', hook.path, { status: 'active' });
    api.wakes.length = 0;
    const answer = await owner.account('POST', `${hook.path}/recover`, { since: ago(1) });
    expect([answer.status, answer.body]).toEqual([202, { success: true, data: { recovered: 2 } }]);
    expect(api.wakes).toEqual([{ job: 'deliver-webhook', targets: [hook.pk] }]);
    const again = await owner.account('POST', `${hook.path}/recover`, { since: ago(1) });
    expect(again.body.data).toEqual({ recovered: 0 });
    expect(api.wakes).toHaveLength(1);
  });

  it('delivers an alert that fired before the first webhook existed', async () => {
    const owner = await api.client();
    const alert = await api.db.transaction((tx) =>
      anAlert(tx, { accountId: owner.accountId, mint: newId('req'), condition: 'above', target: '1' }),
    );
    const eventId = newId('evt');
    await api.db.query(
      sql(
        'test_lone_event',
        `INSERT INTO event (id, account_id, type, body, dedupe_key) VALUES ($1, $2, 'price_alert', '{}', $3)`,
      ),
      [eventId, owner.accountId, `alert:${alert.id}`],
    );
    const hook = await aWebhook(owner);
    const answer = await owner.account('POST', `${hook.path}/recover`, { since: ago(1) });
    expect(answer.body.data).toEqual({ recovered: 1 });
    expect((await list(`${hook.path}/deliveries`, owner)).items).toMatchObject([
      { eventId, status: 'pending', attempts: 0 },
    ]);
  });

  it.each([
    [{}, 'since'],
    [{ since: 'last week' }, 'since'],
    [{ since: 1_767_225_600 }, 'since'],
    [{ since: new Date(Date.now() + HOUR_MS).toISOString() }, 'since'],
    [{ since: ago(14 * 24 + 1) }, 'since'],
    [{ since: ago(1), until: ago(0) }, 'until'],
  ])('rejects %j', async (body, path) => {
    const hook = await aWebhook();
    const answer = await client.account('POST', `${hook.path}/recover`, body);
    expect([answer.status, answer.body.error.code, answer.body.error.details?.[0]?.path]).toEqual([
      400,
      'invalid_request',
      path,
    ]);
  });

  it('is 409 while the webhook is paused', async () => {
    const hook = await aWebhook();
    await client.account('PUT', hook.path, { status: 'paused' });
    const answer = await client.account('POST', `${hook.path}/recover`, { since: ago(1) });
    expect([answer.status, answer.body.error.code]).toEqual([409, 'conflict']);
  });
});

describe('a delivery route', () => {
  it('answers another account with the 404 of an unknown id', async () => {
    const hook = await aWebhook();
    const other = await aWebhook();
    const { id } = await hook.delivery({ status: 'failed' });
    const since = new Date(Date.now() - HOUR_MS).toISOString();
    for (const [method, path, body] of [
      ['GET', '/deliveries', undefined],
      ['GET', `/deliveries/${id}`, undefined],
      ['POST', `/deliveries/${id}/retry`, undefined],
      ['POST', '/recover', { since }],
      ['POST', '/rotate-secret', undefined],
    ] as const) {
      const foreign = await stranger.account(method, hook.path + path, body);
      const unknown = await client.account(method, `/v1/webhooks/wh_unknown${path}`, body);
      expect([path, foreign.status, foreign.body.error]).toEqual([path, 404, unknown.body.error]);
      expect(foreign.body.error.code).toBe('webhook_not_found');
    }
    for (const [method, path] of [
      ['GET', `${other.path}/deliveries/${id}`],
      ['POST', `${other.path}/deliveries/${id}/retry`],
      ['GET', `${hook.path}/deliveries/dlv_unknown`],
    ] as const) {
      const answer = await client.account(method, path);
      expect([path, answer.status, answer.body.error.code]).toEqual([path, 404, 'not_found']);
    }
    expect((await list(`${hook.path}/deliveries`)).items).toMatchObject([{ id, status: 'failed' }]);
  });

  it('requires the scope of the route', async () => {
    const hook = await aWebhook();
    const reader = await api.client(['markets:read', 'alerts']);
    const answer = await reader.account('GET', `${hook.path}/deliveries`);
    expect([answer.status, answer.body.error.code]).toEqual([403, 'insufficient_scope']);
    expect((await api.call(`${hook.path}/deliveries`)).status).toBe(401);
    const wrong = await client.account('DELETE', `${hook.path}/deliveries`);
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });
});
