import type { BrowserContext, BrowserContextOptions, Page, Request, ViewportSize } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { ArchiveFolder } from '../../api/reads/archive-folder.ts';
import { SCOPES } from '../../src/domain/values/api-key.ts';
import { createLogger } from '../../src/observe/logger.ts';
import { createApiKey } from '../../src/store/accounts/accounts.ts';
import { startTestApi } from '../integration/api/api-harness.ts';
import { type ConfirmedJournal, confirmJournal } from '../support/journal.ts';
import { type AccountWorld, aConsoleWorld, anAccountWorld, type ConsoleWorld } from './console-world.ts';
import { describeInChromium, type InChromium, pageLike } from './in-chromium.ts';
import { type WatchedPage, WIDE, watchedPage } from './open-page.ts';

export const ACCOUNT_NAME = 'Meridian Research';
/** The line of the state says that the stream is complete. */
export const GOOD = '[data-live][data-tone="good"]';
/** The chart has its prices. */
export const DRAWN = '#market-chart[data-drawn]';

/** Whether a page asks why its stream did not open. */
export const asksForReason = (request: Request) =>
  request.resourceType() === 'fetch' && request.url().includes('/console/stream/');

/** The console with a session of an account, whose world the tests of a file share. */
export interface ConsoleDesk extends InChromium {
  readonly journal: ConfirmedJournal;
  readonly world: ConsoleWorld;
  readonly account: AccountWorld;
  readonly signInKey: string;
  readonly context: BrowserContext;
  /** One tab for most tests, because a tab caches compiled code. */
  readonly tab: WatchedPage;
  marketPath(): string;
  /** The tab, or another one without scripts, with a window of this size. */
  tabAt(viewport: ViewportSize, javaScriptEnabled?: boolean): Promise<Page>;
  /** A signed-in page in a context of its own, which ends with the page. Its start is most of the work of a short test. */
  openPage(options: BrowserContextOptions): Promise<Page>;
}

/** Tests of the console with a signed-in browser. */
export function describeConsole(name: string, tests: (desk: ConsoleDesk) => void): void {
  describeInChromium(
    name,
    () =>
      startTestApi({
        console: {},
        now: Date.now,
        archive: new ArchiveFolder('/nowhere', createLogger({ process: 'test', level: 'silent' })),
      }),
    (opened) => {
      let plain: Page | undefined;
      const desk = {
        async tabAt(viewport, javaScriptEnabled = true) {
          plain ??= javaScriptEnabled ? undefined : await pageLike(desk.context, { javaScriptEnabled });
          const page = javaScriptEnabled || !plain ? desk.tab.page : plain;
          await page.setViewportSize(viewport);
          return page;
        },
        marketPath: () => `/markets/polymarket/${desk.world.market.marketId}`,
        openPage: (options) => pageLike(desk.context, options),
      } as { -readonly [Field in keyof ConsoleDesk]: ConsoleDesk[Field] };
      beforeAll(async () => {
        const { api, browser } = opened;
        const { key, accountId } = await createApiKey(api.db, {
          accountName: ACCOUNT_NAME,
          name: 'browser',
          scopes: SCOPES,
        });
        const world = await aConsoleWorld(api.db);
        const account = await anAccountWorld(api.db, accountId, world.market);
        const context = await browser.newContext({ viewport: WIDE, reducedMotion: 'reduce' });
        const page = await context.newPage();
        await page.goto(api.url);
        await page.getByLabel('API key').fill(key);
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.waitForURL(`${api.url}/markets`);
        await page.close();
        Object.assign(desk, { api, browser, world, account, signInKey: key, context });
        desk.journal = confirmJournal(api.db);
        desk.tab = await watchedPage(context, api.url);
      });
      afterAll(() => desk.journal?.stop());
      tests(desk);
    },
  );
}

/** Hides a page, or shows it, as another tab does. */
export const hide = (page: Page, isHidden: boolean) =>
  page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'))`);
