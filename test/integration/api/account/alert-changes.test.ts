import { beforeEach, describe, expect, it } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { ALL_SHARDS } from '../../../../src/domain/values/shard.ts';
import { evaluateAlerts } from '../../../../src/store/alerts/evaluate.ts';
import { expireDueAlerts } from '../../../../src/store/alerts/expiry.ts';
import { ensureTokens } from '../../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { workShards } from '../../../../src/store/marks/stage.ts';
import { writePrices } from '../../../../src/store/prices/prices.ts';
import type { Answer } from '../api-harness.ts';
import { withApi } from '../with-api.ts';

const { api, client, stranger } = withApi();

interface AlertData {
  id: string;
  status: string;
  firings?: { price: number; eventId: string }[];
}

let mints = 0;
let tokenMint = '';
let asOfMs = Date.now();
beforeEach(async () => {
  mints += 1;
  tokenMint = `changed-${mints}`;
  const partitions = new Partitions(api.db);
  for (const table of ['observation', 'price_history'] as const) await partitions.ensureAroundNow(table);
});

async function create(body: object): Promise<AlertData> {
  const answer = await client.account('POST', '/v1/alerts', { tokenMint, ...body });
  expect(answer.status).toBe(201);
  return answer.body.data as AlertData;
}
const patch = (id: string, body: object, by = client) => by.account('PATCH', `/v1/alerts/${id}`, body);
const read = async (id: string) => (await client.account('GET', `/v1/alerts/${id}`)).body.data as AlertData;

/** Expects 400 with the code, this path first, and a reason. */
function expectFault({ status, body }: Answer, path: string, reason = ''): void {
  expect([status, body.error.code, body.error.details?.[0]?.path]).toEqual([400, 'invalid_request', path]);
  expect(body.error.details?.[0]?.message.length).toBeGreaterThan(5);
  expect(body.error.details?.[0]?.message).toContain(reason);
}

async function see(...prices: string[]): Promise<void> {
  for (const price of prices) {
    asOfMs += 1_000;
    await api.db.transaction(async (tx) => {
      const tokenId = (await ensureTokens(tx, [tokenMint], 'USD')).get(tokenMint) ?? 0n;
      await writePrices(tx, [{ tokenId, asOfMs, price: decimal(price) }]);
    });
    await api.db.query(sql('test_next_ms', 'SELECT pg_sleep(0.002)'));
  }
  await evaluate();
}

async function evaluate(): Promise<void> {
  for (;;) {
    const done = await workShards(
      api.db,
      'evaluate-alerts',
      ALL_SHARDS,
      { limit: 1_600, order: 'oldest' },
      evaluateAlerts,
    );
    if (done.claimed === 0) return;
  }
}

