import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MarketState } from '../../../sim/exchange.ts';
import { FIRST_RETAIL } from '../../../sim/traders/wallets.ts';
import { conditionIdV2Of, walletOf, wholeConditionId } from '../../../sim/world/identity.ts';
import type { TradeRecord } from '../../../src/domain/markets/market.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { createPolymarketAdapter } from '../../../src/venues/polymarket/adapter.ts';
import { createPolymarketSession } from '../../../src/venues/polymarket/feed/feed.ts';
import { createPolymarketWallets } from '../../../src/venues/polymarket/wallet-adapter.ts';
import type { VenueAdapter } from '../../../src/venues/port.ts';
import { type HttpExchange, NOW, startHttpExchange } from '../sim/http-exchange.ts';

/**
 * The hosts write a condition of protocol V2 in two forms: Gamma with 31 bytes, the CLOB with a last byte of zero, the Data API in both.
 */
describe('the markets of protocol V2', () => {
  let http: HttpExchange;
  let adapter: VenueAdapter;
  let states: MarketState[];
  const context = { signal: new AbortController().signal, now: () => NOW * 1000 + 60_000 };
  const marketIds = () => states.map(({ conditionId }) => conditionId);
  beforeAll(async () => {
    http = await startHttpExchange({ markets: 12, historyHours: 0.3, rollingSeconds: 0 });
    http.exchange.step(60);
    const { gammaUrl, clobUrl, dataUrl } = http.exchange;
    adapter = createPolymarketAdapter({
      urls: { gamma: gammaUrl, clob: clobUrl, data: dataUrl },
      http: { requestsPerSecond: 10_000, maxAttempts: 1 },
      trades: { pagesPerCall: 100 },
    });
    const isV2 = ({ conditionId, phase }: MarketState) => conditionId.length === 64 && phase === 'open';
    states = http.exchange.state().markets.filter(isV2);
  });
  afterAll(async () => {
    await adapter.close();
    await http.exchange.close();
  });

  function ledgerOf(conditionId: string) {
    const rows = http.exchange.ledger().trades.filter((row) => row.conditionId === conditionId);
    return rows.map(({ tokenId, price, size }) => `${tokenId} ${decimal(price)} ${decimal(size)}`).sort();
  }

  const lines = (trades: readonly TradeRecord[]) =>
    trades.map(({ outcomeId, price, size }) => `${outcomeId} ${price} ${size}`).sort();

  it('have the outcomes of positionIds, which are not the tokens that they had before', async () => {
    const { records, rejected } = await adapter.pollMarkets(null, context);
    expect(rejected).toEqual([]);
    expect(states.length).toBeGreaterThan(1);
    for (const { conditionId, outcomes } of states) {
      const record = records.find(({ marketId }) => marketId === conditionId);
      expect(record?.outcomes.map(({ outcomeId }) => outcomeId)).toEqual(outcomes.map(({ tokenId }) => tokenId));
      expect(record?.hasBook).toBe(true);
    }
  });

  it.each([
    ['31 bytes', (id: string) => id],
    ['a last byte of zero', wholeConditionId],
  ])('are found by ids with %s', async (_form, write) => {
    const { records } = await adapter.fetchMarkets(marketIds().map(write), context);
    expect(records.map(({ marketId }) => marketId).sort()).toEqual(marketIds().sort());
  });

  it('have books and prices under their outcomes', async () => {
    const outcomeIds = states.flatMap(({ outcomes }) => outcomes.map(({ tokenId }) => tokenId));
    const books = await adapter.fetchBooks(outcomeIds, context);
    const prices = await adapter.fetchPrices(outcomeIds, context);
    expect([books.rejected, prices.rejected]).toEqual([[], []]);
    expect(books.records.map(({ outcomeId }) => outcomeId).sort()).toEqual(outcomeIds.toSorted());
    expect(prices.records.map(({ outcomeId }) => outcomeId).sort()).toEqual(outcomeIds.toSorted());
  });

  it('have all their trades on the tape and in their history, with equal ids and order', async () => {
    const tape = await adapter.pollTrades(null, context);
    for (const { conditionId, outcomes } of states) {
      const outcomeIds = outcomes.map(({ tokenId }) => tokenId);
      const live = tape.records.filter(({ outcomeId }) => outcomeIds.includes(outcomeId));
      const request = { marketId: conditionId, outcomeIds, fromMs: (NOW - 86_400) * 1000, toMs: (NOW + 61) * 1000 };
      const old = await adapter.pollHistory(request, null, context);
      expect([old.more, old.truncated]).toEqual([false, undefined]);
      expect(lines(old.records)).toEqual(ledgerOf(conditionId));
      expect(old.records.length).toBeGreaterThan(10);
      // The live walk leaves the newest second, which may be incomplete.
      expect(live.length).toBeGreaterThan(old.records.length / 2);
      const byId = new Map(old.records.map((trade) => [trade.tradeId, trade]));
      expect(live.map(({ tradeId }) => byId.get(tradeId))).toEqual(live);
    }
  });

  it('are in the wallets under the ids of the catalog', async () => {
    const wallets = createPolymarketWallets({
      url: http.exchange.dataUrl,
      http: { requestsPerSecond: 10_000, maxAttempts: 1 },
    });
    const address = walletOf(http.exchange.seed, FIRST_RETAIL).address;
    const activity = await wallets.pollActivity({ address, sinceMs: (NOW - 86_400) * 1000 }, null, context);
    const balances = await wallets.pollBalances(address, null, context);
    await wallets.close();
    const known = new Set(http.exchange.state().markets.map(({ conditionId }) => conditionId));
    const named = (rows: readonly { marketId?: string }[]) => rows.flatMap(({ marketId }) => marketId ?? []);
    for (const ids of [named(activity.records), named(balances.records)]) {
      expect(ids.filter((id) => !known.has(id))).toEqual([]);
      expect(ids.some((id) => marketIds().includes(id))).toBe(true);
    }
  });
});

