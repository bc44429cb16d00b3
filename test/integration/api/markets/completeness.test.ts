import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { aRepair, aVenueCompleteness, aWitness } from '../../../factories/completeness.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { type Client, startTestApi, type TestApi } from '../api-harness.ts';
import { logIn, testOps } from '../ops/ops-client.ts';

const NOW = 1_764_000_030;
const SINCE = NOW - 86_400;
const at = (seconds: number) => new Date(seconds * 1000);
const CLEAR = sql('test_clear_completeness', 'TRUNCATE venue_completeness');

let api: TestApi;
let client: Client;
beforeAll(async () => {
  api = await startTestApi({ ops: testOps() });
  api.clock.nowMs = NOW * 1000;
  client = await api.client();
});
afterAll(() => api.close());

const volumes = { venue: 'polymarket', since: at(SINCE), comparedAt: at(NOW), venueVolume: '300', storedVolume: '299' };

describe('GET /v1/{venue}/markets/{market_id}', () => {
  it('reports the covered share of the volume, with the minute of the comparison', async () => {
    const { pk, marketId } = await aStoredMarket(api.db);
    const path = `/v1/polymarket/markets/${marketId}`;
    expect((await client.market(path)).body.data).not.toHaveProperty('coverage');
    await aWitness(api.db, pk, { ...volumes, missingSince: at(NOW - 60) });
    api.clock.nowMs += 2_000;
    const coverage = { share: 0.9966, since: SINCE, checked_at: NOW - 30 };
    expect((await client.market(path)).body.data).toMatchObject({ coverage });
    for (const series of ['trades', 'candles', 'volume']) {
      const { meta } = (await client.market(`${path}/${series}`)).body;
      expect(meta).toMatchObject({ history: { coverage } });
    }
  });

  it('reports a share of 1 for a market without volume since the start', async () => {
    const { pk, marketId } = await aStoredMarket(api.db);
    await aWitness(api.db, pk, { ...volumes, venueVolume: '0', storedVolume: '2' });
    const { data } = (await client.market(`/v1/polymarket/markets/${marketId}`)).body;
    expect(data).toMatchObject({ coverage: { share: 1 } });
  });
});

describe('GET /v1/venues', () => {
  it('reports the completeness of a venue, and since when trades are missing', async () => {
    const summary = { checkedAt: at(NOW), since: at(SINCE), share: 0.99999, markets: 7, missing: 0 };
    await aVenueCompleteness(api.db, 'polymarket', summary);
    const completeness = { since: SINCE, checked_at: NOW, markets: 7, markets_missing: 0, share: 0.9999 };
    api.clock.nowMs += 2_000;
    expect((await client.market('/v1/venues')).body.data).toMatchObject([{ completeness }]);
    await api.db.query(CLEAR);
    await aVenueCompleteness(api.db, 'polymarket', { ...summary, missing: 2, missingSince: at(NOW - 90) });
    api.clock.nowMs += 2_000;
    expect((await client.market('/v1/venues')).body.data).toMatchObject([
      { completeness: { ...completeness, markets_missing: 2, missing_since: NOW - 90 } },
    ]);
  });
});

describe('the operator pages', () => {
  it('show the share, the loss and the repair', async () => {
    const { pk, marketId } = await aStoredMarket(api.db, { title: 'Will it snow?' });
    await aWitness(api.db, pk, { ...volumes, missingSince: at(NOW - 60) });
    await aRepair(api.db, pk, { finishedAt: at(NOW - 30), trades: 12, missingAfter: '1' });
    const operator = await logIn(api);
    const market = (await operator.page(`/ops/markets/polymarket/${marketId}`)).text;
    expect(market).toContain('99.66 %');
    expect(market).toContain('missing trades');
    expect(market).toMatch(/done, .*12.* trades found/);
    await api.db.query(CLEAR);
    const summary = { checkedAt: at(NOW), since: at(SINCE), share: 0.97, markets: 7, missing: 2 };
    await aVenueCompleteness(api.db, 'polymarket', { ...summary, missingSince: at(NOW - 90) });
    expect((await operator.page('/ops/venues')).text).toMatch(
      /97\.00 %.* of the volume stored, trades of .*2.* markets missing/,
    );
    expect((await operator.page('/ops/venues/polymarket')).text).toContain('Stored share of the volume');
  });
});
