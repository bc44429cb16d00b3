import { describe, expect, it } from 'vitest';
import { aBalance, anAddress, aReadWallet, aTransaction } from '../../../factories/wallets.ts';
import type { Answer } from '../api-harness.ts';
import { withApi } from '../with-api.ts';

const { api, client, stranger } = withApi();

interface WalletData {
  id: string;
  address: string;
  venue: string;
  label?: string;
  createdAt: string;
}
const add = (body: object, owner = client) => owner.account('POST', '/v1/wallets', { venue: 'polymarket', ...body });
const dataOf = (answer: Answer) => answer.body.data as WalletData;
const problems = ({ status, body }: Answer) => [status, body.error.code, body.error.details?.map(({ path }) => path)];

describe('POST /v1/wallets', () => {
  it('answers 201 with the canonical address and wakes the poll', async () => {
    const address = anAddress().replace('0x', '0xAB').slice(0, 42);
    api.wakes.length = 0;
    const answer = await add({ address, label: 'whale 🐋' });
    expect(answer.body).toEqual({
      success: true,
      data: {
        id: expect.stringMatching(/^wal_/),
        address: address.toLowerCase(),
        venue: 'polymarket',
        label: 'whale 🐋',
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
    });
    const { id } = dataOf(answer);
    expect([answer.status, answer.headers.get('location')]).toEqual([201, `/v1/wallets/${id}`]);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(api.wakes).toEqual([{ job: 'poll-wallets', targets: [], data: { venue: 'polymarket' } }]);
    expect(dataOf(await client.account('GET', `/v1/wallets/${id}`))).toEqual(dataOf(answer));
  });

  it('is 409 for a wallet that the account watches already, and 201 again after its deletion', async () => {
    const address = anAddress();
    const { id } = dataOf(await add({ address }));
    const again = await add({ address: address.toUpperCase().replace('0X', '0x') });
    expect([again.status, again.body.error.code]).toEqual([409, 'conflict']);
    expect((await add({ address }, stranger)).status).toBe(201);
    const deleted = await client.account('DELETE', `/v1/wallets/${id}`);
    expect([deleted.status, deleted.body]).toEqual([200, { success: true, data: { id, deleted: true } }]);
    const second = await add({ address });
    expect(second.status).toBe(201);
    expect(dataOf(second).id).not.toBe(id);
    expect(Object.keys(dataOf(second))).not.toContain('label');
  });

  it('creates one wallet for concurrent requests', async () => {
    const address = anAddress();
    const answers = await Promise.all(Array.from({ length: 6 }, () => add({ address })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409, 409]);
  });

  it.each([
    [{ address: '0x12' }, ['address']],
    [{ address: 'DezXAZ8z7PnrnRJjz3wXBoRgixCa6xjnB7YaB1pPB263' }, ['address']],
    [{ address: 7 }, ['address']],
    [{}, ['address']],
    [{ address: anAddress(), venue: 'kalshi' }, ['venue']],
    [{ address: anAddress(), venue: 'solana' }, ['venue']],
    [{ address: anAddress(), venue: 'constructor' }, ['venue']],
    [{ address: anAddress(), venue: null }, ['venue']],
    [{ address: anAddress(), label: '' }, ['label']],
    [{ address: anAddress(), label: 'x'.repeat(101) }, ['label']],
    [{ address: anAddress(), owner: 'me' }, ['owner']],
    [{ address: 'x'.repeat(257), venue: 'nowhere', label: 1 }, ['venue', 'address', 'label']],
  ])('is 400 for %j and names %j', async (body, paths) => {
    expect(problems(await add(body))).toEqual([400, 'invalid_request', paths]);
  });
});

describe('the list of wallets', () => {
  it('is paged, newest first, and holds only the watched wallets of the account', async () => {
    const owner = await api.client();
    const made: string[] = [];
    for (let i = 0; i < 5; i += 1) made.unshift(dataOf(await add({ address: anAddress() }, owner)).id);
    await owner.account('DELETE', `/v1/wallets/${made[1]}`);
    const left = made.filter((_id, index) => index !== 1);
    const whole = await owner.account('GET', '/v1/wallets');
    expect((whole.body.data as WalletData[]).map(({ id }) => id)).toEqual(left);
    expect(whole.body.meta).toBeUndefined();
    const first = await owner.account('GET', '/v1/wallets?limit=3');
    const cursor = String(first.body.meta.next_cursor);
    const rest = await owner.account('GET', `/v1/wallets?limit=3&cursor=${encodeURIComponent(cursor)}`);
    expect([first, rest].flatMap(({ body }) => (body.data as WalletData[]).map(({ id }) => id))).toEqual(left);
    expect(rest.body.meta.next_cursor).toBeNull();
    const foreign = await client.account('GET', `/v1/alerts?cursor=${encodeURIComponent(cursor)}`);
    expect([foreign.status, foreign.body.error.code]).toEqual([400, 'invalid_cursor']);
  });
});

describe('the balances of a wallet', () => {
  it('are those of the last complete read with every digit, in pages by token, without empty ones', async () => {
    const owner = await api.client();
    const held = [aBalance('a', '1.000000000000000000001'), aBalance('b', '2'), aBalance('c', '3')];
    const { id } = await aReadWallet(api.db, {
      accountId: owner.accountId,
      reads: [held, [...held.slice(0, 2), aBalance('c', '0')]],
    });
    const path = `/v1/wallets/${id}/balances`;
    const whole = await owner.account('GET', path);
    expect(whole.text).toContain('"balance":1.000000000000000000001');
    expect(whole.body.data).toMatchObject([
      { tokenMint: 'a', tokenSymbol: 'Yes', marketId: '0xmarket', changedAt: expect.stringMatching(/Z$/) },
      { tokenMint: 'b', balance: 2 },
    ]);
    const first = await owner.account('GET', `${path}?limit=1`);
    const cursor = encodeURIComponent(String(first.body.meta.next_cursor));
    const rest = await owner.account('GET', `${path}?limit=1&cursor=${cursor}`);
    expect([first, rest].map(({ body }) => (body.data as { tokenMint: string }[])[0]?.tokenMint)).toEqual(['a', 'b']);
    expect(rest.body.meta.next_cursor).toBeNull();
    expect((await stranger.account('GET', path)).body.error.code).toBe('wallet_not_found');
  });
});

describe('the events of a wallet', () => {
  it('are those of this watch with their deliveries, newest first, in pages and by type', async () => {
    const owner = await api.client();
    const hook = { url: 'https://example.com/wallets', events: ['transaction'] };
    const { id: webhookId } = (await owner.account('POST', '/v1/webhooks', hook)).body.data as { id: string };
    const seen = (name: string) => ({
      accountId: owner.accountId,
      reads: [[aBalance(name, '1')], [aBalance(name, '2.5')]],
      transactions: [aTransaction({ transactionId: `${name}-1` }), aTransaction({ transactionId: `${name}-2` })],
    });
    await aReadWallet(api.db, seen('other'));
    const { id } = await aReadWallet(api.db, seen('own'));
    const list = async (query: string) => (await owner.account('GET', `/v1/wallets/${id}/events${query}`)).body;
    type Event = { type: string; deliveries: object[]; payload: { data: { [field: string]: unknown } } };
    const read = async (query: string) => (await list(query)).data as Event[];
    const all = await read('');
    expect(all.map(({ type, payload: { data } }) => [type, data['transactionId'] ?? data['currentBalance']])).toEqual([
      ['transaction', 'own-2'],
      ['transaction', 'own-1'],
      ['balance_change', 2.5],
    ]);
    const made = [{ id: expect.stringMatching(/^dlv_/), webhookId, status: 'pending' }];
    expect(all.map(({ deliveries }) => deliveries)).toEqual([made, made, []]);
    expect(await read('?type=balance_change')).toEqual(all.slice(2));
    const first = await list('?limit=2');
    const cursor = encodeURIComponent(String(first.meta.next_cursor));
    expect(await read(`?limit=2&cursor=${cursor}`)).toEqual(all.slice(2));
    expect(problems(await owner.account('GET', `/v1/wallets/${id}/events?type=price_alert`))).toEqual([
      400,
      'invalid_request',
      ['type'],
    ]);
    expect((await stranger.account('GET', `/v1/wallets/${id}/events`)).body.error.code).toBe('wallet_not_found');
  });

  it('have no deliveries for a key without the scope of webhooks', async () => {
    const owner = await api.client(['wallets']);
    const transactions = [aTransaction({ transactionId: 'quiet-1' })];
    const { id } = await aReadWallet(api.db, { accountId: owner.accountId, reads: [], transactions });
    const [event] = (await owner.account('GET', `/v1/wallets/${id}/events`)).body.data as object[];
    expect(event).toMatchObject({ type: 'transaction' });
    expect(event).not.toHaveProperty('deliveries');
  });
});

describe('a wallet of another account', () => {
  it('is 404, like an unknown or unwatched wallet', async () => {
    const { id } = dataOf(await add({ address: anAddress() }, stranger));
    const gone = dataOf(await add({ address: anAddress() })).id;
    await client.account('DELETE', `/v1/wallets/${gone}`);
    for (const which of [id, gone, 'wal_0', 'x']) {
      for (const method of ['GET', 'DELETE']) {
        const answer = await client.account(method, `/v1/wallets/${which}`);
        expect([which, method, answer.status, answer.body.error.code]).toEqual([
          which,
          method,
          404,
          'wallet_not_found',
        ]);
      }
    }
    expect((await stranger.account('GET', `/v1/wallets/${id}`)).status).toBe(200);
  });
});

describe('/v1/wallets', () => {
  it('requires the scope and the right header', async () => {
    const reader = await api.client(['webhooks', 'alerts', 'markets:read']);
    const rejected = await reader.account('GET', '/v1/wallets');
    expect([rejected.status, rejected.body.error.code]).toEqual([403, 'insufficient_scope']);
    const bearer = await client.market('/v1/wallets');
    expect([bearer.status, bearer.body.error.message]).toEqual([401, expect.stringContaining('X-API-Key')]);
  });

  it('accepts GET, POST and DELETE', async () => {
    const answer = await client.account('PUT', '/v1/wallets', {});
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST']);
  });
});
