import { beforeAll, describe, expect, it } from 'vitest';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { withApi } from '../with-api.ts';

const BOOKS = sql(
  'test_books',
  `INSERT INTO book_history (token_id, received_at, as_of, bids, asks)
   SELECT $1, date_trunc('milliseconds', statement_timestamp()) - n * interval '1 millisecond', clock_timestamp(), '[["0.5", "10"]]',
     jsonb_build_array(jsonb_build_array(CASE WHEN n % 600 = 0 THEN '0.6' ELSE '0.7' END, '10'))
   FROM generate_series(1, 1300) n`,
);
const FEE = sql(
  'test_fee',
  `WITH kept AS (
     INSERT INTO fee_statement (hash, statement) VALUES (sha256(convert_to('{"periods": [{"rule": {"model": "none"}}]}'::text, 'UTF8')), '{"periods": [{"rule": {"model": "none"}}]}'::jsonb)
     ON CONFLICT (hash) DO UPDATE SET hash = excluded.hash RETURNING id)
   INSERT INTO market_fee (market_id, known_at, fee_id) SELECT $1::bigint, clock_timestamp() - interval '1 day', id FROM kept`,
);
const SET_CURRENCY = sql('test_currency', `UPDATE token SET currency = 'MANA' WHERE id = $1`);

const { api, client } = withApi();
let market: TestMarket;
let other: TestMarket;
let tokenMint: string;
let sellTokenMint: string;
beforeAll(async () => {
  await new Partitions(api.db).ensureAroundNow('book_history');
  market = await aStoredMarket(api.db, { venue: 'polymarket' });
  other = await aStoredMarket(api.db, { venue: 'kalshi' });
  tokenMint = market.outcomes[0]?.outcomeId ?? '';
  sellTokenMint = other.outcomes[0]?.outcomeId ?? '';
});

const create = (body: object) => client.account('POST', '/v1/alerts', body);
const order = { condition: 'executable', side: 'buy', price: 0.62, direction: 'at_most' } as const;
const pair = { condition: 'net_difference', size: 5, price: 0.02 } as const;

describe('POST /v1/alerts', () => {
  it('accepts an order by size and by notional, and the difference of two orders, and returns their fields', async () => {
    for (const fields of [
      { ...order, size: 500.25 },
      { ...order, notional: 100 },
      { ...pair, sellTokenMint },
    ]) {
      const made = await create({ tokenMint, ...fields });
      expect([made.status, made.body.data]).toMatchObject([201, { tokenMint, ...fields, tracked: true }]);
      const { id } = made.body.data as { id: string };
      expect((await client.account('GET', `/v1/alerts/${id}`)).body.data).toEqual(made.body.data);
    }
  });

  it.each([
    [{ ...order }, ['size']],
    [{ ...order, size: 1, notional: 1 }, ['size']],
    [{ ...order, size: 0 }, ['size']],
    [{ ...order, size: 1.001 }, ['size']],
    [{ ...order, size: 1, side: 'both' }, ['side']],
    [{ ...order, size: 1, direction: 'up' }, ['direction']],
    [{ ...order, size: 1, sellTokenMint: 'x' }, ['sellTokenMint']],
    [{ ...order, size: 1, tokenMint: 'unknown' }, ['tokenMint']],
    [{ ...order, size: 1, tokenMint: undefined, scope: { venue: 'polymarket' } }, ['tokenMint', 'scope']],
    [{ ...pair }, ['sellTokenMint']],
    [{ ...pair, sellTokenMint: 'unknown' }, ['sellTokenMint']],
    [{ ...pair, sellTokenMint: 'x', direction: 'at_most' }, ['direction']],
    [{ condition: 'above', price: 0.5, size: 1 }, ['size']],
  ])('rejects %j and names the fields %j', async (fields, paths) => {
    const { status, body } = await create({ tokenMint, ...fields });
    expect([status, body.error?.code]).toEqual([400, 'invalid_request']);
    expect(body.error?.details?.map(({ path }: { path: string }) => path)).toEqual(paths);
  });

  it('rejects one outcome as both, and outcomes with different currencies', async () => {
    expect((await create({ tokenMint, ...pair, sellTokenMint: tokenMint })).status).toBe(400);
    const mana = await aStoredMarket(api.db, { venue: 'kalshi' });
    await api.db.query(SET_CURRENCY, [mana.outcomes[0]?.tokenId]);
    const { status, body } = await create({ tokenMint, ...pair, sellTokenMint: mana.outcomes[0]?.outcomeId });
    expect([status, body.error?.code]).toEqual([400, 'different_currencies']);
  });
});

describe('PATCH /v1/alerts/{id}', () => {
  it('replaces the size by a notional, and keeps the other terms', async () => {
    const { id } = (await create({ tokenMint, ...order, size: 500 })).body.data as { id: string };
    const change = (body: object) => client.account('PATCH', `/v1/alerts/${id}`, body);
    const changed = (await change({ notional: 50, side: 'sell' })).body.data;
    expect(changed).toMatchObject({ ...order, side: 'sell', notional: 50 });
    expect(changed).not.toHaveProperty('size');
    expect((await change({ size: 7 })).body.data).not.toHaveProperty('notional');
    expect((await change({ size: 7.123 })).status).toBe(400);
    expect((await change({ size: 7, notional: 7 })).status).toBe(400);
    expect((await change({ times: 2 })).status).toBe(400);
  });
});

describe('POST /v1/alerts/backtest', () => {
  it('reads all books of the range, and is approximate before the kept ones', async () => {
    await api.db.query(FEE, [market.pk]);
    await api.db.query(BOOKS, [market.outcomes[0]?.tokenId]);
    const alert = { tokenMint, ...order, size: 5, repeat: true, cooldownSeconds: 1 };
    const end = new Date(Date.now() + 1_000).toISOString();
    const run = (ageMs: number) =>
      client.account('POST', '/v1/alerts/backtest', { alert, start: new Date(Date.now() - ageMs).toISOString(), end });
    const { data } = (await run(60_000)).body;
    expect(data).toMatchObject({ observations: 1_300, firingCount: 1, firings: [{ tokenMint, price: 0.6 }] });
    expect((await run(30 * 86_400_000)).body.data).toMatchObject({ approximate: true, observations: 1_300 });
    const wrong = await client.account('POST', '/v1/alerts/backtest', {
      ...{ alert: { ...alert, size: 1.001 }, start: new Date(0).toISOString(), end },
    });
    expect(wrong.body.error?.details).toMatchObject([{ path: 'alert.size' }]);
  });
});
