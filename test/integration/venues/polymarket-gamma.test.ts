import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Exchange, startExchange } from '../../../sim/exchange.ts';
import type { MarketRecord } from '../../../src/domain/markets/market.ts';
import { createPolymarketAdapter } from '../../../src/venues/polymarket/adapter.ts';
import type { VenueAdapter } from '../../../src/venues/port.ts';

const START_SECOND = 1_790_000_000;
let exchange: Exchange;
let adapter: VenueAdapter;
const context = { signal: new AbortController().signal, now: () => exchange.second() * 1000 };

beforeEach(async () => {
  exchange = await startExchange({ seed: 3, markets: 160, historyHours: 0.1, nowSecond: START_SECOND, paused: true });
  adapter = createPolymarketAdapter({
    urls: { gamma: exchange.gammaUrl, clob: exchange.clobUrl, data: exchange.dataUrl },
    http: { requestsPerSecond: 10_000 },
  });
});
afterEach(async () => {
  await adapter.close();
  await exchange.close();
});

/** One walk over the catalog: the last record of each market, and the final position. */
async function walk(from: unknown): Promise<{ markets: Map<string, MarketRecord>; position: unknown }> {
  const markets = new Map<string, MarketRecord>();
  let position = from;
  for (;;) {
    const page = await adapter.pollMarkets(position, context);
    expect(page.rejected).toEqual([]);
    for (const record of page.records) markets.set(record.marketId, record);
    position = page.position;
    if (!page.more) return { markets, position };
  }
}

function tradingMarkets() {
  return exchange.state().markets.filter((market) => market.phase === 'open' && !market.negRisk && !market.halted);
}

describe('the Polymarket catalog', () => {
  it('shows no book of a market that is inactive, archived or halted', async () => {
    const [first, second, third, fourth] = tradingMarkets();
    const ids = [first, second, third, fourth].map((market) => market?.conditionId ?? '');
    const [inactive = '', archived = '', halted = ''] = ids;
    exchange.steer({ conditionId: inactive, action: 'deactivate' });
    exchange.steer({ conditionId: archived, action: 'archive' });
    exchange.steer({ conditionId: halted, action: 'halt' });
    const { records } = await adapter.fetchMarkets(ids, context);
    const byId = new Map(records.map((record) => [record.marketId, record]));
    expect(ids.map((id) => byId.get(id)?.hasBook)).toEqual([false, false, false, true]);
    expect(ids.map((id) => byId.get(id)?.status)).toEqual(['halted', 'closed', 'halted', 'open']);
  });

  it('shows a change within a minute when the venue caches every list for five minutes', async () => {
    exchange.addFault({ host: 'gamma', kind: 'cdn_cache', maxAgeSeconds: 300 });
    let { position } = await walk(null);
    for (let minute = 0; minute < 4; minute += 1) {
      exchange.idle(60);
      const [market] = tradingMarkets();
      exchange.steer({ conditionId: market?.conditionId ?? '', action: 'close' });
      const next = await walk(position);
      expect(next.markets.get(market?.conditionId ?? '')).toMatchObject({ status: 'closed', hasBook: false });
      const byId = await adapter.fetchMarkets([market?.conditionId ?? ''], context);
      expect(byId.records).toMatchObject([{ status: 'closed' }]);
      expect([...next.markets.values(), ...byId.records].filter((record) => record.ageMs !== undefined)).toEqual([]);
      ({ position } = next);
    }
  });
});
