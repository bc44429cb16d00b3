import { beforeAll, describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { aRepair, aVenueCompleteness, aWitness } from '../../../factories/completeness.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { type Client, useTestApi } from '../api-harness.ts';
import { logIn, testOps } from '../ops/ops-client.ts';

const NOW = 1_764_000_030;
const SINCE = NOW - 86_400;
const at = (seconds: number) => new Date(seconds * 1000);
const SET_TAPE = sql(
  'test_set_tape_read',
  `INSERT INTO poll_state (venue, kind, first_success_at, last_success_at, caught_up_at) VALUES ('polymarket', 'trades', $1, $1, $2)
   ON CONFLICT (venue, kind) DO UPDATE SET last_success_at = excluded.last_success_at, caught_up_at = excluded.caught_up_at`,
);
const CLEAR = sql('test_clear_completeness', 'TRUNCATE venue_completeness');

const api = useTestApi({ ops: testOps() });
let client: Client;
beforeAll(async () => {
  api.clock.nowMs = NOW * 1000;
  client = await api.client();
});

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

const readTape = (second: number) =>
  api.db.query(SET_TAPE, [new Date(second * 1000).toISOString(), new Date(second * 1000).toISOString()]);

describe('GET /v1/venues', () => {
  it('reports the completeness of a venue, and since when trades are missing', async () => {
    const summary = { checkedAt: at(NOW), since: at(SINCE), share: 0.99999, markets: 7, missing: 0 };
    await readTape(NOW);
    await aVenueCompleteness(api.db, 'polymarket', summary);
    const completeness = {
      since: SINCE,
      checked_at: NOW,
      markets: 7,
      markets_missing: 0,
      share: 0.9999,
      comparing: true,
    };
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

describe('GET /v1/venues while the polls of trades fail', () => {
  it('states that new volumes are not compared, and claims no share where nothing was compared', async () => {
    await api.db.query(CLEAR);
    await readTape(NOW - 2_220);
    const summary = { checkedAt: at(NOW), since: at(SINCE), share: null, markets: 7, missing: 0 };
    await aVenueCompleteness(api.db, 'polymarket', summary);
    api.clock.nowMs = (NOW + 4) * 1000;
    const { data } = (await client.market('/v1/venues')).body;
    const stopped = { comparing: false, covered_to: NOW - 2_220, checked_at: NOW - 2_220 };
    const completeness = { since: SINCE, markets: 7, markets_missing: 0, ...stopped };
    expect(data).toEqual([expect.objectContaining({ completeness })]);
    await readTape(NOW);
  });
});

describe('the operator pages while the polls of trades fail', () => {
  it('show no share where nothing was compared, and up to which time trades were read', async () => {
    const { pk, marketId } = await aStoredMarket(api.db);
    await aWitness(api.db, pk, volumes);
    await api.db.query(CLEAR);
    await readTape(NOW - 2_220);
    const summary = { checkedAt: at(NOW), since: null, share: null, markets: 0, missing: 0 };
    await aVenueCompleteness(api.db, 'polymarket', summary);
    const operator = await logIn(api);
    for (const path of ['/ops/venues', '/ops/venues/polymarket', `/ops/markets/polymarket/${marketId}`]) {
      const { text } = await operator.page(path);
      expect(text).not.toContain('100.00 %');
      expect(text).toContain('not compared now');
      expect(text).toContain('37 min ago');
    }
    await readTape(NOW);
    expect((await operator.page('/ops/venues/polymarket')).text).toContain('nothing compared yet');
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
