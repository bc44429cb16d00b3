import { describe, expect, it } from 'vitest';
import { MAX_WATCHED } from '../../../../src/store/accounts/watchlist.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import type { Answer, Client } from '../api-harness.ts';
import { withApi } from '../with-api.ts';

const { api, client, stranger } = withApi();

interface Watched {
  venue: string;
  market_id: string;
  title: string;
  added_at: number;
  volume_24h?: number;
}

const pathOf = ({ marketId }: Pick<TestMarket, 'marketId'>, venue = 'polymarket') =>
  `/v1/watchlist/${venue}/${encodeURIComponent(marketId)}`;
const add = (market: Pick<TestMarket, 'marketId'>, by: Client = client) => call('PUT', pathOf(market), by);
const remove = (market: Pick<TestMarket, 'marketId'>, by: Client = client) => call('DELETE', pathOf(market), by);
const list = (query = '', by: Client = client) => call('GET', `/v1/watchlist${query}`, by);
const call = (method: string, path: string, by: Client) => by.account(method, path);
const idsOf = ({ body }: Answer) => (body.data as Watched[]).map(({ market_id }) => market_id);

const AUDIT = sql(
  'test_watchlist_audit',
  `SELECT action, target FROM audit_trail WHERE account_id = $1 AND action LIKE 'watchlist.%' ORDER BY pk`,
);

describe('the watchlist', () => {
  it('has the markets of the account with their fields, the one that was added last first', async () => {
    const first = await aStoredMarket(api.db, { title: 'First', stats: ['10', '5.25', '1'] });
    const second = await aStoredMarket(api.db, { title: 'Second' });
    const added = await add(first);
    expect(added.status).toBe(200);
    expect(added.body.data).toMatchObject({
      venue: 'polymarket',
      market_id: first.marketId,
      title: 'First',
      volume_24h: 5.25,
    });
    expect((added.body.data as Watched).added_at).toBeGreaterThan(1_700_000_000);
    await add(second);
    await add(second, stranger);
    const listed = await list();
    expect(idsOf(listed)).toEqual([second.marketId, first.marketId]);
    expect((listed.body.data as Watched[])[1]).toEqual(added.body.data);
    expect(idsOf(await list('', stranger))).toEqual([second.marketId]);
    const page = await list('?limit=1');
    expect(idsOf(page)).toEqual([second.marketId]);
    const rest = await list(
      `?limit=1&cursor=${encodeURIComponent((page.body.meta as { next_cursor: string }).next_cursor)}`,
    );
    expect([idsOf(rest), rest.body.meta]).toEqual([[first.marketId], { next_cursor: null }]);
  });

  it('keeps the place of a market that is added again, and forgets a removed one', async () => {
    const owner = await api.client();
    const [first, second] = [await aStoredMarket(api.db), await aStoredMarket(api.db)];
    await add(first, owner);
    await add(second, owner);
    expect((await add(first, owner)).status).toBe(200);
    expect(idsOf(await list('', owner))).toEqual([second.marketId, first.marketId]);
    const removed = await remove(second, owner);
    expect([removed.status, removed.body]).toEqual([
      200,
      { success: true, data: { venue: 'polymarket', market_id: second.marketId, deleted: true } },
    ]);
    const again = await remove(second, owner);
    expect([again.status, again.body.error.code]).toEqual([404, 'not_found']);
    expect(idsOf(await list('', owner))).toEqual([first.marketId]);
    expect(await api.db.query(AUDIT, [owner.accountId])).toEqual([
      { action: 'watchlist.add', target: `polymarket ${first.marketId}` },
      { action: 'watchlist.add', target: `polymarket ${second.marketId}` },
      { action: 'watchlist.remove', target: `polymarket ${second.marketId}` },
    ]);
  });

  it('adds a market once for concurrent requests', async () => {
    const owner = await api.client();
    const market = await aStoredMarket(api.db);
    const answers = await Promise.all(Array.from({ length: 6 }, () => add(market, owner)));
    expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200));
    expect(idsOf(await list('', owner))).toEqual([market.marketId]);
  });

  it('answers an addition with the market while another request removes it', async () => {
    const owner = await api.client();
    const market = await aStoredMarket(api.db);
    for (let round = 0; round < 50; round++) {
      const [added, removed] = await Promise.all([add(market, owner), remove(market, owner)]);
      expect(added.status, JSON.stringify(added.body)).toBe(200);
      expect([200, 404]).toContain(removed.status);
    }
  });

  it('is 404 for an unknown market and an unknown venue', async () => {
    const unknown = await add({ marketId: 'nowhere' });
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'market_not_found']);
    const venue = await call('PUT', '/v1/watchlist/solana/x', client);
    expect([venue.status, venue.body.error.code]).toEqual([404, 'venue_not_found']);
  });

  it('needs the scope markets:read', async () => {
    const reader = await api.client(['alerts']);
    for (const [method, path] of [
      ['GET', '/v1/watchlist'],
      ['PUT', '/v1/watchlist/polymarket/x'],
      ['DELETE', '/v1/watchlist/polymarket/x'],
    ] as const)
      expect((await call(method, path, reader)).body.error.code).toBe('insufficient_scope');
  });

  it('has a limit that concurrent requests do not exceed, and takes another market after a removal', async () => {
    const owner = await api.client();
    const markets: TestMarket[] = [];
    for (let n = 0; n < 4; n++) markets.push(await aStoredMarket(api.db));
    await fill(owner.accountId, MAX_WATCHED - 2);
    const answers = await Promise.all(markets.map((market) => add(market, owner)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 403, 403]);
    const refused = answers.findIndex(({ status }) => status === 403);
    expect(answers[refused]?.body.error).toMatchObject({
      code: 'quota_exceeded',
      message: 'the watchlist of this account may have at most 500 markets',
    });
    const kept = answers.findIndex(({ status }) => status === 200);
    await remove(markets[kept] ?? { marketId: '' }, owner);
    expect((await add(markets[refused] ?? { marketId: '' }, owner)).status).toBe(200);
    expect(idsOf(await list('?limit=1000', owner))).toHaveLength(MAX_WATCHED);
  });

  it('loses the markets that the database deletes, and ends with its account', async () => {
    const owner = await api.client();
    const [gone, stays] = [await aStoredMarket(api.db), await aStoredMarket(api.db)];
    await add(gone, owner);
    await add(stays, owner);
    await api.db.query(sql('test_delete_market', 'DELETE FROM market WHERE id = $1'), [gone.pk]);
    expect(idsOf(await list('', owner))).toEqual([stays.marketId]);
    await api.db.query(sql('test_delete_keys', 'DELETE FROM api_key WHERE account_id = $1'), [owner.accountId]);
    await api.db.query(sql('test_delete_account', 'DELETE FROM account WHERE id = $1'), [owner.accountId]);
    const left = sql('test_left', 'SELECT FROM watchlist WHERE account_id = $1');
    expect(await api.db.query(left, [owner.accountId])).toEqual([]);
  });
});

const FILL = sql(
  'test_fill_watchlist',
  `WITH made AS (
     INSERT INTO market (venue, venue_market_id, title, description, tags, status, has_book, content_hash)
     SELECT 'polymarket', 'watched' || n, 'Watched', '', '{}', 'open', true, '\\x00' FROM generate_series(1, $2::int) n RETURNING id)
   INSERT INTO watchlist (account_id, market_id) SELECT $1, id FROM made`,
);
async function fill(accountId: bigint, count: number): Promise<void> {
  await api.db.query(FILL, [accountId, count]);
}
