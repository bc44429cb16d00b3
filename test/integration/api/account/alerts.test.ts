import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDecimal } from '../../../../src/domain/values/decimal.ts';
import { shardOf } from '../../../../src/domain/values/shard.ts';
import { evaluateAlerts } from '../../../../src/store/alerts/evaluate.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { decodeCause } from '../../../../src/store/marks/detail.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { drain } from '../../../support/drain.ts';
import type { Client } from '../api-harness.ts';
import { withApi } from '../with-api.ts';

const { api, client, stranger } = withApi();

interface AlertData {
  id: string;
  tokenMint: string;
  status: string;
  webhookId?: string;
}

let mints = 0;
const aMint = () => `mint-${mints++}`;

async function anAlert(body: object = {}, owner = client): Promise<AlertData> {
  const answer = await owner.account('POST', '/v1/alerts', {
    tokenMint: aMint(),
    condition: 'above',
    price: 0.5,
    ...body,
  });
  expect(answer.status).toBe(201);
  return answer.body.data as AlertData;
}

const MARKS = sql(
  'test_alert_marks',
  `SELECT m.shard, m.key, m.detail, a.pk FROM alert a JOIN mark m ON m.key = a.token_id WHERE a.id = $1`,
);

describe('POST /v1/alerts', () => {
  it('answers 201 and writes a mark with the alert and without a price', async () => {
    const tokenMint = aMint();
    api.wakes.length = 0;
    const answer = await client.account('POST', '/v1/alerts', { tokenMint, condition: 'below', price: 0.1 });
    const { id } = answer.body.data as AlertData;
    expect([answer.status, answer.headers.get('location')]).toEqual([201, `/v1/alerts/${id}`]);
    expect(answer.body).toEqual({
      success: true,
      data: {
        id: expect.stringMatching(/^alert_/),
        tokenMint,
        condition: 'below',
        price: 0.1,
        status: 'active',
        createdAt: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
        tracked: false,
        currency: 'USD',
      },
    });
    const marks = await api.db.query<{ shard: number; key: bigint; detail: bigint; pk: bigint }>(MARKS, [id]);
    expect(marks).toHaveLength(1);
    expect(decodeCause(marks[0]?.detail ?? 0n)).toEqual({ kind: 'alertCreated', alertPk: marks[0]?.pk });
    expect(api.wakes).toEqual([{ job: 'evaluate-alerts', targets: [shardOf(marks[0]?.key ?? 0n)] }]);
    expect((await client.account('GET', `/v1/alerts/${id}`)).body.data).toEqual(answer.body.data);
  });

  it('is tracked when its token is an outcome or has a price', async () => {
    const market = await aStoredMarket(api.db);
    const tokenMint = market.outcomes[0]?.outcomeId ?? '';
    expect(await anAlert({ tokenMint })).toMatchObject({ tracked: true });
  });

  it('shares the token row with concurrent alerts on the same token', async () => {
    const tokenMint = aMint();
    const made = await Promise.all(Array.from({ length: 12 }, () => anAlert({ tokenMint })));
    expect(new Set(made.map(({ id }) => id)).size).toBe(12);
    const tokens = sql('test_tokens', 'SELECT count(*)::int AS tokens FROM token WHERE mint = $1');
    expect(await api.db.query(tokens, [tokenMint])).toEqual([{ tokens: 1 }]);
  });

  it('keeps all digits of the price', async () => {
    await fc.assert(
      fc.asyncProperty(fc.double({ noNaN: true, noDefaultInfinity: true, min: Number.MIN_VALUE }), async (price) => {
        const answer = await client.account('POST', '/v1/alerts', { tokenMint: 'digits', condition: 'above', price });
        expect(answer.status).toBe(201);
        const { id } = answer.body.data as AlertData;
        const read = await client.account('GET', `/v1/alerts/${id}`);
        expect(read.text).toContain(`"price":${parseDecimal(price)},`);
        expect((read.body.data as { price: number }).price).toBe(price);
      }),
      { numRuns: 50 },
    );
  });

  it.each([
    [{}, ['tokenMint', 'condition', 'price']],
    [{ tokenMint: '', condition: 'above', price: 1 }, ['tokenMint']],
    [{ tokenMint: 'a b', condition: 'above', price: 1 }, ['tokenMint']],
    [{ tokenMint: 'x'.repeat(257), condition: 'above', price: 1 }, ['tokenMint']],
    [{ tokenMint: 7, condition: 'at', price: '1' }, ['tokenMint', 'condition', 'price']],
    [{ tokenMint: 'x', condition: 'above', price: 0 }, ['price']],
    [{ tokenMint: 'x', condition: 'above', price: -0.1 }, ['price']],
    [{ tokenMint: 'x', condition: 'below', price: 0 }, ['price']],
    [{ tokenMint: 'x', condition: 'above', price: -1e-300 }, ['price']],
    [{ tokenMint: 'x', condition: 'above', price: null }, ['price']],
    [{ tokenMint: 'x', condition: 'above', price: 1, webhookId: 7 }, ['webhookId']],
    [{ tokenMint: 'x', condition: 'above', price: 1, targetPrice: 1 }, ['targetPrice']],
    [[1], ['body']],
  ])('rejects %j and names the fields', async (body, paths) => {
    const answer = await client.account('POST', '/v1/alerts', body);
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request']);
    expect(answer.body.error.details?.map(({ path }) => path)).toEqual(paths);
  });

  const createFrom = (price: string) =>
    api.call('/v1/alerts', {
      method: 'POST',
      headers: { 'X-API-Key': client.key, 'Content-Type': 'application/json' },
      body: `{"tokenMint":"x","condition":"above","price":${price}}`,
    });

  it.each(['1e999', '-1e999', '1e-999', '-0', '0e5'])(
    'returns 400 for the number %s, which is not above 0',
    async (price) => {
      const answer = await createFrom(price);
      expect([answer.status, answer.body.error.details?.[0]?.path]).toEqual([400, 'price']);
    },
  );

  it.each([
    ['1e308', `1${'0'.repeat(308)}`],
    ['1.5E-7', '0.00000015'],
    ['0.1000', '0.1'],
    ['0.30000000000000000000001', '0.30000000000000000000001'],
    ['0.99999999999999999999999999', '0.99999999999999999999999999'],
    ['12345678901234567890123e-22', '1.2345678901234567890123'],
    [`0.${'1'.repeat(398)}`, `0.${'1'.repeat(398)}`],
  ])('accepts %s and shows %s', async (price, shown) => {
    const answer = await createFrom(price);
    expect(answer.status).toBe(201);
    expect(answer.text).toContain(`"price":${shown},`);
    const { id } = answer.body.data as AlertData;
    expect((await client.account('GET', `/v1/alerts/${id}`)).text).toContain(`"price":${shown},`);
  });

  it.each([`0.${'1'.repeat(399)}`, '1e400', '1e-399'])(
    'states the limit of digits when the number is %s',
    async (price) => {
      const { status, body } = await createFrom(price);
      expect([status, body.error.details]).toEqual([
        400,
        [{ path: 'price', message: 'must have at most 400 characters when written without an exponent' }],
      ]);
    },
  );

  it('rejects a target that no price of an outcome can have', async () => {
    const { outcomes } = await aStoredMarket(api.db);
    const tokenMint = outcomes[0]?.outcomeId ?? '';
    for (const price of [65, 1.0001]) {
      const answer = await client.account('POST', '/v1/alerts', { tokenMint, condition: 'above', price });
      expect([answer.status, answer.body.error.details?.[0]?.path]).toEqual([400, 'price']);
    }
    expect((await client.account('GET', `/v1/alerts?limit=1000`)).text).not.toContain(tokenMint);
    expect(await anAlert({ tokenMint, price: 1 })).toMatchObject({ tracked: true });
    expect(await anAlert({ price: 65 })).toMatchObject({ tracked: false });
  });

  it('names a field that the body has twice, and its position', async () => {
    const answer = await api.call('/v1/alerts', {
      method: 'POST',
      headers: { 'X-API-Key': client.key, 'Content-Type': 'application/json' },
      body: '{"tokenMint":"x","condition":"above","price":1,"price":2}',
    });
    expect([answer.status, answer.body.error.details]).toEqual([
      400,
      [{ path: 'price', message: 'the body has this field twice, again at character 48' }],
    ]);
  });

  it('shows the currency of the token', async () => {
    const { outcomes } = await aStoredMarket(api.db, { venue: 'manifold' });
    const [{ outcomeId: tokenMint, tokenId } = { outcomeId: '', tokenId: 0n }] = outcomes;
    await api.db.query(sql('test_set_currency', `UPDATE token SET currency = 'MANA' WHERE id = $1`), [tokenId]);
    expect(await anAlert({ tokenMint })).toMatchObject({ currency: 'MANA', tracked: true });
  });
});

