import { expect, test } from 'vitest';
import { registerConsolePages } from '../../../api/pages/console/app.ts';
import { createConsoleRouter } from '../../../api/pages/console/route.ts';
import { loadAssets } from '../../../api/pages/kit/assets.ts';
import { type ConsoleDesk, DRAWN, GOOD } from '../console-desk.ts';
import { unvisited } from '../every-page.ts';
import { expectSoundForms, WIDE, watchedPage } from '../open-page.ts';

/** The largest size of a page with its scripts and styles, compressed bytes. */
const MAX_PAGE_BYTES = 150 * 1024;
/** Parts of the address of a webhook that may be secrets. */
const SECRETS = ['query-secret', 'T0SECRETSECRET'];

export function pageTests(desk: ConsoleDesk): void {
  const pages: [name: string, path: () => string, ready?: string][] = [
    ['markets', () => '/markets', GOOD],
    ['markets-none', () => '/markets?q=zzzzqqqq'],
    ['market', desk.marketPath, DRAWN],
    ['market-candles', () => `${desk.marketPath()}?chart=candle&range=1w`, DRAWN],
    ['market-no', () => `${desk.marketPath()}?outcome=${desk.world.market.outcomes[1]?.outcomeId}`, DRAWN],
    ['sibling', () => `/markets/polymarket/${desk.world.siblings[0]?.marketId}`, DRAWN],
    ['hostile', () => `/markets/polymarket/${desk.world.hostile.marketId}`, GOOD],
    ['event', () => '/events/polymarket/chess-final', GOOD],
    ['alerts', () => '/alerts'],
    ['alerts-fired', () => '/alerts?status=triggered'],
    ['alerts-none', () => '/alerts?status=expired'],
    ['alert', () => `/alerts/${desk.account.alert}`],
    ['alert-rule', () => `/alerts/${desk.account.rule}`],
    ['alert-edit', () => `/alerts/${desk.account.rule}/edit`],
    ['alert-new', () => `/alerts/new?tokenMint=${desk.world.market.outcomes[0]?.outcomeId}`],
    ['alert-new-volume', () => '/alerts/new?condition=volume&subject=scope&scope.q=earthquake&repeat=true'],
    ['webhooks', () => '/webhooks'],
    ['webhook', () => `/webhooks/${desk.account.webhook.id}`],
    ['webhook-none', () => `/webhooks/${desk.account.webhook.id}?status=pending`],
    ['webhook-new', () => '/webhooks/new'],
    ['webhook-edit', () => `/webhooks/${desk.account.webhook.id}/edit`],
    ['delivery', () => `/webhooks/${desk.account.webhook.id}/deliveries/${desk.account.failed.id}`],
    ['delivery-chat', () => `/webhooks/${desk.account.message.webhookId}/deliveries/${desk.account.message.id}`],
    ['live', () => '/live', GOOD],
    ['usage', () => '/usage'],
    ['error', () => '/markets?venue=nowhere'],
  ];

  test('the list contains every page of the router', () => {
    const { deps } = desk.api;
    const assets = loadAssets('/console/assets', 'console');
    const router = createConsoleRouter(deps, {} as never, assets);
    registerConsolePages(router, deps);
    const visited = pages.map(([, path]) => path());
    expect(unvisited(router.registered, visited)).toEqual([]);
  });

  test.for(pages)(
    '%s has no errors, no foreign hosts, no accessibility faults, no sideways scroll and fits into 150 KB',
    async ([name, path, ready]) => {
      const { page, problems } = desk.tab;
      problems.length = 0;
      await expectSoundForms(page, `console-${name}`, async () => {
        await page.goto(`${desk.api.url}${path()}`);
        if (ready !== undefined) await page.locator(ready).first().waitFor();
        const content = await page.content();
        expect(await page.title()).not.toBe('pwned');
        expect(SECRETS.filter((secret) => content.includes(secret))).toEqual([]);
      });
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
    const stranger = await desk.browser.newContext({ viewport: WIDE });
    const { page, problems } = await watchedPage(stranger, desk.api.url);
    await expectSoundForms(page, 'console-start', async () => {
      await page.goto(`${desk.api.url}/markets?q=snow`);
      expect(new URL(page.url()).search).toBe('?next=%2Fmarkets%3Fq%3Dsnow');
    });
    await page.getByLabel('API key').fill(desk.signInKey);
    await page.keyboard.press('Enter');
    await page.waitForURL(`${desk.api.url}/markets?q=snow`);
    expect(problems).toEqual([]);
    await stranger.close();
  });
}
