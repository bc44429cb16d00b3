import { beforeAll, describe, expect, it } from 'vitest';
import { CONDITIONS } from '../../../../src/domain/alerts/conditions.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { aStoredBook, aStoredPrice } from '../../../factories/stored-series.ts';
import { useTestApi } from '../api-harness.ts';
import { type ConsoleClient, signIn } from './console-client.ts';

const api = useTestApi({ console: {}, now: Date.now });
let market: TestMarket;
let tokenMint = '';
let sellTokenMint = '';

beforeAll(async () => {
  market = await aStoredMarket(api.db, { title: 'Will the owl hoot?', eventId: 'owls', eventTitle: 'Owls of 2026' });
  const other = await aStoredMarket(api.db, { title: 'Will the stork come?' });
  const [yes] = market.outcomes;
  tokenMint = yes?.outcomeId ?? '';
  sellTokenMint = other.outcomes[0]?.outcomeId ?? '';
  await aStoredPrice(api.db, yes?.tokenId ?? 0n, { price: '0.2', asOf: new Date() });
  for (const { tokenId } of [...market.outcomes, ...other.outcomes]) {
    await aStoredBook(api.db, tokenId, { asOf: new Date(), bids: [['0.19', '100']], asks: [['0.21', '100']] });
  }
});

/** The visible words of the sentence of a page. */
function sentenceOf(page: string): string {
  const [, part = ''] = /<p class="sentence">(.*?)<\/p>/s.exec(page) ?? [];
  return part
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

async function aHook(browser: ConsoleClient, fields: object = {}): Promise<string> {
  const body = { url: 'https://receiver.example.com/hook', events: ['price_alert'], ...fields };
  return ((await browser.account('POST', '/v1/webhooks', body)).body.data as { id: string }).id;
}

/** The value of an attribute. */
const unescaped = (text: string) =>
  text.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));

type Fields = Record<string, string>;
const draft = (browser: ConsoleClient, fields: Fields) =>
  browser.page(`/alerts/new?${new URLSearchParams({ price: '', ...fields }).toString()}`);

describe('the sentence of an alert', () => {
  const ONE = 'Yes of “Will the owl hoot?”';
  const CASES: [condition: string, fields: Fields, words: string][] = [
    ['above', { price: '0.3514' }, `When ${ONE} reaches 35.14 % or more,`],
    ['below', { price: '0,1' }, `When ${ONE} reaches 10 % or less,`],
    ['crosses_above', { price: '0.35' }, `When ${ONE} rises to 35 %,`],
    ['crosses_below', { price: '0.15' }, `When ${ONE} falls to 15 %,`],
    [
      'change',
      { change: '0.055', unit: 'absolute', changeDirection: 'up', windowSeconds: '15 min' },
      `When ${ONE} moves up by 5.5 points within 15 min,`,
    ],
    ['spread', { price: '0.02', spreadDirection: 'at_least' }, `When the spread of ${ONE} is at least 2 points,`],
    ['trade', { notional: '5000' }, `When one trade of ${ONE} has 5,000 USD or more,`],
    [
      'volume',
      { windowSeconds: '1 h', times: '3', windows: '24' },
      `When 3 × the mean of the 24 windows before or more is traded of ${ONE} within 1 h,`,
    ],
    ['status', {}, 'When “Will the owl hoot?” halts, closes or gets its result,'],
    ['resolution', { states: 'disputed' }, 'When the result of “Will the owl hoot?” is disputed,'],
    [
      'new_market',
      { 'scope.venue': 'polymarket', 'scope.q': 'owl' },
      'When a new market on Polymarket with “owl” in the title appears,',
    ],
    [
      'executable',
      { side: 'sell', size: '50', price: '0.18', executableDirection: 'at_least' },
      `When selling 50 of ${ONE} has a price with fee of at least 18 %,`,
    ],
    [
      'net_difference',
      { size: '50', price: '0.02' },
      `When buying 50 of ${ONE} and selling as many of Yes of “Will the stork come?” leaves at least 2 points per unit with fees,`,
    ],
  ];

  it('is one of each condition', () => {
    expect(CASES.map(([condition]) => condition).sort()).toEqual([...CONDITIONS].sort());
  });

  it.each(CASES)('of %s is the same in the form and on the page of the alert', async (condition, fields, words) => {
    const browser = await signIn(api);
    const hook = await aHook(browser);
    const sent = { condition, tokenMint, sellTokenMint, subject: 'token', ...fields };
    const sentence = sentenceOf((await draft(browser, sent)).text);
    const each = condition === 'new_market' ? 'one event for each market' : 'one event';
    expect(sentence).toContain(
      `${words} oddswire sends ${each} to the default webhook, https://receiver.example.com/hook.`,
    );
    const made = await browser.post('/alerts', sent);
    expect([made.status, made.text]).toEqual([303, expect.any(String)]);
    const page = await browser.page(made.headers.get('location') ?? '');
    expect(sentenceOf(page.text)).toBe(sentence);
    expect(page.text).toContain(`href="/webhooks/${hook}"`);
  });

  it('says repetition and end, and the markets or the event of a scope', async () => {
    const browser = await signIn(api);
    await aHook(browser);
    const scope = { subject: 'scope', condition: 'above', price: '0.9' };
    const repeated = { repeat: 'true', cooldownSeconds: '15 min', expiresAt: '2999-01-31T12:00' };
    const text = async (fields: Fields) => sentenceOf((await draft(browser, { ...scope, ...fields })).text);
    const event = { 'scope.venue': 'polymarket', 'scope.event_id': 'owls' };
    expect(await text({ ...event, ...repeated })).toBe(
      'When any outcome of a market of the event “Owls of 2026” on Polymarket reaches 90 % or more, oddswire sends an event each time ' +
        'to the default webhook, https://receiver.example.com/hook, at most once in 15 min for each outcome. ' +
        'The alert ends on 2999-01-31 12:00 UTC.',
    );
    const one = { 'scope.venue': 'polymarket', 'scope.market_id': market.marketId };
    expect(await text(one)).toMatch(/^When any outcome of the market “Will the owl hoot\?” on Polymarket reaches/);
    expect(await text({ ...one, condition: 'status' })).toMatch(
      /^When the market “Will the owl hoot\?” on Polymarket halts/,
    );
    expect(await text({ 'scope.category': 'Birds', condition: 'resolution', states: 'voided' })).toMatch(
      /^When the result of any market in the category Birds is voided, oddswire sends one event for each market/,
    );
  });

  it('says whether the price is there already, and the state of an alert that waits no more', async () => {
    const browser = await signIn(api);
    const of = async (price: string) =>
      sentenceOf((await draft(browser, { tokenMint, condition: 'above', price })).text);
    expect(await of('0.2')).toMatch(/It is 20 % now, so the alert fires at once\.$/);
    expect(await of('0.21')).toMatch(/It is 20 % now\.$/);
    expect(await of('much')).toMatch(/^When Yes of “Will the owl hoot\?” reaches … or more,/);
    expect(await of('1,000')).toBe('A field cannot be read: write 1000, or 1.000 with a point.');
    const made = await browser.post('/alerts', { tokenMint, condition: 'above', price: '0.9' });
    const path = made.headers.get('location') ?? '';
    await browser.post(`${path}/status`, { status: 'paused' });
    expect(sentenceOf((await browser.page(path)).text)).toMatch(
      /The alert is paused: nothing happens until it is resumed\.$/,
    );
  });
});

