import { expect, it } from 'vitest';
import { addDecimals, type Decimal, ZERO } from '../../../src/domain/values/decimal.ts';
import { createKalshiClient } from '../../../src/venues/kalshi/client.ts';
import { fetchCandlesticks } from '../../../src/venues/kalshi/fetch-candlesticks.ts';
import { startSimulatedKalshi } from '../../conformance/venue-adapter/kalshi-exchange.ts';

const sum = (values: readonly Decimal[]) => values.reduce((total, value) => addDecimals(total, value), ZERO);

it('fetchCandlesticks returns candles that contain every trade of the ledger, for any period', async () => {
  const venue = await startSimulatedKalshi();
  const client = createKalshiClient({ url: venue.exchange.kalshiUrl, http: { requestsPerSecond: 10_000 } });
  const ledger = await venue.ledger();
  const counts = new Map<string, number>();
  for (const { outcomeId } of ledger) counts.set(outcomeId, (counts.get(outcomeId) ?? 0) + 1);
  const [busiest = ''] = [...counts].sort(([, a], [, b]) => b - a)[0] ?? [];
  const own = ledger.filter((trade) => trade.outcomeId === busiest);
  const ticker = busiest.split(':')[0] ?? '';
  // Whole days of New York around all trades.
  const end = Math.ceil(venue.now() / 1000) + 2 * 86_400;
  const request = { ticker, seriesTicker: ticker.split('-')[0] ?? '', startSeconds: end - 5 * 86_400, endSeconds: end };
  for (const periodMinutes of [1, 60, 1440] as const) {
    const candles = await fetchCandlesticks(client, { ...request, periodMinutes }, new AbortController().signal);
    expect(sum(candles.map(({ volume }) => volume))).toBe(sum(own.map(({ size }) => size as Decimal)));
    expect(candles.every(({ open, volume }) => (open === undefined) === (volume === ZERO))).toBe(true);
  }
  await client.close();
  await venue.close();
});
