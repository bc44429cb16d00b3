import { describe, expect, it } from 'vitest';
import type { MarketState, SteerRequest } from '../../../sim/exchange.ts';
import { tickerOf } from '../../../sim/kalshi/wire.ts';
import { type DataTrade, type GammaMarket, useHttpExchange } from './http-exchange.ts';

const { http, exchange } = useHttpExchange({ historyHours: 0.1 }, 60);

interface Contract {
  id: string;
  slug: string;
  isResolved: boolean;
  resolution?: string;
  closeTime: number;
}

const steer = (request: SteerRequest, status = 200) => http.post(`${exchange.url}/_sim/markets`, request, status);

/** Plain markets that trade, a fresh one for each test. */
let used = 0;
function nextMarket(): MarketState {
  const plain = exchange
    .state()
    .markets.filter((market) => market.phase === 'open' && !market.negRisk && market.trades > 0);
  const market = plain[used];
  used += 1;
  if (market === undefined) throw new Error('no market left');
  return market;
}

/** Each venue's view of a market: in its listing, and by id. */
async function sightings({ conditionId, slug, id }: MarketState) {
  const ticker = tickerOf({ id });
  const gamma = async (closed: boolean) =>
    (await http.get<GammaMarket[]>(http.gamma(`/markets?condition_ids=${conditionId}&closed=${closed}`)))[0];
  const contracts = await http.get<Contract[]>(http.manifold('/markets?limit=1000'));
  const tickers = await http.get<{ markets: { status: string; result: string }[] }>(
    http.kalshi(`/markets?tickers=${ticker}`),
  );
  const nested = await http.get<{ events: { markets: { ticker: string }[] }[] }>(
    http.kalshi('/events?with_nested_markets=true'),
  );
  return {
    listedOpen: (await http.walk('limit=100')).some((market) => market.conditionId === conditionId),
    listedClosed: (await http.walk('limit=100&closed=true')).some((market) => market.conditionId === conditionId),
    open: await gamma(false),
    closed: await gamma(true),
    kalshi: tickers.markets[0],
    nested: nested.events.flatMap((event) => event.markets).some((market) => market.ticker === ticker),
    contract: contracts.find((contract) => contract.slug === slug),
  };
}

describe('a vanished market', () => {
  it('is in no listing and under no id, does not trade, and returns unchanged', async () => {
    const market = nextMarket();
    const [{ tokenId }] = market.outcomes;
    const ticker = tickerOf(market);
    const before = await sightings(market);
    expect(before).toMatchObject({ listedOpen: true, nested: true, open: { conditionId: market.conditionId } });
    const prints = await http.trades(`condition=${market.conditionId}`);

    await steer({ conditionId: market.conditionId, action: 'vanish' });
    exchange.step(30);
    expect(await sightings(market)).toEqual({ listedOpen: false, listedClosed: false, nested: false });
    await http.get(http.kalshi(`/markets/${ticker}`), 404);
    await http.get(http.manifold(`/market/${before.contract?.id}`), 404);
    expect(await http.get(http.manifold(`/market-probs?ids=${before.contract?.id}`))).toEqual({});
    await http.get(http.clob(`/book?token_id=${tokenId}`), 404);
    expect(exchange.state().markets.map((each) => each.conditionId)).not.toContain(market.conditionId);
    // Its prints remain on every tape.
    expect((await http.trades(`condition=${market.conditionId}`)).map(withoutNames)).toEqual(prints.map(withoutNames));
    const tape = await http.get<{ trades: unknown[] }>(http.kalshi(`/markets/trades?ticker=${ticker}&limit=1000`));
    expect(tape.trades).toHaveLength(prints.length);

    await steer({ conditionId: market.conditionId, action: 'return' });
    expect(await sightings(market)).toMatchObject({ listedOpen: true, nested: true, kalshi: { status: 'active' } });
    await http.get(http.manifold(`/market/${before.contract?.id}`));
  });

  it('can close and resolve while hidden, and is never listed as open again', async () => {
    const market = nextMarket();
    const { contract } = await sightings(market);
    await steer({ conditionId: market.conditionId, action: 'vanish' });
    await steer({ conditionId: market.conditionId, action: 'resolve', winner: 1 });
    await steer({ conditionId: market.conditionId, action: 'return' });
    const after = await sightings(market);
    expect(after).toMatchObject({ listedOpen: false, listedClosed: true, open: undefined });
    expect(after.closed?.outcomePrices).toBe('["0", "1"]');
    expect(after.kalshi).toMatchObject({ status: 'finalized', result: 'no' });
    expect(after.contract).toMatchObject({ isResolved: true, resolution: 'NO', id: contract?.id });
    expect(after.contract?.closeTime).toBe(exchange.second() * 1000);
  });
});

