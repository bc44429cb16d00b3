import { expect, it } from 'vitest';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

/** The scopes of lists and a place in each, as the last release wrote them. A client keeps its cursor during an upgrade. */
const MARKET_LISTS: readonly [path: string, scope: unknown[], place: string[]][] = [
  ['/v1/all/markets?', ['markets', 'all', null, null, null, null, 'created'], ['2026-01-02 03:04:05+00', '7']],
  [
    '/v1/polymarket/markets?status=open,closed&category=Sports&sort=volume_24h&',
    ['markets', 'polymarket', ['open', 'closed'], 'Sports', null, null, 'volume_24h'],
    ['12.5', '7'],
  ],
  ['/v1/all/markets?q=rain&', ['markets', 'all', null, null, 'rain', null, 'created'], ['title', '7']],
  ['/v1/all/events?status=open&', ['events', 'all', ['open'], null, null], ['7']],
];
const ACCOUNT_LISTS: readonly [path: string, list: unknown[], place: string[]][] = [
  ['/v1/webhooks?', ['webhooks'], ['7']],
  ['/v1/wallets?', ['wallets'], ['7']],
  ['/v1/keys?status=active&', ['keys', ['active']], ['1767319200000000', 'x7Kq2mWvT9bR']],
  ['/v1/events?type=price_alert&', ['account events', 'price_alert', null], ['7']],
  ['/v1/alerts?status=active&', ['alerts', { statuses: ['active'] }], ['7']],
];

it.each(MARKET_LISTS)('a cursor of the last release continues %s', async (path, scope, place) => {
  const cursor = api.deps.cursors.encode(JSON.stringify(scope), place);
  const answer = await client.market(`${path}cursor=${cursor}`);
  expect([path, answer.status, answer.body.error]).toEqual([path, 200, undefined]);
});

it.each(ACCOUNT_LISTS)('a cursor of the last release continues %s', async (path, list, place) => {
  const cursor = api.deps.cursors.encode(JSON.stringify([...list, String(client.accountId)]), place);
  const answer = await client.account('GET', `${path}cursor=${cursor}`);
  expect([path, answer.status, answer.body.error]).toEqual([path, 200, undefined]);
});

it('a cursor of the last release continues the trades and the markets of an event', async () => {
  const { pk, marketId, outcomes } = await aStoredMarket(api.db, { eventId: 'event-1' });
  const tokenId = String(outcomes[0]?.tokenId);
  const trades = ['trades', String(pk), null, null, null, 'desc'];
  const cases: [string, unknown[], string[]][] = [
    [`/v1/polymarket/markets/${marketId}/trades`, trades, ['1767319200000000', '0', '0.5', 't1', tokenId]],
    ['/v1/all/events/event-1', ['event', 'all', 'event-1'], ['2026-01-02 03:04:05+00', '7']],
  ];
  for (const [path, scope, place] of cases) {
    const cursor = api.deps.cursors.encode(JSON.stringify(scope), place);
    const answer = await client.market(`${path}?cursor=${cursor}`);
    expect([path, answer.status, answer.body.error]).toEqual([path, 200, undefined]);
  }
});

it('a cursor of the last release continues the deliveries of a webhook', async () => {
  const body = { url: 'https://receiver.example.com/hook', events: ['price_alert'] };
  const { id } = (await client.account('POST', '/v1/webhooks', body)).body.data as { id: string };
  const scope = ['deliveries', id, 'failed', null, null, String(client.accountId)];
  const cursor = api.deps.cursors.encode(JSON.stringify(scope), ['7']);
  const answer = await client.account('GET', `/v1/webhooks/${id}/deliveries?status=failed&cursor=${cursor}`);
  expect([answer.status, answer.body.error]).toEqual([200, undefined]);
});
