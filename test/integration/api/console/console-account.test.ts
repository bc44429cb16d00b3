import { describe, expect, it } from 'vitest';
import { VERSION } from '../../../../src/config/version.ts';
import { CHAT_FORMATS } from '../../../../src/domain/chat/chat-url.ts';
import { newId } from '../../../../src/domain/values/ids.ts';
import { SUBSCRIBABLE_EVENTS } from '../../../../src/domain/webhooks/event.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aSubscription } from '../../../factories/alerts.ts';
import { aDelivery, setRequests, skipBefore } from '../../../factories/deliveries.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { SCHEMAS } from '../../../support/chat-services.ts';
import { useTestApi } from '../api-harness.ts';
import { AS_BROWSER } from '../ops/ops-client.ts';
import { type ConsoleClient, signIn } from './console-client.ts';

const api = useTestApi({ console: {} });

async function aWebhook(of: ConsoleClient): Promise<{ id: string; pk: bigint }> {
  const id = newId('wh');
  const { accountId } = of;
  return {
    id,
    pk: await aSubscription(api.db, { id, accountId, url: 'https://hooks.test/x', events: ['price_alert'] }),
  };
}

describe('alerts in the console', () => {
  it('are created once when a browser sends the form twice', async () => {
    const browser = await signIn(api);
    const { outcomes, marketId } = await aStoredMarket(api.db);
    const back = `/markets/polymarket/${marketId}`;
    const fields = { tokenMint: outcomes[0]?.outcomeId ?? '', condition: 'above', price: '0.25', back };
    const answers = [await browser.post('/alerts', fields), await browser.post('/alerts', fields)];
    expect(answers.map(({ status, headers }) => [status, headers.get('location')])).toEqual([
      [303, back],
      [303, back],
    ]);
    const { body } = await browser.account('GET', '/v1/alerts');
    expect(body.data).toMatchObject([{ price: 0.25, condition: 'above', status: 'active' }]);
    await browser.post('/alerts', { ...fields, price: '0.3' });
    expect((await browser.account('GET', '/v1/alerts')).body.data).toHaveLength(2);
  });

  it('are rejected with the reasons of the API', async () => {
    const browser = await signIn(api);
    const { outcomes } = await aStoredMarket(api.db);
    const answer = await browser.post('/alerts', {
      tokenMint: outcomes[0]?.outcomeId ?? '',
      condition: 'above',
      price: 'much',
    });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('Price: must be a number');
  });

  it('show their market, its price and the distance, and belong to one account', async () => {
    const [browser, stranger] = [await signIn(api), await signIn(api)];
    const { outcomes, marketId } = await aStoredMarket(api.db, { title: 'Will the owl hoot?' });
    const [yes] = outcomes;
    if (!yes) throw new TypeError('the market has outcomes');
    await aStoredPrice(api.db, yes.tokenId, { price: '0.2', asOf: new Date() });
    const made = await browser.post('/alerts', { tokenMint: yes.outcomeId, condition: 'above', price: '0.25' });
    const path = made.headers.get('location') ?? '';
    const list = (await browser.page('/alerts')).text;
    for (const text of ['Will the owl hoot?', `/markets/polymarket/${marketId}`, 'reaches 25 %', '20.0 %', '+5.0 pt']) {
      expect(list).toContain(text);
    }
    expect((await stranger.page('/alerts')).text).not.toContain('owl');
    expect([(await browser.page(path)).status, (await stranger.page(path)).status]).toEqual([200, 404]);
    expect((await stranger.post(`${path}/delete`)).status).toBe(404);
    expect((await browser.post(`${path}/delete`)).status).toBe(303);
    expect((await browser.page(path)).status).toBe(404);
  });
});