describe('a manually closed market', () => {
  it('waits for its resolution, and can be corrected', async () => {
    const market = nextMarket();
    await steer({ conditionId: market.conditionId, action: 'close', winner: 0 });
    exchange.step(50);
    expect(await sightings(market)).toMatchObject({
      open: { umaResolutionStatus: expect.stringMatching(/proposed|disputed/), acceptingOrders: false },
      kalshi: { status: expect.stringMatching(/determined|disputed/), result: 'yes' },
      contract: { isResolved: false },
    });
    exchange.step(80);
    await steer({ conditionId: market.conditionId, action: 'amend', winner: 1 });
    expect((await sightings(market)).kalshi).toMatchObject({ status: 'amended', result: 'no' });
    await steer({ conditionId: market.conditionId, action: 'amend' });
    await steer({ conditionId: market.conditionId, action: 'resolve' });
    expect((await sightings(market)).kalshi).toMatchObject({ status: 'finalized', result: 'yes' });
    exchange.step(5);
    await steer({ conditionId: market.conditionId, action: 'resolve', winner: 1 });
    const { kalshi, closed } = await sightings(market);
    expect(kalshi).toMatchObject({ result: 'no', settlement_ts: iso(exchange.second()) });
    expect(closed?.outcomePrices).toBe('["0", "1"]');
  });
});

describe('a halted market', () => {
  it('accepts no orders until trading resumes', async () => {
    const market = nextMarket();
    await steer({ conditionId: market.conditionId, action: 'halt' });
    const { total } = exchange.state().trades;
    exchange.step(100);
    const printed = exchange.ledger(total).trades;
    expect(printed.length).toBeGreaterThan(0);
    expect(printed.map((row) => row.conditionId)).not.toContain(market.conditionId);
    const halted = await sightings(market);
    expect(halted).toMatchObject({ open: { acceptingOrders: false }, kalshi: { status: 'inactive' } });
    expect(halted.open).not.toHaveProperty('umaResolutionStatus');
    await steer({ conditionId: market.conditionId, action: 'unhalt' });
    expect(await sightings(market)).toMatchObject({ open: { acceptingOrders: true }, kalshi: { status: 'active' } });
  });
});

it.each<[string, object, number]>([
  ['an unknown market', { conditionId: '0x1', action: 'halt' }, 404],
  ['an unknown action', { action: 'burn' }, 400],
  ['an invalid winner', { action: 'close', winner: 2 }, 400],
])('a control request with %s is rejected', async (_label, request, status) => {
  await http.post(`${exchange.url}/_sim/markets`, { conditionId: nextMarket().conditionId, ...request }, status);
});

it('a control request to halt a market is rejected when it no longer trades', async () => {
  const resolved = exchange.state().markets.find((market) => market.phase === 'resolved');
  await steer({ conditionId: resolved?.conditionId ?? '', action: 'halt' }, 409);
});

function iso(second: number): string {
  return `${new Date(second * 1000).toISOString().slice(0, 19)}Z`;
}

/** A row without the names that it gets some time after its trade. */
function withoutNames({ event_slug: _, outcome_index: __, ...row }: DataTrade) {
  return row;
}
