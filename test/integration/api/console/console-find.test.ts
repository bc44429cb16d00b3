import { beforeAll, describe, expect, it } from 'vitest';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { textOf } from '../../../support/html-text.ts';
import { useTestApi } from '../api-harness.ts';
import { type ConsoleClient, signIn } from './console-client.ts';

const api = useTestApi({ console: {}, now: Date.now });
let browser: ConsoleClient;
let rain: TestMarket;

async function priced(fields: Parameters<typeof aStoredMarket>[1], ...prices: string[]): Promise<TestMarket> {
  const market = await aStoredMarket(api.db, fields);
  for (const [at, price] of prices.entries())
    await aStoredPrice(api.db, market.outcomes[at]?.tokenId ?? 0n, { price, asOf: new Date() });
  return market;
}

beforeAll(async () => {
  browser = await signIn(api);
  rain = await priced({ title: 'Will it rain in Oslo?' }, '0.35', '0.65');
  for (const [label, price] of [
    ['Anna', '0.1'],
    ['Bert', '0.5'],
    ['Carla', '0.2'],
    ['Dirk', '0.05'],
  ] as const) {
    const title = `Will ${label} win the chess final?`;
    const event = { eventId: 'chess', eventTitle: 'Who wins the chess final?', siblingLabel: label };
    await priced({ title, ...event }, price);
  }
  await priced({ title: 'Who wins the cup?', labels: ['Lions', 'Tigers', 'Bears'] }, '0.04', '0.7', '0.26');
  await aStoredMarket(api.db, { title: 'Will the harbour freeze?', status: 'resolved' });
});

/** The value of an attribute. */
const decoded = (text: string) => text.replace(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)));

interface FoundOption {
  group: string;
  text: string;
  attributes: Record<string, string>;
}

/** The options of an answer, in their order. */
function optionsOf(text: string): FoundOption[] {
  return [...text.matchAll(/<ul role="group" aria-label="([^"]*)">([\s\S]*?)<\/ul>/g)].flatMap(
    ([, group = '', content = '']) =>
      [...content.matchAll(/<li role="option"([^>]*)>([\s\S]*?)<\/li>/g)].map(([, attributes = '', inner = '']) => ({
        group: decoded(group),
        text: textOf(inner),
        attributes: Object.fromEntries(
          [...attributes.matchAll(/ data-([a-z]+)="([^"]*)"/g)].map(([, name = '', value = '']) => [
            name,
            decoded(value),
          ]),
        ),
      })),
  );
}

async function find(query: Record<string, string>): Promise<{ options: FoundOption[]; text: string }> {
  const { status, text, headers } = await browser.get(`/console/find?${new URLSearchParams(query).toString()}`);
  expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  expect(text).not.toContain('<html');
  return { options: optionsOf(text), text };
}

