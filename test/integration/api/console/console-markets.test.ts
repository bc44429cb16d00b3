import { beforeAll, describe, expect, it } from 'vitest';
import { enabledVenues } from '../../../../api/reads/venue-catalog.ts';
import { aStoredMarket, type StoredMarketFields } from '../../../factories/stored-market.ts';
import { aStoredBook, aStoredPrice, storedSnapshots } from '../../../factories/stored-series.ts';
import { rowsOf, textOf } from '../../../support/html-text.ts';
import { useTestApi } from '../api-harness.ts';
import { type ConsoleClient, signIn } from './console-client.ts';

const HOUR_MS = 3_600_000;
const POLL_MS = { markets: 60_000, prices: 5_000, books: 5_000, trades: 2_000 };

const api = useTestApi({
  console: {},
  venues: enabledVenues(['polymarket', 'kalshi', 'manifold'], POLL_MS),
  now: Date.now,
});
let browser: ConsoleClient;

/** A market with the volume and the price of the last day, and its price a day before. */
async function aMarket(
  title: string,
  fields: StoredMarketFields & { volume: number; closesInHours: number; from: string; to: string },
): Promise<void> {
  const { volume, closesInHours, from, to, ...rest } = fields;
  const closeAt = new Date(Date.now() + closesInHours * HOUR_MS);
  const { outcomes } = await aStoredMarket(api.db, { title, closeAt, stats: ['1', String(volume), '1'], ...rest });
  const tokenId = outcomes[0]?.tokenId ?? 0n;
  const before = Math.floor(Date.now() / HOUR_MS) * 3_600 - 26 * 3_600;
  await storedSnapshots(api.db, tokenId, [{ ts: before, price: from }]);
  await aStoredPrice(api.db, tokenId, { price: to, asOf: new Date() });
}

beforeAll(async () => {
  browser = await signIn(api);
  const [games, rain] = [{ category: 'Games' }, { category: 'Weather' }];
  const kalshi = { venue: 'kalshi' };
  await aMarket('Rain', { ...rain, volume: 300, closesInHours: 50, from: '0.5', to: '0.6' });
  await aMarket('Snow', { ...rain, ...kalshi, volume: 500, closesInHours: 20, from: '0.5', to: '0.45' });
  await aMarket('Halted', { ...games, status: 'halted', volume: 900, closesInHours: 90, from: '0.5', to: '0.9' });
  await aMarket('Closed', { ...games, status: 'closed', volume: 50, closesInHours: -3, from: '0.9', to: '0.1' });
  const final = { ...games, ...kalshi, title: 'Who wins?', eventId: 'final', eventTitle: 'Who wins the final?' };
  await aMarket('', { ...final, siblingLabel: 'Anna', volume: 400, closesInHours: 30, from: '0.1', to: '0.4' });
  await aMarket('', { ...final, siblingLabel: 'Bert', volume: 100, closesInHours: 31, from: '0.5', to: '0.5' });
  await aMarket('Fog', { venue: 'manifold', volume: 9_000_000, closesInHours: 5, from: '0.1', to: '0.9' });
});

/** Of markets that no other test lists. */
const closed = { status: 'resolved', category: 'Others' } as const;

/** The titles of the list, from the first to the last. */
async function titles(query: string): Promise<string[]> {
  const { status, text } = await browser.page(`/markets?${query}`);
  expect(status).toBe(200);
  return [...text.matchAll(/<a class="row-link"[^>]*>([\s\S]*?)<\/a>/g)].map(([, title = '']) => textOf(title));
}

