import { request as httpRequest } from 'node:http';
import { describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { createSecretBox } from '../../../../src/webhooks/secret-box.ts';
import { aDelivery } from '../../../factories/deliveries.ts';
import { anAddress } from '../../../factories/wallets.ts';
import { advisoryWaiters } from '../../../support/postgres/postgres-lock.ts';
import { type Answer, type Client, startTestApi, TEST_KEY, type TestApi } from '../api-harness.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

const WEBHOOK = { url: 'https://receiver.example.com/hook', events: ['price_alert'] };
const ALERT = { tokenMint: 'a-token', condition: 'above', price: 0.5 };

interface Sending {
  by?: Client;
  at?: TestApi;
  key?: string;
}
/** Sends text bodies unchanged and other bodies as JSON. */
function post(path: string, body: object | string | undefined, { by = client, at = api, key }: Sending = {}) {
  const headers = {
    'X-API-Key': by.key,
    ...(key !== undefined && { 'Idempotency-Key': key }),
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
  };
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return at.call(path, { method: 'POST', headers, ...(text !== undefined && { body: text }) });
}
const idOf = ({ body }: Answer) => (body.data as { id: string }).id;
const sent = ({ status, headers, text }: Answer) => ({ status, text, location: headers.get('location') });
const isReplay = ({ headers }: Answer) => headers.get('idempotent-replayed');
const codeOf = ({ status, body }: Answer) => [status, body.error.code];

const COUNTS = sql(
  'test_made_things',
  `SELECT (SELECT count(*) FROM webhook_subscription WHERE account_id = $1)::int AS webhooks,
     (SELECT count(*) FROM alert WHERE account_id = $1)::int AS alerts,
     (SELECT count(*) FROM wallet WHERE account_id = $1)::int AS wallets,
     (SELECT count(*) FROM event WHERE account_id = $1)::int AS events,
     (SELECT count(*) FROM idempotency_key WHERE account_id = $1)::int AS keys`,
);
const made = async ({ accountId } = client) => (await api.db.query<Record<string, number>>(COUNTS, [accountId]))[0];
const PK = sql('test_pk_of_webhook', 'SELECT pk FROM webhook_subscription WHERE id = $1');

async function aWebhook(by = client) {
  const id = idOf(await post('/v1/webhooks', WEBHOOK, { by }));
  const [row] = await api.db.query<{ pk: bigint }>(PK, [id]);
  const pk = row?.pk ?? 0n;
  const failed = () => aDelivery(api.db, { accountId: by.accountId, subscriptionPk: pk, status: 'failed' });
  return { id, path: `/v1/webhooks/${id}`, failed };
}

describe('a request with the same key', () => {
  const WRITES: [string, () => Promise<[path: string, body: object | undefined]>][] = [
    ['a webhook', async () => ['/v1/webhooks', WEBHOOK]],
    ['an alert', async () => ['/v1/alerts', ALERT]],
    ['a wallet', async () => ['/v1/wallets', { venue: 'polymarket', address: anAddress() }]],
    ['a key', async () => ['/v1/keys', { name: 'second', scopes: ['alerts'] }]],
    ['a test event', async () => [`${(await aWebhook()).path}/test`, undefined]],
    ['a rotation', async () => [`${(await aWebhook()).path}/rotate-secret`, undefined]],
    [
      'a retry',
      async () => {
        const { path, failed } = await aWebhook();
        return [`${path}/deliveries/${(await failed()).id}/retry`, {}];
      },
    ],
    [
      'a recovery',
      async () => {
        const { path, failed } = await aWebhook();
        await failed();
        return [`${path}/recover`, { since: new Date(api.clock.nowMs - 3_600_000).toISOString() }];
      },
    ],
  ];

  it.each(WRITES)('replays %s byte for byte without a second write', async (_name, prepare) => {
    const [path, body] = await prepare();
    const key = newId('req');
    const first = await post(path, body, { key });
    expect(first.status).toBeLessThan(300);
    expect(isReplay(first)).toBeNull();
    const before = [await made(), api.wakes.length];
    for (let i = 0; i < 2; i++) {
      const again = await post(path, body, { key });
      expect(sent(again)).toEqual(sent(first));
      expect([isReplay(again), again.headers.get('cache-control')]).toEqual(['true', 'no-store']);
    }
    expect([await made(), api.wakes.length]).toEqual(before);
  });

  it('creates one resource when many requests race in two processes', async () => {
    const other = await startTestApi({}, { beside: api });
    try {
      const by = await api.client();
      const sending = (at: TestApi) => ({ by, at, key: 'one' });
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, i) => post('/v1/webhooks', WEBHOOK, sending(i % 2 ? api : other))),
      );
      const created = answers.filter(({ status }) => status === 201);
      const [first] = created;
      if (!first) throw new Error('no request created it');
      expect(created.filter((answer) => isReplay(answer) === null)).toHaveLength(1);
      for (const answer of created) expect(sent(answer)).toEqual(sent(first));
      for (const answer of answers.filter(({ status }) => status !== 201)) {
        expect([...codeOf(answer), answer.headers.get('retry-after')]).toEqual([409, 'conflict', '1']);
      }
      expect(sent(await post('/v1/webhooks', WEBHOOK, sending(other)))).toEqual(sent(first));
      expect(await made(by)).toMatchObject({ webhooks: 1, keys: 1 });
    } finally {
      await other.close();
    }
  });

  it('is recognised by its JSON values, not by its text', async () => {
    const first = await post('/v1/alerts', ALERT, { key: 'spelling' });
    const again = await post('/v1/alerts', '{ "price": 5e-1, "condition": "above",\n"tokenMint": "a\\u002dtoken" }', {
      key: 'spelling',
    });
    expect([isReplay(again), again.text]).toEqual(['true', first.text]);
    const { path } = await aWebhook();
    await post(`${path}/test`, undefined, { key: 'no body' });
    expect(isReplay(await post(`${path}/test`, {}, { key: 'no body' }))).toBe('true');
  });

  it('and another body or path is rejected without a change', async () => {
    const { path } = await aWebhook();
    const first = await post('/v1/alerts', ALERT, { key: 'mismatch' });
    await post(`${(await aWebhook()).path}/test`, {}, { key: 'path' });
    const before = await made();
    expect(codeOf(await post(`${path}/test`, {}, { key: 'path' }))).toEqual([422, 'idempotency_mismatch']);
    const wallet = { venue: 'polymarket', address: anAddress() };
    for (const [at, body] of [
      ['/v1/alerts', { ...ALERT, price: 0.6 }],
      ['/v1/webhooks', WEBHOOK],
      ['/v1/wallets', wallet],
      [`${path}/test`, undefined],
      [`${path}/rotate-secret`, {}],
      [`${path}/recover`, { since: '2020-01-01' }],
    ] as const) {
      expect(codeOf(await post(at, body, { key: 'mismatch' }))).toEqual([422, 'idempotency_mismatch']);
    }
    expect(await made()).toEqual(before);
    expect(sent(await post('/v1/alerts', ALERT, { key: 'mismatch' }))).toEqual(sent(first));
  });

  it('from another account is independent', async () => {
    const stranger = await api.client();
    const mine = await post('/v1/webhooks', WEBHOOK, { key: 'shared' });
    const theirs = await post('/v1/webhooks', WEBHOOK, { key: 'shared', by: stranger });
    expect([theirs.status, isReplay(theirs)]).toEqual([201, null]);
    expect(idOf(theirs)).not.toBe(idOf(mine));
    expect(theirs.text).not.toContain((mine.body.data as { secret: string }).secret);
    // A kept answer moved to another account cannot be opened.
    const move = sql(
      'test_move_answer',
      `UPDATE idempotency_key k SET sealed = o.sealed FROM idempotency_key o
       WHERE k.account_id = $1 AND o.account_id = $2 AND k.key = 'shared' AND o.key = 'shared'`,
    );
    await api.db.query(move, [stranger.accountId, client.accountId]);
    const moved = await post('/v1/webhooks', WEBHOOK, { key: 'shared', by: stranger });
    expect(moved.status).toBe(500);
    expect(moved.text).not.toContain(idOf(mine));
  });

  it('is replayed by the next process, also with a new first encryption key', async () => {
    const first = await post('/v1/webhooks', WEBHOOK, { key: 'restart' });
    const secretBox = createSecretBox([{ kid: 'k2', key: Buffer.alloc(32, 8) }, TEST_KEY]);
    const next = await startTestApi({ secretBox }, { beside: api });
    try {
      const again = await post('/v1/webhooks', WEBHOOK, { key: 'restart', at: next });
      expect([isReplay(again), sent(again)]).toEqual(['true', sent(first)]);
    } finally {
      await next.close();
    }
  });

  it('answers 503 in a process without the key of the stored answer, and is replayed by others', async () => {
    const first = await post('/v1/webhooks', WEBHOOK, { key: 'ring' });
    const secretBox = createSecretBox([{ kid: 'k2', key: Buffer.alloc(32, 8) }]);
    const other = await startTestApi({ secretBox }, { beside: api });
    try {
      const refused = await post('/v1/webhooks', WEBHOOK, { key: 'ring', at: other });
      expect([...codeOf(refused), refused.headers.get('retry-after')]).toEqual([503, 'not_ready', '2']);
      const elsewhere = await post('/v1/webhooks', WEBHOOK, { key: 'ring' });
      expect([isReplay(elsewhere), sent(elsewhere)]).toEqual(['true', sent(first)]);
    } finally {
      await other.close();
    }
  });

  it('is a new request after a day', async () => {
    const age = sql(
      'test_age_keys',
      `UPDATE idempotency_key SET created_at = created_at - $2 * interval '1 minute' WHERE account_id = $1 AND key = 'day'`,
    );
    const first = await post('/v1/webhooks', WEBHOOK, { key: 'day' });
    await api.db.query(age, [client.accountId, 24 * 60 - 1]);
    expect(idOf(await post('/v1/webhooks', WEBHOOK, { key: 'day' }))).toBe(idOf(first));
    await api.db.query(age, [client.accountId, 1]);
    const second = await post('/v1/webhooks', { ...WEBHOOK, events: ['transaction'] }, { key: 'day' });
    expect([second.status, isReplay(second), idOf(second) === idOf(first)]).toEqual([201, null, false]);
  });

  it('runs after a failure, which is not kept', async () => {
    const { path, failed } = await aWebhook();
    const retry = `${path}/deliveries/${(await failed()).id}/retry`;
    await client.account('PUT', path, { status: 'paused' });
    const { keys } = (await made()) ?? {};
    expect(codeOf(await post(retry, {}, { key: 'failure' }))).toEqual([409, 'conflict']);
    expect(codeOf(await post('/v1/webhooks', { url: 'http://x' }, { key: 'failure' }))).toEqual([
      400,
      'invalid_request',
    ]);
    expect(codeOf(await post('/v1/alerts', { ...ALERT, webhookId: 'wh_x' }, { key: 'failure' }))).toEqual([
      404,
      'webhook_not_found',
    ]);
    expect((await made())?.['keys']).toBe(keys);
    await client.account('PUT', path, { status: 'active' });
    expect((await post(retry, {}, { key: 'failure' })).status).toBe(202);
  });
});