describe('the webhook of an alert', () => {
  const form = { condition: 'above', price: '0.9' };

  it('is none without an active webhook that lists the type, and leads to one', async () => {
    const browser = await signIn(api);
    await aHook(browser, { events: ['transaction'] });
    const { text } = await draft(browser, { ...form, tokenMint });
    expect(sentenceOf(text)).toContain('oddswire stores one event.');
    for (const part of ['sent nowhere', 'href="/webhooks/new"', 'oddswire-cli listen', '>none yet</option>']) {
      expect(text).toContain(part);
    }
    const made = await browser.post('/alerts', { ...form, tokenMint });
    expect((await browser.page(made.headers.get('location') ?? '')).text).toContain('sent nowhere');
  });

  it('is the oldest active one by default, shortened, and another one by its choice, also when that one is paused', async () => {
    const browser = await signIn(api);
    await aHook(browser, { url: 'https://receiver.example.com/T0SECRETSECRETSECRET/x?token=query-secret' });
    const other = await aHook(browser, { url: 'https://other.example.com/' });
    const { text } = await draft(browser, { ...form, tokenMint });
    expect(text).toContain('>the default webhook: https://receiver.example.com/T0SE…/x?…</option>');
    expect(sentenceOf(text)).toContain('to the default webhook, https://receiver.example.com/T0SE…/x?…');
    expect(text).not.toMatch(/T0SECRETSECRET|query-secret/);
    const named = { ...form, tokenMint, webhookId: other };
    expect(sentenceOf((await draft(browser, named)).text)).toContain('one event to https://other.example.com/.');
    const made = await browser.post('/alerts', named);
    await browser.account('PATCH', `/v1/webhooks/${other}`, { status: 'paused' });
    await browser.post(`/webhooks/${other}/status`, { status: 'paused' });
    const page = (await browser.page(made.headers.get('location') ?? '')).text;
    expect(sentenceOf(page)).toContain('which is paused: the event waits for a recovery');
  });

  it('has no address for a key that may not read webhooks', async () => {
    const browser = await signIn(api, ['alerts', 'markets:read']);
    expect(sentenceOf((await draft(browser, { ...form, tokenMint })).text)).toContain(
      'one event to the default webhook.',
    );
  });
});