describe('PATCH /v1/alerts/{id}', () => {
  it('pauses an alert, which then ignores observations, and resumes it from then on', async () => {
    const { id } = await create({ condition: 'crosses_above', price: 0.5 });
    expect((await patch(id, { status: 'paused' })).body.data).toMatchObject({ id, status: 'paused' });
    await see('0.4', '0.6', '0.4');
    expect(await read(id)).toMatchObject({ status: 'paused' });
    expect((await patch(id, { status: 'active' })).body.data).toMatchObject({ status: 'active' });
    await evaluate();
    expect(await read(id)).not.toHaveProperty('firings');
    await see('0.7');
    expect(await read(id)).toMatchObject({ status: 'triggered', firings: [{ price: 0.7 }] });
  });

  it('starts an alert of the specification anew with its new target, and fires it once', async () => {
    const { id } = await create({ condition: 'above', price: 0.9 });
    await see('0.7');
    expect((await patch(id, { price: 0.6, name: 'lower' })).body.data).toMatchObject({ price: 0.6, name: 'lower' });
    await evaluate();
    const fired = await read(id);
    expect(fired).toMatchObject({ status: 'triggered', firings: [{ price: 0.7 }] });
    await see('0.8');
    expect(await read(id)).toEqual(fired);
  });

  it('changes texts without a new start, and removes them with null', async () => {
    const { id } = await create({ condition: 'above', price: 0.9, name: 'a', note: 'b' });
    expect((await patch(id, { name: null, note: 'c' })).body.data).toMatchObject({ note: 'c' });
    expect(await read(id)).not.toHaveProperty('name');
  });

  it.each([
    [
      { condition: 'spread', price: 0.1, direction: 'at_least' },
      { direction: 'at_most', price: 0.02 },
    ],
    [{ condition: 'change', change: 5, unit: 'percent', windowSeconds: 60, direction: 'up' }, { direction: 'down' }],
    [
      { condition: 'change', change: 5, unit: 'percent', windowSeconds: 60 },
      { unit: 'absolute', change: 0.05 },
    ],
    [
      { condition: 'volume', times: 2, windows: 3, windowSeconds: 60 },
      { windows: 9, windowSeconds: 600 },
    ],
  ])('changes %j by %j, and finds it by its new condition', async (alert, change) => {
    const { id } = await create(alert);
    expect((await patch(id, change)).body.data).toMatchObject({ ...alert, ...change });
    expect(await read(id)).toMatchObject({ ...alert, ...change });
    const probes = sql('test_probes', 'SELECT id, probe FROM alert WHERE id = ANY ($1::text[]) ORDER BY pk');
    const { id: same } = await create({ ...alert, ...change });
    const [changed, made] = await api.db.query<{ probe: string }>(probes, [[id, same]]);
    expect(changed?.probe).toBe(made?.probe);
  });

  it('removes the direction of a change with null, so that it fires in both', async () => {
    const { id } = await create({
      condition: 'change',
      change: 0.1,
      unit: 'absolute',
      windowSeconds: 60,
      direction: 'up',
    });
    await see('0.5', '0.2');
    expect(await read(id)).toMatchObject({ status: 'active', direction: 'up' });
    expect((await patch(id, { direction: null })).body.data).not.toHaveProperty('direction');
    await see('0.05');
    expect(await read(id)).toMatchObject({ status: 'triggered', firings: [{ price: 0.05, fromPrice: 0.5 }] });
  });

  it('lets an alert that fires once fire again with repeat, and ends one that has fired without it', async () => {
    const { id } = await create({ condition: 'crosses_above', price: 0.5 });
    expect((await patch(id, { repeat: true })).body.data).toMatchObject({ repeat: true, cooldownSeconds: 3_600 });
    expect((await patch(id, { cooldownSeconds: 1 })).body.data).toMatchObject({ cooldownSeconds: 1 });
    expect((await patch(id, { repeat: true })).body.data).toMatchObject({ cooldownSeconds: 1 });
    await see('0.4', '0.6');
    expect(await read(id)).toMatchObject({ status: 'active', firings: [{ price: 0.6 }] });
    expectFault(await patch(id, { repeat: false, cooldownSeconds: 5 }), 'cooldownSeconds', 'does not repeat');
    const ended = (await patch(id, { repeat: false })).body.data;
    expect(ended).toMatchObject({ status: 'triggered', triggeredPrice: 0.6 });
    expect(ended).not.toHaveProperty('repeat');
    expect((await patch(id, { repeat: true })).body.error.code).toBe('conflict');
  });

  it('keeps an alert active that repeats no more and has not fired', async () => {
    const { id } = await create({ condition: 'crosses_above', price: 0.5, repeat: true });
    expect((await patch(id, { repeat: false })).body.data).toMatchObject({ status: 'active' });
    await see('0.4', '0.6');
    expect(await read(id)).toMatchObject({ status: 'triggered', firings: [{ price: 0.6 }] });
  });

  it('moves an alert to another webhook and back to the default one, without a new start', async () => {
    const hook = async (events: string[], by = client) => {
      const made = await by.account('POST', '/v1/webhooks', { url: 'https://example.com/hook', events });
      expect(made.status).toBe(201);
      return (made.body.data as { id: string }).id;
    };
    const { id } = await create({ condition: 'crosses_above', price: 0.5 });
    await see('0.4');
    const webhookId = await hook(['price_alert']);
    expect((await patch(id, { webhookId })).body.data).toMatchObject({ webhookId });
    expectFault(await patch(id, { webhookId: await hook(['transaction']) }), 'webhookId', 'does not list price_alert');
    const unknown = await patch(id, { webhookId: await hook(['price_alert'], stranger) });
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'webhook_not_found']);
    expect(await read(id)).toMatchObject({ webhookId });
    await see('0.6');
    const events = (await client.account('GET', '/v1/events?type=price_alert&limit=1')).body.data;
    expect(events).toMatchObject([{ webhookId, deliveries: 1, payload: { data: { alertId: id } } }]);
    const other = await create({ condition: 'above', price: 0.9, webhookId });
    expect((await patch(other.id, { webhookId: null })).body.data).not.toHaveProperty('webhookId');
  });

  it('returns 409 for an alert that has fired, and 404 for one of another account', async () => {
    const { id } = await create({ condition: 'above', price: 0.1 });
    expect((await patch(id, { note: 'x' }, stranger)).body.error.code).toBe('alert_not_found');
    await see('0.5');
    const answer = await patch(id, { status: 'paused' });
    expect([answer.status, answer.body.error.code]).toEqual([409, 'conflict']);
  });

  it.each([
    [{ change: 0.1 }, 'change'],
    [{ windowSeconds: 60 }, 'windowSeconds'],
    [{ cooldownSeconds: 60 }, 'cooldownSeconds'],
    [{ expiresAt: '2001-01-01T00:00:00Z' }, 'expiresAt'],
    [{ price: 0 }, 'price'],
    [{ status: 'triggered' }, 'status'],
    [{ condition: 'below' }, 'condition'],
    [{ name: '' }, 'name'],
    [{ note: 'x'.repeat(1_001) }, 'note'],
    [{ note: 7 }, 'note'],
    [{ notional: 5 }, 'notional'],
    [{ times: 2 }, 'times'],
    [{ direction: 'up' }, 'direction'],
    [{ unit: 'percent' }, 'unit'],
    [{ windows: 3 }, 'windows'],
    [{ repeat: 'yes' }, 'repeat'],
    [{ repeat: null }, 'repeat'],
    [{ webhookId: '' }, 'webhookId'],
  ])('rejects %j and names the field', async (body, path) => {
    const { id } = await create({ condition: 'above', price: 0.9 });
    expectFault(await patch(id, body), path);
  });

  it('rejects windowSeconds when all windows together would be too long', async () => {
    const { id } = await create({ condition: 'volume', times: 2, windows: 99, windowSeconds: 6_000 });
    expectFault(await patch(id, { windowSeconds: 6_049 }), 'windowSeconds', 'must be at most 604800');
    expect((await patch(id, { windowSeconds: 6_048 })).status).toBe(200);
  });

  it('rejects a price above 1 of an alert whose markets have outcomes', async () => {
    const { id } = await create({ tokenMint: undefined, scope: { market_id: 'm' }, condition: 'above', price: 0.9 });
    expectFault(await patch(id, { price: 1.5 }), 'price', 'must be at most 1');
  });

  it.each([
    [{ condition: 'trade', notional: 100 }, { notional: 0 }, 'notional'],
    [{ condition: 'trade', notional: 100 }, { notional: '5' }, 'notional'],
    [{ condition: 'volume', notional: 100, windowSeconds: 60 }, { times: 2 }, 'times'],
    [{ condition: 'volume', times: 2, windows: 3, windowSeconds: 60 }, { times: -1 }, 'times'],
    [{ condition: 'volume', times: 2, windows: 3, windowSeconds: 60 }, { notional: 100 }, 'notional'],
    [{ condition: 'volume', notional: 100, windowSeconds: 60 }, { windows: 3 }, 'windows'],
    [{ condition: 'volume', times: 2, windows: 3, windowSeconds: 60 }, { windows: 1_001 }, 'windows'],
    [{ condition: 'volume', times: 2, windows: 3, windowSeconds: 86_400 }, { windows: 7 }, 'windows'],
    [{ condition: 'spread', price: 0.1, direction: 'at_least' }, { direction: null }, 'direction'],
    [{ condition: 'spread', price: 0.1, direction: 'at_least' }, { direction: 'up' }, 'direction'],
    [{ condition: 'change', change: 5, unit: 'percent', windowSeconds: 60 }, { direction: 'at_most' }, 'direction'],
    [{ condition: 'change', change: 5, unit: 'percent', windowSeconds: 60 }, { unit: 'points' }, 'unit'],
  ])('rejects for %j the change %j', async (alert, change, path) => {
    const { id } = await create(alert);
    expectFault(await patch(id, change), path);
    expect(await read(id)).toMatchObject(alert);
  });
});