describe('the webhook of an alert', () => {
  const aWebhook = async (owner: Client, events = ['price_alert']) => {
    const answer = await owner.account('POST', '/v1/webhooks', { url: 'https://r.example.com/', events });
    return (answer.body.data as { id: string }).id;
  };

  it('is shown when the request names it', async () => {
    const webhookId = await aWebhook(client);
    const alert = await anAlert({ webhookId });
    expect(alert.webhookId).toBe(webhookId);
    expect((await client.account('GET', `/v1/alerts/${alert.id}`)).body.data).toMatchObject({ webhookId });
  });

  it('may be paused, and the alert still names it until it is deleted', async () => {
    const webhookId = await aWebhook(client);
    await client.account('PUT', `/v1/webhooks/${webhookId}`, { status: 'paused' });
    const { id } = await anAlert({ webhookId });
    const read = async () => (await client.account('GET', `/v1/alerts/${id}`)).body.data;
    expect(await read()).toMatchObject({ webhookId, status: 'active' });
    await client.account('DELETE', `/v1/webhooks/${webhookId}`);
    expect(await read()).toMatchObject({ status: 'active' });
    expect(await read()).not.toHaveProperty('webhookId');
  });

  it('must belong to the account and list price_alert', async () => {
    const foreign = await aWebhook(stranger);
    const deleted = await aWebhook(client);
    await client.account('DELETE', `/v1/webhooks/${deleted}`);
    for (const webhookId of ['wh_unknown', foreign, deleted]) {
      const answer = await client.account('POST', '/v1/alerts', {
        tokenMint: 'x',
        condition: 'above',
        price: 1,
        webhookId,
      });
      expect([answer.status, answer.body.error.code]).toEqual([404, 'webhook_not_found']);
    }
    const webhookId = await aWebhook(client, ['transaction']);
    const deaf = await client.account('POST', '/v1/alerts', {
      tokenMint: 'x',
      condition: 'above',
      price: 1,
      webhookId,
    });
    expect([deaf.status, deaf.body.error.details?.[0]?.path]).toEqual([400, 'webhookId']);
  });
});

