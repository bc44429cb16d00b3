import { describe, expect, it } from 'vitest';
import type { LedgerRow } from '../../../sim/exchange.ts';
import { type DataPage, type DataTrade, useHttpExchange } from './http-exchange.ts';

const { http, exchange } = useHttpExchange({ markets: 140 }, 200);

describe('the Data API routes', () => {
  const busiest = () => exchange.state().markets.toSorted((a, b) => b.trades - a.trades)[0]?.conditionId ?? '';
  const key = (trade: DataTrade) =>
    [
      trade.token_id,
      trade.timestamp,
      trade.side,
      String(trade.price),
      String(trade.size),
      trade.transaction_hash,
    ].join();
  const keyOfRow = (row: LedgerRow) =>
    [
      row.tokenId,
      row.timestamp,
      row.side,
      String(Number(row.price)),
      String(Number(row.size)),
      row.transactionHash,
    ].join();

  it('page through a market newest first, with exactly the prints of the engine', async () => {
    const market = busiest();
    const rows: DataTrade[] = [];
    let next: string | null = null;
    do {
      const place: string = next === null ? 'limit=100' : `cursor=${next}`;
      const page: DataPage = await http.get(http.data(`/v2/trades?condition=${market}&${place}`));
      expect(page.pagination).toMatchObject({ limit: 100, has_more: page.pagination.next_cursor !== null });
      rows.push(...page.data);
      next = page.pagination.next_cursor;
    } while (next !== null);
    const ledger = exchange.ledger().trades.filter((row) => row.conditionId === market);
    expect(rows.length).toBeGreaterThan(300);
    expect(rows.map(key)).toEqual(ledger.map(keyOfRow).toReversed());
  });

  it('show the trades of all markets, and combinations among them', async () => {
    const rows = await http.trades('taker_only=true');
    const isCombo = ({ condition_id, slug }: DataTrade) => /^0x03[0-9a-f]{60}$/.test(condition_id) && slug === '';
    expect(rows.filter((row) => !isCombo(row)).map(key)).toEqual(exchange.ledger().trades.map(keyOfRow).toReversed());
    const share = rows.filter(isCombo).length / rows.length;
    expect(share).toBeGreaterThan(0.006);
    expect(share).toBeLessThan(0.01);
  });

  it('name events and outcomes only some time after the trade', async () => {
    const rows = await http.trades(`condition=${busiest()}`);
    const isFresh = ({ timestamp }: DataTrade) => exchange.second() - timestamp < 30;
    const isNamed = ({ event_slug, outcome_index }: DataTrade) => event_slug !== '' && outcome_index !== 999;
    expect(rows.some(isFresh)).toBe(true);
    expect(rows.map(isNamed)).toEqual(rows.map((row) => !isFresh(row)));
  });

  it('add the makers’ rows with taker_only=false, under the same hashes', async () => {
    const takers = await http.trades(`condition=${busiest()}`);
    const both = await http.trades(`condition=${busiest()}&taker_only=false`);
    expect(both).toHaveLength(2 * takers.length);
    expect(both.filter((_row, at) => at % 2 === 0)).toEqual(takers);
    expect(new Set(both.map((row) => row.transaction_hash))).toEqual(
      new Set(takers.map((row) => row.transaction_hash)),
    );
  });

  it('filter by side, wallet, several markets, and size', async () => {
    const [first, second] = exchange.state().markets.toSorted((a, b) => b.trades - a.trades);
    const rows = await http.trades(`condition=${first?.conditionId},${second?.conditionId}&side=SELL`);
    expect(new Set(rows.map((row) => row.condition_id))).toEqual(new Set([first?.conditionId, second?.conditionId]));
    expect(new Set(rows.map((row) => row.side))).toEqual(new Set(['SELL']));
    const wallet = rows[0]?.proxy_wallet;
    const time = rows[0]?.timestamp;
    const own = await http.trades(`user=${wallet}&start=${time}&end=${time}`);
    expect(own.map(key)).toContain(rows[0] && key(rows[0]));
    expect(new Set(own.map((row) => row.proxy_wallet))).toEqual(new Set([wallet]));
    const large = await http.get<DataPage>(http.data('/v2/trades?limit=1000&filter_amount=100'));
    expect(Math.min(...large.data.map((row) => row.size))).toBeGreaterThanOrEqual(100);
    expect(await http.trades(`condition=0x${'9'.repeat(64)}`)).toEqual([]);
  });

  it.each([
    'offset=0',
    'takerOnly=true',
    '_=1',
    'limit=x',
    'limit=1001',
    'start=1',
    'end=1',
    'cursor=abc',
    'filter_amount=-1',
    'filter_type=SHARES',
    'side=LONG',
    'condition=0xunknown',
    `condition=0x${'1'.repeat(64)}&event_id=1`,
  ])('reject %s', async (query) => {
    const refusal = await http.get(http.data(`/v2/trades?${query}`), 400);
    expect(refusal).toMatchObject({ code: 'invalid_request', retryable: false, trace_id: expect.any(String) });
  });

  it('accept a cursor with its own filters only, for any page size', async () => {
    const page = await http.get<DataPage>(http.data('/v2/trades?limit=7&side=BUY'));
    const cursor = page.pagination.next_cursor;
    const next = await http.get<DataPage>(http.data(`/v2/trades?limit=900&side=BUY&cursor=${cursor}`));
    expect(next.data).toHaveLength(7);
    await http.get(http.data(`/v2/trades?side=SELL&cursor=${cursor}`), 400);
    await http.get(http.data(`/v2/activity?user=0x${'1'.repeat(40)}&cursor=${cursor}`), 400);
  });

  it('repeat a page of the same address for 300 s, and answer another address at once', async () => {
    const ask = async (limit: number) => {
      const response = await fetch(http.data(`/v2/trades?limit=${limit}`));
      const { data } = (await response.json()) as DataPage;
      return { age: response.headers.get('age'), newest: data[0]?.timestamp ?? 0 };
    };
    const first = await ask(501);
    exchange.step(60);
    expect(await ask(501)).toEqual({ age: '60', newest: first.newest });
    expect((await ask(502)).newest).toBeGreaterThan(first.newest);
    exchange.step(240);
    expect(await ask(501)).toMatchObject({ age: null });
  });

  it.each(['/trades', '/activity', '/positions'])('have no %s of version 1', async (path) => {
    await http.get(http.data(path), 410);
  });
});