describe('the limit of paused alerts', () => {
  it('refuses a pause beyond it, and no other change', async () => {
    const owner = await api.client();
    const rule = { tokenMint: 'paused', condition: 'above', price: 0.9 };
    const add = async () => ((await owner.account('POST', '/v1/alerts', rule)).body.data as AlertData).id;
    const [first, second] = [await add(), await add()];
    const copies = sql(
      'test_paused_alerts',
      `INSERT INTO alert (id, account_id, token_id, condition, target, status)
       SELECT id || n, account_id, token_id, condition, target, 'paused' FROM alert, generate_series(1, 99999) n WHERE id = $1`,
    );
    await api.db.query(copies, [first]);
    expect((await patch(first, { status: 'paused' }, owner)).status).toBe(200);
    const { status, body } = await patch(second, { status: 'paused' }, owner);
    expect([status, body.error.code]).toEqual([403, 'quota_exceeded']);
    expect(body.error.message).toBe('this account may have at most 100000 paused alerts');
    expect((await patch(second, { note: 'x' }, owner)).status).toBe(200);
    expect((await patch(first, { status: 'paused', note: 'x' }, owner)).status).toBe(200);
    expect((await patch(first, { status: 'active' }, owner)).status).toBe(200);
    expect((await patch(second, { status: 'paused' }, owner)).status).toBe(200);
  });
});