it('a kept answer is sealed, so that neither the secret nor the body is readable', async () => {
  const by = await api.client();
  const secret = 'a-secret-of-my-own-choice';
  const first = await post('/v1/webhooks', { ...WEBHOOK, secret }, { key: 'sealed', by });
  expect(first.body.data).toMatchObject({ secret });
  const [row] = await api.db.query<{ sealed: string; row: string }>(
    sql('test_kept_row', 'SELECT sealed, k::text AS row FROM idempotency_key k WHERE account_id = $1'),
    [by.accountId],
  );
  expect(row?.sealed).toMatch(/^v1\.k1\./);
  const decoded = (row?.sealed ?? '').split('.').map((part) => Buffer.from(part, 'base64url').toString('latin1'));
  for (const text of [row?.row, ...decoded]) {
    for (const plain of [secret, idOf(first), 'receiver.example.com']) expect(text).not.toContain(plain);
  }
});

describe('the header', () => {
  it.each([
    ['empty', ''],
    ['256 characters', 'k'.repeat(256)],
    ['a tab inside', 'a\tb'],
    ['beyond ASCII', 'sch\u00f6n'],
  ])('is rejected when it is %s', async (_name, key) => {
    const before = await made();
    const answer = await post('/v1/alerts', ALERT, { key });
    expect([...codeOf(answer), answer.body.error.details?.[0]?.path]).toEqual([
      400,
      'invalid_request',
      'headers.idempotency-key',
    ]);
    expect(await made()).toEqual(before);
  });

  it('accepts every printable character in one header', async () => {
    const key = '"!#$%&\'()*+,-./09:;<=>? @AZ[\\]^_`az{|}~"'.padEnd(255, 'x');
    await post('/v1/alerts', ALERT, { key });
    expect(isReplay(await post('/v1/alerts', ALERT, { key }))).toBe('true');
  });

  it('is rejected when it is sent twice, also with equal values', async () => {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = [
        'Host',
        'api',
        'X-API-Key',
        client.key,
        'Content-Type',
        'application/json',
        'Content-Length',
        '2',
      ];
      const twice = ['Idempotency-Key', 'a', 'Idempotency-Key', 'a'];
      const path = '/v1/webhooks/wh_none/test';
      httpRequest(`${api.url}${path}`, { method: 'POST', headers: [...headers, ...twice] })
        .on('response', (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end('{}');
    });
    expect(status).toBe(400);
  });
});