describe('the form of an alert', () => {
  const condition = (name: string, fields: Record<string, string>) => [name, fields] as const;

  it.each([
    condition('above', { price: '0.25' }),
    condition('below', { price: '0,25' }),
    condition('crosses_above', { price: '0.25' }),
    condition('crosses_below', { price: '0.25' }),
    condition('change', { change: '0.05', unit: 'absolute', changeDirection: 'up', windowSeconds: '15 min' }),
    condition('spread', { price: '0.02', spreadDirection: 'at_least' }),
    condition('trade', { notional: '500' }),
    condition('volume', { windowSeconds: '1h', times: '3', windows: '24' }),
    condition('status', {}),
  ])('sets %s with the fields of the condition only, and shows it in words', async (name, fields) => {
    const browser = await signIn(api);
    const { outcomes } = await aStoredMarket(api.db);
    // A browser sends the hidden fields of the other conditions too.
    const rest = { price: '0.9', unit: 'percent', spreadDirection: 'at_most', changeDirection: '', 'scope.q': 'x' };
    const sent = { ...rest, condition: name, tokenMint: outcomes[0]?.outcomeId ?? '', subject: 'token', ...fields };
    const answer = await browser.post('/alerts', sent);
    expect([answer.status, answer.text]).toEqual([303, expect.any(String)]);
    const { body } = await browser.account('GET', '/v1/alerts');
    const { spreadDirection, changeDirection, price, change, notional, times, windows, windowSeconds, ...texts } =
      fields as Record<string, string | undefined>;
    const direction = spreadDirection ?? changeDirection;
    const numbers = Object.entries({ change, notional, times, windows }).flatMap(([field, text]) =>
      text === undefined ? [] : [[field, Number(text)]],
    );
    expect(body.data).toMatchObject([
      {
        condition: name,
        ...texts,
        ...Object.fromEntries(numbers),
        ...(price !== undefined && { price: Number(price.replace(',', '.')) }),
        ...(direction !== undefined && { direction }),
        ...(windowSeconds !== undefined && { windowSeconds: windowSeconds === '1h' ? 3_600 : 900 }),
      },
    ]);
    const [alert] = body.data as { id: string }[];
    for (const path of ['/alerts', `/alerts/${alert?.id}`, `/alerts/${alert?.id}/edit`]) {
      expect((await browser.page(path)).status).toBe(200);
    }
  });

  it('sets an alert on a scope with repetition, end, name and note', async () => {
    const browser = await signIn(api);
    const answer = await browser.post('/alerts', {
      condition: 'new_market',
      'scope.venue': 'polymarket',
      'scope.market_id': 'ignored for new markets',
      'scope.q': 'owl hoot',
      repeat: 'true',
      cooldownSeconds: '1 d',
      expiresAt: '2999-01-31T12:00',
      name: 'owls',
      note: 'a note\nof two lines',
    });
    expect(answer.status).toBe(303);
    const { body } = await browser.account('GET', '/v1/alerts');
    expect(body.data).toMatchObject([
      {
        scope: { venue: 'polymarket', q: 'owl hoot' },
        repeat: true,
        cooldownSeconds: 86_400,
        expiresAt: '2999-01-31T12:00:00.000Z',
        name: 'owls',
        note: 'a note\nof two lines',
      },
    ]);
    const page = (await browser.page(answer.headers.get('location') ?? '')).text;
    for (const text of ['“owl hoot”', 'a new market on Polymarket', 'after 1 d', 'owls', 'of two lines']) {
      expect(page).toContain(text);
    }
  });

  it('shows the reasons of the API at the fields, with everything that was entered', async () => {
    const browser = await signIn(api);
    const { text, status } = await browser.post('/alerts', {
      condition: 'change',
      tokenMint: 'a token',
      change: 'much',
      unit: 'percent',
      windowSeconds: '2 days',
      repeat: 'true',
      cooldownSeconds: '90 d',
      name: 'n'.repeat(101),
      note: '</textarea><b>',
    });
    expect(status).toBe(400);
    for (const name of ['change', 'windowSeconds', 'cooldownSeconds', 'name']) {
      expect(text).toMatch(new RegExp(`id="field-${name}-problem">must`));
      expect(text).toContain(`href="#field-${name}"`);
    }
    expect(text).toMatch(/id="field-find\.tokenMint">.*<p class="field-problem">must/s);
    for (const shown of ['value="2 days"', 'value="percent" selected', 'value="change" selected', '&#60;/textarea']) {
      expect(text).toContain(shown);
    }
    const direction = await browser.post('/alerts', { condition: 'spread', tokenMint: 't', price: '1' });
    expect(direction.text).toMatch(/id="field-spreadDirection-problem">is required/);
    const scope = await browser.post('/alerts', { condition: 'status', subject: 'scope' });
    expect(scope.text).toContain('must have at least one of market_id');
    expect((await browser.account('GET', '/v1/alerts')).body.data).toEqual([]);
  });

  it('is filled from its address', async () => {
    const browser = await signIn(api);
    const { outcomes } = await aStoredMarket(api.db, { title: 'Will the stork come?' });
    const query = new URLSearchParams({ tokenMint: outcomes[0]?.outcomeId ?? '', condition: 'trade', notional: '7' });
    const { text } = await browser.page(`/alerts/new?${query.toString()}`);
    for (const shown of ['Will the stork come?', 'value="trade" selected', 'value="7"']) expect(text).toContain(shown);
  });
});

