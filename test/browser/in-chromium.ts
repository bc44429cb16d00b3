import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe } from 'vitest';
import type { TestApi } from '../integration/api/api-harness.ts';
import { findChromium, launchChromium } from '../support/chromium.ts';

const chromiumPath = findChromium();

export interface InChromium {
  readonly api: TestApi;
  readonly browser: Browser;
}

/** Tests with an API and a browser, which start together. Without a Chromium the tests are skipped. */
export function describeInChromium(
  name: string,
  start: () => Promise<TestApi>,
  tests: (opened: InChromium) => void,
): void {
  describe.skipIf(chromiumPath === null)(name, () => {
    let api: TestApi;
    let browser: Browser;
    beforeAll(async () => {
      [api, browser] = await Promise.all([start(), launchChromium(chromiumPath ?? '')]);
    });
    afterAll(async () => {
      await browser?.close();
      await api?.close();
    });
    tests({
      get api() {
        return api;
      },
      get browser() {
        return browser;
      },
    });
  });
}

/** A page with the session of a context, in a context of its own that ends with the page. */
export async function pageLike(context: BrowserContext, options: BrowserContextOptions): Promise<Page> {
  const browser = context.browser();
  if (!browser) throw new TypeError('the context has a browser');
  // The whole state would open two more pages, which read and write the storage of the origin.
  const storageState = { cookies: await context.cookies(), origins: [] };
  return browser.newPage({ storageState, ...options });
}
