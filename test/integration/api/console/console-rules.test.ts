import { beforeAll, expect, it } from 'vitest';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredBook } from '../../../factories/stored-series.ts';
import { useTestApi } from '../api-harness.ts';
import { signIn } from './console-client.ts';

const api = useTestApi({ console: {} });
beforeAll(() => new Partitions(api.db).ensureAroundNow('price_history'));

async function write(marketId: string, resolutionCriteria: string, settlementSource: string) {
  const record = aMarketRecord({ marketId, resolutionCriteria, settlementSource });
  await api.db.transaction((tx) => writeMarkets(tx, 'polymarket', 'USD', [record], Date.now()));
}

const decoded = (text: string) => text.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));

it('a market page shows the rules with their source, the former versions and what changed since', async () => {
  await write('0x0a1e5', 'Rain in <b>March</b>.', 'https://a.example/rain');
  await write('0x0a1e5', 'Rain in <b>May</b>.', 'https://a.example/rain');
  await write('0x0a1e5', 'Rain in <b>May</b>.', 'https://b.example/rain');
  const browser = await signIn(api);
  const path = '/markets/polymarket/0x0a1e5';
  const { text } = await browser.page(`${path}?range=1w`);
  expect(text).toContain('Rain in &#60;b&#62;May&#60;/b&#62;.');
  expect(decoded(text)).toContain('Source of the result: <a href="https://b.example/rain"');
  expect(text.match(/what changed since then/g)).toHaveLength(2);
  expect(decoded(text)).toContain(`href="${path}?range=1w&rules=1#rules"`);
  const { text: compared } = await browser.page(`${path}?range=1w&rules=1`);
  expect(compared).toMatch(/<del>March<\/del><ins>May<\/ins>/);
  expect(compared).toMatch(/Source of the result: .*<del>a<\/del><ins>b<\/ins>/);
  expect(decoded(compared)).toContain(`href="${path}?range=1w#rules"`);
  for (const version of ['3', '4', '0', 'x']) {
    expect((await browser.page(`${path}?rules=${version}`)).text, version).not.toContain('<ins>');
  }
});

it('a market page says that unread rules are not known', async () => {
  const { marketId } = await aStoredMarket(api.db, { description: '' });
  const { text } = await (await signIn(api)).page(`/markets/polymarket/${marketId}`);
  expect(text).toContain('The rules of this market are not known.');
});

it('a market page has the depth of its book as a picture and as a table with exact sums', async () => {
  const { marketId, outcomes } = await aStoredMarket(api.db);
  await aStoredBook(api.db, outcomes[0]?.tokenId ?? 0n, {
    asOf: new Date(),
    bids: [
      ['0.40', '0.1'],
      ['0.39', '0.2'],
    ],
    asks: [['0.45', '1000000000000000.1']],
  });
  const browser = await signIn(api);
  const { text } = await browser.page(`/markets/polymarket/${marketId}`);
  expect(text).toMatch(/class="depth-chart"[^>]* data-bids="0.4 0.1,0.39 0.2"/);
  const [, table = ''] = /<caption[^>]*>Depth of the book[^<]*<\/caption>([\s\S]*?)<\/table>/.exec(text) ?? [];
  expect([...table.matchAll(/title="([^"]+)"/g)].map(([, exact]) => exact)).toEqual([
    '1000000000000000.1',
    '1000000000000000.1',
    '0.1',
    '0.1',
    '0.2',
    '0.3',
  ]);
});

it.each(['buy', 'sell'])('a market page states the spread and an unknown fee of an order to %s', async (side) => {
  const { marketId, outcomes } = await aStoredMarket(api.db);
  await aStoredBook(api.db, outcomes[0]?.tokenId ?? 0n, {
    asOf: new Date(),
    bids: [['0.40', '10']],
    asks: [['0.45', '10']],
  });
  const { text } = await (await signIn(api)).page(`/markets/polymarket/${marketId}?side=${side}&size=5`);
  const [, facts = ''] = /data-part="order">([\s\S]*?)<\/dl>/.exec(text) ?? [];
  const words = facts.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
  expect(words).toContain(side === 'buy' ? 'You pay' : 'You get');
  expect(words).toContain('Spread of the book 0.05');
  expect(words).toContain('Fee unknown not read yet');
  expect(words).toContain(`Average price ${side === 'buy' ? '0.45' : '0.4'}`);
});
