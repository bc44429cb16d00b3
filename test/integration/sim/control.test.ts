import { describe, expect, it } from 'vitest';
import type { LedgerRow } from '../../../sim/exchange.ts';
import { type GammaMarket, useHttpExchange } from './http-exchange.ts';

const { http, exchange } = useHttpExchange({}, 200);

describe('the control routes', () => {
  it('force a price, which all three hosts then show', async () => {
    const market = exchange.state().markets.find((each) => each.phase === 'open' && each.hasTraders && !each.negRisk);
    const tokenId = market?.outcomes[1].tokenId ?? '';
    const before = exchange.ledger().nextIndex;
    const forced = await http.post<{ fills: number; nextIndex: number }>(`${exchange.url}/_sim/price`, {
      tokenId,
      price: 0.91,
      holdMs: 5000,
    });
    expect(forced.fills).toBeGreaterThan(0);
    exchange.step(3);
    expect(await http.get(http.clob(`/midpoint?token_id=${tokenId}`))).toEqual({ mid: '0.91' });
    expect(await http.get(http.clob(`/last-trade-price?token_id=${tokenId}`))).toMatchObject({ price: '0.91' });
    const [shown] = await http.get<GammaMarket[]>(http.gamma(`/markets?clob_token_ids=${tokenId}`));
    expect(JSON.parse(shown?.outcomePrices ?? '')).toEqual(['0.09', '0.91']);
    const { trades } = await http.get<{ trades: LedgerRow[] }>(`${exchange.url}/_sim/ledger?since=${before}`);
    expect(trades.some((row) => row.tokenId === tokenId && row.price === '0.91')).toBe(true);
    const printed = await http.trades(`condition=${market?.conditionId}`);
    expect(printed[0]).toMatchObject({ token_id: tokenId, price: 0.91 });
  });

  it('release a forced price early', () => {
    const market = exchange
      .state()
      .markets.findLast((each) => each.phase === 'open' && each.hasTraders && !each.negRisk);
    const tokenId = market?.outcomes[0].tokenId ?? '';
    exchange.forcePrice({ tokenId, price: 0.5, holdMs: 3_600_000 });
    const printed = exchange.ledger().nextIndex;
    const tradesOf = () => exchange.ledger(printed).trades.filter((row) => row.conditionId === market?.conditionId);
    exchange.step(300);
    expect(tradesOf()).toEqual([]);
    exchange.releasePrice(tokenId);
    exchange.step(300);
    expect(tradesOf().length).toBeGreaterThan(0);
    expect(() => exchange.releasePrice('1')).toThrow('no token 1');
  });

  it('reject a price off the grid, an unknown token and a closed market', async () => {
    const open = exchange.state().markets.find((each) => each.phase === 'open' && each.hasTraders);
    const closed = exchange.state().markets.find((each) => each.phase === 'resolved');
    const price = `${exchange.url}/_sim/price`;
    await http.post(price, { tokenId: open?.outcomes[0].tokenId, price: '0.00001' }, 400);
    await http.post(price, { tokenId: open?.outcomes[0].tokenId, price: 1 }, 400);
    await http.post(price, { tokenId: '1', price: 0.5 }, 404);
    await http.post(price, { tokenId: closed?.outcomes[0].tokenId, price: 0.5 }, 409);
    await http.post(price, 'nothing', 400);
  });

  it('step and idle, and report the state', async () => {
    const before = await http.get<{ second: number }>(`${exchange.url}/_sim/state`);
    expect(await http.post(`${exchange.url}/_sim/step`, { steps: 4 })).toMatchObject({ second: before.second + 4 });
    const { total } = exchange.state().trades;
    expect(await http.post(`${exchange.url}/_sim/idle`, { seconds: 3 })).toEqual({
      second: before.second + 7,
      nextIndex: total,
    });
    expect(await http.get(`${exchange.url}/_sim/health`)).toEqual({ status: 'ok' });
    await http.post(`${exchange.url}/_sim/step`, { steps: 0 }, 400);
    await http.get(`${exchange.url}/_sim/nothing`, 404);
    await http.get(`${exchange.url}/kalshi/markets`, 404);
  });
});