describe('the session of the market channel', () => {
  const marketId = conditionIdV2Of(7, 3);
  const outcomeIds = ['21', '22'];
  const stated = { market: wholeConditionId(marketId), timestamp: String(NOW * 1000) };
  const bids = [{ price: '0.40', size: '10' }];
  const asks = [{ price: '0.50', size: '10' }];
  const take = (session: ReturnType<typeof createPolymarketSession>, message: object) =>
    session.take(JSON.stringify({ ...stated, ...message }), NOW * 1000);

  it('applies messages that state the market of protocol V2 with its last byte', () => {
    const session = createPolymarketSession();
    session.subscribe([{ marketId, outcomeIds }], NOW * 1000);
    const readings = [
      take(session, { event_type: 'book', asset_id: '21', bids, asks }),
      take(session, {
        event_type: 'price_change',
        price_changes: [{ asset_id: '21', price: '0.41', size: '5', side: 'BUY', best_bid: '0.41', best_ask: '0.50' }],
      }),
      take(session, { event_type: 'best_bid_ask', asset_id: '21', best_bid: '0.42', best_ask: '0.50' }),
      take(session, { event_type: 'last_trade_price', asset_id: '21', price: '0.5', size: '1', side: 'BUY' }),
      take(session, { event_type: 'market_resolved' }),
    ];
    expect(readings.map(({ applied }) => applied)).toEqual([1, 1, 1, 1, 1]);
    expect(readings.flatMap(({ skipped }) => skipped)).toEqual([]);
    expect(readings.at(-1)?.updates).toEqual([
      { kind: 'market', marketId, change: 'market_resolved', times: { resolved: expect.any(Number) } },
    ]);
    expect(session.book('21')?.bids.map(({ price }) => price)).toEqual(['0.41', '0.4']);
  });

  it('names a market that it does not know as Gamma does', () => {
    const session = createPolymarketSession();
    const { updates } = take(session, { event_type: 'new_market' });
    expect(updates).toEqual([{ kind: 'market', marketId, change: 'new_market' }]);
  });
});
