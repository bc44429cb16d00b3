import { beforeAll, describe, expect, it } from 'vitest';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { textOf } from '../../../support/html-text.ts';
import { useTestApi } from '../api-harness.ts';
import { type ConsoleClient, signIn } from './console-client.ts';

const api = useTestApi({ console: {}, now: Date.now });
let browser: ConsoleClient;
let rain: TestMarket;
let anna: TestMarket;
beforeAll(async () => {
  browser = await signIn(api);
  rain = await aStoredMarket(api.db, { title: 'Will it rain?', stats: ['1', '20', '1'] });
  await aStoredPrice(api.db, rain.outcomes[0]?.tokenId ?? 0n, { price: '0.35', asOf: new Date() });
  const event = { eventId: 'final', eventTitle: 'Who wins?', siblingLabel: 'Anna' };
  anna = await aStoredMarket(api.db, { title: 'Who wins?', ...event });
});

const star = ({ marketId }: TestMarket, watched: '0' | '1', fields: Record<string, string> = {}) =>
  browser.post('/watchlist/star', {
    venue: 'polymarket',
    market_id: marketId,
    watched,
    back: '/markets?q=rain',
    ...fields,
  });

/** Whether the star of a market is pressed, by its name. */
async function starsOf(path: string): Promise<Record<string, boolean>> {
  const { text } = await browser.page(path);
  return Object.fromEntries(
    [
      ...text.matchAll(
        /aria-pressed="(true|false)"><span aria-hidden="true"><\/span><span class="visually-hidden">Watch ([^<]*)</g,
      ),
    ].map(([, pressed, name = '']) => [name, pressed === 'true']),
  );
}

describe('the star of a market', () => {
  it('puts the market on the watchlist, and takes it away, and leads back to the page', async () => {
    const added = await star(rain, '1');
    expect([added.status, added.headers.get('location')]).toEqual([303, '/markets?q=rain']);
    expect(await starsOf('/markets')).toEqual({ 'Will it rain?': true, 'Who wins? · Anna': false });
    await star(anna, '1');
    expect(await starsOf(`/markets/polymarket/${anna.marketId}`)).toMatchObject({ 'Who wins? · Anna': true });
    expect(await starsOf('/events/polymarket/final')).toEqual({ Anna: true });
    await star(anna, '0');
    expect((await star(anna, '0')).status).toBe(303);
    expect(await starsOf('/events/polymarket/final')).toEqual({ Anna: false });
  });

  it('leads only to a page of the console', async () => {
    for (const back of ['https://elsewhere.test/', '//elsewhere.test', '']) {
      expect((await star(rain, '1', { back })).headers.get('location')).toBe('/watchlist');
    }
  });

  it('rejects a form without the token of the session, and a market that does not exist', async () => {
    expect((await star(rain, '1', { csrf: 'another' })).status).toBe(403);
    expect((await star({ ...rain, marketId: 'nowhere' }, '1')).status).toBe(404);
  });
});

describe('the page of the watchlist', () => {
  it('names the next step when it is empty', async () => {
    const stranger = await signIn(api);
    const { text } = await stranger.page('/watchlist');
    expect(textOf(text)).toContain('Your watchlist is empty. Open the markets and press the star of one.');
  });

  it('has the watched markets with price and volume under their full names', async () => {
    await star(rain, '1');
    await star(anna, '1');
    const { text } = await browser.page('/watchlist');
    const names = [...text.matchAll(/<a class="row-link"[^>]*>([^<]*)<\/a>/g)].map(([, name]) => name);
    expect(names).toEqual(['Who wins? · Anna', 'Will it rain?']);
    expect(textOf(text)).toContain('35.0 %');
    expect(text).toContain(`data-markets="${anna.marketId},${rain.marketId}"`);
  });

  it('needs the scope markets:read', async () => {
    const stranger = await signIn(api, ['alerts']);
    expect((await stranger.page('/watchlist')).status).toBe(403);
    const { text } = await stranger.page('/alerts');
    expect([text.includes('href="/watchlist"'), text.includes('role="search"')]).toEqual([false, false]);
  });
});
