import { spawnSync } from 'node:child_process';
import { type Browser, chromium } from 'playwright-core';
import { GUARD_MS } from './eventually.ts';

/** Names of the same browser in different distributions. The first has no windows, and needs a sixth less work for the same pages. */
const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** A Chromium for tests: CHROMIUM_PATH, else one from PATH, else null with a warning. */
export function findChromium(): string | null {
  const given = process.env['CHROMIUM_PATH'];
  if (given) return given;
  for (const name of NAMES) {
    const found = spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' });
    if (found.status === 0) return found.stdout.trim();
  }
  console.warn('\n!!! no CHROMIUM_PATH and no chromium on PATH: the browser tests are SKIPPED !!!\n');
  return null;
}

/**
 * Features of a browser for people. A window without a screen has an address bar too, and its popups would be pages in a process of their
 * own, which is half of the browser's work. This list replaces the one of Playwright, whose features are in it too.
 */
const DISABLED = [
  ...['OptimizationHints', 'MediaRouter', 'Translate'],
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup', 'WebUIOmniboxFullPopup'],
  ...[
    'AvoidUnnecessaryBeforeUnloadCheckSync',
    'DestroyProfileOnBrowserClose',
    'PaintHolding',
    'LensOverlay',
    'HttpsUpgrades',
  ],
  ...['AimEnabled', 'PreconnectToSearch', 'NetworkTimeServiceQuerying'],
  // A page of another context would start a process before it is needed.
  'SpareRendererForSitePerProcess',
];

/** A headless browser that reaches only this machine; the caller closes it. Its pages wait as long as other parts of a test. */
export async function launchChromium(executablePath: string): Promise<Browser> {
  const browser = await chromium.launch({
    timeout: GUARD_MS,
    executablePath,
    // Chromium's sandbox does not run as root, which CI containers use.
    chromiumSandbox: process.getuid?.() !== 0,
    args: [
      '--disable-gpu',
      // Nor the emulation of one.
      '--disable-software-rasterizer',
      '--disable-gpu-compositing',
      '--disable-dev-shm-usage',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
      '--disable-background-networking',
      '--disable-component-update',
      `--disable-features=${DISABLED.join(',')}`,
    ],
  });
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(GUARD_MS);
    return context;
  };
  return browser;
}
