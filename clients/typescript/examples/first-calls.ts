// The first calls, against any oddswire with data. With the demo:
//   ODDSWIRE_URL=http://127.0.0.1:8080 ODDSWIRE_API_KEY=ow_live_... npm run example:first-calls
import { createClient, OddswireApiError } from '@oddswire/client';

const { ODDSWIRE_URL: baseUrl = 'http://127.0.0.1:8080', ODDSWIRE_API_KEY: apiKey } = process.env;
if (apiKey === undefined) throw new Error('set ODDSWIRE_API_KEY; the demo prints a key');
const client = createClient({ baseUrl, apiKey });

const { data: venues } = await client.venues.list();
for (const { title, markets, healthy } of venues) console.log(`${title}: ${markets} markets, healthy: ${healthy}`);

let count = 0;
for await (const market of client.markets.iterate({ status: 'open' }, { pageSize: 50 })) {
  count += 1;
  if (count <= 3) console.log(`  ${market.title}: ${market.outcomes.map(({ label }) => label).join(' / ')}`);
  if (count === 120) break;
}
console.log(`${count} open markets read`);

const priced = await firstPriced();
const { data: candles } = await client.candles.list({ market_id: priced.market_id, interval: '1m' });
console.log(`${candles.length} candles of ${priced.market_id}; the last closed at ${candles.at(-1)?.close}`);

const exact = createClient({ baseUrl, apiKey, decimals: 'string' });
const { data: trades, meta } = await exact.trades.list({ market_id: priced.market_id, limit: 3 });
for (const { timestamp, price, size } of trades)
  console.log(`  ${new Date(timestamp * 1_000).toISOString()} ${size} at ${price}`);
console.log(`trades stored: ${meta.history.status}`);

const alert = await client.alerts.create({ tokenMint: priced.outcome_id, condition: 'above', price: 1_000_000 });
console.log(`alert ${alert.id} is ${alert.status}, tracked: ${alert.tracked}`);
await client.alerts.delete(alert.id);
try {
  await client.alerts.get(alert.id);
} catch (error) {
  if (!(error instanceof OddswireApiError)) throw error;
  console.log(`deleted: ${error.status} ${error.code} (${error.requestId})`);
}

/** The first market with a price, and its priced outcome. */
async function firstPriced(): Promise<{ market_id: string; outcome_id: string }> {
  for await (const { market_id } of client.markets.iterate({ status: 'open' })) {
    const { data } = await client.markets.manyPrices({ market_ids: [market_id] });
    const outcome = data[0]?.outcomes.find(({ price }) => price !== undefined);
    if (outcome) return { market_id, outcome_id: outcome.outcome_id };
  }
  throw new Error('no market has a price yet');
}