describe('the form of an alert', () => {
  const preview = async (browser: ConsoleClient, fields: Fields) => {
    const { status, text } = await browser.post('/alerts/new', { preview: '1', ...fields });
    const trial = /<section class="trial".*?<\/section>/s
      .exec(text)?.[0]
      .replaceAll(/<[^>]*>/g, ' ')
      .replaceAll(/\s+/g, ' ');
    return { status, text, trial };
  };

  it('shows the last week while it is filled, or what is missing, and makes no job', async () => {
    const browser = await signIn(api);
    const filled = await preview(browser, { tokenMint, condition: 'above', price: '0.9' });
    expect([filled.status, filled.trial]).toEqual([
      200,
      expect.stringMatching(/It would not have fired from .* on 0 observations/),
    ]);
    const empty = await preview(browser, { tokenMint, condition: 'above', price: '' });
    expect([empty.status, empty.trial]).toEqual([
      200,
      expect.stringContaining('Not tried yet: the price is required.'),
    ]);
    const nothing = await preview(browser, { condition: 'above', price: '0.5' });
    expect(nothing.trial).toMatch(/Not tried yet: the outcome/);
    expect(api.wakes.filter(({ job }) => job === 'run-backtest')).toEqual([]);
  });

  it('suggests a price for a chosen outcome only when it has none', async () => {
    const browser = await signIn(api);
    const price = (text: string) => /name="price"[^>]* value="([^"]*)"/.exec(text)?.[1];
    expect(price((await browser.page(`/alerts/new?tokenMint=${tokenMint}`)).text)).toBe('0.25');
    expect(price((await preview(browser, { tokenMint, chose: 'tokenMint', price: '' })).text)).toBe('0.25');
    expect(price((await preview(browser, { tokenMint, chose: 'tokenMint', price: '0.4' })).text)).toBe('0.4');
    expect(price((await preview(browser, { tokenMint, price: '' })).text)).toBe('');
  });

  it('finds outcomes by words, takes ids as they are, and sets no alert on words', async () => {
    const browser = await signIn(api);
    const search = await browser.post('/alerts/new', {
      'find.tokenMint': 'owl hoot',
      search: 'tokenMint',
      price: '0.7',
    });
    expect([search.status, search.text.match(/name="pick\.tokenMint"/g)?.length]).toEqual([200, 2]);
    expect(search.text).toContain('name="price" type="text" autocomplete="off" value="0.7"');
    const rejected = await browser.post('/alerts', { condition: 'above', price: '0.7', 'find.tokenMint': 'owl' });
    expect([rejected.status, rejected.text]).toEqual([400, expect.stringContaining('choose one of the matches')]);
    const [, picked = ''] = /name="pick\.tokenMint" value="([^"]+)"/.exec(search.text) ?? [];
    const made = await browser.post('/alerts', {
      condition: 'above',
      price: '0.7',
      'pick.tokenMint': unescaped(picked),
    });
    expect(made.status).toBe(303);
    const pasted = await browser.post('/alerts', {
      condition: 'below',
      price: '0.1',
      'find.tokenMint': ` ${tokenMint} `,
    });
    expect(pasted.status).toBe(303);
    const mint = 'DezXAZ8z7PnrnRJjz3wXBoRgixCa6xjnB7YaB1pPB263';
    expect((await browser.post('/alerts', { condition: 'above', price: '7', 'find.tokenMint': mint })).status).toBe(
      303,
    );
    const alerts = (await browser.account('GET', '/v1/alerts')).body.data as { tokenMint: string }[];
    expect(alerts.map((alert) => alert.tokenMint)).toEqual([mint, tokenMint, tokenMint]);
    const again = await browser.post('/alerts/new', { tokenMint, rechoose: 'tokenMint', note: 'kept' });
    expect(again.text).toMatch(/id="field-find\.tokenMint" name="find\.tokenMint" type="search"[^>]* value=""/);
    expect(again.text).toContain('kept');
  });

  it('finds markets and events of a scope by words and by id', async () => {
    const browser = await signIn(api);
    const chosen = async (fields: Fields) =>
      /class="chosen".*?<\/div>/s
        .exec(
          (await browser.post('/alerts/new', { preview: '1', subject: 'scope', ...fields })).text.split(
            'data-pick="scope"',
          )[1] ?? '',
        )?.[0]
        .replaceAll(/<[^>]*>/g, '');
    expect(await chosen({ 'find.scope': 'owls' })).toContain('all markets of Owls of 2026');
    expect(await chosen({ 'find.scope': market.marketId })).toContain('the market Will the owl hoot?');
    const matches = await browser.post('/alerts/new', { subject: 'scope', 'find.scope': 'owl hoot', search: 'scope' });
    const values = [...matches.text.matchAll(/name="pick\.scope" value="([^"]+)"/g)].map(([, value = '']) => value);
    expect(values).toHaveLength(2);
    const made = await browser.post('/alerts', {
      subject: 'scope',
      condition: 'status',
      'pick.scope': unescaped(values[0] ?? ''),
    });
    expect(made.status).toBe(303);
    const { body } = await browser.account('GET', '/v1/alerts');
    expect(body.data).toMatchObject([{ scope: { venue: 'polymarket', event_id: 'owls' } }]);
  });
});
