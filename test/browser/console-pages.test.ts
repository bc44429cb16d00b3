import type { Browser, BrowserContext, Page, Route } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SCOPES } from '../../src/domain/values/api-key.ts';
import { createApiKey } from '../../src/store/accounts/accounts.ts';
import { issueSignInLink } from '../../src/store/accounts/sign-in-links.ts';
import { aDelivery } from '../factories/deliveries.ts';
import { storedTrades } from '../factories/stored-series.ts';
import { startTestApi, type TestApi } from '../integration/api/api-harness.ts';
import { findChromium, launchChromium } from '../support/chromium.ts';
import { eventually } from '../support/eventually.ts';
import { type ConfirmedJournal, confirmJournal } from '../support/journal.ts';
import { type AccountWorld, aConsoleWorld, anAccountWorld, type ConsoleWorld } from './console-world.ts';
import { accessibilityFaults, overflow, PHONE, photograph, type WatchedPage, WIDE, watchedPage } from './open-page.ts';

const chromiumPath = findChromium();
/** The largest size of a page with its scripts and styles, compressed bytes. */
const MAX_PAGE_BYTES = 150 * 1024;
/** Parts of the address of a webhook that may be secrets. */
const SECRETS = ['query-secret', 'T0SECRETSECRET'];

describe.skipIf(chromiumPath === null)('the console in Chromium', () => {
  let api: TestApi;
  let journal: ConfirmedJournal;
  let browser: Browser;
  let world: ConsoleWorld;
  let signInKey: string;
  let account: AccountWorld;
  let context: BrowserContext;
  let tab: WatchedPage;

  beforeAll(async () => {
    [api, browser] = await Promise.all([
      startTestApi({ console: {}, now: Date.now }),
      launchChromium(chromiumPath ?? ''),
    ]);
    journal = confirmJournal(api.db);
    const { key, accountId } = await createApiKey(api.db, {
      accountName: 'Meridian Research',
      name: 'browser',
      scopes: SCOPES,
    });
    signInKey = key;
    world = await aConsoleWorld(api.db);
    account = await anAccountWorld(api.db, accountId, world.market);
    context = await signIn();
    tab = await watchedPage(context, api.url);
  });
  afterAll(async () => {
    await browser?.close();
    await journal?.stop();
    await api?.close();
  });

  async function signIn(options: Parameters<Browser['newContext']>[0] = {}): Promise<BrowserContext> {
    const made = await browser.newContext({ viewport: WIDE, reducedMotion: 'reduce', ...options });
    const page = await made.newPage();
    await page.goto(api.url);
    await page.getByLabel('API key').fill(signInKey);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL(`${api.url}/markets`);
    await page.close();
    return made;
  }

  const marketPath = () => `/markets/polymarket/${world.market.marketId}`;
  const pages: [name: string, path: () => string, ready?: string][] = [
    ['markets', () => '/markets', '[data-live][data-tone="good"]'],
    ['markets-none', () => '/markets?q=zzzzqqqq'],
    ['market', marketPath, '#market-chart[data-drawn]'],
    ['market-candles', () => `${marketPath()}?chart=candle&range=1w`, '#market-chart[data-drawn]'],
    ['sibling', () => `/markets/polymarket/${world.siblings[0]?.marketId}`, '#market-chart[data-drawn]'],
    ['hostile', () => `/markets/polymarket/${world.hostile.marketId}`, '[data-live][data-tone="good"]'],
    ['event', () => '/events/polymarket/chess-final', '[data-live][data-tone="good"]'],
    ['alerts', () => '/alerts'],
    ['alerts-fired', () => '/alerts?status=triggered'],
    ['alert', () => `/alerts/${account.alert}`],
    ['alert-rule', () => `/alerts/${account.rule}`],
    ['alert-edit', () => `/alerts/${account.rule}/edit`],
    ['alert-new', () => `/alerts/new?tokenMint=${world.market.outcomes[0]?.outcomeId}`],
    ['alert-new-volume', () => '/alerts/new?condition=volume&subject=scope&scope.q=earthquake&repeat=true'],
    ['webhooks', () => '/webhooks'],
    ['webhook', () => `/webhooks/${account.webhook.id}`],
    ['webhook-new', () => '/webhooks/new'],
    ['webhook-edit', () => `/webhooks/${account.webhook.id}/edit`],
    ['delivery', () => `/webhooks/${account.webhook.id}/deliveries/${account.failed.id}`],
    ['delivery-chat', () => `/webhooks/${account.message.webhookId}/deliveries/${account.message.id}`],
    ['live', () => '/live', '[data-live][data-tone="good"]'],
    ['usage', () => '/usage'],
    ['error', () => '/markets?venue=nowhere'],
  ];

  test.for(pages)(
    '%s has no errors, no foreign hosts, no accessibility faults, no sideways scroll and fits into 150 KB',
    async ([name, path, ready]) => {
      const { page, problems } = tab;
      problems.length = 0;
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        for (const viewport of [WIDE, PHONE]) {
          await page.setViewportSize(viewport);
          await page.goto(`${api.url}${path()}`);
          if (ready !== undefined) await page.locator(ready).first().waitFor();
          const content = await page.content();
          expect(await page.title()).not.toBe('pwned');
          expect(SECRETS.filter((secret) => content.includes(secret))).toEqual([]);
          await photograph(page, `console-${name}-${viewport.width}-${colorScheme}`);
          expect(await overflow(page)).toBe(0);
          expect(await accessibilityFaults(page)).toEqual([]);
        }
      }
      const bytes = await page.evaluate<number>(
        `[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
          .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`,
      );
      expect(bytes).toBeLessThan(MAX_PAGE_BYTES);
      const failed = name === 'error' ? / 400 / : / never /;
      expect(problems.filter((line) => !failed.test(line))).toEqual([]);
    },
  );

  test('the start says what oddswire is, without a session', async () => {
    const stranger = await browser.newContext({ viewport: WIDE });
    const { page, problems } = await watchedPage(stranger, api.url);
    for (const viewport of [WIDE, PHONE]) {
      await page.setViewportSize(viewport);
      await page.goto(`${api.url}/markets?q=snow`);
      expect(new URL(page.url()).search).toBe('?next=%2Fmarkets%3Fq%3Dsnow');
      await photograph(page, `console-start-${viewport.width}`);
      expect(await overflow(page)).toBe(0);
      expect(await accessibilityFaults(page)).toEqual([]);
    }
    await page.getByLabel('API key').fill(signInKey);
    await page.keyboard.press('Enter');
    await page.waitForURL(`${api.url}/markets?q=snow`);
    expect(problems).toEqual([]);
    await stranger.close();
  });

  test('the table follows prices, and the search as the user types', async () => {
    const { page } = tab;
    await page.setViewportSize(WIDE);
    await page.goto(`${api.url}/markets`);
    await page.locator('[data-live][data-tone="good"]').waitFor();
    const [yes] = world.market.outcomes;
    await journal.append([
      {
        kind: 'price',
        venue: 'polymarket',
        marketId: world.market.marketId,
        outcomeId: yes?.outcomeId ?? '',
        body: { as_of: Math.floor(Date.now() / 1_000), price: '0.777' },
      },
    ]);
    await page.locator(`[data-price="${yes?.outcomeId}"]`, { hasText: '77.7 %' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('zurich');
    await page.waitForURL(/q=zurich/);
    await page.getByText('1 match', { exact: true }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    expect(await page.evaluate<string>('document.activeElement.textContent')).toMatch(/snow in Zurich/);
    await page.getByLabel('Status').selectOption('closed');
    await page.getByText('No market matches.').waitFor();
    await page.goBack();
    await page.getByText('snow in Zurich').waitFor();
    expect(await page.getByLabel('Status').inputValue()).toBe('open');
  });

  test('a search by words states its own order', async () => {
    const { page } = tab;
    const hint = page.getByText('A search by words has its own order: the best match first.');
    await page.goto(`${api.url}/markets?sort=close_at`);
    expect(await hint.count()).toBe(0);
    await page.getByLabel('Search').fill('zurich');
    await hint.waitFor();
  });

  test('the keyboard moves through rows, opens one, lists the keys and finds the search from every page', async () => {
    const { page } = tab;
    await page.goto(`${api.url}/markets`);
    const focused = () => page.evaluate<string>('document.activeElement.textContent');
    const titles = await page.locator('a[data-row]').allTextContents();
    for (const [key, row] of [
      ['j', 0],
      ['j', 1],
      ['j', 2],
      ['k', 1],
      ['k', 0],
      ['k', 0],
    ] as const) {
      await page.keyboard.press(key);
      expect(await focused()).toBe(titles[row]);
    }
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.keyboard.press('j');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor({ state: 'hidden' });
    expect(await focused()).toBe(titles[0]);
    await page.keyboard.press('Enter');
    await page.waitForURL(`${api.url}${marketPath()}`);
    await page.locator('#market-chart[data-drawn]').waitFor();
    await page.keyboard.press('/');
    await page.waitForURL(/\/markets#/);
    await page.locator('input[name="q"]:focus').waitFor();
    await page.keyboard.type('zurich');
    await page.getByText('1 match', { exact: true }).waitFor();
  });

  test('a market follows its price and its trades, and changes its range without a reload', async () => {
    const { page } = tab;
    await page.setViewportSize(WIDE);
    await page.goto(`${api.url}${marketPath()}`);
    await page.locator('[data-live][data-tone="good"]').waitFor();
    const [yes] = world.market.outcomes;
    if (!yes) throw new TypeError('the market has outcomes');
    const of = { venue: 'polymarket', marketId: world.market.marketId, outcomeId: yes.outcomeId };
    const now = Math.floor(Date.now() / 1_000);
    await storedTrades(api.db, [{ tokenId: yes.tokenId, at: new Date(), tradeId: 'live', price: '0.345', size: '77' }]);
    await journal.append([
      { ...of, kind: 'price', body: { as_of: now, price: '0.345' } },
      { ...of, kind: 'trade', body: { trade_id: 'live', timestamp: now, price: '0.345', size: '77' } },
    ]);
    await page.locator('.headline', { hasText: '34.5 %' }).waitFor();
    await page.locator('[data-part="trades"] tr', { hasText: '0.345' }).waitFor();
    expect(await page.title()).toMatch(/^34\.5 %/);
    await page.evaluate('window.isSamePage = true');
    await page.getByRole('link', { name: '1w' }).click();
    await page.waitForURL(/range=1w/);
    await page.getByRole('link', { name: 'candle' }).click();
    await page.waitForURL(/chart=candle/);
    await page.goBack();
    await page.goBack();
    expect(await page.getByRole('link', { name: '1d' }).getAttribute('aria-current')).toBe('true');
    expect(await page.evaluate('window.isSamePage')).toBe(true);
  });

  test('a hidden market page closes its stream, and opens it again', async () => {
    const { page } = tab;
    await page.goto(`${api.url}${marketPath()}`);
    await page.locator('[data-live][data-tone="good"]').waitFor();
    await hide(page, true);
    await page.getByText('paused while the page is hidden').waitFor();
    await eventually(
      async () => api.streams.usage().connections,
      (open) => open === 0,
    );
    await hide(page, false);
    await page.locator('[data-live][data-tone="good"]').waitFor();
  });

  const hide = (page: Page, isHidden: boolean) =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'))`);

  /** The addresses of the streams that the page requests from now on. */
  function requestedStreams(page: Page): string[] {
    const requested: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/console/stream/')) requested.push(request.url());
    });
    return requested;
  }

  test('the table has one stream after several searches and a hidden page', async () => {
    const page = await context.newPage();
    await page.goto(`${api.url}/markets`);
    for (const words of ['zurich', 'earthquake', 'rates', 'orbit']) {
      await page.getByLabel('Search').fill(words);
      await page.waitForURL(new RegExp(`q=${words}`));
      await page.locator('[data-live][data-tone="good"]').waitFor();
    }
    const requested = requestedStreams(page);
    await hide(page, true);
    await page.getByText('paused while the page is hidden').waitFor();
    await hide(page, false);
    await page.locator('[data-live][data-tone="good"]').waitFor();
    expect(requested).toHaveLength(1);
    await page.close();
  });

  test('a search ends the former stream also while the page asks for its session', async () => {
    const page = await context.newPage();
    await page.clock.install();
    await page.goto(`${api.url}/markets`);
    await page.locator('[data-live][data-tone="good"]').waitFor();
    const held: Route[] = [];
    await page.route('**/console/session.json', (route) => void held.push(route));
    await page.route('**/console/stream/**', (route) => route.fulfill({ status: 503 }), { times: 1 });
    const asked = page.waitForRequest('**/console/session.json');
    await page.getByLabel('Search').fill('zurich');
    await asked;
    await page.getByLabel('Search').fill('earthquake');
    await page.locator('[data-live][data-tone="good"]').waitFor();
    const requested = requestedStreams(page);
    await page.unroute('**/console/session.json');
    // The page may have cancelled the request.
    for (const each of held) await each.continue().catch(() => undefined);
    // A stream that the page still wants opens again some seconds after this answer.
    const isAnswered = `fetch('/console/session.json').then((answer) => answer.text())`;
    await page.evaluate(isAnswered);
    await page.clock.fastForward(10_000);
    await page.evaluate(isAnswered);
    expect(requested).toEqual([]);
    await page.close();
  });

  test('a market shows its data without scripts', async () => {
    const state = await context.storageState();
    const plain = await browser.newContext({ viewport: PHONE, javaScriptEnabled: false, storageState: state });
    const page = await plain.newPage();
    await page.goto(`${api.url}${marketPath()}`);
    await photograph(page, 'console-market-without-scripts');
    expect(await page.locator('.line-chart').count()).toBe(1);
    await page.getByText('as a table').click();
    expect(await page.getByRole('table', { name: 'Candles, newest first' }).getByRole('row').count()).toBe(31);
    await page.getByRole('link', { name: '1w' }).click();
    expect(new URL(page.url()).search).toBe('?range=1w');
    expect(await overflow(page)).toBe(0);
    await plain.close();
  });

  test('a click on the chart and two more set an alert', async () => {
    const { page } = tab;
    await page.setViewportSize(WIDE);
    await page.goto(`${api.url}${marketPath()}`);
    await page.locator('#market-chart[data-drawn]').waitFor();
    await page.locator('#market-chart').click({ position: { x: 300, y: 120 } });
    const price = page.getByRole('textbox', { name: 'Price' });
    expect(Number(await price.inputValue())).toBeGreaterThan(0.5);
    expect(await page.getByLabel('Fires at this price or').inputValue()).toBe('above');
    expect(await page.locator('[data-distance]').textContent()).toMatch(/points above the present price/);
    await page.getByText('would not have fired').waitFor();
    await price.fill('0.875');
    await page.getByRole('button', { name: 'Set alert' }).click();
    await page.getByRole('status').getByText('it fires once, at 87.5 % or above').waitFor();
    await page.locator('[data-alert="0.875"]').waitFor();
    await page.keyboard.press('a');
    expect(await page.evaluate('document.activeElement.name')).toBe('price');
  });

  test('an alert is tried on the past on the chart of its market, and again for another range', async () => {
    const { page, problems } = tab;
    problems.length = 0;
    for (const viewport of [WIDE, PHONE]) {
      await page.setViewportSize(viewport);
      await page.goto(`${api.url}${marketPath()}`);
      await page.locator('#market-chart[data-drawn]').waitFor();
      await page.keyboard.press('a');
      await page.keyboard.press('Control+A');
      await page.keyboard.type('0.21');
      await page.getByRole('button', { name: 'Try it on the past' }).click();
      await page.getByText('An alert at 21.0 % or above would have fired once').waitFor();
      await page.locator('#market-chart[data-marks="1"]').waitFor();
      await photograph(page, `console-trial-market-${viewport.width}`);
      expect(await overflow(page)).toBe(0);
      expect(await accessibilityFaults(page)).toEqual([]);
    }
    await page.getByRole('link', { name: '1h', exact: true }).click();
    await page.getByText(/would( not)? have fired .* on 1\d observations/).waitFor();
    await page.getByRole('textbox', { name: 'Price' }).fill('7');
    expect(await page.locator('[data-trial]').textContent()).toBe('');
    await page.getByRole('button', { name: 'Try it on the past' }).click();
    await page.getByText(/^Price: .*at most 1/).waitFor();
    expect(await page.locator('#market-chart').getAttribute('data-marks')).toBe('0');
    expect(problems.filter((line) => !/ 400 /.test(line))).toEqual([]);
  });

  test.for([true, false])(
    'a rule is tried on the past before it is set, with scripts: %s',
    async (javaScriptEnabled) => {
      const state = await context.storageState();
      const made = await browser.newContext({ viewport: WIDE, javaScriptEnabled, storageState: state });
      const page = await made.newPage();
      await page.goto(`${api.url}/alerts/new?tokenMint=${world.market.outcomes[0]?.outcomeId}&condition=crosses_above`);
      await page.locator('#field-price').fill('0.21');
      await page.getByLabel('fire again').check();
      await page.getByLabel('Cool-down', { exact: true }).fill('15 min');
      await page.getByRole('button', { name: 'Try it on the past' }).click();
      await page.getByText(/An alert when it rises to 21\.0 % would have fired twice/).waitFor();
      const fired = await page.getByRole('table', { name: 'Firings on the past' }).getByRole('rowheader').count();
      expect(await page.locator('.trial-chart .mark').count()).toBe(fired);
      for (const viewport of [WIDE, PHONE]) {
        await page.setViewportSize(viewport);
        await photograph(page, `console-trial-${viewport.width}-${javaScriptEnabled}`);
        expect(await overflow(page)).toBe(0);
        // The checker needs timers of the page.
        if (javaScriptEnabled) expect(await accessibilityFaults(page)).toEqual([]);
      }
      expect(await page.getByLabel('Cool-down', { exact: true }).inputValue()).toBe('15 min');
      await page.getByRole('button', { name: 'Set alert' }).click();
      await page.getByRole('status').getByText('it fires when it rises to 21.0 %').waitFor();
      await made.close();
    },
  );

  test.for([true, false])('an alert on markets is set and edited, with scripts: %s', async (javaScriptEnabled) => {
    const state = await context.storageState();
    const made = await browser.newContext({ viewport: WIDE, javaScriptEnabled, storageState: state });
    const page = await made.newPage();
    await page.goto(`${api.url}/alerts`);
    await page.getByRole('link', { name: 'New alert' }).click();
    await page.getByLabel('Condition').selectOption('volume');
    await page.getByLabel('all outcomes of markets').check();
    expect(await page.getByLabel('Move', { exact: true }).isVisible()).toBe(false);
    await page.getByLabel('Words').fill('earthquake');
    await page.getByLabel('Amount').fill('a lot');
    await page.getByRole('button', { name: 'Set alert' }).click();
    await page.getByText('Amount: must be a number').waitFor();
    expect(await page.getByLabel('Words').inputValue()).toBe('earthquake');
    expect(await page.getByLabel('Amount').getAttribute('aria-invalid')).toBe('true');
    await photograph(page, `console-alert-rejected-${javaScriptEnabled}`);
    // The checker needs timers of the page.
    if (javaScriptEnabled) expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByLabel('Amount').fill('5000');
    await page.getByLabel('Window', { exact: true }).fill('1 h');
    await page.getByLabel('fire again').check();
    await page.getByLabel('Cool-down', { exact: true }).fill('15 min');
    await page.getByRole('button', { name: 'Set alert' }).click();
    await page.getByRole('status').getByText('it fires when 5,000 is traded within 1 h.').waitFor();
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByLabel('Amount').fill('6000');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('status').getByText('The alert is changed.').waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('status').getByText('The alert is paused.').waitFor();
    await made.close();
  });

  test('a webhook is created, tested and its delivery sent again', async () => {
    const { page } = tab;
    await page.goto(`${api.url}/webhooks`);
    await page.getByText('New webhook', { exact: true }).click();
    await page.getByLabel('Address of your receiver').fill('https://new.receiver.test/hook');
    await page.getByRole('button', { name: 'Create webhook' }).click();
    const secret = await page.locator('.secret').textContent();
    expect(secret).toMatch(/^whsec_/);
    await page.getByRole('button', { name: 'Send a test event' }).click();
    await page.getByRole('status').getByText('A test event is on its way.').waitFor();
    expect(await page.content()).not.toContain(secret);
    await page.goto(`${api.url}/webhooks/${account.webhook.id}/deliveries/${account.failed.id}`);
    await page.getByText('Send again…').click();
    await page.getByRole('button', { name: 'Send again', exact: true }).click();
    await page.getByRole('status').getByText('due again').waitFor();
    expect(api.wakes).toContainEqual({ job: 'deliver-webhook', targets: [account.webhook.pk] });
  });

  test('a key is created, shown once and revoked', async () => {
    const { page } = tab;
    await page.setViewportSize(WIDE);
    await page.goto(`${api.url}/usage`);
    await page.getByText('New key', { exact: true }).click();
    await page.getByLabel('Name').fill('laptop');
    await page.getByRole('button', { name: 'Create key' }).dblclick();
    const key = await page.locator('.secret').textContent();
    expect(key).toMatch(/^ow_live_/);
    await photograph(page, 'console-new-key');
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.reload();
    await page.getByText('The key was shown once, at its creation.').waitFor();
    expect(await page.content()).not.toContain(key);
    await photograph(page, 'console-new-key-again');
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('link', { name: 'Done' }).click();
    expect(await page.content()).not.toContain(key);
    await page
      .getByRole('row', { name: /laptop/ })
      .locator('summary')
      .click();
    await page.getByRole('button', { name: 'Revoke the key laptop' }).click();
    await page.getByRole('status').getByText('The key “laptop” is revoked.').waitFor();
  });

  test('a sign-in link shows a button, works once and then says so', async () => {
    const stranger = await browser.newContext({ viewport: WIDE });
    const { page, problems } = await watchedPage(stranger, api.url);
    const { token } = await api.db.transaction((tx) =>
      issueSignInLink(tx, { accountName: 'Meridian Research', scopes: SCOPES, issuedBy: 'alice' }, Date.now()),
    );
    const path = `${api.url}/console/sign-in/${token}`;
    for (const viewport of [WIDE, PHONE]) {
      await page.setViewportSize(viewport);
      await page.goto(path);
      await photograph(page, `console-link-${viewport.width}`);
      expect(await overflow(page)).toBe(0);
      expect(await accessibilityFaults(page)).toEqual([]);
    }
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL(`${api.url}/markets`);
    expect(problems).toEqual([]);
    await page.goto(path);
    await page.getByText('This link was used, has expired, or is not complete.').waitFor();
    await photograph(page, 'console-link-used');
    expect(await accessibilityFaults(page)).toEqual([]);
    await stranger.close();
  });

  test.for([true, false])(
    'the options of a webhook are rejected and saved, with scripts: %s',
    async (javaScriptEnabled) => {
      const state = await context.storageState();
      const made = await browser.newContext({ viewport: PHONE, javaScriptEnabled, storageState: state });
      const page = await made.newPage();
      await page.goto(`${api.url}/webhooks/${account.webhook.id}`);
      await page.getByRole('link', { name: 'Edit' }).click();
      await page.getByLabel('events of one key').check();
      await page.getByLabel('Key of the order').selectOption('alert');
      await page.getByLabel('Condition 1: Field').fill('venue');
      await page.getByLabel('Condition 1: Value').fill('polymarket');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Condition 1, field: must be').waitFor();
      await photograph(page, `console-webhook-rejected-${javaScriptEnabled}`);
      if (javaScriptEnabled) expect(await accessibilityFaults(page)).toEqual([]);
      expect(await overflow(page)).toBe(0);
      await page.getByLabel('Condition 1: Field').fill('data.venue');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('status').getByText('The webhook is changed.').waitFor();
      await page.getByText('is polymarket').waitFor();
      await made.close();
    },
  );

  test('the live page shows an event as it is made', async () => {
    const { page } = tab;
    await page.goto(`${api.url}/live`);
    await page.locator('[data-live][data-tone="good"]').waitFor();
    const { eventId } = await aDelivery(api.db, { accountId: account.accountId, subscriptionPk: account.webhook.pk });
    await page.locator('#arrivals', { hasText: eventId }).waitFor();
    await page.getByText('1 new event').waitFor();
  });

  test('the table works without scripts', async () => {
    const state = await context.storageState();
    const plain = await browser.newContext({ viewport: PHONE, javaScriptEnabled: false, storageState: state });
    const page = await plain.newPage();
    await page.goto(`${api.url}/markets`);
    await page.getByLabel('Search').fill('earthquake');
    await page.getByRole('button', { name: 'Show' }).click();
    expect(await page.locator('a[data-row]').count()).toBe(1);
    await plain.close();
  });
});