describe('the search of the console', () => {
  it('lists an event with its leaders by name and price, and the address of all matches', async () => {
    const { options, text } = await find({ q: 'chess final' });
    expect(options.map(({ group, text: shown }) => [group, shown])).toEqual([
      ['Who wins the chess final?', 'Who wins the chess final? Polymarket'],
      ['Who wins the chess final?', 'Bert 50.0 %'],
      ['Who wins the chess final?', 'Carla 20.0 %'],
      ['Who wins the chess final?', 'Anna 10.0 %'],
      ['All matches', 'All matches for “chess final”'],
    ]);
    expect(options[0]?.attributes['href']).toBe('/events/polymarket/chess');
    expect(options[1]?.attributes['href']).toMatch(/^\/markets\/polymarket\/0x/);
    expect(options.at(-1)?.attributes['href']).toBe('/markets?q=chess+final');
    expect(textOf(text)).toContain('1 more market matches');
  });

  it('lists only the markets of an event that match', async () => {
    const { options } = await find({ q: 'bert chess' });
    expect(options.map(({ text }) => text)).toEqual([
      'Who wins the chess final? Polymarket',
      'Bert 50.0 %',
      'All matches for “bert chess”',
    ]);
  });

  it('names the leading outcome of a market without an event', async () => {
    const { options } = await find({ q: 'cup' });
    expect(options[0]?.text).toBe('Who wins the cup? Polymarket Tigers 70.0 %');
    expect((await find({ q: 'oslo' })).options[0]?.text).toBe('Will it rain in Oslo? Polymarket Yes 35.0 %');
  });

  it('lists ended markets when no open market has the words, and says so', async () => {
    const { options, text } = await find({ q: 'harbour' });
    expect(options.map(({ text: shown }) => shown)).toEqual([
      'Will the harbour freeze? Polymarket Yes –',
      'All matches for “harbour”',
    ]);
    expect(options[1]?.attributes['href']).toBe('/markets?q=harbour&status=any');
    expect(text).toContain('<p data-note>No open market matches. These markets have ended.</p>');
  });

  it('says that titles are only similar, and that nothing matches', async () => {
    const similar = await find({ q: 'ches finla' });
    expect(similar.options.length).toBeGreaterThan(1);
    expect(similar.text).toContain('No market contains these words. These titles are similar.');
    const none = await find({ q: 'zzzzqqqq' });
    expect(none).toEqual({ options: [], text: '<p data-note>No market matches “zzzzqqqq”.</p>' });
    expect((await find({ q: ' ' })).text).toBe('<p data-note>Enter words of a question.</p>');
  });

  it('finds eight questions although the markets of one event fill the first read', async () => {
    for (let n = 0; n < 8; n++) await aStoredMarket(api.db, { title: `Crowded hall ${n}` });
    for (let n = 0; n < 60; n++)
      await aStoredMarket(api.db, { title: `Crowded place ${n}`, eventId: 'crowd', eventTitle: 'A crowded event' });
    const { options } = await find({ q: 'crowded' });
    expect(new Set(options.map(({ group }) => group)).size).toBe(9);
  });

  it('shows a hostile title as text, also in attributes', async () => {
    const hostile = `"><script>alert(1)</script> hostile`;
    await aStoredMarket(api.db, { title: hostile });
    for (const subject of ['market', 'outcome']) {
      const { text } = await find({ q: 'hostile', for: subject });
      expect(text).not.toContain('<script');
      expect(text).toContain('&#60;script&#62;');
    }
    expect((await find({ q: '<img src=x>' })).text).not.toContain('<img');
  });

  it('lists outcomes with their id, name and price under their question for a form', async () => {
    const [yes, no] = rain.outcomes;
    const { options } = await find({ q: 'rain oslo', for: 'outcome' });
    const group = 'Will it rain in Oslo?';
    expect(options).toEqual([
      {
        group,
        text: 'Yes · 35.0 %',
        attributes: { token: yes?.outcomeId, name: 'Yes of Will it rain in Oslo?', price: '0.35' },
      },
      {
        group,
        text: 'No · 65.0 %',
        attributes: { token: no?.outcomeId, name: 'No of Will it rain in Oslo?', price: '0.65' },
      },
    ]);
  });

  it('names the market of an outcome among others of its event, and an unknown price', async () => {
    const { options } = await find({ q: 'carla chess', for: 'outcome' });
    expect(
      options.map(({ group, text, attributes }) => [group, text, attributes['name'], attributes['price']]),
    ).toEqual([
      ['Who wins the chess final?', 'Carla · Yes · 20.0 %', 'Yes of Will Carla win the chess final?', '0.2'],
      ['Who wins the chess final?', 'Carla · No · no price', 'No of Will Carla win the chess final?', ''],
    ]);
  });

  it('answers a script with 401 without a session, 403 without the scope, and 400 for an unknown subject', async () => {
    expect((await api.call('/console/find?q=x')).status).toBe(401);
    const stranger = await signIn(api, ['alerts']);
    expect((await stranger.get('/console/find?q=x')).status).toBe(403);
    expect((await browser.get('/console/find?q=x&for=wallets')).status).toBe(400);
  });
});