describe('an alert that fired', () => {
  it('shows its time and its event', async () => {
    const tokenMint = aMint();
    await anAlert({ tokenMint, price: 0.9 });
    const [token] = await api.db.query<{ id: bigint }>(sql('test_token_id', 'SELECT id FROM token WHERE mint = $1'), [
      tokenMint,
    ]);
    const tokenId = token?.id ?? 0n;
    await aStoredPrice(api.db, tokenId, { price: '0.6', asOf: new Date() });
    const alert = await anAlert({ tokenMint, price: 0.6 });
    await drain(api.db, 'evaluate-alerts', { limit: 1000, order: 'oldest' }, evaluateAlerts);
    expect((await client.account('GET', `/v1/alerts/${alert.id}`)).body.data).toMatchObject({
      status: 'triggered',
      triggeredAt: expect.stringMatching(/\.\d{3}Z$/),
      eventId: expect.stringMatching(/^evt_/),
      tracked: true,
    });
  });
});

describe('/v1/alerts', () => {
  it('pages newest first and returns each alert once while others arrive', async () => {
    const owner = await api.client();
    const made: string[] = [];
    for (let i = 0; i < 7; i++) made.push((await anAlert({}, owner)).id);
    const plain = await owner.account('GET', '/v1/alerts');
    expect(plain.body).not.toHaveProperty('meta');
    expect(plain.body.data).toHaveLength(7);
    const seen: string[] = [];
    let cursor: string | null | undefined;
    do {
      const answer = await owner.account('GET', `/v1/alerts?limit=2${cursor ? `&cursor=${cursor}` : ''}`);
      seen.push(...(answer.body.data as AlertData[]).map(({ id }) => id));
      cursor = answer.body.meta.next_cursor;
      await anAlert({}, owner);
    } while (cursor);
    expect(seen).toEqual(made.reverse());
  });

  it('returns next_cursor when a plain list has more items', async () => {
    const owner = await api.client();
    for (let i = 0; i < 101; i++) await anAlert({}, owner);
    const answer = await owner.account('GET', '/v1/alerts');
    expect(answer.body.data).toHaveLength(100);
    expect(answer.body.meta.next_cursor).toEqual(expect.any(String));
    const rest = await owner.account('GET', `/v1/alerts?cursor=${answer.body.meta.next_cursor}`);
    expect([(rest.body.data as unknown[]).length, rest.body.meta.next_cursor]).toEqual([1, null]);
    const webhooks = await owner.account('GET', `/v1/webhooks?cursor=${answer.body.meta.next_cursor}`);
    expect(webhooks.body.error.code).toBe('invalid_cursor');
  });

  it('filters by market, event, category, venue and name, of outcomes and of scopes', async () => {
    const owner = await api.client();
    const { marketId, outcomes } = await aStoredMarket(api.db, { eventId: 'e-of-alerts', category: 'Weather' });
    const scope = (fields: object) => ({ tokenMint: undefined, scope: fields });
    const onOutcome = await anAlert({ tokenMint: outcomes[0]?.outcomeId ?? '', name: 'rain' }, owner);
    await anAlert({}, owner);
    const [byMarket, byEvent, byCategory, byVenue] = [
      await anAlert(scope({ market_id: marketId }), owner),
      await anAlert(scope({ event_id: 'e-of-alerts' }), owner),
      await anAlert(scope({ category: 'Weather', q: 'rain' }), owner),
      await anAlert(scope({ venue: 'polymarket' }), owner),
    ];
    const ids = async (query: string) =>
      ((await owner.account('GET', `/v1/alerts?${query}`)).body.data as AlertData[]).map(({ id }) => id);
    expect(await ids(`market_id=${marketId}`)).toEqual([byMarket.id, onOutcome.id]);
    expect(await ids('event_id=e-of-alerts')).toEqual([byEvent.id, onOutcome.id]);
    expect(await ids('category=Weather')).toEqual([byCategory.id, onOutcome.id]);
    expect(await ids('venue=polymarket')).toEqual([byVenue.id, onOutcome.id]);
    expect(await ids('name=rain&venue=polymarket')).toEqual([onOutcome.id]);
    const other = await api.client();
    expect((await other.account('GET', `/v1/alerts?market_id=${marketId}`)).body.data).toEqual([]);
  });

  it('filters by status, condition, token, venue and webhook, also over pages', async () => {
    const owner = await api.client();
    const { outcomes } = await aStoredMarket(api.db);
    const outcome = outcomes[0]?.outcomeId ?? '';
    const webhook = await owner.account('POST', '/v1/webhooks', {
      url: 'https://r.example.com/',
      events: ['price_alert'],
    });
    const webhookId = (webhook.body.data as { id: string }).id;
    const [onOutcome, below, named, expired, triggered] = [
      await anAlert({ tokenMint: outcome }, owner),
      await anAlert({ condition: 'below' }, owner),
      await anAlert({ webhookId }, owner),
      await anAlert({}, owner),
      await anAlert({}, owner),
    ].map(({ id }) => id) as [string, string, string, string, string];
    const setStatus = sql('test_alert_status', 'UPDATE alert SET status = $2 WHERE id = $1');
    await api.db.query(setStatus, [expired, 'expired']);
    await api.db.query(setStatus, [triggered, 'triggered']);
    const ids = async (query: string) => {
      const seen: string[] = [];
      let cursor = '';
      for (;;) {
        const answer = await owner.account('GET', `/v1/alerts?${query}&limit=1${cursor}`);
        expect([query, answer.status]).toEqual([query, 200]);
        seen.push(...(answer.body.data as AlertData[]).map(({ id }) => id));
        if (answer.body.meta.next_cursor === null) return seen;
        cursor = `&cursor=${answer.body.meta.next_cursor}`;
      }
    };
    expect(await ids('status=active')).toEqual([named, below, onOutcome]);
    expect(await ids('status=expired,triggered')).toEqual([triggered, expired]);
    expect(await ids('status=triggered&status=expired&condition=above')).toEqual([triggered, expired]);
    expect(await ids('condition=below')).toEqual([below]);
    expect(await ids(`tokenMint=${encodeURIComponent(outcome)}`)).toEqual([onOutcome]);
    expect(await ids('venue=polymarket')).toEqual([onOutcome]);
    expect(await ids(`webhookId=${webhookId}&status=active`)).toEqual([named]);
    expect(await ids('webhookId=wh_unknown')).toEqual([]);
    const { next_cursor } = (await owner.account('GET', '/v1/alerts?limit=1&status=active')).body.meta;
    const other = await owner.account('GET', `/v1/alerts?limit=1&cursor=${next_cursor}`);
    expect(other.body.error.code).toBe('invalid_cursor');
    for (const name of [
      'status',
      'condition',
      'venue',
      'market_id',
      'event_id',
      'category',
      'name',
      'tokenMint',
      'webhookId',
    ]) {
      const answer = await owner.account('GET', `/v1/alerts?${name}=`);
      expect([answer.status, answer.body.error.details?.map(({ path }) => path)]).toEqual([400, [name]]);
    }
  });

  it('deletes once', async () => {
    const { id } = await anAlert();
    const answer = await client.account('DELETE', `/v1/alerts/${id}`);
    expect([answer.status, answer.body]).toEqual([200, { success: true, data: { id, deleted: true } }]);
    for (const method of ['GET', 'DELETE']) {
      const again = await client.account(method, `/v1/alerts/${id}`);
      expect([again.status, again.body.error.code]).toEqual([404, 'alert_not_found']);
    }
  });

  it('answers another account as for an unknown alert', async () => {
    const { id } = await anAlert();
    for (const method of ['GET', 'DELETE']) {
      const answer = await stranger.account(method, `/v1/alerts/${id}`);
      expect([answer.status, answer.body.error.code]).toEqual([404, 'alert_not_found']);
    }
    expect((await stranger.account('GET', '/v1/alerts')).body.data).toEqual([]);
    expect((await client.account('GET', `/v1/alerts/${id}`)).status).toBe(200);
  });
});