describe('a crash', () => {
  /** Blocks the write of a kept answer while the test holds the lock. */
  const GATE = 4_711;
  const hold = sql('test_hold_gate', `SELECT pg_advisory_xact_lock(${GATE})`);
  const GATE_FUNCTION = sql(
    'test_gate',
    `CREATE FUNCTION test_gate() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN PERFORM pg_advisory_xact_lock_shared(${GATE}); RETURN new; END $$`,
  );
  const GATE_TRIGGER = sql(
    'test_gate_trigger',
    `CREATE TRIGGER test_gate BEFORE UPDATE ON idempotency_key FOR EACH ROW EXECUTE FUNCTION test_gate()`,
  );
  const KILL = sql(
    'test_kill_waiting',
    `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );

  it('before the commit leaves nothing, and the key is busy until then', async () => {
    await api.db.query(GATE_FUNCTION);
    await api.db.query(GATE_TRIGGER);
    try {
      const by = await api.client();
      let first: Promise<Answer> | undefined;
      await api.db.transaction(async (tx) => {
        await tx.query(hold);
        first = post('/v1/webhooks', WEBHOOK, { by, key: 'killed' });
        await advisoryWaiters(api.db, 1);
        // The first request has inserted the webhook and waits before it keeps the answer.
        const second = await post('/v1/webhooks', WEBHOOK, { by, key: 'killed' });
        expect([...codeOf(second), second.headers.get('retry-after')]).toEqual([409, 'conflict', '1']);
        await api.db.query(KILL);
        expect((await first)?.status).toBe(503);
      });
      expect(await made(by)).toMatchObject({ webhooks: 0, keys: 0 });
      const again = await post('/v1/webhooks', WEBHOOK, { by, key: 'killed' });
      expect([again.status, isReplay(again)]).toEqual([201, null]);
      expect(await made(by)).toMatchObject({ webhooks: 1, keys: 1 });
    } finally {
      await api.db.query(sql('test_drop_gate', 'DROP FUNCTION test_gate() CASCADE'));
    }
  });

  it('in the middle of a recovery leaves the finished batches, and the next request continues the count', async () => {
    const { path, id } = await aWebhook();
    const since = new Date(api.clock.nowMs - 3_600_000).toISOString();
    const many = sql(
      'test_missed_events',
      `INSERT INTO event (id, account_id, type, body) SELECT 'evt_' || gen_random_uuid(), $1, 'price_alert', '{}'
       FROM generate_series(1, 2300)`,
    );
    await api.db.query(many, [client.accountId]);
    const due = async () => {
      const rows = sql(
        'test_due_rows',
        `SELECT count(*)::int AS rows FROM delivery d
        JOIN webhook_subscription w ON w.pk = d.subscription_pk WHERE w.id = $1`,
      );
      return (await api.db.query<{ rows: number }>(rows, [id]))[0]?.rows;
    };
    // The second transaction finds the progress of the first.
    await api.db.query(
      sql(
        'test_second_fails',
        `CREATE FUNCTION test_second() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN IF old.sealed <> '' THEN RAISE EXCEPTION 'dies here'; END IF; RETURN new; END $$`,
      ),
    );
    await api.db.query(
      sql(
        'test_second_trigger',
        `CREATE TRIGGER test_second BEFORE UPDATE ON idempotency_key
      FOR EACH ROW EXECUTE FUNCTION test_second()`,
      ),
    );
    const wakes = () => api.wakes.filter(({ job }) => job === 'deliver-webhook').length;
    const before = wakes();
    try {
      expect((await post(`${path}/recover`, { since }, { key: 'recover' })).status).toBe(500);
    } finally {
      await api.db.query(sql('test_drop_second', 'DROP FUNCTION test_second() CASCADE'));
    }
    const first = await due();
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThanOrEqual(1_000);
    expect(wakes()).toBe(before + 1);
    expect(codeOf(await post(`${path}/recover`, { since: '2020-01-01' }, { key: 'recover' }))[0]).toBe(422);
    const rest = await post(`${path}/recover`, { since }, { key: 'recover' });
    const all = await due();
    expect(all).toBeGreaterThanOrEqual(2_300);
    expect([rest.status, rest.body.data, isReplay(rest)]).toEqual([202, { recovered: all }, null]);
    const again = await post(`${path}/recover`, { since }, { key: 'recover' });
    expect([again.text, isReplay(again)]).toEqual([rest.text, 'true']);
    expect(await post(`${path}/recover`, { since })).toMatchObject({ body: { data: { recovered: 0 } } });
  });
});
