import { describe, expect, it } from 'vitest';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

async function aPricedMarket(price: string, fields: Parameters<typeof aStoredMarket>[1] = {}): Promise<string> {
  const { marketId, outcomes } = await aStoredMarket(api.db, fields);
  await aStoredPrice(api.db, outcomes[0]?.tokenId ?? 0n, { price, asOf: new Date(1_700_000_000_000) });
  return marketId;
}

describe('prices of many markets', () => {
  it('equal the single route, once each and in the requested order, and list markets without a price', async () => {
    const [a, b] = [await aPricedMarket('0.1234567890123456789'), await aPricedMarket('0.7')];
    const { marketId: unpriced } = await aStoredMarket(api.db);
    const hidden = await aPricedMarket('0.5', { venue: 'retired' });
    const answer = await client.market(
      `/v1/polymarket/prices?market_ids=${[b, 'nope', a, b, unpriced, hidden].join(',')}`,
    );
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('"price":0.1234567890123456789,');
    const single = async (id: string) => (await client.market(`/v1/all/markets/${id}/prices`)).body.data;
    expect(answer.body.data).toEqual([await single(b), await single(a)]);
    expect(answer.body.meta['missing']).toEqual(['nope', unpriced, hidden]);
    expect(answer.headers.get('cache-control')).toBe('private, max-age=1');
  });

  it('accept up to 100 different ids of up to 256 characters', async () => {
    const ids = (count: number) => Array.from({ length: count }, (_, i) => `m${i}`).join(',');
    const many = await client.market(`/v1/all/prices?market_ids=${ids(100)},m7,m8`);
    expect([many.status, many.body.data, (many.body.meta['missing'] as string[]).length]).toEqual([200, [], 100]);
    expect((await client.market(`/v1/all/prices?market_ids=${'x'.repeat(256)}`)).status).toBe(200);
    for (const query of [
      '',
      '?market_ids=',
      '?market_ids=a,,b',
      '?market_ids=a,',
      `?market_ids=${ids(101)}`,
      `?market_ids=${'x'.repeat(257)}`,
    ]) {
      const answer = await client.market(`/v1/all/prices${query}`);
      expect([query, answer.status, answer.body.error.code]).toEqual([query, 400, 'invalid_request']);
      expect(answer.body.error.details?.[0]?.path).toBe('market_ids');
    }
    expect((await client.market('/v1/nowhere/prices?market_ids=a')).body.error.code).toBe('venue_not_found');
  });

  it('accept encoded ids with reserved characters', async () => {
    const id = await aPricedMarket('0.2', { marketId: 'KX/ODD ID?#%é&' });
    const answer = await client.market(`/v1/all/prices?market_ids=${encodeURIComponent(id)}`);
    expect(answer.body.data).toMatchObject([{ market_id: id }]);
  });
});