describe('the limit of alerts on a venue, a category or a search', () => {
  it('holds for a resumption as for a creation, also for concurrent ones', async () => {
    const owner = await api.client();
    const rule = (category: string) => ({ scope: { category }, condition: 'new_market' });
    const add = (category: string) => owner.account('POST', '/v1/alerts', rule(category));
    const alerts = Array.from({ length: 49 }, (_, index) => rule(`category ${index}`));
    await owner.account('POST', '/v1/alerts/bulk/create', { alerts });
    const paused: string[] = [];
    for (const category of ['one', 'two', 'three']) {
      const { id } = (await add(category)).body.data as AlertData;
      paused.push(id);
      expect((await patch(id, { status: 'paused' }, owner)).status).toBe(200);
    }
    const answers = await Promise.all(paused.map((id) => patch(id, { status: 'active' }, owner)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403, 403]);
    const refusal = (await add('four')).body.error;
    for (const { status, body } of answers) {
      if (status === 403) expect(body.error).toMatchObject({ code: 'quota_exceeded', message: refusal.message });
    }
    const { id } = (await owner.account('POST', '/v1/alerts', { scope: { market_id: 'm' }, condition: 'status' })).body
      .data as AlertData;
    await patch(id, { status: 'paused' }, owner);
    expect((await patch(id, { status: 'active' }, owner)).status).toBe(200);
  });
});

describe('GET /v1/alerts/{id}', () => {
  it('lists the firings of an alert that repeats, newest first', async () => {
    const { id } = await create({ condition: 'crosses_above', price: 0.5, repeat: true, cooldownSeconds: 1 });
    await see('0.4', '0.6');
    await api.db.query(sql('test_cool_down', 'SELECT pg_sleep(1.1)'));
    await see('0.3', '0.7');
    const { firings = [], ...alert } = await read(id);
    expect(alert).toMatchObject({ status: 'active', repeat: true, eventId: firings[0]?.eventId });
    expect(firings).toMatchObject([
      { price: 0.7, fromPrice: 0.3, tokenMint },
      { price: 0.6, fromPrice: 0.4, tokenMint },
    ]);
  });
});

describe('the list of alerts', () => {
  it('filters by condition and by status', async () => {
    const { id } = await create({ condition: 'spread', price: 0.01, direction: 'at_least' });
    await patch(id, { status: 'paused' });
    const list = await client.account('GET', '/v1/alerts?condition=spread&status=paused');
    expect((list.body.data as AlertData[]).map((one) => one.id)).toEqual([id]);
  });
});