describe('an alert in the console', () => {
  it('is changed, paused and resumed, and a save without a change keeps its start', async () => {
    const browser = await signIn(api);
    const { outcomes } = await aStoredMarket(api.db);
    const made = await browser.account('POST', '/v1/alerts', {
      tokenMint: outcomes[0]?.outcomeId,
      condition: 'change',
      change: 0.05,
      unit: 'absolute',
      windowSeconds: 900,
      repeat: true,
      cooldownSeconds: 60,
    });
    const { id } = made.body.data as { id: string };
    const path = `/alerts/${id}`;
    const read = async () => (await browser.account('GET', `/v1${path}`)).body.data;
    const same = {
      change: '0.05',
      unit: 'absolute',
      direction: '',
      windowSeconds: '15 min',
      repeat: 'true',
      cooldownSeconds: '1 min',
      expiresAt: '',
      webhookId: '',
      name: '',
      note: '',
    };
    await browser.post(`${path}/edit`, same);
    expect((await browser.page(path)).text).toContain('Nothing was changed.');
    const changed = { ...same, change: '0.1', windowSeconds: '1 h', expiresAt: '2999-01-01T00:00', name: 'moves' };
    expect((await browser.post(`${path}/edit`, changed)).headers.get('location')).toBe(path);
    expect(await read()).toMatchObject({
      change: 0.1,
      windowSeconds: 3_600,
      cooldownSeconds: 60,
      expiresAt: '2999-01-01T00:00:00.000Z',
      name: 'moves',
    });
    await browser.post(`${path}/edit`, { ...changed, expiresAt: '', name: '' });
    expect(await read()).not.toHaveProperty('expiresAt');
    const rejected = await browser.post(`${path}/edit`, { ...changed, change: '-1' });
    expect([rejected.status, rejected.text]).toEqual([400, expect.stringMatching(/id="field-change-problem">must be/)]);
    await browser.post(`${path}/status`, { status: 'paused' });
    expect((await browser.page('/alerts?status=paused')).text).toContain(path);
    expect((await browser.page(path)).text).toContain('Resume');
    await browser.post(`${path}/status`, { status: 'active' });
    expect(await read()).toMatchObject({ status: 'active' });
  });

  it('gets another direction, unit, repetition and webhook', async () => {
    const browser = await signIn(api);
    const hook = { url: 'https://example.com/alerts', events: ['price_alert'] };
    const { id: webhookId } = (await browser.account('POST', '/v1/webhooks', hook)).body.data as { id: string };
    const moves = { tokenMint: 't', condition: 'change', change: 5, unit: 'percent', windowSeconds: 60 };
    const { id } = (await browser.account('POST', '/v1/alerts', moves)).body.data as { id: string };
    const path = `/alerts/${id}`;
    const read = async () => (await browser.account('GET', `/v1${path}`)).body.data;
    const { text } = await browser.page(`${path}/edit`);
    for (const name of ['direction', 'unit', 'repeat', 'webhookId']) expect(text).toContain(`name="${name}"`);
    const shown = { change: '5', unit: 'percent', direction: '', windowSeconds: '1 min', repeat: 'false' };
    const sent = { ...shown, cooldownSeconds: '1 h', expiresAt: '', webhookId: '', name: '', note: '' };
    await browser.post(`${path}/edit`, sent);
    expect((await browser.page(path)).text).toContain('Nothing was changed.');
    await browser.post(`${path}/edit`, {
      ...sent,
      unit: 'absolute',
      direction: 'down',
      repeat: 'true',
      cooldownSeconds: '',
      webhookId,
    });
    expect(await read()).toMatchObject({
      unit: 'absolute',
      direction: 'down',
      repeat: true,
      cooldownSeconds: 3_600,
      webhookId,
    });
    await browser.post(`${path}/edit`, { ...sent, unit: 'absolute', webhookId: '' });
    for (const name of ['direction', 'repeat', 'webhookId']) expect(await read()).not.toHaveProperty(name);
  });

  it('keeps texts that a page or a browser writes in another way', async () => {
    const browser = await signIn(api);
    const fields = { name: 'right\u202eleft', note: ' two\nlines\u200f ' };
    const made = await browser.account('POST', '/v1/alerts', {
      tokenMint: 't',
      condition: 'above',
      price: 0.000000123456789,
      ...fields,
    });
    const { id } = made.body.data as { id: string };
    const { text } = await browser.page(`/alerts/${id}/edit`);
    expect(text).toContain('value="0.000000123456789"');
    // As a browser sends the shown form.
    const sent = { price: '0.000000123456789', name: 'right[U+202E]left', note: 'two\r\nlines[U+200F] ' };
    await browser.post(`/alerts/${id}/edit`, sent);
    expect((await browser.page(`/alerts/${id}`)).text).toContain('Nothing was changed.');
    await browser.post(`/alerts/${id}/edit`, { ...sent, note: 'three\r\nmore\r\nlines' });
    expect((await browser.account('GET', `/v1/alerts/${id}`)).body.data).toMatchObject({
      name: fields.name,
      note: 'three\nmore\nlines',
    });
  });

  it('belongs to its account', async () => {
    const [browser, stranger] = [await signIn(api), await signIn(api)];
    const made = await browser.account('POST', '/v1/alerts', { tokenMint: 't', condition: 'above', price: 0.5 });
    const path = `/alerts/${(made.body.data as { id: string }).id}`;
    expect((await stranger.page(`${path}/edit`)).status).toBe(404);
    expect((await stranger.post(`${path}/edit`, { price: '0.6' })).status).toBe(404);
    expect((await stranger.post(`${path}/status`, { status: 'paused' })).status).toBe(404);
  });

  it('lists its firings', async () => {
    const browser = await signIn(api);
    const { outcomes } = await aStoredMarket(api.db, { title: 'Will the heron wait?' });
    const made = await browser.account('POST', '/v1/alerts', {
      tokenMint: outcomes[0]?.outcomeId,
      condition: 'crosses_above',
      price: 0.5,
      repeat: true,
    });
    const { id } = made.body.data as { id: string };
    expect((await browser.page(`/alerts/${id}`)).text).toContain('It has not fired yet.');
    const fire = sql(
      'test_console_firing',
      `INSERT INTO alert_firing (alert_pk, subject, n, at, price, from_price, event_id)
       SELECT pk, token_id, 7, now(), 0.517, 0.48, 'evt_of_the_firing' FROM alert WHERE id = $1`,
    );
    await api.db.query(fire, [id]);
    const { text } = await browser.page(`/alerts/${id}`);
    for (const shown of ['Will the heron wait?', '51.7 %', 'evt_of_the_firing']) expect(text).toContain(shown);
  });
});

