import { describe, expect, it } from 'vitest';
import { anchorsOf, PAGES } from '../../../support/markdown.ts';
import { useTestApi } from '../api-harness.ts';

const api = useTestApi();

const addressOf = (page: string) =>
  page === 'docs/README.md' ? '/docs/read' : page.replace(/^docs\/(.*)\.md$/, '/docs/read/$1');
const GUIDES = PAGES.filter((page) => page.startsWith('docs/'));

const open = (path: string, init?: RequestInit) => fetch(`${api.url}${path}`, init);

async function page(path: string) {
  const answer = await open(path);
  const [{ status, headers }, text] = [answer, await answer.text()];
  expect([path, status, headers.get('content-type')]).toEqual([path, 200, 'text/html; charset=utf-8']);
  expect(text).not.toMatch(/<script|<style|\bon\w+="|style="|javascript:/i);
  expect(headers.get('content-security-policy')).toContain("default-src 'none'");
  return text;
}

const idsOf = (text: string) => new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id));
const linksOf = (text: string) => [...text.matchAll(/<a [^>]*href="([^"]+)"/g)].map(([, to = '']) => to);

describe('the guides below /docs/read', () => {
  it('are all pages of docs, with the anchors of GitHub', async () => {
    for (const guide of GUIDES) {
      const ids = idsOf(await page(addressOf(guide)));
      const missing = [...anchorsOf(guide)].filter((anchor) => !ids.has(anchor));
      expect([guide, missing]).toEqual([guide, []]);
    }
  });

  it('link only to pages and anchors that exist', async () => {
    const ids = new Map<string, ReadonlySet<string>>();
    const broken: string[] = [];
    for (const guide of GUIDES) ids.set(addressOf(guide), idsOf(await page(addressOf(guide))));
    for (const guide of GUIDES) {
      for (const to of linksOf(await page(addressOf(guide)))) {
        if (/^https?:/.test(to)) continue;
        const [path = '', anchor] = to.split('#');
        const found = path === '' ? ids.get(addressOf(guide)) : ids.get(path);
        if (path.startsWith('/docs/read') || path === '') {
          if (found === undefined || (anchor !== undefined && anchor !== 'main' && !found.has(anchor)))
            broken.push(`${guide}: ${to}`);
        } else if ((await open(path)).status !== 200) {
          broken.push(`${guide}: ${to}`);
        }
      }
    }
    expect(broken).toEqual([]);
  });

  it('show images, and revalidate with 304', async () => {
    const text = await page('/docs/read/operations');
    const [, image = ''] = /<img src="([^"]+)"/.exec(text) ?? [];
    const answer = await open(image);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/png']);
    const etag = answer.headers.get('etag') ?? '';
    expect((await open(image, { headers: { 'If-None-Match': etag } })).status).toBe(304);
  });

  it.each([
    '/docs/read/none',
    '/docs/read/..%2f..%2fpackage',
    '/docs/read/README',
    '/docs/images/none.png',
    '/docs/read/',
  ])('have no page %s', async (path) => {
    expect((await open(path)).status).toBe(404);
  });
});

describe('/docs/streams', () => {
  it('shows each channel with its messages, their schemas and a call', async () => {
    const text = await page('/docs/streams');
    for (const shown of [
      '/v1/{venue}/stream',
      '/v1/stream',
      '/v1/events/stream',
      'curl -N',
      '<h3 id="PriceAlertEvent">',
    ]) {
      expect(text).toContain(shown);
    }
    const ids = idsOf(text);
    for (const to of linksOf(text).filter((each) => each.startsWith('#')))
      expect([to, ids.has(to.slice(1))]).toEqual([to, true]);
  });
});

describe('/docs', () => {
  it('has the navigation of all documentation pages', async () => {
    const { text } = await api.call('/docs');
    for (const path of ['/docs/streams', '/docs/read', '/openapi.json', '/asyncapi.json'])
      expect(text).toContain(`href="${path}"`);
    expect((await api.call('/docs/page.css')).text).toContain('prefers-color-scheme: dark');
  });
});
