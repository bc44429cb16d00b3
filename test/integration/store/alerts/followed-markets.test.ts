import { beforeEach, describe, expect, it } from 'vitest';
import { followedMarkets } from '../../../../src/store/alerts/candidates.ts';
import { noteMarketReads, noteStreamed } from '../../../../src/store/catalog/market-heat.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { FeedBooks } from '../../../../workers/streamer/feed-books.ts';
import { FollowedMarkets } from '../../../../workers/streamer/followed-markets.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { eventually } from '../../../support/eventually.ts';
import { withApi } from '../../api/with-api.ts';

const CLEAR = sql('test_clear_followed', 'TRUNCATE market, market_read, followed_venue, alert CASCADE');
const PAST = sql(
  'test_followed_before',
  `WITH reads AS (UPDATE market_read SET read_at = read_at - interval '59 seconds')
   UPDATE followed_venue SET followed_at = followed_at - interval '59 seconds'`,
);
const LATER = sql(
  'test_followed_longer_before',
  `WITH reads AS (UPDATE market_read SET read_at = read_at - interval '1 second')
   UPDATE followed_venue SET followed_at = followed_at - interval '1 second'`,
);

const { api, client } = withApi();
type Stored = Awaited<ReturnType<typeof aStoredMarket>>;
let [one, other]: Stored[] = [];
const market = (index: number): Stored => [one, other][index] as Stored;
beforeEach(async () => {
  await api.db.query(CLEAR);
  one = await aStoredMarket(api.db, { venue: 'polymarket', marketId: 'one', labels: ['Yes', 'No'] });
  other = await aStoredMarket(api.db, { venue: 'kalshi', marketId: 'other', labels: ['Yes', 'No'] });
});

const followed = async () => {
  const pks = await followedMarkets(api.db, [market(0).pk, market(1).pk]);
  return [market(0), market(1)].filter(({ pk }) => pks.includes(pk)).map(({ marketId }) => marketId);
};

async function createAlert(body: object): Promise<string> {
  const answer = await client.account('POST', '/v1/alerts', body);
  expect([answer.status, answer.body.error]).toEqual([201, undefined]);
  return (answer.body.data as { id: string }).id;
}

describe('followedMarkets', () => {
  it('finds nothing without a sign', async () => expect(await followed()).toEqual([]));

  it('finds a market for a minute after its last read', async () => {
    await noteMarketReads(api.db, new Map([[market(0).pk, 0]]));
    expect(await followed()).toEqual(['one']);
    await api.db.query(PAST);
    expect(await followed()).toEqual(['one']);
    await api.db.query(LATER);
    expect(await followed()).toEqual([]);
  });

  it('finds a streamed market, and every market of a streamed venue', async () => {
    await noteStreamed(api.db, { markets: [{ venue: 'polymarket', marketId: 'one' }], venues: [] });
    expect(await followed()).toEqual(['one']);
    await noteStreamed(api.db, { markets: [], venues: ['kalshi'] });
    expect(await followed()).toEqual(['one', 'other']);
    await api.db.query(PAST);
    await api.db.query(LATER);
    expect(await followed()).toEqual([]);
    await noteStreamed(api.db, { markets: [], venues: ['kalshi'] });
    expect(await followed()).toEqual(['other']);
  });

  it.each([
    ['of the specification', { condition: 'above', price: 0.9 }],
    ['on the spread of a book', { condition: 'spread', direction: 'at_most', price: 0.02 }],
  ])('finds the market of an alert %s as soon as it is created, and until it is deleted', async (_kind, body) => {
    const id = await createAlert({ tokenMint: market(0).outcomes[1]?.outcomeId, ...body });
    expect(await followed()).toEqual(['one']);
    await client.account('DELETE', `/v1/alerts/${id}`);
    expect(await followed()).toEqual([]);
  });

  it('finds the markets in the scope of an alert', async () => {
    await createAlert({ scope: { venue: 'polymarket' }, condition: 'spread', direction: 'at_most', price: 0.02 });
    expect(await followed()).toEqual(['one']);
    await createAlert({ scope: { market_id: 'other' }, condition: 'spread', direction: 'at_most', price: 0.02 });
    expect(await followed()).toEqual(['one', 'other']);
  });
});

describe('the books of a market with a new alert', () => {
  it('are stored at the rate of a followed market from the next look on', async () => {
    let nowMs = Date.now();
    const markets = new FollowedMarkets(() => nowMs);
    const stored: number[] = [];
    const fromMs = nowMs;
    const books = new FeedBooks({
      now: () => nowMs,
      followed: markets,
      store: async () => void stored.push(nowMs - fromMs),
      onStored: () => undefined,
      onFailed: () => undefined,
    });
    const { pk: marketPk, outcomes } = market(0);
    const [{ tokenId, outcomeId } = { tokenId: 0n, outcomeId: '' }] = outcomes;
    const change = () =>
      books.changed({ outcomeId, tokenId, marketPk, part: 0 }, () => ({
        outcomeId,
        asOfMs: nowMs,
        bids: [],
        asks: [],
      }));
    try {
      change();
      await eventually(
        async () => stored,
        (times) => times.length === 1,
      );
      change();
      nowMs += 1_000;
      await markets.look(api.db);
      expect([markets.has(marketPk), stored]).toEqual([false, [0]]);
      await createAlert({ tokenMint: outcomeId, condition: 'spread', direction: 'at_most', price: 0.02 });
      await markets.look(api.db);
      expect(markets.has(marketPk)).toBe(true);
      await eventually(
        async () => stored,
        (times) => times.length === 2,
      );
      expect(stored).toEqual([0, 1_000]);
      // It is looked up again before the answer is too old.
      nowMs += 6_000;
      expect(markets.has(marketPk)).toBe(true);
      await markets.look(api.db);
      nowMs += 6_000;
      expect(markets.has(marketPk)).toBe(true);
      nowMs += 4_000;
      expect(markets.has(marketPk)).toBe(false);
    } finally {
      await books.stop();
    }
  });
});