describe('the list of markets', () => {
  it.each([
    ['', ['Snow', 'Who wins the final?', 'Rain']],
    ['venue=polymarket', ['Rain']],
    ['venue=kalshi', ['Snow', 'Who wins the final?']],
    ['venue=manifold', ['Fog']],
    ['money=play', ['Fog']],
    ['money=all', ['Snow', 'Who wins the final?', 'Rain', 'Fog']],
    ['category=Weather', ['Snow', 'Rain']],
    ['status=halted', ['Halted']],
    ['status=closed', ['Closed']],
    ['status=any', ['Halted', 'Snow', 'Who wins the final?', 'Rain', 'Closed']],
    ['status=any&category=Games&venue=polymarket', ['Halted', 'Closed']],
    ['category=Games&venue=polymarket', []],
  ])('shows the open markets or those of its filters: %s', async (query, expected) => {
    expect(await titles(query)).toEqual(expected);
    // The order by moves reads the markets in another way.
    expect((await titles(`${query}&sort=move`)).sort()).toEqual([...expected].sort());
  });

  it.each([
    ['volume_24h', ['Halted', 'Snow', 'Who wins the final?', 'Rain', 'Closed']],
    ['move', ['Closed', 'Halted', 'Who wins the final?', 'Rain', 'Snow']],
    ['close_at', ['Closed', 'Snow', 'Who wins the final?', 'Rain', 'Halted']],
  ])('is sorted by %s, with each event once at the place of its first market', async (sort, expected) => {
    expect(await titles(`status=any&sort=${sort}`)).toEqual(expected);
  });

  it('has one row per event with its leaders by name and price, and all of its markets folded', async () => {
    const { text } = await browser.page('/markets');
    const row = /<tr role="row">(?:(?!<\/tr>)[\s\S])*Who wins the final\?[\s\S]*?<\/tr>/.exec(text)?.[0] ?? '';
    expect(row).toContain('href="/events/kalshi/final"');
    const [, leaders = ''] = /<ol class="leaders">([\s\S]*?)<\/ol>/.exec(row) ?? [];
    expect(textOf(leaders)).toBe('Bert 50.0 % Anna 40.0 %');
    const [, members = ''] = /<details class="members"[^>]*>([\s\S]*?)<\/details>/.exec(row) ?? [];
    expect(textOf(members)).toBe('All markets Watch Bert Bert 50.0 % 100 USD Watch Anna Anna 40.0 % 400 USD');
    expect(textOf(row)).toContain('Kalshi · Games · 2 markets');
    expect(textOf(row)).toContain('400 USD largest of 2');
    const event = await browser.page('/events/kalshi/final');
    expect([event.status, event.text.includes('<h1>Who wins the final?</h1>')]).toEqual([200, true]);
  });

  it('shows the only market of an event of its title as a market, and names it when it has a label', async () => {
    const of = { ...closed, volume: 1, closesInHours: -1, from: '0.1', to: '0.9', category: 'Alone' };
    await aMarket('A question', { ...of, eventId: 'alone', eventTitle: 'A question' });
    await aMarket('A match', { ...of, eventId: 'match', eventTitle: 'A match', siblingLabel: 'Lakemont' });
    const { text } = await browser.page('/markets?status=resolved&category=Alone&sort=created');
    expect(text).not.toContain('class="members"');
    expect([...text.matchAll(/class="row-link" data-row href="([^"]*)"/g)].map(([, href = '']) => href)).toEqual([
      expect.stringContaining('/markets/polymarket/'),
      expect.stringContaining('/markets/polymarket/'),
    ]);
    const leaders = [...text.matchAll(/<ol class="leaders">([\s\S]*?)<\/ol>/g)].map(([, each = '']) => textOf(each));
    expect(leaders).toEqual(['Lakemont 90.0 %', 'Yes 90.0 %']);
  });

  it('shows an event with the markets that match the words, also those of play money', async () => {
    const { text } = await browser.page('/markets?q=Bert');
    expect(await titles('q=Bert')).toEqual(['Who wins the final?']);
    expect(/<ol class="leaders">([\s\S]*?)<\/ol>/.exec(text)?.slice(1).map(textOf)).toEqual(['Bert 50.0 %']);
    expect(textOf(text)).toContain('Matches for “Bert” Show all markets 1 question');
    expect(await titles('q=rain')).toEqual(['Rain']);
    expect(await titles('q=fog')).toEqual(['Fog']);
    expect(await titles('q=fog&money=real')).toEqual([]);
    expect(await titles('q=final&category=Weather')).toEqual([]);
  });

  it('has play money in a section of its own behind the real one, whatever its volume', async () => {
    const { text } = await browser.page('/markets?money=all');
    const headings = [...text.matchAll(/<h2>([^<]*)<\/h2>/g)].map(([, heading]) => heading);
    expect(headings.slice(0, 2)).toEqual(['Real money', 'Play money']);
    expect(text.indexOf('>Rain<')).toBeLessThan(text.indexOf('<h2>Play money'));
    expect(text.indexOf('>Fog<')).toBeGreaterThan(text.indexOf('<h2>Play money'));
    expect(textOf((await browser.page('/markets?venue=manifold&money=real')).text)).toContain(
      'Manifold uses play money (mana).',
    );
  });

  it('pages through each question once, from real money to play money', async () => {
    const fields = { category: 'Paged', closesInHours: 5, from: '0.1', to: '0.9' };
    const expected: string[] = [];
    for (let n = 0; n < 65; n++) {
      const venue = n < 30 ? 'kalshi' : 'manifold';
      await aMarket(`Paged ${n}`, { ...fields, venue, volume: n < 30 ? 100 - n : 9_000 - n });
      expected.push(`Paged ${n}`);
    }
    for (const sort of ['volume_24h', 'created']) {
      const seen: string[] = [];
      let path: string | undefined = `category=Paged&money=all&sort=${sort}`;
      while (path !== undefined) {
        seen.push(...(await titles(path)));
        const next: string | undefined = /<a class="button" href="([^"]*)" rel="next"/.exec(
          (await browser.page(`/markets?${path}`)).text,
        )?.[1];
        path = next?.replace(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code))).split('?')[1];
      }
      const wanted =
        sort === 'created' ? [...expected.slice(0, 30).reverse(), ...expected.slice(30).reverse()] : expected;
      expect(seen).toEqual(wanted);
    }
  });

  it('rejects an unknown kind of money', async () => {
    expect((await browser.page('/markets?money=gold')).status).toBe(400);
  });
});