describe('webhooks in the console', () => {
  it('are created with a secret that one page shows once', async () => {
    const browser = await signIn(api);
    const answer = await browser.post('/webhooks', { url: 'https://hooks.test/new', events: 'price_alert' });
    expect(answer.status).toBe(200);
    const secret = /whsec_[\w+/=]+/.exec(answer.text)?.[0] ?? '';
    expect(secret).not.toBe('');
    expect((await browser.page('/webhooks')).text).not.toContain(secret);
    const again = await browser.post('/webhooks', { url: 'https://hooks.test/new', events: 'price_alert' });
    expect(again.text).toContain('The secret was shown once, at its creation.');
    expect(again.text).not.toContain('whsec_');
    const [{ id } = { id: '' }] = (await browser.account('GET', '/v1/webhooks')).body.data as { id: string }[];
    const rotate = () => browser.post(`/webhooks/${id}/rotate`, { once: 'rotation' });
    expect((await rotate()).text).toMatch(/whsec_/);
    expect((await rotate()).text).not.toMatch(/whsec_/);
  });

  it('are paused, resumed, rotated, tested and deleted by their account only', async () => {
    const [browser, stranger] = [await signIn(api), await signIn(api)];
    const { id } = await aWebhook(browser);
    const path = `/webhooks/${id}`;
    for (const [action, fields] of [
      ['status', { status: 'paused' }],
      ['status', { status: 'active' }],
      ['rotate', {}],
      ['test', { eventType: 'price_alert' }],
      ['recover', { since: new Date(Date.now() - 3_600_000).toISOString().slice(0, 16) }],
    ] as const) {
      expect((await stranger.post(`${path}/${action}`, fields)).status).toBe(404);
      expect((await browser.post(`${path}/${action}`, fields)).status).toBe(action === 'rotate' ? 200 : 303);
      if (action === 'test') expect((await browser.page(path)).text).toContain('A test event is on its way.');
    }
    expect((await browser.page(path)).text).toContain('price_alert');
    expect((await browser.post(`${path}/delete`)).headers.get('location')).toBe('/webhooks');
    expect((await browser.page(path)).status).toBe(404);
  });

  it('send a delivery again, with a check of the key at the write', async () => {
    const browser = await signIn(api);
    const { id, pk } = await aWebhook(browser);
    const delivery = await aDelivery(api.db, { accountId: browser.accountId, subscriptionPk: pk, status: 'failed' });
    const path = `/webhooks/${id}/deliveries/${delivery.id}`;
    expect((await browser.page(path)).text).toContain(delivery.eventId);
    const limited = await signIn(api, ['alerts']);
    expect((await limited.post(`${path}/resend`)).status).toBe(403);
    expect((await browser.post(`${path}/resend`)).status).toBe(303);
    expect((await browser.page(path)).text).toContain('due again');
    expect(api.wakes).toContainEqual({ job: 'deliver-webhook', targets: [pk] });
    expect((await browser.post(`${path}/resend`, { once: 'again' })).status).toBe(409);
  });
});

