import { beforeAll, expect, it } from 'vitest';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { useTestApi } from '../api-harness.ts';
import { type ConsoleClient, signIn } from './console-client.ts';

const PRICE = '37.3 %';

const api = useTestApi({ console: {}, now: Date.now });
let market: TestMarket;
let mint: string;
beforeAll(async () => {
  market = await aStoredMarket(api.db, { title: 'Will it hail in Oslo?' });
  const [yes] = market.outcomes;
  mint = yes?.outcomeId ?? '';
  await aStoredPrice(api.db, yes?.tokenId ?? 0n, { price: '0.373', asOf: new Date() });
});

async function pagesWithAlert(browser: ConsoleClient): Promise<string[]> {
  const made = await browser.account('POST', '/v1/alerts', { tokenMint: mint, condition: 'above', price: 0.9 });
  const { id } = made.body.data as { id: string };
  return ['/alerts', `/alerts/${id}`, `/alerts/${id}/edit`, `/alerts/new?tokenMint=${mint}`];
}

it('the pages of alerts show the present price and the distance to a key that may read prices', async () => {
  const browser = await signIn(api, ['alerts', 'markets:read']);
  const [list = '', one = '', , form = ''] = await pagesWithAlert(browser);
  for (const path of [list, one, form]) expect((await browser.page(path)).text).toContain(PRICE);
  expect((await browser.page(one)).text).toContain('+52.7 pt');
});

it('the pages of alerts show neither price nor distance to a key that may not read prices', async () => {
  const browser = await signIn(api, ['alerts']);
  expect((await browser.market(`/v1/polymarket/markets/${market.marketId}/prices`)).status).toBe(403);
  for (const path of await pagesWithAlert(browser)) {
    const { status, text } = await browser.page(path);
    expect(status).toBe(200);
    expect(text).toContain('Will it hail in Oslo?');
    expect([path, /37\.3|52\.7|without a price/.exec(text)?.[0]]).toEqual([path, undefined]);
  }
});

it('each page and each data of a market needs the scope of the routes that serve it', async () => {
  const browser = await signIn(api, ['alerts', 'webhooks', 'keys']);
  const of = `/markets/polymarket/${market.marketId}`;
  for (const path of ['/markets', of, '/events/polymarket/x', '/resolutions'])
    expect((await browser.page(path)).status).toBe(403);
  for (const path of [
    `/console/data${of}/series.json`,
    `/console/data${of}/tape.json`,
    `/console/stream/polymarket?market_ids=${market.marketId}`,
  ]) {
    expect([path, (await browser.get(path)).status]).toEqual([path, 403]);
  }
});
