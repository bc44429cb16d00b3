import { afterAll, describe, expect, it } from 'vitest';
import { feePeriodAt } from '../../../src/domain/markets/fee.ts';
import { createKalshiAdapter } from '../../../src/venues/kalshi/adapter.ts';
import { createPolymarketAdapter } from '../../../src/venues/polymarket/adapter.ts';
import { useHttpExchange } from './http-exchange.ts';

const { http, exchange } = useHttpExchange({ historyHours: 0.1, rollingSeconds: 0 }, 60);

const HALF_HOUR = 1_800;
const http100 = { http: { requestsPerSecond: 10_000, burst: 1_000 } };
const change = (body: object, status = 200) => http.post(`${exchange.url}/_sim/fees`, body, status);
const market = (at = 0) => {
  const found = exchange.state().markets.filter(({ phase }) => phase === 'open')[at];
  if (found === undefined) throw new Error('no market left');
  return found;
};

describe('the fees of the simulator', () => {
  const opened: { close(): Promise<void> }[] = [];
  afterAll(() => Promise.all(opened.map((adapter) => adapter.close())));

  /** A new adapter has read nothing yet. */
  const ofKalshi = async (id: string) => {
    const adapter = createKalshiAdapter({ url: exchange.kalshiUrl, ...http100 });
    opened.push(adapter);
    const context = { signal: AbortSignal.timeout(30_000), now: () => exchange.second() * 1_000 };
    const { records } = await adapter.fetchMarkets([`KXSIM-${id}`], context);
    const fees = records[0]?.fees;
    return (seconds: number) => {
      const rule = fees && feePeriodAt(fees, (exchange.second() + seconds) * 1_000)?.rule;
      return rule?.model === 'price_curve' ? rule.takerRate : rule;
    };
  };

  it('reach the adapter of Kalshi, with the announced changes of the series and of the event', async () => {
    const { id, conditionId } = market();
    await change({ multiplier: 0.5, afterSeconds: 2 * HALF_HOUR });
    await change({ conditionId, multiplier: 2, afterSeconds: HALF_HOUR });
    await change({ conditionId, multiplier: null, afterSeconds: 3 * HALF_HOUR });
    const rateAt = await ofKalshi(id);
    expect([0, HALF_HOUR, 2 * HALF_HOUR, 3 * HALF_HOUR].map((seconds) => rateAt(seconds))).toEqual([
      '0.07',
      '0.14',
      '0.14',
      '0.035',
    ]);
    exchange.idle(2 * HALF_HOUR);
    const later = await ofKalshi(id);
    expect([later(0), later(HALF_HOUR)]).toEqual(['0.14', '0.035']);
    await change({ conditionId, type: 'flat' });
    expect((await ofKalshi(id))(0)).toBeNull();
  });

  it('reach the adapter of Polymarket', async () => {
    const { conditionId } = market(1);
    const urls = { gamma: exchange.gammaUrl, clob: exchange.clobUrl, data: exchange.dataUrl };
    const adapter = createPolymarketAdapter({ urls, ...http100 });
    opened.push(adapter);
    const rule = async () => {
      const context = { signal: AbortSignal.timeout(30_000), now: () => exchange.second() * 1_000 };
      const { records } = await adapter.fetchMarkets([conditionId], context);
      return records[0]?.fees?.periods[0]?.rule;
    };
    await change({ conditionId, rate: 0.04 });
    expect(await rule()).toMatchObject({ takerRate: '0.04' });
    await change({ conditionId, rate: 0 });
    expect(await rule()).toEqual({ model: 'none' });
  });

  it('refuse an unreadable change', async () => {
    for (const body of [
      { rate: 0.1 },
      { conditionId: market().conditionId, rate: 2 },
      { type: 'much' },
      { multiplier: -1 },
    ])
      await change(body, 400);
    await change({ conditionId: '0x0', rate: 0.1 }, 404);
  });
});
