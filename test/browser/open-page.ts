import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { expect } from 'vitest';
import { contrastFaults } from './contrast.ts';

/** The folder of the pictures. Without it no picture is taken: a run takes hundreds of them. */
const PICTURES = process.env['SCREENSHOTS_DIR'];
export const WIDE = { width: 1280, height: 900 };
export const PHONE = { width: 390, height: 844 };

/** A page and its problems: errors, violations of its policy, requests to other hosts. */
export interface WatchedPage {
  page: Page;
  problems: string[];
}

/** Opens a page that records its problems. */
export async function watchedPage(context: BrowserContext, ownUrl: string): Promise<WatchedPage> {
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || /Content.Security.Policy/i.test(message.text())) {
      problems.push(`console: ${message.text()} (${message.location().url})`);
    }
  });
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  page.on('dialog', async (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== new URL(ownUrl).origin && protocol !== 'data:') problems.push(`request: ${request.url()}`);
  });
  return { page, problems };
}

/** Takes a picture of the whole page, or of the window, when SCREENSHOTS_DIR asks for pictures. */
export async function photograph(page: Page, name: string, fullPage = true): Promise<void> {
  if (PICTURES === undefined) return;
  await mkdir(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage });
}

/** Stores a picture that the page itself made, when SCREENSHOTS_DIR asks for pictures. */
export async function keepPicture(bytes: Uint8Array, name: string): Promise<void> {
  if (PICTURES === undefined) return;
  await mkdir(PICTURES, { recursive: true });
  await writeFile(join(PICTURES, `${name}.png`), bytes);
}

const axeSource = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/**
 * Accessibility faults by all or some rules of axe, one line each. Evaluated through the browser protocol, so the content policy of the
 * page stays in effect.
 */
export async function accessibilityFaults(page: Page, runOnly?: readonly string[], off: readonly string[] = []) {
  if (!(await page.evaluate<boolean>(`'axe' in window`))) await page.evaluate(await axeSource);
  const options = {
    resultTypes: ['violations'],
    ...(runOnly && { runOnly: { type: 'rule', values: runOnly } }),
    rules: Object.fromEntries(off.map((rule) => [rule, { enabled: false }])),
  };
  return page.evaluate<string[]>(`axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations
    .flatMap(({ id, nodes }) => nodes.map((node) => id + ': ' + node.html.slice(0, 200) + ' ' + node.failureSummary)))`);
}

/** Pixels of the page to the right of the window: 0 without horizontal scrolling. */
export function overflow(page: Page): Promise<number> {
  return page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');
}

/** Loads a page on a phone, widens it, and expects both widths to be sound in both sets of colours, with large targets for fingers. */
export async function expectSoundForms(page: Page, picture: string, load: () => Promise<unknown>): Promise<void> {
  const inColors = async (width: number, colorScheme: 'dark' | 'light') => {
    await page.emulateMedia({ colorScheme });
    await photograph(page, `${picture}-${width}-${colorScheme}`);
    expect([await overflow(page), await contrastFaults(page)]).toEqual([0, []]);
  };
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.setViewportSize(PHONE);
  await load();
  await expectSound(page, `${picture}-${PHONE.width}-dark`);
  expect(await smallTargets(page)).toEqual([]);
  await inColors(PHONE.width, 'light');
  await page.setViewportSize(WIDE);
  await inColors(WIDE.width, 'light');
  // The check of contrast is most of the work of axe. The rule of links in texts has seen both sets of colours then.
  expect(await accessibilityFaults(page, undefined, ['color-contrast'])).toEqual([]);
  await inColors(WIDE.width, 'dark');
}

/** Faults of the colours of a page. The check of all rules finds them too, and takes longer. */
export async function colorFaults(page: Page): Promise<string[]> {
  return [...(await contrastFaults(page)), ...(await accessibilityFaults(page, ['link-in-text-block']))];
}

/** Takes a picture of a page, and expects no horizontal scrolling and no accessibility faults. */
export async function expectSound(page: Page, picture: string): Promise<void> {
  await photograph(page, picture);
  expect(await overflow(page)).toBe(0);
  expect(await accessibilityFaults(page)).toEqual([]);
}

/** Buttons, links of navigations, and tabs. The markup of a chart belongs to its library. */
const TARGETS = 'button, .button, nav a, .tape > label, .crumbs a, summary.button';

/** The visible targets of a finger that are not 44 pixels high and wide, one line each. */
export function smallTargets(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`[...document.querySelectorAll(${JSON.stringify(TARGETS)})].flatMap((each) => {
    const { width, height } = each.getBoundingClientRect();
    const isSmall = each.checkVisibility({ visibilityProperty: true }) && (width < 44 || height < 44);
    return isSmall ? [each.outerHTML.slice(0, 120) + ': ' + Math.round(width) + ' x ' + Math.round(height)] : [];
  })`);
}