describe('the page of a market', () => {
  const levels = (first: number, step: number, count: number) =>
    Array.from({ length: count }, (_, n) => [(first + n * step).toFixed(2), String(50 + n)] as const);

  it('has its actions, and the mid price between the six best asks and bids', async () => {
    const { marketId, outcomes } = await aStoredMarket(api.db, { ...closed, url: 'https://venue.test/market' });
    const book = { asOf: new Date(), bids: levels(0.19, -0.01, 9), asks: levels(0.2, 0.01, 12) };
    await aStoredBook(api.db, outcomes[0]?.tokenId ?? 0n, book);
    const { text } = await browser.page(`/markets/polymarket/${marketId}`);
    const [, actions = ''] = /<span class="crumb-actions">(.*?)<\/span>/s.exec(text) ?? [];
    expect(textOf(actions)).toBe('Copy id curl Open at venue');
    const [, part = ''] = /data-part="book"(.*?)<\/section>/s.exec(text) ?? [];
    const ladder = rowsOf(part).filter(([side = '']) => ['ask', 'mid', 'bid'].includes(side));
    expect(ladder.map(([side]) => side)).toEqual([...Array(6).fill('ask'), 'mid', ...Array(6).fill('bid')]);
    expect(ladder[6]?.[1]).toBe('0.195');
  });

  it('has the change of the last day for each outcome', async () => {
    const { marketId, outcomes } = await aStoredMarket(api.db, closed);
    for (const [at, { tokenId, outcomeId, label }] of outcomes.entries()) {
      const ts = Math.floor(Date.now() / HOUR_MS) * 3_600 - 26 * 3_600;
      await storedSnapshots(api.db, tokenId, [{ ts, price: '0.1' }]);
      await aStoredPrice(api.db, tokenId, { price: `0.${at + 2}`, asOf: new Date() });
      const { text } = await browser.page(`/markets/polymarket/${marketId}?outcome=${outcomeId}`);
      const [, headline = ''] = /<p class="headline">(.*?)<\/p>/s.exec(text) ?? [];
      expect(textOf(headline)).toBe(`${label} ${at + 2}0.0 % ▲ +${at + 1}0.0 pt 24 h`);
    }
  });
});

describe('a market with more than two outcomes', () => {
  it('shows its leader by name in the list and on its page, and another outcome on request', async () => {
    const labels = ['Lions', 'Tigers', 'Bears'];
    const { marketId, outcomes } = await aStoredMarket(api.db, {
      title: 'Cup',
      labels,
      category: 'Cups',
      status: 'halted',
    });
    for (const [at, price] of ['0.04', '0.7', '0.26'].entries())
      await aStoredPrice(api.db, outcomes[at]?.tokenId ?? 0n, { price, asOf: new Date() });
    const list = textOf((await browser.page('/markets?status=halted&category=Cups')).text);
    expect(list).toContain('Tigers 70.0 %');
    const path = `/markets/polymarket/${marketId}`;
    expect(textOf((await browser.page(path)).text)).toContain('Tigers 70.0 %');
    const first = `${path}?outcome=${encodeURIComponent(outcomes[0]?.outcomeId ?? '')}`;
    expect(textOf((await browser.page(first)).text)).toContain('Lions 4.0 %');
  });

  it('leaves out the name of Yes, which is that of the title', async () => {
    const { text } = await browser.page('/events/kalshi/final');
    expect(text).toContain('40.0 %');
    expect(text).not.toContain('outcome-name');
  });
});