describe('POST /v1/alerts/bulk/create', () => {
  it('creates the right items and returns the error of each wrong one', async () => {
    const right = { tokenMint, condition: 'above', price: 0.5 };
    const alerts = [
      right,
      { ...right, price: 0 },
      {},
      { scope: { q: '!' }, condition: 'new_market' },
      { ...right, webhookId: 'wh_none' },
      right,
    ];
    const answer = await client.account('POST', '/v1/alerts/bulk/create', { alerts });
    expect(answer.body.data).toMatchObject([
      { index: 0, alert: right },
      { index: 1, error: { code: 'invalid_request', details: [{ path: 'price' }] } },
      {
        index: 2,
        error: { code: 'invalid_request', details: [{ path: 'tokenMint' }, { path: 'condition' }, { path: 'price' }] },
      },
      { index: 3, error: { code: 'invalid_request', details: [{ path: 'scope.q' }] } },
      { index: 4, error: { code: 'webhook_not_found' } },
      { index: 5, alert: right },
    ]);
    const items = answer.body.data as { alert?: AlertData }[];
    const ids = items.flatMap(({ alert }) => (alert ? [alert.id] : []));
    const gone = await client.account('POST', '/v1/alerts/bulk/delete', { ids: [...ids, 'alert_none'] });
    expect(gone.body.data).toEqual([...ids.map((id) => ({ id, deleted: true })), { id: 'alert_none', deleted: false }]);
    expect((await client.account('GET', `/v1/alerts/${ids[0]}`)).status).toBe(404);
  });

  it('replays its answer for a repeated Idempotency-Key', async () => {
    const body = { alerts: [{ tokenMint, condition: 'above', price: 0.5 }] };
    const send = () =>
      api.call('/v1/alerts/bulk/create', {
        method: 'POST',
        headers: { 'X-API-Key': client.key, 'Content-Type': 'application/json', 'Idempotency-Key': tokenMint },
        body: JSON.stringify(body),
      });
    expect((await send()).body).toEqual((await send()).body);
    const list = await client.account('GET', `/v1/alerts?tokenMint=${tokenMint}`);
    expect(list.body.data).toHaveLength(1);
  });

  it.each([{ alerts: [] }, { alerts: Array.from({ length: 101 }, () => ({})) }, {}])(
    'rejects a list of another length',
    async (body) => {
      expect((await client.account('POST', '/v1/alerts/bulk/create', body)).status).toBe(400);
    },
  );
});

describe('POST /v1/alerts/bulk/delete', () => {
  it.each([
    ['an empty list', [], 'ids'],
    ['101 ids', Array.from({ length: 101 }, () => 'alert_none'), 'ids'],
    ['a number', ['alert_none', 7], 'ids.1'],
    ['no list', 'alert_none', 'ids'],
  ])('rejects %s and names the field', async (_case, ids, path) => {
    expectFault(await client.account('POST', '/v1/alerts/bulk/delete', { ids }), path);
  });
});

describe('an alert past its end', () => {
  it('expires with an event, after a grace', async () => {
    const soon = new Date(Date.now() + 60_000).toISOString();
    const { id } = await create({ condition: 'above', price: 0.9, expiresAt: soon });
    await evaluate();
    const shift = sql('test_shift_end', `UPDATE alert SET expires_at = now() - $2 * interval '1 second' WHERE id = $1`);
    await api.db.query(shift, [id, 5]);
    expect((await expireDueAlerts(api.db)).alerts).toEqual([]);
    await api.db.query(shift, [id, 20]);
    expect((await expireDueAlerts(api.db)).alerts).toEqual([id]);
    expect((await expireDueAlerts(api.db)).alerts).toEqual([]);
    expect(await read(id)).toMatchObject({ status: 'expired', expiredAt: expect.any(String) });
    const events = await client.account('GET', '/v1/events?type=alert_expired');
    expect(events.body.data).toMatchObject([{ payload: { data: { alertId: id, condition: 'above', tokenMint } } }]);
  });

  it('does not expire while an observation before its end waits', async () => {
    const { id } = await create({
      condition: 'crosses_above',
      price: 0.9,
      expiresAt: new Date(Date.now() + 60_000).toISOString(),
    });
    await evaluate();
    await api.db.transaction(async (tx) => {
      const tokenId = (await ensureTokens(tx, [tokenMint], 'USD')).get(tokenMint) ?? 0n;
      await writePrices(tx, [{ tokenId, asOfMs: asOfMs + 1_000, price: decimal('0.3') }]);
    });
    const old = sql('test_old_mark', `UPDATE mark SET detail = detail - 60000 WHERE stage = 'evaluate-alerts'`);
    await api.db.query(old);
    await api.db.query(sql('test_end', `UPDATE alert SET expires_at = now() - interval '20 seconds' WHERE id = $1`), [
      id,
    ]);
    expect((await expireDueAlerts(api.db)).alerts).toEqual([]);
    await evaluate();
    expect((await expireDueAlerts(api.db)).alerts).toEqual([id]);
  });
});