describe('the page of a delivery', () => {
  async function aPending(of: ConsoleClient, fields: Parameters<typeof setRequests>[2]) {
    const { id, pk } = await aWebhook(of);
    await setRequests(api.db, pk, fields);
    const owned = { accountId: of.accountId, subscriptionPk: pk };
    const skipped = await aDelivery(api.db, { ...owned, status: 'failed' });
    const delivery = await aDelivery(api.db, owned);
    await skipBefore(api.db, skipped.pk, delivery.pk);
    return { skipped, delivery, text: (await of.page(`/webhooks/${id}/deliveries/${delivery.id}`)).text };
  }

  it('shows the signed event, its headers and the names of own headers', async () => {
    const { text, skipped, delivery } = await aPending(await signIn(api), { headerNames: ['X-Desk'] });
    for (const shown of [
      'The signed JSON',
      '<code>X-Desk</code>',
      'the value is secret',
      `<code>oddswire/${VERSION}</code>`,
      '<code>webhook-signature</code>',
      '<code>X-Webhook-Skipped</code>',
      `<code>${skipped.eventId}</code>`,
      `<code>${delivery.id}</code>`,
    ]) {
      expect(text).toContain(shown);
    }
  });

  it.each(CHAT_FORMATS)('shows the message of %s without signature and ids in headers', async (format) => {
    const { text } = await aPending(await signIn(api), { format, headerNames: ['X-Desk'] });
    const headers = /aria-label="Request headers".*?<\/table>/s.exec(text)?.[0] ?? '';
    expect([...headers.matchAll(/<th role="rowheader"[^>]*><code>([^<]+)/g)].map(([, name]) => name)).toEqual([
      'X-Desk',
      'Content-Type',
      'User-Agent',
    ]);
    expect(text).not.toContain('The signed JSON');
    const body = /aria-label="Body">(.*?)<\/pre>/s.exec(text)?.[1] ?? '';
    const plain = body.replace(/&#(\d+);/g, (_, number) => String.fromCharCode(Number(number)));
    const sent = JSON.parse(plain.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'));
    expect(SCHEMAS[format].safeParse(sent).error).toBeUndefined();
    expect(body).toContain('Price alert: Yes above 0.6');
    expect(body).toContain('1 event');
  });
});

describe('the form of a webhook', () => {
  const ALL = {
    url: 'https://hooks.test/all',
    format: 'json',
    description: 'the desk',
    ordered: 'true',
    orderBy: 'alert',
    maxPerSecond: '2,5',
    'filter.1.field': 'data.venue',
    'filter.1.operator': 'in',
    'filter.1.value': 'kalshi, "poly, market", 7, "8"',
    'filter.3.field': 'data.notional',
    'filter.3.operator': 'above',
    'filter.3.value': '1000',
    'filter.4.field': 'data.name',
    'filter.4.operator': 'exists',
    'filter.4.value': '',
    headers: 'Authorization: Bearer header-secret:1\r\nX-Desk: 7',
  };
  const shown = {
    description: 'the desk',
    ordered: true,
    orderBy: 'alert',
    maxPerSecond: 2.5,
    filter: [
      { field: 'data.venue', in: ['kalshi', 'poly, market', 7, '8'] },
      { field: 'data.notional', above: 1000 },
      { field: 'data.name', exists: true },
    ],
    headerNames: ['Authorization', 'X-Desk'],
  };
  /** A browser sends one field per chosen event. */
  const post = (browser: ConsoleClient, path: string, fields: Record<string, string>, events = ['price_alert']) => {
    const form = new URLSearchParams({ csrf: browser.csrf, once: newId('req'), ...fields });
    for (const name of events) form.append('events', name);
    return api.call(path, {
      method: 'POST',
      redirect: 'manual',
      headers: { ...AS_BROWSER, Origin: api.url, Cookie: browser.cookie },
      body: form,
    });
  };
  const only = async (browser: ConsoleClient) => {
    const [item] = (await browser.account('GET', '/v1/webhooks')).body.data as { id: string }[];
    const { data } = (await browser.account('GET', `/v1/webhooks/${item?.id}`)).body;
    return data as { id: string; events: string[] };
  };

  it('sets every option and every kind of event', async () => {
    const browser = await signIn(api);
    expect((await post(browser, '/webhooks', ALL, [...SUBSCRIBABLE_EVENTS])).status).toBe(200);
    const made = await only(browser);
    expect(made).toMatchObject({ ...shown, events: SUBSCRIBABLE_EVENTS });
    const page = (await browser.page(`/webhooks/${made.id}`)).text;
    for (const text of [
      'the desk',
      'by alert',
      'at most 2.5',
      'Authorization, X-Desk',
      'kalshi, &#34;poly, market&#34;',
    ]) {
      expect(page).toContain(text);
    }
    const edit = (await browser.page(`/webhooks/${made.id}/edit`)).text;
    for (const name of SUBSCRIBABLE_EVENTS) expect(edit).toContain(`value="${name}" checked`);
    expect([page, edit].filter((text) => text.includes('header-secret'))).toEqual([]);
  });

  it('saves the shown values unchanged, and empty fields remove options, but not the address and the headers', async () => {
    const browser = await signIn(api);
    await post(browser, '/webhooks', ALL);
    const before = await only(browser);
    const path = `/webhooks/${before.id}`;
    const { text } = await browser.page(`${path}/edit`);
    const inputs = [...text.matchAll(/<input id="field-[^"]*" name="([^"]+)" type="text"[^>]* value="([^"]*)"/g)];
    const values = inputs.map(([, name = '', value = '']) => [name, value.replaceAll('&#34;', '"')]);
    const operators = [...text.matchAll(/<select [^>]*name="([^"]+)".*?value="([^"]+)" selected/g)];
    const fields = Object.fromEntries([...values, ...operators.map(([, name = '', value = '']) => [name, value])]);
    expect((await post(browser, `${path}/edit`, { ...fields, ordered: 'true', headers: '' })).status).toBe(303);
    expect(await only(browser)).toEqual(before);
    const empty = Object.fromEntries(Object.keys(fields).map((name) => [name, '']));
    await post(browser, `${path}/edit`, { ...empty, format: 'json', headers: '' }, ['transaction']);
    const { id, ...rest } = await only(browser);
    expect(rest).toEqual({
      url: 'https://hooks.test/all',
      events: ['transaction'],
      status: 'active',
      createdAt: expect.any(String),
      headerNames: ['Authorization', 'X-Desk'],
    });
    await post(browser, `/webhooks/${id}/edit`, { ...empty, format: 'json', headers: '', removeHeaders: 'true' });
    expect(await only(browser)).not.toHaveProperty('headerNames');
  });

  it('shows the reasons of the API at the fields, with the input except the headers', async () => {
    const browser = await signIn(api);
    const faulty = {
      ...ALL,
      url: 'http://hooks.test/kept-address',
      maxPerSecond: 'fast',
      'filter.1.field': 'venue',
      'filter.3.value': 'a lot',
      headers: 'Host: header-secret\nno-colon',
    };
    const { status, text } = await post(browser, '/webhooks', faulty, []);
    expect(status).toBe(400);
    for (const name of ['url', 'events', 'maxPerSecond', 'filter.0.field', 'filter.1.value', 'headers']) {
      expect([name, text.includes(`id="field-${name}-problem"`)]).toEqual([name, true]);
      expect(text).toContain(`href="#field-${name}"`);
    }
    for (const kept of ['kept-address', 'value="fast"', 'value="a lot"', 'value="the desk"'])
      expect(text).toContain(kept);
    expect(text).not.toContain('header-secret');
    const again = await post(browser, '/webhooks', { ...ALL, description: 'x'.repeat(501) });
    expect(again.text).toContain('Enter the headers again: no page shows their values.');
    const twice = await post(browser, '/webhooks', { ...ALL, headers: 'X-A: 1\nX-A: 2' });
    expect(twice.text).toMatch(/id="field-headers-problem">X-A is a name that occurs twice/);
    expect((await browser.account('GET', '/v1/webhooks')).body.data).toEqual([]);
  });

  it('makes a webhook of a chat service, whose address no page shows', async () => {
    const browser = await signIn(api);
    const url = 'https://discord.com/api/webhooks/1/chat-secret';
    const made = await post(browser, '/webhooks', { url, format: 'discord' });
    expect(made.status).toBe(200);
    const { id } = await only(browser);
    const pages = [made.text];
    for (const path of ['/webhooks', `/webhooks/${id}`, `/webhooks/${id}/edit`]) {
      pages.push((await browser.page(path)).text);
    }
    expect(pages.filter((text) => text.includes('chat-secret'))).toEqual([]);
    const moved = await post(browser, `/webhooks/${id}/edit`, { format: 'json', url: '' });
    expect([moved.status, moved.text]).toEqual([400, expect.stringMatching(/id="field-url-problem">is needed for/)]);
  });

  it('belongs to its account', async () => {
    const [browser, stranger] = [await signIn(api), await signIn(api)];
    const { id } = await aWebhook(browser);
    expect((await stranger.page(`/webhooks/${id}/edit`)).status).toBe(404);
    expect((await post(stranger, `/webhooks/${id}/edit`, { format: 'json' })).status).toBe(404);
  });
});
