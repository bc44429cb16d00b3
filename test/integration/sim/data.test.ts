import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LedgerRow } from '../../../sim/exchange.ts';
import { type DataTrade, type HttpExchange, NOW, startHttpExchange } from './http-exchange.ts';

let http: HttpExchange;
let exchange: HttpExchange['exchange'];
beforeAll(async () => {
  http = await startHttpExchange({ markets: 140 });
  ({ exchange } = http);
  exchange.step(200);
});
afterAll(() => exchange.close());

describe('the Data API routes', () => {
  const busiest = () => exchange.state().markets.toSorted((a, b) => b.trades - a.trades)[0]?.conditionId ?? '';
  const key = (trade: DataTrade) =>
    [trade.asset, trade.timestamp, trade.side, String(trade.price), String(trade.size), trade.transactionHash].join();
  const keyOfRow = (row: LedgerRow) =>
    [
      row.tokenId,
      row.timestamp,
      row.side,
      String(Number(row.price)),
      String(Number(row.size)),
      row.transactionHash,
    ].join();

  it('pages through a market newest first, and prints what the engine did and nothing else', async () => {
    const market = busiest();
    const pages: DataTrade[] = [];
    for (let offset = 0; ; offset += 100) {
      const page = await http.get<DataTrade[]>(http.data(`/trades?market=${market}&limit=100&offset=${offset}`));
      pages.push(...page);
      if (page.length < 100) break;
    }
    const ledger = exchange.ledger().trades.filter((row) => row.conditionId === market);
    expect(pages.length).toBeGreaterThan(300);
    expect(pages.map(key)).toEqual(ledger.map(keyOfRow).toReversed());
  });

  it('takes both ends of a time window in, and cuts nothing at their seconds', async () => {
    const [start, end] = [NOW - 100, NOW];
    const rows = await http.get<DataTrade[]>(http.data(`/trades?start=${start}&end=${end}&limit=1000`));
    const ledger = exchange.ledger().trades.filter((row) => row.timestamp >= start && row.timestamp <= end);
    expect(rows.map(key)).toEqual(ledger.map(keyOfRow).toReversed());
    const second = rows[0]?.timestamp ?? 0;
    const one = await http.get<DataTrade[]>(http.data(`/trades?start=${second}&end=${second}`));
    expect(one.map(key)).toEqual(rows.filter((row) => row.timestamp === second).map(key));
  });

  it('adds the makers’ rows with takerOnly=false, under the same hashes', async () => {
    const takers = await http.get<DataTrade[]>(http.data(`/trades?market=${busiest()}&limit=200`));
    const both = await http.get<DataTrade[]>(http.data(`/trades?market=${busiest()}&limit=400&takerOnly=false`));
    expect(both).toHaveLength(400);
    expect(new Set(both.map((row) => row.transactionHash))).toEqual(new Set(takers.map((row) => row.transactionHash)));
    expect(both.filter((_row, at) => at % 2 === 0)).toEqual(takers);
  });

  it('filters by side, wallet and several markets', async () => {
    const [first, second] = exchange.state().markets.toSorted((a, b) => b.trades - a.trades);
    const rows = await http.get<DataTrade[]>(
      http.data(`/trades?market=${first?.conditionId},${second?.conditionId}&side=SELL&limit=1000`),
    );
    expect(new Set(rows.map((row) => row.conditionId))).toEqual(new Set([first?.conditionId, second?.conditionId]));
    expect(new Set(rows.map((row) => row.side))).toEqual(new Set(['SELL']));
    const wallet = rows[0]?.proxyWallet;
    const own = await http.get<DataTrade[]>(http.data(`/trades?user=${wallet}&limit=1000`));
    expect(own.length).toBeGreaterThan(0);
    expect(new Set(own.map((row) => row.proxyWallet))).toEqual(new Set([wallet]));
    expect(await http.get(http.data('/trades?market=0xunknown'))).toEqual([]);
  });

  it('ends every window at 4,000 rows', async () => {
    expect(exchange.state().trades.total).toBeGreaterThan(5000);
    expect(await http.get<DataTrade[]>(http.data('/trades?limit=1000&offset=3500'))).toHaveLength(500);
    expect(await http.get(http.data('/trades?limit=1000&offset=4000'))).toEqual([]);
    expect(await http.get<DataTrade[]>(http.data('/trades?limit=5000'))).toHaveLength(1000);
    expect(await http.get(http.data('/trades?limit=x'), 400)).toHaveProperty('error');
  });
});
