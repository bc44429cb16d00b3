import { describe, expect, it } from 'vitest';
import type { LedgerRow } from '../../../sim/exchange.ts';
import { useHttpExchange } from './http-exchange.ts';

const { http, exchange } = useHttpExchange({ markets: 140 }, 200);

describe('the CLOB routes', () => {
  const tokens = () =>
    exchange
      .state()
      .markets.filter((market) => market.phase === 'open')
      .flatMap((market) => market.outcomes);

  it('agree with Gamma and the engine on every price', async () => {
    const markets = await http.walk('limit=100');
    const state = new Map(exchange.state().markets.map((market) => [market.conditionId, market]));
    for (const market of markets.slice(0, 40)) {
      const outcomes = state.get(market.conditionId)?.outcomes;
      if (outcomes === undefined || state.get(market.conditionId)?.phase !== 'open') continue;
      const body = outcomes.map(({ tokenId }) => ({ token_id: tokenId }));
      const mids = await http.post<Record<string, string>>(http.clob('/midpoints'), body);
      const spreads = await http.post<Record<string, string>>(http.clob('/spreads'), body);
      expect(String(market.bestBid)).toBe(String(Number(outcomes[0].bestBid)));
      expect(String(market.bestAsk)).toBe(String(Number(outcomes[0].bestAsk)));
      const books = await http.post<{ asset_id: string; bids: { price: string }[]; asks: { price: string }[] }[]>(
        http.clob('/books'),
        body,
      );
      expect(books.map((book) => book.asset_id)).toEqual(outcomes.map(({ tokenId }) => tokenId));
      for (const [at, book] of books.entries()) {
        expect(book.bids.at(-1)?.price).toBe(outcomes[at as 0 | 1].bestBid);
        expect(book.asks.at(-1)?.price).toBe(outcomes[at as 0 | 1].bestAsk);
        const middle = (Number(book.bids.at(-1)?.price) + Number(book.asks.at(-1)?.price)) / 2;
        expect(Number(mids[book.asset_id])).toBeCloseTo(middle, 9);
        const width = Number(book.asks.at(-1)?.price) - Number(book.bids.at(-1)?.price);
        expect(Number(spreads[book.asset_id])).toBeCloseTo(width, 9);
        if (width <= 0.1) {
          const shown = (JSON.parse(market.outcomePrices ?? '[]') as string[])[at];
          expect(shown).toBe(mids[book.asset_id]);
        }
      }
    }
  });

  it('have the last trade of a token from the tape', async () => {
    const newest = new Map<string, LedgerRow>();
    for (const row of exchange.ledger().trades) newest.set(row.tokenId, row);
    const ids = tokens().map((outcome) => outcome.tokenId);
    const rows = await http.post<{ token_id: string; price: string; side: string }[]>(
      http.clob('/last-trades-prices'),
      ids.map((id) => ({ token_id: id })),
    );
    const traded = ids.filter((id) => newest.has(id));
    expect(rows.map((row) => row.token_id)).toEqual(traded);
    for (const row of rows) {
      expect([row.price, row.side]).toEqual([newest.get(row.token_id)?.price, newest.get(row.token_id)?.side]);
    }
    const never = ids.find((id) => !newest.has(id));
    expect(await http.get(http.clob(`/last-trade-price?token_id=${never}`))).toEqual({ price: '0.5', side: '' });
  });

  it('omit unknown and closed tokens from a batch, and accept at most 500', async () => {
    const known = tokens()[0]?.tokenId ?? '';
    const closed = exchange.state().markets.find((market) => market.phase === 'resolved')?.outcomes[0].tokenId;
    const books = await http.post<{ asset_id: string }[]>(http.clob('/books'), [
      { token_id: '1' },
      { token_id: known },
      { token_id: closed },
    ]);
    expect(books.map((book) => book.asset_id)).toEqual([known]);
    await http.post(
      http.clob('/books'),
      Array.from({ length: 500 }, () => ({ token_id: known })),
    );
    const tooMany = Array.from({ length: 501 }, () => ({ token_id: known }));
    expect(await http.post(http.clob('/books'), tooMany, 400)).toEqual({ error: 'Payload exceeds the limit' });
    expect(await http.post(http.clob('/books'), { token_id: known }, 400)).toEqual({ error: 'Invalid payload' });
  });

  it('answer for one token, and with the venue’s error for an unknown one', async () => {
    const id = tokens()[0]?.tokenId ?? '';
    const book = await http.get<{ asset_id: string; market: string }>(http.clob(`/book?token_id=${id}`));
    expect(book.asset_id).toBe(id);
    expect(await http.get(http.clob(`/midpoint?token_id=${id}`))).toEqual({ mid: expect.stringMatching(/^0\.\d+$/) });
    expect(await http.get(http.clob(`/spread?token_id=${id}`))).toEqual({ spread: expect.stringMatching(/^0\.\d+$/) });
    expect(await http.get(http.clob('/book?token_id=12'), 404)).toEqual({
      error: 'No orderbook exists for the requested token id',
    });
    await http.get(http.clob('/book'), 400);
    const market = await http.get<{ tokens: { token_id: string }[] }>(http.clob(`/markets/${book.market}`));
    expect(market.tokens.map((token) => token.token_id)).toContain(id);
  });
});
