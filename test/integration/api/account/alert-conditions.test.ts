import { describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

const BEGIN_FORMER = sql(
  'test_begin_former',
  `INSERT INTO process_heartbeat (process, host, pid, version, seen_at)
   VALUES ('alerter', 'other', 1, '0.1.0', clock_timestamp() - $1 * interval '1 second')`,
);
const END_FORMER = sql('test_end_former', `DELETE FROM process_heartbeat WHERE host = 'other'`);

const create = (body: object) => client.account('POST', '/v1/alerts', body);

describe('POST /v1/alerts', () => {
  it.each([
    [{ condition: 'crosses_above', price: 0.5 }],
    [{ condition: 'crosses_below', price: 0.5, repeat: true, cooldownSeconds: 60 }],
    [{ condition: 'spread', price: 0.02, direction: 'at_most' }],
    [{ condition: 'change', change: 0.05, unit: 'absolute', windowSeconds: 600 }],
    [{ condition: 'change', change: 20, unit: 'percent', windowSeconds: 86_400, direction: 'down' }],
    [{ condition: 'trade', notional: 10_000.5 }],
    [{ condition: 'volume', notional: 500, windowSeconds: 60 }],
    [{ condition: 'volume', times: 2.5, windows: 24, windowSeconds: 3_600 }],
    [{ condition: 'status' }],
    [{ condition: 'above', price: 0.5, name: 'a name', note: 'a note', expiresAt: '2099-01-01T00:00:00.000Z' }],
  ])('accepts %j on a token, and returns its fields', async (fields) => {
    const body = { tokenMint: 'some-token', ...fields };
    const made = await create(body);
    expect(made.status).toBe(201);
    expect(made.body.data).toMatchObject({ ...body, status: 'active', tracked: false });
    const { id } = made.body.data as { id: string };
    expect((await client.account('GET', `/v1/alerts/${id}`)).body.data).toEqual(made.body.data);
  });

  it.each([
    [{ scope: { market_id: 'm' }, condition: 'above', price: 0.5 }],
    [{ scope: { event_id: 'e', venue: 'polymarket' }, condition: 'status' }],
    [{ scope: { category: 'Politics', q: 'election' }, condition: 'new_market' }],
    [{ scope: { venue: 'polymarket' }, condition: 'resolution', states: ['disputed', 'resolved'] }],
  ])('accepts %j', async (body) => {
    const made = await create(body);
    expect(made.body.data).toMatchObject({ ...body, tracked: true });
    expect(made.body.data).not.toHaveProperty('tokenMint');
  });

  it('refuses a condition that a running process of the former release does not know, also in a change and a backtest', async () => {
    const body = { tokenMint: 'some-token', condition: 'resolution', states: ['resolved'], repeat: true };
    const { id } = (await create(body)).body.data as { id: string };
    const change = () => client.account('PATCH', `/v1/alerts/${id}`, { states: ['disputed'] });
    const run = () => client.account('POST', '/v1/alerts/backtest', { alert: body, start: 1, end: 2 });
    await api.db.query(BEGIN_FORMER, [0]);
    for (const refused of [await create(body), await change(), await run()]) {
      expect(refused.status).toBe(409);
      expect(refused.body.error).toMatchObject({
        code: 'conflict',
        message: expect.stringContaining('does not know the condition resolution'),
      });
    }
    expect((await create({ tokenMint: 'some-token', condition: 'status' })).status).toBe(201);
    await api.db.query(END_FORMER);
    await api.db.query(BEGIN_FORMER, [60]);
    expect((await create(body)).status).toBe(201);
    expect((await change()).status).toBe(200);
    await api.db.query(END_FORMER);
  });

  const on = { tokenMint: 'x' };
  it.each([
    [{ ...on, condition: 'crosses_above' }, ['price']],
    [{ ...on, condition: 'spread', price: 0.1 }, ['direction']],
    [{ ...on, condition: 'spread', price: 0.1, direction: 'up' }, ['direction']],
    [{ ...on, condition: 'change' }, ['change', 'unit', 'windowSeconds']],
    [{ ...on, condition: 'change', change: 1, unit: 'points', windowSeconds: 60 }, ['unit']],
    [{ ...on, condition: 'change', change: 1, unit: 'percent', windowSeconds: 86_401 }, ['windowSeconds']],
    [{ ...on, condition: 'change', change: -1, unit: 'percent', windowSeconds: 60 }, ['change']],
    [{ ...on, condition: 'change', change: 1, unit: 'percent', windowSeconds: 1.5 }, ['windowSeconds']],
    [{ ...on, condition: 'above', price: 0.5, windowSeconds: 60 }, ['windowSeconds']],
    [{ ...on, condition: 'trade', price: 0.5 }, ['price', 'notional']],
    [{ ...on, condition: 'volume', windowSeconds: 60 }, ['notional']],
    [{ ...on, condition: 'volume', windowSeconds: 60, notional: 1, times: 2, windows: 2 }, ['notional']],
    [{ ...on, condition: 'volume', windowSeconds: 60, times: 2 }, ['windows']],
    [{ ...on, condition: 'volume', windowSeconds: 86_400, times: 2, windows: 7 }, ['windows']],
    [{ ...on, condition: 'status', price: 1 }, ['price']],
    [{ ...on, condition: 'new_market' }, ['tokenMint', 'scope']],
    [{ ...on, condition: 'resolution' }, ['states']],
    [{ ...on, condition: 'resolution', states: [] }, ['states']],
    [{ ...on, condition: 'resolution', states: ['won'] }, ['states.0']],
    [{ ...on, condition: 'resolution', states: 'resolved' }, ['states']],
    [{ ...on, condition: 'status', states: ['resolved'] }, ['states']],
    [{ ...on, scope: { venue: 'polymarket' }, condition: 'status' }, ['scope']],
    [{ scope: {}, condition: 'status' }, ['scope']],
    [{ scope: { venue: 7 }, condition: 'status' }, ['scope.venue']],
    [{ scope: { venue: '' }, condition: 'status' }, ['scope.venue']],
    [{ scope: { market: 'x' }, condition: 'status' }, ['scope.market', 'scope']],
    [{ scope: 'x', condition: 'status' }, ['scope']],
    [{ scope: { market_id: 'x' }, condition: 'new_market' }, ['scope.market_id']],
    [{ scope: { q: '???' }, condition: 'new_market' }, ['scope.q']],
    [{ scope: { market_id: 'x' }, condition: 'above', price: 2 }, ['price']],
    [{ ...on, condition: 'above', price: 0.5, cooldownSeconds: 5 }, ['cooldownSeconds']],
    [{ ...on, condition: 'above', price: 0.5, repeat: true, cooldownSeconds: 0 }, ['cooldownSeconds']],
    [{ ...on, condition: 'above', price: 0.5, repeat: 'yes' }, ['repeat']],
    [{ ...on, condition: 'above', price: 0.5, expiresAt: '2020-01-01T00:00:00.000Z' }, ['expiresAt']],
    [{ ...on, condition: 'above', price: 0.5, expiresAt: 'tomorrow' }, ['expiresAt']],
    [{ ...on, condition: 'above', price: 0.5, expiresAt: '9999-12-31T23:00:00-02:00' }, ['expiresAt']],
    [{ ...on, condition: 'above', price: 0.5, name: '' }, ['name']],
    [{ ...on, condition: 'above', price: 0.5, note: 'x'.repeat(1_001) }, ['note']],
  ])('rejects %j and names the fields', async (body, paths) => {
    const { status, body: answer } = await create(body);
    expect([status, answer.error.code]).toEqual([400, 'invalid_request']);
    expect(answer.error.details?.map(({ path }) => path)).toEqual(paths);
    expect(answer.error.details?.every(({ message }) => message.length > 5)).toBe(true);
  });

  it.each(['nowhere', 'kalshi', 'Polymarket'])(
    'rejects a scope on %s, which is no venue of the deployment, as the filter of the list does',
    async (venue) => {
      const alert = { scope: { venue }, condition: 'new_market' };
      const list = await client.account('GET', `/v1/alerts?venue=${venue}`);
      const message = list.body.error.details?.[0]?.message;
      expect(message).toBe('must be one of polymarket');
      const rejected = { code: 'invalid_request', details: [{ path: 'scope.venue', message }] };
      const made = await create(alert);
      expect([made.status, made.body.error]).toMatchObject([400, rejected]);
      const many = await client.account('POST', '/v1/alerts/bulk/create', { alerts: [alert] });
      expect(many.body.data).toMatchObject([{ index: 0, error: rejected }]);
      const nowSeconds = Math.floor(Date.now() / 1_000);
      const range = { start: nowSeconds - 60, end: nowSeconds - 1 };
      const tried = await client.account('POST', '/v1/alerts/backtest', { alert, ...range });
      expect([tried.status, tried.body.error.details]).toEqual([400, [{ path: 'alert.scope.venue', message }]]);
    },
  );
});
